"""Every history with up to k faults, tried one by one.

Histories under one plan of faults are equal up to the step where the plans first differ. So
a history with k faults is extended by a fault at each of its later steps, and every set of
faults is met exactly once, in the order of their steps. Histories with fewer faults come
first: the first that breaks an invariant has the fewest.

Faults that cannot differ are tried once: an answer that arrives after its caller has stopped
waiting is a lost answer. A reset that the caller notices at once is *not* a lost answer: a
design may take it for a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from simulator.experiments.replay import (
    check_design,
    check_scenario,
    check_seed,
    check_switches,
    replay,
    several,
    store,
)
from simulator.experiments.run import Run
from simulator.experiments.verdict import INVARIANTS, Verdict, judge
from simulator.experiments.words import counted
from simulator.service.checks import whole
from simulator.service.design import Design
from simulator.service.outbox import Outbox
from simulator.service.payment import PROVIDER_TIMEOUT
from simulator.world.faults import (
    CALL_PLACES,
    KINDS,
    LASTING,
    PLACES,
    PROVIDER_KINDS,
    TRANSACTION_PLACES,
    Fault,
    Plan,
)
from simulator.world.scenario import Scenario
from simulator.world.world import Step, World

__all__ = ["Exploration", "explore", "faults_at", "try_plan", "wanted_kinds"]

NEIGHBOUR = 1.5
"""Seconds past what a neighbour does next, and short of every timeout."""


@dataclass
class Exploration:
    """What an exploration found.

    Attributes:
        schedules: how many histories were run.
        counterexample: the first history that broke an invariant, with the fewest faults;
            None if none did.
        by_verdict: how many histories came to which verdict.
        max_faults: how many faults a history had at most.
        complete: whether every history within the bound was run.
    """

    design: Design
    scenario: Scenario
    max_faults: int
    schedules: int = 0
    counterexample: Run | None = None
    by_verdict: Counter[Verdict] = field(default_factory=Counter)
    complete: bool = False

    def __str__(self) -> str:
        head = f"{self.design.name}, {self.scenario.name}: {counted(self.schedules, 'history')}"
        if self.counterexample is None:
            tried = f"with up to {counted(self.max_faults, 'fault')}"
            return f"{head} {tried}, and none broke an invariant."
        faults = ", ".join(map(str, self.counterexample.faults)) or "no fault at all"
        return f"{head}. {faults} is enough to break: {self.counterexample.verdict}."

    def __repr__(self) -> str:
        return f"<Exploration of {self}>"


def explore(
    design: Design,
    scenario: Scenario | None = None,
    max_faults: int = 2,
    kinds: Iterable[str] | None = None,
    heal: bool = True,
    seed: int = 0,
    stop: bool = True,
    progress: bool = False,
    breaks: Iterable[str] | None = None,
) -> Exploration:
    """Tries no fault, then every one, then every two, up to `max_faults`.

    Args:
        design, scenario, heal, seed: as in `replay`.
        max_faults: 0 or more. Each one more multiplies the histories by about a hundred.
        kinds: names of fault kinds to try; by default all; an empty list only with 0 faults.
        stop: whether to stop at the first counterexample.
        progress: whether to show a bar on stderr when it takes more than two seconds.
        breaks: names of invariants: only a history that breaks one of them is a counterexample.

    Raises:
        ValueError: an argument is not what it should be.
        PolicyMistake, Mistake: the design cannot be run; the message says why.
    """
    check_design(design)
    scenario = check_scenario(scenario)
    check_seed(seed)
    check_switches(heal=heal, stop=stop, progress=progress)
    wanted = wanted_kinds(kinds, max_faults)
    sought = _sought(breaks)
    found = Exploration(design, scenario, max_faults)
    frontier: list[tuple[Fault, ...]] = [()]
    for count in range(max_faults + 1):
        following: list[tuple[Fault, ...]] = []
        next_kinds = wanted if count < max_faults else ()
        for plan in _shown(frontier, progress, f"{design.name}, {count} faults"):
            extensions, verdict = try_plan(found, plan, heal, seed, next_kinds)
            if found.counterexample is None and not verdict.isdisjoint(sought):
                found.counterexample = replay(design, scenario, plan, seed, heal)
                if stop:
                    return found
            following += extensions
        frontier = following
    found.complete = True
    return found


def _sought(breaks: Iterable[str] | None) -> tuple[str, ...]:
    """The invariants that count. A mistyped one would never break, and all would look clean."""
    if breaks is None:
        return INVARIANTS
    named = (breaks,) if isinstance(breaks, str) else breaks
    sought = tuple(several("breaks", named, '["lost_refund"]'))
    known = ", ".join(INVARIANTS)
    if not sought:
        raise ValueError(f"breaks={breaks!r} names no invariant. Give some of these: {known}.")
    for name in sought:
        if name not in INVARIANTS:
            raise ValueError(f"breaks={name!r} is no invariant. They are: {known}.")
    return sought


def wanted_kinds(kinds: Iterable[str] | None, max_faults: int) -> tuple[str, ...]:
    """The kinds of fault to try, by default all.

    Raises:
        ValueError: there is no such kind, or none to try, or `max_faults` is no number of faults.
    """
    if not whole(max_faults, at_least=0):
        raise ValueError(f"max_faults={max_faults!r}: give 0, 1, 2, …")
    if kinds is None:
        return KINDS
    named = (kinds,) if isinstance(kinds, str) else kinds
    wanted = tuple(several("kinds", named, '["crash"]'))
    for kind in wanted:
        if kind not in KINDS:
            raise ValueError(f"There is no fault {kind!r}. The faults are: {', '.join(KINDS)}.")
    if max_faults and not wanted:
        raise ValueError(
            f"kinds={kinds!r} names no fault, and none would be tried. Give some of these: "
            f"{', '.join(KINDS)}; or max_faults=0."
        )
    return wanted


def try_plan(
    found: Exploration, plan: tuple[Fault, ...], heal: bool, seed: int, kinds: Sequence[str]
) -> tuple[list[tuple[Fault, ...]], Verdict]:
    """Runs one history; returns the plans that go on from it, and its verdict."""
    with store() as database:
        world = World(found.design, found.scenario, Plan(plan), seed, database, heal, quiet=True)
        world.run()
        verdict = judge(world)
        found.schedules += 1
        found.by_verdict[verdict] += 1
        struck = world.struck
        if plan and _lasts_a_day(plan[-1], found.scenario):
            kinds = ()
        steps = world.steps if kinds and len(struck) == len(plan) else []
        world.dissolve()
        if not steps:
            return [], verdict
        after = struck[-1][0] + 1 if plan else 0
        later = sorted(steps[after:], key=_first_the_money)
        extensions = [
            (*plan, fault)
            for step in later
            for fault in faults_at(step, found.design, found.scenario, kinds)
        ]
        return extensions, verdict


def _lasts_a_day(fault: Fault, scenario: Scenario) -> bool:
    """Whether an outage outlasts the provider's keys.

    Such a history goes on for hundreds of steps, all of them tries that are refused. It is the
    last fault of its plan: what else could go wrong comes before it.
    """
    outage = fault.kind in ("provider_down", "database_down")
    return outage and fault.seconds > scenario.provider.key_lifetime


def _first_the_money(step: Step) -> int:
    """Sorts steps so that short counterexamples are where the money moves."""
    if step.what == "provider.refund":
        return 0
    return 2 if step.call else 1


def faults_at(
    step: Step, design: Design, scenario: Scenario, kinds: Sequence[str] = KINDS
) -> Iterator[Fault]:
    """Every fault that can make a difference at this step, in a fixed order."""
    for kind in kinds:
        for when in _places(kind, step):
            for seconds in _sizes(kind, step, design, scenario):
                yield Fault(kind, step.name, step.nth, when, seconds)


def _places(kind: str, step: Step) -> tuple[str, ...]:
    if kind in ("crash", "pause"):
        if step.process == "provider":
            return ()  # it has a crash of its own
        return CALL_PLACES if step.call else TRANSACTION_PLACES
    if kind in PROVIDER_KINDS and not step.what.startswith("provider."):
        return ()
    if step.call == (kind in ("lose_commit_ack", "database_down")):
        return ()
    return PLACES.get(kind, ("",))


def _sizes(kind: str, step: Step, design: Design, scenario: Scenario) -> tuple[float, ...]:
    """How long a fault lasts: past the neighbour, the timeout, the lease, the key's life."""
    if kind not in LASTING:
        return (0.0,)
    tool = step.what.startswith(("tool.", "approval."))
    patience = scenario.agent.patience if tool else PROVIDER_TIMEOUT
    lease = design.dispatch.lease if isinstance(design.dispatch, Outbox) else None
    past_lease = (lease or 30.0) + 10.0
    if kind == "delay_response":
        return (NEIGHBOUR,)
    if kind == "delay_request":
        # A network keeps no packet for a day, so a request to the provider does not outlive
        # its key. A tool call may: queues and inboxes redeliver after days.
        last = scenario.provider.key_lifetime + 3600.0 if tool else past_lease
        return (NEIGHBOUR, patience + 1.0, last)
    sizes = (patience + 3.0, past_lease + patience)
    if kind == "pause":
        # A process that comes back after a day, in the middle of a send, would pay under a key
        # that the provider has forgotten. No design can stop it; a watchdog has to, by killing
        # whoever was silent for an hour. So pauses end before keys do.
        return sizes
    # An outage that outlasts the provider's memory of a key ends every promise of a retry.
    return (*sizes, scenario.provider.key_lifetime + 3600.0)


def _shown(
    plans: Sequence[tuple[Fault, ...]], progress: bool, title: str
) -> Iterable[tuple[Fault, ...]]:
    if not progress:
        return plans
    from tqdm import tqdm

    return tqdm(plans, desc=title, delay=2, unit=" histories", leave=False)
