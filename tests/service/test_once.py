"""A transaction that may have to run again, and what is left of it."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.service.audit import AuditAfterwards, Notes
from simulator.service.designs import NAIVE, SAFE
from simulator.service.errors import CommitUnknown, DatabaseUnavailable
from simulator.service.once import DATABASE_TRIES, once, write_audit

AFTERWARDS = SAFE.but(audit=AuditAfterwards())


def note(tx: Any, d: Any, later: list[Any], word: str) -> str:
    """A transaction of one note."""
    Notes(tx, d, later).entry("intent-1", None, "noted", word)
    return word.upper()


def details(desk: Any) -> list[str]:
    return [row[0] for row in desk.rows("SELECT detail FROM audit_log ORDER BY id")]


def test_a_transaction_is_run_with_its_arguments_and_its_result_comes_back(
    runtime: Any, run: Any
) -> None:
    assert run(once(runtime, SAFE, note, "one")) == "ONE"
    assert runtime.transactions == ["note"]
    assert (details(runtime.desk), runtime.slept) == (["one"], [])


@pytest.mark.parametrize(
    ("error", "times"), [(DatabaseUnavailable("down"), 1), (CommitUnknown("broken"), 2)]
)
def test_it_is_run_again_until_its_commit_is_known(
    error: Exception, times: int, runtime: Any, run: Any
) -> None:
    (runtime.acks if isinstance(error, CommitUnknown) else runtime.refusals).append(error)
    assert run(once(runtime, SAFE, note, "one")) == "ONE"
    assert runtime.transactions == ["note"] * times
    assert runtime.slept == [0.5]


@pytest.mark.parametrize("error", [DatabaseUnavailable, CommitUnknown])
def test_after_six_tries_and_15_seconds_it_gives_up(
    error: type[Exception], runtime: Any, run: Any
) -> None:
    tries = runtime.acks if error is CommitUnknown else runtime.refusals
    tries += [error("down") for _ in range(9)]
    with pytest.raises(error):
        run(once(runtime, SAFE, note, "one"))
    assert 9 - len(tries) == DATABASE_TRIES == 6
    assert runtime.slept == [0.5, 1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("error", [DatabaseUnavailable, CommitUnknown])
def test_without_a_durable_record_nothing_is_run_again(
    error: type[Exception], runtime: Any, run: Any
) -> None:
    (runtime.acks if error is CommitUnknown else runtime.refusals).append(error("down"))
    with pytest.raises(error):
        run(once(runtime, NAIVE, note, "one"))
    assert runtime.slept == []
    assert len(runtime.transactions) == (error is CommitUnknown)


def test_another_error_goes_up_at_once_and_nothing_is_written(runtime: Any, run: Any) -> None:
    def breaks(tx: Any, d: Any, later: list[Any]) -> None:
        note(tx, d, later, "lost")
        raise KeyError("oops")

    with pytest.raises(KeyError):
        run(once(runtime, SAFE, breaks))
    assert (details(runtime.desk), runtime.slept) == ([], [])


def test_what_is_audited_afterwards_has_a_transaction_of_its_own(runtime: Any, run: Any) -> None:
    assert run(once(runtime, AFTERWARDS, note, "one")) == "ONE"
    assert runtime.transactions == ["note", "write_audit"]
    assert details(runtime.desk) == ["one"]


def test_what_is_audited_afterwards_is_of_the_last_run_only(runtime: Any, run: Any) -> None:
    runtime.acks.append(CommitUnknown("broken"))
    run(once(runtime, AFTERWARDS, note, "one"))
    assert runtime.transactions == ["note", "note", "write_audit"]
    assert details(runtime.desk) == ["one"]


def test_a_transaction_without_notes_needs_no_second_one(runtime: Any, run: Any) -> None:
    assert run(once(runtime, AFTERWARDS, lambda tx, d, later: 7)) == 7
    assert len(runtime.transactions) == 1


def test_the_entries_are_written_as_they_were_noted(desk: Any) -> None:
    write_audit(desk, [("intent-1", "op-1", "a->b", "why"), ("intent-2", None, "denied", "")])
    assert desk.rows("SELECT intent_id, operation_id, event, detail FROM audit_log") == [
        ("intent-1", "op-1", "a->b", "why"),
        ("intent-2", None, "denied", ""),
    ]
