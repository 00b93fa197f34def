"""Every fault does what its docstring says, at each of its places, to the microsecond.

The pipeline here sends one refund and writes down what it hears. Undisturbed: the call arrives
at the backend at 0.02 s, the request leaves at once, is at the provider at 0.07, is paid at
0.17, and its answer is back at 0.22.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simulator.service.answers import Answer
from simulator.service.design import Design
from simulator.service.designs import SAFE
from simulator.service.errors import (
    CommitUnknown,
    DatabaseUnavailable,
    Declined,
    RateLimited,
    Silence,
)
from simulator.world import faults
from simulator.world.faults import (
    Fault,
    Plan,
    Rates,
)
from simulator.world.scenario import AgentSettings, Scenario, Submission

REFUND = "provider.refund"
ONCE = Scenario.one_refund().but(agent=AgentSettings(resubmits=0))
ERRORS = (Silence, Declined, RateLimited, DatabaseUnavailable, CommitUnknown)
Run = Callable[..., Any]
Log = list[tuple[float, str]]


@pytest.fixture
def log() -> Log:
    """(seconds, what a pipeline heard)."""
    return []


@pytest.fixture
def sends(log: Log, pipe: Any, send: Any, later: Answer) -> Callable[..., Design]:
    """A design that sends one refund and logs what it hears."""

    def build(key: str | None = None, times: int = 1) -> Design:
        def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
            for _ in range(times):
                try:
                    heard = yield from rt.call(REFUND, send(session, key=key), timeout=2.0)
                except ERRORS as error:
                    heard = type(error).__name__
                log.append((round(rt.now(), 6), heard.split()[0]))
            return later

        return pipe(handle)

    return build


@pytest.fixture
def writes(log: Log, pipe: Any, later: Answer) -> Design:
    """A design that makes one transaction and logs how it ended."""

    def reserve(tx: Any) -> str:
        tx.execute("UPDATE orders SET pending = pending + 1")
        return "committed"

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        try:
            heard = yield from rt.transact(reserve)
        except ERRORS as error:
            heard = type(error).__name__
        log.append((round(rt.now(), 6), heard))
        return later

    return pipe(handle)


def paid_at(world: Any) -> list[float]:
    return [effect.time / 1e6 for effect in world.provider.ledger]


def pending(world: Any) -> int:
    return int(world.database.rows("SELECT pending FROM orders")[0][0])


def times(world: Any, process: str, kind: str, what: str | None = None) -> list[float]:
    return [
        event.time / 1e6
        for event in world.trace
        if (event.process, event.kind) == (process, kind) and what in (None, event.what)
    ]


def test_undisturbed_the_answer_is_back_after_a_round_trip(
    world: Run, sends: Any, log: Log
) -> None:
    made = world(sends())
    assert paid_at(made) == [0.17]
    assert log == [(0.22, "REF-1")]
    assert made.struck == []


# Messages.


def test_a_lost_request_never_arrives_and_pays_nothing(world: Run, sends: Any, log: Log) -> None:
    made = world(sends(), faults.lose_request(REFUND), scenario=ONCE)
    assert paid_at(made) == []
    assert times(made, "provider", "arrive") == []
    assert times(made, "provider", "lost", REFUND) == [0.02]
    assert log == [(2.02, "CallTimeout")]


def test_a_lost_response_leaves_the_payment_made_and_the_caller_waiting(
    world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(), faults.lose_response(REFUND), scenario=ONCE)
    assert paid_at(made) == [0.17]
    assert times(made, "backend-1", "lost", REFUND) == [0.17]
    assert log == [(2.02, "CallTimeout")]


def test_a_doubled_request_is_carried_out_twice_and_answered_to_the_caller_once(
    world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(), faults.duplicate_request(REFUND), scenario=ONCE)
    assert times(made, "provider", "arrive", REFUND) == [0.07, 0.09]
    assert paid_at(made) == [0.17, 0.19]
    assert log == [(0.22, "REF-1")]


def test_a_doubled_request_with_a_key_is_paid_once(world: Run, sends: Any) -> None:
    made = world(sends(key="k"), faults.duplicate_request(REFUND), scenario=ONCE)
    assert times(made, "provider", "arrive", REFUND) == [0.07, 0.09]
    assert times(made, "provider", "limited") == [0.09], "409: the first is being worked on"
    assert paid_at(made) == [0.17]


@pytest.mark.parametrize(("when", "paid", "heard"), [("before", [], 0.07), ("after", [0.17], 0.22)])
def test_a_reset_is_noticed_at_once_and_hides_whether_it_was_paid(
    when: str, paid: list[float], heard: float, world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(), faults.reset(REFUND, when=when), scenario=ONCE)
    assert paid_at(made) == paid
    assert log == [(heard, "ConnectionLost")]


@pytest.mark.parametrize(
    ("seconds", "paid", "heard"),
    [(1.5, 1.67, (1.72, "REF-1")), (3.0, 3.17, (2.02, "CallTimeout")), (90000.0, 90000.17, None)],
)
def test_a_late_request_is_carried_out_even_when_nobody_waits_any_more(
    seconds: float, paid: float, heard: Any, world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(), faults.delay_request(REFUND, seconds=seconds), scenario=ONCE)
    assert paid_at(made) == [paid]
    assert log == [heard or (2.02, "CallTimeout")]


@pytest.mark.parametrize(
    ("seconds", "heard"), [(1.5, (1.72, "REF-1")), (3.0, (2.02, "CallTimeout"))]
)
def test_a_late_response_was_paid_in_time(
    seconds: float, heard: tuple[float, str], world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(), faults.delay_response(REFUND, seconds=seconds), scenario=ONCE)
    assert paid_at(made) == [0.17]
    assert times(made, "backend-1", "arrive", REFUND) == [0.22 + seconds]
    assert log == [heard]


def test_a_late_answer_is_not_taken_for_the_answer_to_the_next_call(
    world: Run, sends: Any, log: Log
) -> None:
    late = faults.delay_response(REFUND, nth=1, seconds=1.9)  # arrives at 2.12
    slow = faults.delay_response(REFUND, nth=2, seconds=1.0)
    world(sends(times=2), late, slow, scenario=ONCE)
    assert log == [(2.02, "CallTimeout"), (3.22, "REF-2")]


def test_the_agents_calls_and_the_customers_messages_can_be_lost_too(world: Run) -> None:
    made = world(SAFE, faults.lose_response("tool.issue_refund"))
    assert len(times(made, "agent", "request", "tool.issue_refund")) == 2
    assert times(made, "agent", "timeout") == [15.0]
    made = world(SAFE, faults.lose_request("customer.notify"))
    assert times(made, "customer", "lost", "customer.notify") != []
    assert len(times(made, "worker-1", "request", "customer.notify")) == 2


# Crashes.


@pytest.mark.parametrize(
    ("when", "requests", "paid", "arrived"),
    [
        ("before_send", [], [], []),
        ("after_send", [0.02], [0.17], [0.22]),
        ("after_answer", [0.02], [0.17], [0.22]),
    ],
)
def test_a_crash_at_a_call_stops_the_process_right_there(
    when: str,
    requests: list[float],
    paid: list[float],
    arrived: list[float],
    world: Run,
    sends: Any,
    log: Log,
) -> None:
    made = world(sends(), faults.crash(REFUND, when=when), scenario=ONCE)
    died = 0.22 if when == "after_answer" else 0.02
    assert times(made, "backend-1", "crash") == [died]
    assert times(made, "backend-1", "restart") == [died + 5.0]
    assert times(made, "backend-1", "request", REFUND) == requests
    assert times(made, "backend-1", "arrive", REFUND) == arrived
    assert paid_at(made) == paid  # a message that was sent stays sent
    assert log == []  # nothing of it ran any further
    assert times(made, "agent", "reset") == [died + 0.02]


@pytest.mark.parametrize(("when", "written", "died"), [("before", 0, 0.02), ("after", 1, 0.022)])
def test_a_crash_at_a_transaction_falls_on_one_side_of_its_commit(
    when: str, written: int, died: float, world: Run, writes: Design, log: Log
) -> None:
    made = world(writes, faults.crash("reserve", when=when), scenario=ONCE)
    assert pending(made) == written
    assert times(made, "backend-1", "crash") == [died]
    assert log == []


def test_a_crash_is_by_default_after_the_answer_or_the_commit() -> None:
    assert faults.crash("worker-1:provider.refund").when == "after_answer"
    assert faults.crash("customer.notify").when == "after_answer"
    assert faults.crash("backend-1:begin").when == "after"
    assert faults.pause("finish").when == "after"


def test_memory_dies_with_the_process(world: Run, pipe: Any, later: Answer) -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    def handle(rt: Any, design: Design, call: Any, session: Any) -> Any:
        seen.append((rt.owner, dict(rt.memory)))
        rt.memory["calls"] = rt.memory.get("calls", 0) + 1
        yield from rt.call("customer.notify", send_word(later), timeout=2.0)
        return later

    world(pipe(handle), faults.crash("customer.notify"))
    assert seen == [("backend-1#1", {}), ("backend-1#2", {})]


def send_word(answer: Answer) -> Any:
    from simulator.service.worker import Message

    return Message("intent-1", answer)


# Pauses.


@pytest.mark.parametrize(
    ("when", "sent", "paid", "heard"),
    [
        ("before_send", 40.02, 40.17, 40.22),
        ("after_send", 0.02, 0.17, 40.02),
        ("after_answer", 0.02, 0.17, 40.22),
    ],
)
def test_a_pause_at_a_call_stops_the_process_for_its_seconds_with_all_it_knows(
    when: str, sent: float, paid: float, heard: float, world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(), faults.pause(REFUND, when=when, seconds=40.0), scenario=ONCE)
    assert times(made, "backend-1", "request", REFUND) == pytest.approx([sent], abs=1e-5)
    assert paid_at(made) == pytest.approx([paid], abs=1e-5)
    ((at, what),) = log
    assert (at, what) == (pytest.approx(heard, abs=1e-5), "REF-1")
    stopped = 0.22 if when == "after_answer" else 0.02
    assert times(made, "backend-1", "pause") == [stopped]
    assert times(made, "backend-1", "resume") == [stopped + 40.0]


@pytest.mark.parametrize(("when", "committed"), [("before", 40.022), ("after", 0.022)])
def test_a_pause_at_a_transaction_falls_on_one_side_of_its_commit(
    when: str, committed: float, world: Run, writes: Design, log: Log
) -> None:
    made = world(writes, faults.pause("reserve", when=when, seconds=40.0), scenario=ONCE)
    assert times(made, "backend-1", "commit") == pytest.approx([committed], abs=1e-5)
    ((at, what),) = log
    assert (at, what) == (pytest.approx(40.022, abs=1e-5), "committed")


# The provider.


@pytest.mark.parametrize(("when", "paid"), [("before", []), ("after", [0.17])])
def test_a_provider_that_dies_at_work_breaks_the_connection_on_one_side_of_the_payment(
    when: str, paid: list[float], world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(), faults.crash_provider(REFUND, when=when), scenario=ONCE)
    assert paid_at(made) == paid
    assert log == [(0.22, "ConnectionLost")]
    assert times(made, "provider", "down") == [0.17]
    assert times(made, "provider", "up") == [5.17]


def test_a_provider_that_is_down_refuses_from_this_call_on_for_its_seconds(
    world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(times=200), faults.provider_down(REFUND, seconds=10.0), scenario=ONCE)
    refused = [at for at, heard in log if heard == "ConnectionLost"]
    assert refused[0] == 0.12
    assert refused == [at for at, _ in log if at < 10.07]
    assert times(made, "provider", "down") == [0.02]
    assert times(made, "provider", "up") == [10.02]
    assert paid_at(made)[0] == pytest.approx(10.2, abs=0.2)


def test_a_provider_that_dies_takes_all_it_was_working_on_with_it(
    world: Run, sends: Any, log: Log
) -> None:
    scenario = ONCE.but(
        submissions=(Submission("intent-1"), Submission("intent-1", 0.05, "backend-2"))
    )
    fault = faults.crash_provider(f"backend-1:{REFUND}", when="before")
    made = world(sends(), fault, scenario=scenario)
    assert paid_at(made) == []
    assert log == [(0.22, "ConnectionLost"), (0.22, "ConnectionLost")]


# The database.


def test_a_database_that_is_down_refuses_from_this_transaction_on_for_its_seconds(
    world: Run, writes: Design, log: Log
) -> None:
    made = world(writes, faults.database_down("reserve", seconds=10.0), scenario=ONCE)
    assert log == [(0.022, "DatabaseUnavailable")]
    assert pending(made) == 0
    assert times(made, "database", "down") == [0.02]
    assert times(made, "database", "up") == [10.02]


def test_while_it_is_down_the_database_refuses_other_processes_too(
    world: Run, writes: Design, log: Log
) -> None:
    submissions = [Submission("intent-1", at, "backend-2") for at in (1.0, 9.9, 10.1)]
    scenario = ONCE.but(submissions=(Submission("intent-1"), *submissions))
    made = world(writes, faults.database_down("backend-1:reserve", seconds=10.0), scenario=scenario)
    assert [heard for _, heard in log] == ["DatabaseUnavailable"] * 3 + ["committed"]
    assert pending(made) == 1


@pytest.mark.parametrize(("when", "written"), [("before", 0), ("after", 1)])
def test_a_commit_that_nobody_acknowledges_may_have_taken_effect_or_not(
    when: str, written: int, world: Run, writes: Design, log: Log
) -> None:
    made = world(writes, faults.lose_commit_ack("reserve", when=when), scenario=ONCE)
    assert pending(made) == written
    assert log == [(5.022, "CommitUnknown")]
    assert times(made, "backend-1", "ack_lost") == [0.022]


# For ever.


@pytest.mark.parametrize(
    ("fault", "process", "kind"),
    [
        (faults.crash(REFUND), "worker-1", "restart"),
        (faults.pause(REFUND), "worker-1", "resume"),
        (faults.provider_down(REFUND), "provider", "up"),
        (faults.crash_provider(REFUND), "provider", "up"),
        (faults.database_down("claim"), "database", "up"),
    ],
)
def test_what_is_not_healed_stays_broken(fault: Fault, process: str, kind: str, world: Run) -> None:
    assert len(times(world(SAFE, fault), process, kind)) == 1
    assert times(world(SAFE, fault, heal=False), process, kind) == []


# Where a fault strikes.


def test_a_whole_name_counts_the_times_of_one_process_a_short_one_those_of_all(
    world: Run, sends: Any
) -> None:
    scenario = ONCE.but(
        submissions=(Submission("intent-1"), Submission("intent-1", 1.0, "backend-2"))
    )
    for step, process in (
        (f"backend-2:{REFUND}", "backend-2"),
        (f"backend-1:{REFUND}", "backend-1"),
        (REFUND, "backend-1"),
    ):
        made = world(sends(), faults.lose_request(step), scenario=scenario)
        ((index, fault),) = made.struck
        assert (made.steps[index].process, made.steps[index].what) == (process, REFUND)
        assert fault.step == step
    made = world(sends(), faults.lose_request(REFUND, nth=2), scenario=scenario)
    assert made.steps[made.struck[0][0]].process == "backend-2"


def test_the_count_goes_on_through_the_lives_of_a_process(world: Run, sends: Any) -> None:
    made = world(
        sends(),
        faults.crash(f"backend-1:{REFUND}", nth=1),
        faults.lose_response(f"backend-1:{REFUND}", nth=2),
    )
    assert [made.steps[index].nth for index, _ in made.struck] == [1, 2]
    assert len(times(made, "backend-1", "crash")) == 1


def test_a_fault_strikes_once_and_is_noted_where_it_struck(
    world: Run, sends: Any, log: Log
) -> None:
    made = world(sends(times=3), faults.lose_request(REFUND, nth=2), scenario=ONCE)
    assert [heard for _, heard in log] == ["REF-1", "CallTimeout", "REF-2"]
    assert [index for index, _ in made.struck] == [
        index for index, step in enumerate(made.steps) if (step.what, step.nth) == (REFUND, 2)
    ]
    ((at, text),) = [(e.time / 1e6, e.text) for e in made.trace if e.kind == "fault"]
    assert (at, text) == (0.22, "lose_request(provider.refund, nth=2)")


def test_a_fault_at_a_step_that_is_never_taken_never_strikes(world: Run, sends: Any) -> None:
    assert world(sends(), faults.lose_request("provider.refnd")).struck == []
    assert world(sends(), faults.lose_request(REFUND, nth=2), scenario=ONCE).struck == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: faults.lose_request("begin"), "that step is a transaction"),
        (lambda: faults.lose_response("begin"), "that step is a transaction"),
        (lambda: faults.crash("begin", when="before_send"), "say one of 'before', 'after'"),
        (lambda: faults.crash(REFUND, when="before"), "say one of 'before_send'"),
        (lambda: faults.pause("begin", when="after_answer"), "say one of 'before', 'after'"),
        (lambda: faults.lose_commit_ack(REFUND), "that step is a call"),
        (lambda: faults.crash_provider("customer.notify"), "name a call of the provider"),
    ],
)
def test_a_fault_that_its_step_cannot_have_is_refused(
    make: Callable[[], Fault], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        make()


# Words.


def test_a_fault_reads_like_the_call_that_made_it() -> None:
    assert str(faults.lose_response("backend-1:provider.refund")) == (
        "lose_response(backend-1:provider.refund)"
    )
    assert str(faults.crash("begin", nth=2, when="before")) == "crash(begin, nth=2, before)"
    assert str(faults.pause("begin", seconds=40)) == "pause(begin, after, 40 s)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fault("lose_reponse", REFUND), "no fault 'lose_reponse'. The faults are: lose_r"),
        (lambda: faults.lose_request(""), "name a step, for example 'provider.refund'"),
        (lambda: faults.lose_request("worker-1:"), "name a step"),
        (lambda: faults.lose_request(REFUND, nth=0), "nth=0.*counted 1, 2, 3"),
        (lambda: faults.lose_request(REFUND, nth=1.0), r"nth=1\.0.*counted 1, 2, 3"),
        (lambda: faults.lose_request(REFUND, nth=True), "nth=True"),
        (lambda: faults.reset(REFUND, when="during"), "'during'.*'before', 'after'"),
        (lambda: faults.crash(REFUND, when="befor"), "'befor'.*'before_send', 'after_send'"),
        (lambda: faults.crash_provider(REFUND, when=""), "say one of 'before', 'after'"),
        (lambda: Fault("lose_request", REFUND, when="before"), "say one of ''"),
        (lambda: faults.pause(REFUND, seconds=0), "more than 0 seconds"),
        (lambda: faults.delay_request(REFUND, seconds=-1), "more than 0 seconds"),
        (lambda: faults.provider_down(REFUND, seconds=float("inf")), "and ends"),
        (lambda: faults.database_down("begin", seconds=float("nan")), "more than 0 seconds"),
        (lambda: Fault("lose_request", REFUND, seconds=3.0), "takes no seconds"),
    ],
)
def test_a_fault_that_there_cannot_be_is_refused_in_a_sentence(
    make: Callable[[], Fault], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: faults.crash(5),
        lambda: faults.lose_request(None),
        lambda: faults.pause("begin", seconds="3"),
        lambda: Rates(delay_seconds="3"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_a_sentence(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        make()


def test_two_faults_at_one_step_are_refused_with_both_names() -> None:
    both = [faults.lose_request(REFUND), faults.reset(REFUND)]
    with pytest.raises(ValueError, match=r"Two faults name step.*lose_request.*reset.*At most"):
        Plan(both)
    assert Plan([faults.lose_request(REFUND), faults.reset(REFUND, nth=2)])


@pytest.mark.parametrize("wrong", ["lose_response", faults.lose_response, None])
def test_what_is_no_fault_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"make a fault with faults\.lose_response"):
        Plan([wrong])
