"""The outbox against a model in plain Python: several workers, leases that end, fencing tokens.

Hypothesis lets three workers claim, finish, come back after their lease, set rows aside and
wait, in every order it can think of. The model says which row a claim must give, to whom it
belongs, and when the next one is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from simulator.service import outbox
from simulator.service.operations import DurableRecord, Operation
from simulator.service.outbox import Job, bury, claim_next, enqueue, next_due, release

WORKERS = ("worker-1#1", "worker-2#1", "worker-3#1")
NUMBERS = (1, 2, 3)
TOPICS = ("refund", "tell")
MAX_CLAIMS = 2
INSTANT = 0.000001
EXAMPLES = settings(max_examples=200, stateful_step_count=40, report_multiple_bugs=False)
TO_THE_FIRST_FAILURE = settings(EXAMPLES, phases=(Phase.generate,))


@dataclass
class Promise:
    """What the model knows of one row. Times in seconds; `lease_until` None: for ever."""

    available_at: float | None
    owner: str | None = None
    lease_until: float | None = None
    token: int = 0
    claims: int = 0
    tries: int = 0
    done: bool = False
    dead: bool = False

    def due(self, takes_over: bool) -> float | None:
        """When it can be claimed; None if never, as things are."""
        if self.done or self.dead or self.available_at is None:
            return None
        if self.owner is None:
            return self.available_at
        if not takes_over or self.lease_until is None:
            return None
        return max(self.available_at, self.lease_until)


class OutboxMachine(RuleBasedStateMachine):
    """One database, and beside it what should be in it.

    Attributes:
        rows: the model, by (operation, topic).
        takes_over: whether claims whose lease has ended are free.
        newest: the last token that was handed out, by (operation, topic).
    """

    jobs = Bundle("jobs")

    def __init__(self, desk: Any) -> None:
        super().__init__()
        self.desk = desk
        self.rows: dict[tuple[str, str], Promise] = {}
        self.takes_over = True
        self.newest: dict[tuple[str, str], int] = {}
        for number in NUMBERS:
            operation = Operation(
                f"{number}", "t", "u", f"i{number}", "c", "o", 1, "USD", "m", f"k{number}", "f"
            )
            DurableRecord().begin(desk, operation)

    def teardown(self) -> None:
        self.desk.connection.close()

    @contextmanager
    def only_looking(self) -> Iterator[None]:
        """What is done inside leaves no trace, and takes no time."""
        now = self.desk.seconds
        self.desk.execute("SAVEPOINT looking")
        try:
            yield
        finally:
            self.desk.execute("ROLLBACK TO looking")
            self.desk.execute("RELEASE looking")
            self.desk.seconds = now

    def dump(self) -> list[Any]:
        return list(self.desk.rows("SELECT * FROM outbox ORDER BY operation_id, topic"))

    def claimable(self) -> list[tuple[str, str]]:
        """What can be claimed now, what has waited longest first."""
        due = {where: row.due(self.takes_over) for where, row in self.rows.items()}
        now = self.desk.seconds
        return sorted(
            (where for where, when in due.items() if when is not None and when <= now),
            key=lambda where: (self.rows[where].available_at, where),
        )

    def first_due(self) -> float | None:
        """When the next row can be claimed; None if none ever can."""
        moments = [row.due(self.takes_over) for row in self.rows.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    @initialize(takes_over=st.sampled_from([True, True, False]))
    def begin(self, takes_over: bool) -> None:
        self.takes_over = takes_over
        self.promise(1, "refund", 0.0)

    @rule(
        number=st.sampled_from(NUMBERS),
        topic=st.sampled_from(TOPICS),
        due_in=st.sampled_from([0.0, 0.0, 20.0]),
    )
    def promise(self, number: int, topic: str, due_in: float) -> None:
        """Work is promised; a second time it is the same promise."""
        before, where = self.dump(), (f"{number}", topic)
        enqueue(self.desk, *where, due_in)
        if where in self.rows:
            assert self.dump() == before
        else:
            self.rows[where] = Promise(self.desk.seconds + due_in)

    @rule(
        target=jobs,
        worker=st.sampled_from(WORKERS),
        lease=st.sampled_from([10.0, 10.0, 30.0, 30.0, None]),
    )
    def claim(self, worker: str, lease: float | None) -> Any:
        """A worker asks for work; what was claimed too often it sets aside at once."""
        claimable = self.claimable()
        job = claim_next(self.desk, worker, lease, self.takes_over)
        if not claimable:
            assert job is None
            return multiple()
        assert job is not None
        where = (job.operation.id, job.topic)
        assert where == claimable[0]
        row = self.rows[where]
        assert not row.done
        assert not row.dead
        assert row.owner is None or self.takes_over, "an owner lost its row"
        assert job.token > self.newest.get(where, 0), "a token was given out twice"
        self.newest[where] = job.token
        row.owner, row.token, row.claims = worker, row.token + 1, row.claims + 1
        row.lease_until = None if lease is None else self.desk.seconds + lease
        assert (job.token, job.claims, job.tries) == (row.token, row.claims, row.tries)
        assert job.expired == (row.claims > 1)
        if row.claims > MAX_CLAIMS:
            bury(self.desk, job)
            row.dead, row.owner, row.lease_until = True, None, None
        return job

    def end(self, job: Job, again_in: float | None, done: bool) -> bool:
        """Releases a claim in the database and in the model, if it is still the newest."""
        row = self.rows[job.operation.id, job.topic]
        before = self.dump()
        ended = release(self.desk, job, fence=True, again_in=again_in, done=done)
        assert ended == (job.token == row.token and row.owner is not None)
        if not ended:
            assert self.dump() == before, "an old token changed something"
            return False
        row.owner = row.lease_until = None
        row.claims, row.tries, row.done = 0, row.tries + 1, done
        row.available_at = None if done or again_in is None else self.desk.seconds + again_in
        return True

    @rule(job=jobs, again_in=st.sampled_from([0.0, 5.0, 45.0]))
    def let_go(self, job: Job, again_in: float) -> None:
        """A worker has no final result, and says when to look again."""
        self.end(job, again_in, done=False)

    @rule(job=jobs, how=st.sampled_from(["done", "left for ever", "handed over"]))
    def close(self, job: Job, how: str) -> None:
        """A worker has a final result, or gives up; perhaps long after its lease."""
        if self.end(job, None, done=how == "done") and how == "handed over":
            bury(self.desk, job)
            self.rows[job.operation.id, job.topic].dead = True

    @rule(seconds=st.sampled_from([1.0, 10.0, 10.0, 30.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.desk.seconds += seconds

    @rule()
    def sleep_until_something_is_due(self) -> None:
        """What an idle worker does."""
        self.desk.seconds = max(self.first_due() or 0.0, self.desk.seconds)

    @invariant()
    def the_table_is_what_the_model_says(self) -> None:
        stored = self.desk.rows(
            "SELECT operation_id, topic, available_at, owner, lease_until, token, claims, tries, "
            "done_at IS NOT NULL, dead_at IS NOT NULL FROM outbox ORDER BY operation_id, topic"
        )
        assert stored == [
            (
                *where,
                self.at(row.available_at),
                row.owner,
                self.at(row.lease_until),
                row.token,
                row.claims,
                row.tries,
                row.done,
                row.dead,
            )
            for where, row in sorted(self.rows.items())
        ]

    def at(self, seconds: float | None) -> str | None:
        """A moment as the database stores it."""
        return None if seconds is None else self.desk.time(seconds - self.desk.seconds)

    @invariant()
    def whoever_holds_a_row_has_its_newest_token(self) -> None:
        for operation_id, topic, token in self.desk.rows(
            "SELECT operation_id, topic, token FROM outbox WHERE owner IS NOT NULL"
        ):
            assert token == self.newest[operation_id, topic]

    @invariant()
    def the_next_row_is_due_exactly_when_a_claim_finds_it(self) -> None:
        first = self.first_due()
        assert next_due(self.desk, self.takes_over) == self.at(first)
        if first is None:
            return
        with self.only_looking():
            self.desk.seconds = max(first, self.desk.seconds)
            assert claim_next(self.desk, "next", 30.0, self.takes_over) is not None
        if first > self.desk.seconds:
            with self.only_looking():
                self.desk.seconds = first - INSTANT
                assert claim_next(self.desk, "next", 30.0, self.takes_over) is None

    @invariant()
    def nothing_that_has_a_time_is_forgotten(self) -> None:
        """Whoever always sleeps until `next_due` gets every open row, once, and then nothing."""
        waiting = {
            where for where, row in self.rows.items() if row.due(self.takes_over) is not None
        }
        found = set()
        with self.only_looking():
            while (due := next_due(self.desk, self.takes_over)) is not None:
                if due > self.desk.time():
                    self.desk.seconds = self.seconds_of(due)
                job = claim_next(self.desk, "sweeper", 30.0, self.takes_over)
                assert job is not None
                found.add((job.operation.id, job.topic))
                assert release(self.desk, job, fence=True, again_in=None, done=True)
        assert found == waiting

    def seconds_of(self, moment: str) -> float:
        """The desk's clock at a stored moment."""
        for row in self.rows.values():
            if (due := row.due(self.takes_over)) is not None and self.at(due) == moment:
                return due
        raise AssertionError(f"nothing in the model is due at {moment}")


def test_the_outbox_does_what_its_model_does(new_desk: Callable[[], Any]) -> None:
    run_state_machine_as_test(lambda: OutboxMachine(new_desk()), settings=EXAMPLES)


# The machine itself: it turns red when the code is broken. (name, what is there, what is not.)

BROKEN: dict[str, tuple[str, str, str]] = {
    "a release does not look at the token": ("RELEASE", " AND token = :token", ""),
    "a claim can be released twice": ("RELEASE", "AND owner IS NOT NULL", ""),
    "a release leaves the claims": ("RELEASE", "claims = 0, ", ""),
    "a release leaves the owner": ("RELEASE", "owner = NULL, ", ""),
    "a claim does not look at the owner": (
        "CLAIM",
        "AND (owner IS NULL OR (:takes_over = 1 AND lease_until <= :now))",
        "",
    ),
    "a claim takes over where nobody may": ("CLAIM", ":takes_over = 1 AND ", ""),
    "a claim takes nothing over": ("CLAIM", "lease_until <= :now", "lease_until < created_at"),
    "a claim does not look at the time": ("CLAIM", "AND available_at <= :now", ""),
    "a claim does not look whether it is dead": ("CLAIM", "AND dead_at IS NULL", ""),
    "a token stays as it is": ("CLAIM", "token = token + 1", "token = token"),
    "nobody counts the claims": ("CLAIM", "claims = claims + 1", "claims = 1"),
    "the newest comes first": ("CLAIM", "ORDER BY available_at", "ORDER BY available_at DESC"),
    "a lease that ends wakes nobody": ("NEXT_DUE", "ELSE lease_until END", "END"),
    "the next row is the last": ("NEXT_DUE", "MIN(", "MAX("),
    "a dead row is due": ("NEXT_DUE", "AND dead_at IS NULL", ""),
    "a row is set aside with its twin": ("BURY", " AND topic = :topic", ""),
    "a promise for later is due at once": ("ENQUEUE", ":due", ":now"),
    "a promise that is repeated begins anew": (
        "ENQUEUE",
        "DO NOTHING",
        "DO UPDATE SET available_at = :now, done_at = NULL",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_machine_notices_when(
    what: str, new_desk: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, good, bad = BROKEN[what]
    statement = getattr(outbox, name)
    assert good in statement
    monkeypatch.setattr(outbox, name, statement.replace(good, bad))
    with pytest.raises(AssertionError):
        run_state_machine_as_test(lambda: OutboxMachine(new_desk()), settings=TO_THE_FIRST_FAILURE)
