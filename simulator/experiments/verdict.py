"""The verdict on a history: which invariants it broke.

Each invariant is a function of the finished world that says whether it was broken. Those of
`safety` are judged always; those of `quiescence` when everything has healed.
"""

from __future__ import annotations

from simulator.experiments.facts import Facts
from simulator.experiments.quiescence import AT_QUIESCENCE, stuck
from simulator.experiments.safety import ALWAYS
from simulator.world.world import World

__all__ = ["ALWAYS", "AT_QUIESCENCE", "INVARIANTS", "Verdict", "judge", "sentences"]

INVARIANTS: tuple[str, ...] = (
    "double_refund",
    "over_refund",
    "unauthorized_refund",
    "unapproved_refund",
    "conflict_ignored",
    "illegal_transition",
    "false_answer",
    "lost_refund",
    "untold",
    "stuck",
    "needless_task",
    "books_differ",
    "audit_gap",
)


class Verdict(frozenset[str]):
    """Names of the invariants that were broken; empty when all is right."""

    def __str__(self) -> str:
        return ", ".join(name for name in INVARIANTS if name in self) or "right"

    def __repr__(self) -> str:
        return f"Verdict({str(self)!r})"


def sentences() -> dict[str, str]:
    """What each invariant stands for, in a sentence, in the order of `INVARIANTS`."""
    checks = {check.__name__: check for check in (*ALWAYS, stuck, *AT_QUIESCENCE)}
    return {
        name: (checks[name].__doc__ or "").split("\n")[0] for name in INVARIANTS if name in checks
    }


def judge(world: World) -> Verdict:
    """The verdict on a world whose history is over.

    Where a fault was left for ever (`heal=False`) only safety is judged, and that whatever is
    not final has a task, if the database is there to write one.
    """
    facts = Facts(world)
    broken = [check.__name__ for check in ALWAYS if check(facts)]
    if (world.heal or world.database.up) and stuck(facts):
        broken.append("stuck")
    if world.heal and not world.capped:
        broken += [check.__name__ for check in AT_QUIESCENCE if check(facts)]
    return Verdict(broken)
