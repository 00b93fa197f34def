"""The demo: how each rung of the ladder fails, how often, and pictures of it."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.history import draw
from simulator.experiments.explore import Exploration, explore
from simulator.experiments.replay import replay
from simulator.experiments.simulate import Estimate, simulate
from simulator.experiments.verdict import sentences
from simulator.service.designs import LADDER, SAFE
from simulator.world.faults import Rates, lose_response
from simulator.world.scenario import AgentSettings, Scenario

if TYPE_CHECKING:
    from simulator.experiments.run import Run
    from simulator.service.design import Design

__all__ = ["counterexamples", "run", "table"]

#: What each rung tries.
IDEAS = {
    "NAIVE": "no answer? Send it again.",
    "ONE_SHOT": "no answer? Then it failed.",
    "MODEL_KEY": "send it again, under a key that the model made up.",
    "MEMORY_RECORD": "remember in memory what was asked for.",
    "DURABLE_RECORD": "remember it in a table instead.",
    "PROVIDER_KEY": "give the provider the operation's key, the same on every attempt.",
    "RESERVED": "take the amount out of the balance before the provider is asked.",
    "PUBLISH_AFTER_COMMIT": "let a worker ask the provider, told so by a message.",
    "OUTBOX": "make the message a row of the same transaction, with a lease.",
    "SAFE": "silence is unknown and found out, claims are fenced, the customer is told.",
}
#: The setting in which a rung shows what the next one is for; the others fail at one refund.
SETTINGS = {
    "MODEL_KEY": Scenario.new_thought,
    "MEMORY_RECORD": Scenario.double_click,
    "PROVIDER_KEY": Scenario.two_partial_refunds,
}
#: Settings in which SAFE is tried too, with one fault.
ELSEWHERE = (
    Scenario.double_click,
    Scenario.two_partial_refunds,
    Scenario.resubmitted_elsewhere,
    Scenario.new_thought,
)
#: Faults in a history at most. All but SAFE fall with one.
MAX_FAULTS = 2
#: An agent that thinks anew when it hears nothing, and asks the other instance: without it a key
#: that the model makes up, and a record in one instance's memory, would look safe.
MEASURED = Scenario.one_refund().but(agent=AgentSettings(new_thought=True, elsewhere=True))
#: Every kind of fault strikes at every step with this probability.
RATE = 0.01

#: Heads of the table's columns, and the invariants that they count.
COLUMNS = {
    "doubled": "double_refund",
    "lost": "lost_refund",
    "false": "false_answer",
    "untold": "untold",
    "stuck": "stuck",
    "tasks": "needless_task",
}
WHAT_IT_SAYS = (
    "doubled: paid more than once. lost: owed and never paid. false: told what is not true. "
    "untold: not told how it ended. stuck: never finished. tasks: a human was asked without "
    "need. Below each share its 95 % interval. answer: time to the final answer, the median "
    "and, below it, what 99 of 100 customers waited at most. An agent that hears nothing "
    "thinks anew and asks the other instance. RESERVED makes a difference only where two "
    "refunds share an order, as in history 6."
)


def counterexamples(designs: Iterable[Design] = LADDER) -> list[Exploration]:
    """For each design the exploration that ends with its smallest counterexample.

    SAFE has none; all of its histories with up to `MAX_FAULTS` faults are tried.
    """
    return [
        explore(
            design,
            SETTINGS.get(design.name, Scenario.one_refund)(),
            max_faults=MAX_FAULTS,
            progress=sys.stderr.isatty(),
        )
        for design in designs
    ]


def heading(exploration: Exploration) -> str:
    """Which rung, what it tries, and what came of it."""
    design = exploration.design
    said = f"{design.name}: {IDEAS[design.name]} ({exploration.scenario.name})"
    run = exploration.counterexample
    if run is None:
        return f"{said}\n    {exploration}"
    faults = ", ".join(map(str, run.faults)) or "nothing has to go wrong"
    return f"{said}\n    {faults} -> {run.verdict}"


def shown(exploration: Exploration) -> Run:
    """The history to draw: the counterexample, or how a design without one takes a lost answer."""
    if exploration.counterexample:
        return exploration.counterexample
    return replay(exploration.design, exploration.scenario, [lose_response("provider.refund")])


def table(measured: Iterable[Estimate]) -> str:
    """A row for each design: its shares, with the intervals below them."""
    head = [f"{'':20}", *(f"{name:>7}" for name in COLUMNS), f"{'answer':>8}"]
    lines = [" ".join(head)]
    for estimate in measured:
        rates = [estimate.rate(invariant) for invariant in COLUMNS.values()]
        shares = [f"{share(rate) + ' %' if rate else '0':>7}" for rate, _, _ in rates]
        intervals = [f"{share(low)}–{share(high)}".rjust(7) for _, low, high in rates]
        median, late = (waited(estimate.time_to_answer(part)) for part in (0.5, 0.99))
        lines.append(" ".join([f"{estimate.design.name:20}", *shares, f"{median:>8}"]))
        lines.append(" ".join([f"{'':20}", *intervals, f"{late:>8}"]))
    return "\n".join(lines)


def share(fraction: float) -> str:
    """A fraction in per cent, short: 0.123 is "12", 0.042 "4.2", 0.0004 "0.04"."""
    percent = 100 * fraction
    if percent >= 9.95:
        return f"{percent:.0f}"
    if percent >= 0.095:
        return f"{percent:.1f}"
    return f"{percent:.2f}" if percent >= 0.005 else "0"


def waited(seconds: float) -> str:
    """A time for the table: "0.24 s", "58 s"; "never" when nobody had an answer."""
    if seconds != seconds:
        return "never"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def run(out: Path, *, refunds: int, seed: int) -> None:
    """Prints everything, and draws the pictures into `out`.

    Args:
        out: a folder, made if it is not there.
        refunds: how many each design is measured with.
        seed: of the measurement.
    """
    from tqdm import tqdm

    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    found = counterexamples()
    click.echo("\nWhat can be wrong with a history:\n")
    for name, sentence in sentences().items():
        click.echo(f"  {name:20} {sentence}")
    for number, exploration in enumerate(found, 1):
        click.echo(f"\n=== {number}. {heading(exploration)}\n")
        if exploration.counterexample:
            click.echo(exploration.counterexample.text)
    click.echo("\nThe last one with one fault in the settings that broke others:\n")
    for setting in ELSEWHERE:
        click.echo(f"    {explore(SAFE, setting(), max_faults=1)}")
    for number, exploration in enumerate(
        tqdm(found, desc="pictures", delay=2, leave=False, disable=None), 1
    ):
        name = exploration.design.name.lower().replace("_", "-")
        draw(shown(exploration), out / f"{number:02d}-{name}.png")
    measured = [
        simulate(exploration.design, Rates.all(RATE), refunds, seed, MEASURED)
        for exploration in tqdm(found, desc="refunds", delay=2, leave=False, disable=None)
    ]
    click.echo(
        f"\n=== How often: {refunds:,} refunds each, every kind of fault at every step with "
        f"probability {RATE:.0%}\n"
    )
    click.echo(table(measured))
    click.echo()
    click.echo(textwrap.fill(WHAT_IT_SAYS, 84))
    click.echo(
        f"\n{len(found)} pictures of these histories are in {out.absolute()} "
        f"({time.monotonic() - began:.0f} s)."
    )
