"""What the simulator predicts beside what was measured on real parts.

The same designs meet the same rates of loss twice: in virtual time, one world for each refund,
and for real, with processes, HTTP and a database, where whoever loses a message has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.experiments.simulate import Estimate, simulate
from simulator.experiments.statistics import rate_interval
from simulator.experiments.style import (
    INK,
    CourseFigure,
    band,
    caption,
    course_style,
    intervals,
    looks,
    new_figure,
    percent,
)
from simulator.live.campaign import Campaign
from simulator.live.trouble import Trouble
from simulator.service import designs
from simulator.service.design import Design
from simulator.world.faults import Rates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COMPARED", "LOSSES", "Compared", "measure", "simulated_and_measured"]

LOSSES = (0.1, 0.2, 0.3)
"""Probabilities that a message to the provider is lost, and that its answer is."""

ANYTHING = "anything wrong"


@dataclass(frozen=True)
class Compared:
    """A design, and what is counted of it: an invariant, or `ANYTHING`."""

    design: Design
    outcome: str
    said: str

    def predicted(self, estimate: Estimate) -> int:
        """How many of the simulated refunds it happened to."""
        if self.outcome == ANYTHING:
            return estimate.refunds - estimate.right
        return estimate.broken[self.outcome]

    def measured(self, findings: dict[str, list[str]]) -> int:
        """How many of the real refunds it happened to."""
        if self.outcome == ANYTHING:
            return len({where for found in findings.values() for where in found})
        return len(findings.get(self.outcome, []))


COMPARED = (
    Compared(designs.NAIVE, "double_refund", "paid twice"),
    Compared(designs.ONE_SHOT, "false_answer", "paid, and told it was refused"),
    Compared(designs.SAFE, ANYTHING, "wrong in any way"),
)


def measure(
    compared: Sequence[Compared] = COMPARED,
    losses: Sequence[float] = LOSSES,
    refunds: int = 200,
    simulated: int = 10_000,
    database: str | None = None,
    speed: float = 8.0,
    seed: int = 1,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> pd.DataFrame:
    """Runs every design at every rate of loss, in the simulator and for real.

    Args:
        compared: the designs.
        losses: probabilities, of a lost request, and of a lost answer where there is one.
        refunds: for each point on real parts. Where messages are lost somebody waits: a lost
            answer costs 2 s of the service's clock.
        simulated: for each point in the simulator.
        database: URL; None: a SQLite file.
        speed: of the service's clock. Too fast, and answers that are not lost come too late.
        seed: of all luck.
        progress: whether to show how it goes, on stderr.
        say: called with a line about every point.

    Returns:
        Tidy: design, outcome, x (the rate of loss), ground, count, of, rate, low, high (Wilson,
        95 %), late (answers that came too late of themselves). The ground is "simulated",
        "measured", or "same luck": as many simulated refunds as were measured, each of which
        loses the very messages that its twin loses for real.

    Raises:
        Problem: the real parts can't be had; a sentence says why.
    """
    import pandas as pd

    rows = []
    for one in compared:
        for loss in losses:
            estimate = simulate(
                one.design, Rates(lose_request=loss, lose_response=loss), simulated, seed
            )
            report = Campaign(
                one.design,
                database,
                refunds,
                trouble=Trouble(lose_request=loss, lose_response=loss, seed=seed),
                speed=speed,
                seed=seed,
                agents=12,
                workers=4,
                shared_orders=False,
                progress=progress,
            ).run()
            twin = simulate(one.design, Rates(lose_request=loss, lose_response=loss), refunds, seed)
            counts = {
                "simulated": (one.predicted(estimate), simulated),
                "measured": (one.measured(report.findings), refunds),
                "same luck": (one.predicted(twin), refunds),
            }
            for ground, (count, total) in counts.items():
                found = rate_interval(count, total)
                late = report.late if ground == "measured" else 0
                shares = (found.rate, found.low, found.high)
                rows.append((one.design.name, one.said, loss, ground, count, total, *shares, late))
            predicted, real, _ = rows[-3:]
            say(
                f"{one.design.name}, {100 * loss:g} % lost: {one.said} {share(predicted[6])} "
                f"simulated, {share(real[6])} measured ({share(real[7])} to {share(real[8])})"
            )
    columns = ["design", "outcome", "x", "ground", "count", "of", "rate", "low", "high", "late"]
    return pd.DataFrame(rows, columns=columns)


def simulated_and_measured(frame: pd.DataFrame, *, draw_caption: bool = True) -> CourseFigure:
    """Draw what `measure` gave: a panel a design, the prediction as a band, points on top.

    Args:
        frame: as `measure` returns it.
        draw_caption: also write the caption below the picture.

    Raises:
        ValueError: the frame has no rows.
    """
    names = list(dict.fromkeys(frame["design"]))
    if not names:
        raise ValueError("The frame has no rows: measure() gives one.")
    figure, grid = new_figure(
        4.4 * len(names), 5.4, columns=len(names), xlabel="messages lost, each way"
    )
    panels = list(getattr(grid, "flat", [grid]))
    top = 1.15 * float(frame["high"].max())
    line, point = looks(["simulated", "measured"]).values()
    agree = []
    with course_style():
        for axes, name in zip(panels, names, strict=True):
            mine = frame[frame["design"] == name]
            predicted = mine[mine["ground"] == "simulated"].sort_values("x")
            real = mine[mine["ground"] == "measured"].sort_values("x")
            x = [float(value) for value in predicted["x"]]
            bounds = [[float(v) for v in predicted[side]] for side in ("low", "high")]
            band(axes, x, bounds[0], bounds[1], line)
            axes.plot(x, predicted["rate"], label="simulated", **line.line(marker=False))
            low, high = ([float(v) for v in real[side]] for side in ("low", "high"))
            intervals(axes, x, low, high, point)
            axes.plot(x, real["rate"], label="measured", **point.points())
            axes.set_title(f"{name}\n{mine['outcome'].iloc[0]}", fontsize=14.5)
            axes.set_ylim(-0.02 * top, top)
            margin = 0.2 * (x[-1] - x[0]) or 0.05
            axes.set_xlim(x[0] - margin, x[-1] + margin)
            axes.set_xticks(x)
            percent(axes.xaxis)
            percent(axes.yaxis)
            # Overlap of the two intervals, point by point.
            agree += [
                lo <= above and below <= hi
                for lo, hi, below, above in zip(low, high, *bounds, strict=True)
            ]
        panels[0].legend(loc="upper left", frameon=False, labelcolor=INK)
    caption(figure, _sentence(frame, names, agree), draw=draw_caption)
    return figure


def _sentence(frame: pd.DataFrame, names: Sequence[str], agree: Sequence[bool]) -> str:
    largest = frame["x"].max()
    at_most = frame[frame["x"] == largest].set_index(["design", "ground"])
    parts = [
        f"{name} {share(at_most.loc[(name, 'simulated'), 'rate'])} simulated, "
        f"{share(at_most.loc[(name, 'measured'), 'rate'])} measured"
        for name in names
    ]
    measured = frame[frame["ground"] == "measured"].set_index(["design", "x"])["count"]
    twins = frame[frame["ground"] == "same luck"].set_index(["design", "x"])["count"]
    equal = int((measured == twins).sum())
    refunds, late = frame[frame["ground"] == "measured"]["of"].min(), frame["late"].sum()
    sentence = (
        f"With {100 * largest:g} % of the messages lost each way: {'; '.join(parts)}. At "
        f"{sum(agree)} of {len(agree)} points the interval of {refunds} real refunds meets the "
        f"simulator's; at {equal} the count is exactly that of {refunds} simulated refunds with "
        "the same luck."
    )
    if late:
        sentence += f" {late} real answers came too late because the machine was busy."
    return sentence


def share(value: float) -> str:
    """A fraction in per cent: 0.25 is 25.0 %."""
    return f"{100 * value:.1f} %"
