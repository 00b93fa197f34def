"""What lesson 02 counts on: a history as a service's log, every history with one fault, and
what theory says of four designs under four faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from simulator import Scenario, replay
from simulator.experiments.closed_forms import doubled_by_naive_retries
from simulator.experiments.explore import faults_at
from simulator.experiments.run import Run
from simulator.service.design import Design

__all__ = ["FORMULAS", "histories", "log_of"]

Formula = Callable[[float], float]

_WORDS = {
    ("backend", "arrive", "tool.issue_refund"): "asked",
    ("backend", "request", "provider.refund"): "sent",
    ("provider", "effect", "provider.refund"): "paid",
    ("backend", "arrive", "provider.refund"): "heard",
    ("backend", "commit", "finish"): "booked",
}


def log_of(run: Run) -> list[str]:
    """A history in six words, in the order of time: asked, sent, paid, heard, booked, died.

    `asked`: a tool call reached a living backend. `heard`: so did the provider's answer.
    """
    words: list[str] = []
    dead: set[str] = set()
    for event in run.trace:
        process = event.process
        if event.kind == "crash":
            dead.add(process)
            words.append("died")
        elif event.kind == "restart":
            dead.discard(process)
        elif process not in dead:
            word = _WORDS.get((process.split("-")[0], event.kind, event.what))
            words += [word] if word else []
    return words


def histories(design: Design) -> list[tuple[list[str], frozenset[str]]]:
    """The history of one refund without a fault, and every one with a single fault.

    Returns:
        For each, its faults as text and the names of the invariants that it broke.
    """
    scenario = Scenario.one_refund()
    single = [
        fault
        for step in replay(design, scenario).steps
        for fault in faults_at(step, design, scenario)
    ]
    found = []
    for plan in [(), *((fault,) for fault in single)]:
        verdict = replay(design, scenario, plan).verdict
        found.append(([str(fault) for fault in plan], frozenset(verdict)))
    return found


def _zero(p: float) -> float:
    return 0.0


def _same(p: float) -> float:
    return p


def _three_in_a_row(p: float) -> float:
    return p**3


def _either_of_two(p: float) -> float:
    return 1 - (1 - p) ** 2


def _doubled_by_crashes(p: float) -> float:
    """Died after paying, before dying before it or being done: b / (1 - a), retried for ever.

    A service that dies is asked again, for ever. In one life it takes two transactions and a
    call between them. Each step is hit with probability p, at a place drawn evenly: of the call
    two places in three are after the send.
    """
    unpaid = p + (1 - p) * p / 3
    paid = (1 - p) * (2 * p / 3 + (1 - p) * p)
    return paid / (1 - unpaid)


def _stranded_by_crashes(p: float) -> float:
    """Died with the record written and nothing sent: who asks again is told that it is known.

    Half of the crashes in the first transaction come after its commit, and a third of those in
    the call before the send. A crash before the commit leaves nothing, and all begins anew.
    """
    return (p / 2 + (1 - p) * p / 3) / (1 - p / 2)


def _table(
    naive: Formula, one_shot: Formula, durable: Formula, key: Formula
) -> Mapping[str, Formula]:
    names = ("NAIVE", "ONE_SHOT", "DURABLE_RECORD", "PROVIDER_KEY")
    return dict(zip(names, (naive, one_shot, durable, key), strict=True))


def _doubled_by_silence(p: float) -> float:
    return doubled_by_naive_retries(0.0, p, 3)


FORMULAS: Mapping[tuple[str, str], Mapping[str, Formula]] = {
    ("request lost", "double_refund"): _table(_zero, _zero, _zero, _zero),
    ("request lost", "lost_refund"): _table(
        _three_in_a_row, _same, _three_in_a_row, _three_in_a_row
    ),
    ("request lost", "false_answer"): _table(_zero, _zero, _zero, _zero),
    ("answer lost", "double_refund"): _table(
        _doubled_by_silence, _zero, _doubled_by_silence, _zero
    ),
    ("answer lost", "lost_refund"): _table(_zero, _zero, _zero, _zero),
    ("answer lost", "false_answer"): _table(
        _three_in_a_row, _same, _three_in_a_row, _three_in_a_row
    ),
    ("service dies", "double_refund"): _table(
        _doubled_by_crashes, _doubled_by_crashes, _zero, _zero
    ),
    ("service dies", "lost_refund"): _table(
        _zero, _zero, _stranded_by_crashes, _stranded_by_crashes
    ),
    ("service dies", "false_answer"): _table(
        _zero, _zero, _stranded_by_crashes, _stranded_by_crashes
    ),
    ("delivered twice", "double_refund"): _table(_either_of_two, _either_of_two, _same, _zero),
    ("delivered twice", "lost_refund"): _table(_zero, _zero, _zero, _zero),
    ("delivered twice", "false_answer"): _table(_zero, _zero, _zero, _zero),
}
"""(fault, outcome) -> design -> its rate over the fault's probability (derived; the tests count).

Faults strike the service's own steps: a request or an answer of the provider, any step
("service dies"), any message, the agent's tool call among them ("delivered twice").
"""
