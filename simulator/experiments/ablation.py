"""The ablation table: SAFE without one safeguard, and the smallest history that shows the loss.

A new row is one line in `ABLATIONS`:

    Ablation("tombstone", "late_redelivery", (), "double_refund"),

in words: SAFE without its tombstones, on `Scenario.late_redelivery()`, breaks `double_refund`
with no fault at all. Its parts:

* safeguard: a key of `designs.ablations()`. One safeguard may have several rows.
* scenario: the name of a `Scenario` that needs no arguments.
* kinds: the kinds of fault that may be tried, as in `explore(kinds=...)`; none: no fault.
* breaks: the invariant that has to be among those broken; "lost_refund or stuck" if either is
  right.
* covered_by: other safeguards that make up for the loss, also keys of `designs.ablations()`.
  Such a row says two things: no history within the bound breaks `breaks` when only the safeguard
  is missing, and one does when those that cover it are missing too.
* max_faults: faults in a history at most; 1 unless the loss needs more.
* note: a remark that is printed with the row.

For example, "the money is covered by the provider key" is

    Ablation("fencing token", "one_refund", ("pause",), "double_refund", ("provider key",)),

Safeguards that no invariant needs, because they spare the provider and not the money, are in
`SHOWN_BY_STORMS`, with what shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.experiments.explore import explore
from simulator.experiments.jobs import Row, run_jobs
from simulator.experiments.replay import replay
from simulator.experiments.verdict import INVARIANTS
from simulator.experiments.words import listing
from simulator.service import designs
from simulator.service.design import Design
from simulator.world.faults import KINDS
from simulator.world.scenario import Scenario, ready_scenarios

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["ABLATIONS", "SHOWN_BY_STORMS", "Ablation", "ShownByStorm", "ablation_table", "without"]


@dataclass(frozen=True)
class Ablation:
    """A row of the table: what is taken away, and what has to break. See the module's text.

    Raises:
        ValueError: there is no such scenario, kind of fault or invariant.
    """

    safeguard: str
    scenario: str
    kinds: tuple[str, ...]
    breaks: str
    covered_by: tuple[str, ...] = ()
    max_faults: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        row = f"Ablation of {self.safeguard!r}"
        for name in ("kinds", "covered_by"):
            if isinstance(value := getattr(self, name), str):
                raise ValueError(f"{row}: {name}={value!r} is a text; write ({value!r},).")
        if self.scenario not in ready_scenarios():
            raise ValueError(f"{row}: there is no Scenario.{self.scenario}().")
        for names, known, what in (
            (self.kinds, KINDS, "fault"),
            (self.any_of, INVARIANTS, "invariant"),
        ):
            for name in names:
                if name not in known:
                    raise ValueError(
                        f"{row}: there is no {what} {name!r}; there are {', '.join(known)}."
                    )

    @property
    def any_of(self) -> tuple[str, ...]:
        """The invariants of which one has to break."""
        return tuple(self.breaks.split(" or "))

    @property
    def setting(self) -> Scenario:
        """The scenario itself."""
        return ready_scenarios()[self.scenario]()


ABLATIONS: tuple[Ablation, ...] = (
    Ablation("provider key", "one_refund", ("lose_response",), "double_refund"),
    Ablation("operation key", "new_thought", (), "double_refund"),
    Ablation("fingerprint", "changed_payload", (), "conflict_ignored"),
    Ablation("reservation", "two_partial_refunds", ("delay_request",), "over_refund"),
    Ablation(
        "identity from the session",
        "injected_arguments",
        (),
        "unauthorized_refund",
        ("schema",),
    ),
    Ablation(
        "schema", "injected_arguments", (), "unauthorized_refund", ("identity from the session",)
    ),
    Ablation("permission", "injected_arguments", (), "unauthorized_refund"),
    Ablation("ownership", "injected_arguments", (), "unauthorized_refund"),
    Ablation("approval", "approval_between", (), "unapproved_refund"),
    Ablation("approval digest", "approval_between", (), "unapproved_refund"),
    Ablation("approval expiry", "approval_between", (), "unapproved_refund"),
    Ablation("revalidation", "cancelled_meanwhile", (), "over_refund or unapproved_refund"),
    Ablation("outbox", "one_refund", ("crash",), "lost_refund or stuck"),
    Ablation("outbox, published before", "asked_once", ("crash",), "books_differ"),
    Ablation("outcome_unknown", "one_refund", ("lose_response",), "false_answer"),
    Ablation("recovery", "one_refund", ("crash",), "lost_refund or stuck"),
    Ablation("same-key recovery", "one_refund", ("delay_request",), "double_refund"),
    Ablation("lease", "one_refund", ("crash",), "stuck"),
    Ablation("fencing token", "one_refund", ("pause",), "illegal_transition or books_differ"),
    Ablation("fencing token", "one_refund", ("pause",), "double_refund", ("provider key",)),
    Ablation("dead letter", "poisoned_event", (), "stuck"),
    Ablation("insert first", "resubmitted_elsewhere", (), "illegal_transition"),
    Ablation("tombstone", "late_redelivery", (), "double_refund"),
    Ablation("durable record", "late_redelivery", (), "double_refund"),
    Ablation(
        "durable record",
        "resubmitted_elsewhere",
        ("crash",),
        "double_refund",
        ("provider key",),
        note="while the provider remembers the key",
    ),
    Ablation("settlement", "returned_by_the_bank", (), "false_answer"),
    Ablation("webhooks by operation", "webhook_storm", (), "books_differ"),
    Ablation("answer from the record", "one_refund", ("provider_down",), "false_answer"),
    Ablation("follow-up", "one_refund", ("provider_down",), "untold"),
    Ablation("audit in the transaction", "one_refund", ("crash",), "audit_gap"),
)


class ShownByStorm(NamedTuple):
    """A safeguard that no invariant needs.

    Attributes:
        safeguard: its name.
        command: what to type to see it: on the command line, or from `from` on in Python.
        shows: what to look at.
    """

    safeguard: str
    command: str
    shows: str


SHOWN_BY_STORMS: tuple[ShownByStorm, ...] = (
    ShownByStorm(
        "jitter",
        "python -m simulator storm --retry exponential --retry full",
        "the peak: without luck in the delay all clients come back at once",
    ),
    ShownByStorm(
        "attempt limit",
        "python -m simulator storm --retry full --outage 300 --attempts 0",
        "calls a refund: they grow with the outage; with --attempts 5 all give up before its end",
    ),
    ShownByStorm(
        "retry budget",
        "from simulator.experiments.budgets import budgets; budgets()",
        "the load that each rule puts on a provider that refuses half of the calls",
    ),
    ShownByStorm(
        "deadline",
        "from simulator import storm; from simulator.service.retry import FullJitter; "
        "storm(1000, FullJitter(1, 30, None), outages=((0, 300),), deadline=60)",
        "the calls: a third of those without a deadline",
    ),
)


def without(*safeguards: str) -> Design:
    """SAFE without several safeguards at once.

    Each of `designs.ablations()` differs from SAFE in a few slots; these differences are put
    together. Two that set other fields of one policy are merged: without a lease and without a
    fencing token is `Outbox(lease=None, fence=False)`.

    Args:
        safeguards: keys of `designs.ablations()`; none gives SAFE itself.

    Raises:
        ValueError: there is no such safeguard; two of them change one thing in two ways; or
            what is left makes no sense together.
    """
    known = designs.ablations()
    if not safeguards:
        return designs.SAFE
    for name in safeguards:
        if name not in known:
            raise ValueError(f"There is no safeguard {name!r}. There are: {', '.join(known)}.")
    if len(safeguards) == 1:
        return known[safeguards[0]]
    changes: dict[str, Any] = {}
    changed_by: dict[str, list[str]] = {}
    for name in safeguards:
        for slot in (field.name for field in fields(Design) if field.name != "name"):
            safe, policy = getattr(designs.SAFE, slot), getattr(known[name], slot)
            if policy == safe:
                continue
            if slot in changes and changes[slot] != policy:
                policy = _merged(slot, safe, changes[slot], policy, [*changed_by[slot], name])
            changes[slot] = policy
            changed_by.setdefault(slot, []).append(name)
    return designs.SAFE.but(name=f"SAFE without {listing(safeguards)}", **changes)


def _merged(slot: str, safe: Any, one: Any, other: Any, names: Sequence[str]) -> Any:
    """The policy that differs from the safe one in what either differs in."""
    if not (is_dataclass(safe) and type(safe) is type(one) is type(other)):
        raise ValueError(
            f"SAFE cannot be without {listing(names)} at once: they change its slot {slot!r} in "
            f"two ways, {one!r} and {other!r}."
        )
    changes: dict[str, Any] = {}
    for policy in (one, other):
        for name in (field.name for field in fields(safe)):
            value = getattr(policy, name)
            if value == getattr(safe, name):
                continue
            if changes.setdefault(name, value) != value:
                raise ValueError(
                    f"SAFE cannot be without {listing(names)} at once: one has "
                    f"{slot}.{name}={changes[name]!r}, and another {value!r}."
                )
    return replace(safe, **changes)  # type: ignore[type-var] # is_dataclass says no more than that


def ablation_table(
    rows: Iterable[Ablation] = ABLATIONS, n_jobs: int = 1, progress: bool = False
) -> DataFrame:
    """Takes every safeguard away, and looks for the smallest history that shows it.

    Args:
        rows: what is taken away, and what has to break.
        n_jobs: processes; -1 = as many as there are cores. The result does not depend on it.
        progress: show a bar on stderr.

    Returns:
        One row per ablation, in their order: `safeguard, scenario`; `faults` (those of the
        smallest counterexample, as text; "none" if nothing has to go wrong, "" if there is no
        counterexample); `breaks` (all invariants that it broke); `expected` (those of which one
        has to be among them); `covered_by` (the counterexample is then of SAFE without these
        too); `histories` (how many were tried); `as_expected` (bool); `note`.

    Raises:
        ValueError: there is no such safeguard, or two cannot be taken away together.
    """
    from pandas import DataFrame

    jobs = [{"row": row} for row in rows]
    found = run_jobs(_examine, jobs, n_jobs=n_jobs, progress=progress, label="safeguards")
    return DataFrame([row for job in found for row in job], columns=list(COLUMNS))


COLUMNS = (
    "safeguard",
    "scenario",
    "faults",
    "breaks",
    "expected",
    "covered_by",
    "histories",
    "as_expected",
    "note",
)


def _examine(row: Ablation) -> list[Row]:
    bound: dict[str, Any] = {
        "scenario": row.setting,
        "max_faults": row.max_faults if row.kinds else 0,
        "kinds": row.kinds,
    }
    expected = set(row.any_of)
    histories, covered = 0, True
    if row.covered_by:
        alone = explore(without(row.safeguard), **bound, stop=False)
        histories = alone.schedules
        covered = not any(expected & verdict for verdict in alone.by_verdict)
    stripped = without(row.safeguard, *row.covered_by)
    found = explore(stripped, **bound, breaks=expected)
    if found.counterexample is None:
        found = explore(stripped, **bound)  # for the reader: what it breaks instead
    run = found.counterexample
    notes = [row.note] if row.note else []
    if not covered:
        notes.append(f"not covered: it breaks when only {row.safeguard} is missing")
    if run and row.covered_by:
        cover = replay(without(*row.covered_by), row.setting, run.faults)
        if expected & cover.verdict:
            covers = listing(row.covered_by)
            notes.append(f"the same history breaks it when only {covers} is missing, too")
    return [
        {
            "safeguard": row.safeguard,
            "scenario": row.scenario,
            "faults": "" if run is None else ", ".join(map(str, run.faults)) or "none",
            "breaks": "" if run is None else str(run.verdict),
            "expected": row.breaks,
            "covered_by": ", ".join(row.covered_by),
            "histories": histories + found.schedules,
            "as_expected": covered and run is not None and bool(expected & run.verdict),
            "note": "; ".join(notes),
        }
    ]
