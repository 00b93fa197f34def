"""Pictures of measurements."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.text import Text

from simulator import designs, faults, replay
from simulator.experiments.statistics import rate_interval
from simulator.experiments.style import CourseFigure, png
from simulator.lessons import plots


def frame(**counts: list[int]) -> pd.DataFrame:
    """Doubled refunds of 100, at 0 %, 10 %, 20 % … of the answers lost, by design."""
    rows = []
    for design, doubled in counts.items():
        for place, count in enumerate(doubled):
            share = rate_interval(count, 100)
            rows.append(
                (design, place / 10, "double_refund", share.rate, share.low, share.high, count)
            )
            rows.append((design, place / 10, "untold", 0.5, 0.4, 0.6, 50))
    columns = ["design", "x", "outcome", "rate", "low", "high", "count"]
    return pd.DataFrame(rows, columns=columns)


MEASURED = frame(NAIVE=[0, 9, 22, 30], SAFE=[0, 0, 0, 0])


def written(figure: CourseFigure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def inside(figure: CourseFigure) -> bool:
    """Whether nothing is cut off by the edge of the picture."""
    figure.canvas.draw()
    drawn = figure.get_tightbbox(figure.canvas.get_renderer())  # in inches
    width, height = figure.get_size_inches()
    return drawn.x0 >= 0 and drawn.y0 >= 0 and drawn.x1 <= width and drawn.y1 <= height


def test_the_caption_states_the_rates_at_the_largest_probability() -> None:
    figure = plots.rate_curve(MEASURED, closed_form=lambda p: p)
    # Wilson intervals of 30 and of 0 in 100.
    assert figure.caption == (
        "With 30 % of the answers lost, refunds paid twice: NAIVE 30 % (21.9 % to 39.6 %) and "
        "SAFE 0 % (0 % to 3.7 %); the formula, drawn as a line, passes through 4 of 4 measured "
        "intervals."
    )
    assert inside(figure)


def test_the_caption_counts_the_intervals_that_a_wrong_formula_misses() -> None:
    figure = plots.rate_curve(MEASURED, closed_form=lambda p: 3 * p)
    assert "passes through 1 of 4 measured intervals" in figure.caption


def test_designs_are_labelled_at_their_lines_and_there_is_no_legend() -> None:
    figure = plots.rate_curve(MEASURED)
    (axes,) = figure.axes
    assert axes.get_legend() is None
    assert {"NAIVE", "SAFE"} <= set(written(figure))
    assert "formula" not in figure.caption


def test_a_formula_is_a_line_and_measured_points_lie_on_their_own() -> None:
    (axes,) = plots.rate_curve(MEASURED, closed_form={"NAIVE": lambda p: p * p}).axes
    dense = [line for line in axes.lines if len(line.get_xdata()) > 100]
    assert len(dense) == 1
    assert dense[0].get_ydata()[-1] == pytest.approx(0.09)
    by_name = {line.get_label(): line for line in axes.lines}
    assert by_name["NAIVE"].get_linestyle() == "None"
    assert by_name["SAFE"].get_linestyle() != "None"
    assert list(by_name["NAIVE"].get_ydata()) == [0, 0.09, 0.22, 0.3]


def test_every_rate_has_its_interval() -> None:
    (axes,) = plots.rate_curve(MEASURED).axes
    stems = [segment.tolist() for drawn in axes.collections for segment in drawn.get_segments()]
    rows = MEASURED[MEASURED["outcome"] == "double_refund"]
    expected = [[[r.x, r.low], [r.x, r.high]] for r in rows.itertuples()]
    assert stems == [[pytest.approx(end) for end in stem] for stem in expected]


def test_another_outcome_is_drawn_and_said_in_its_own_words() -> None:
    figure = plots.rate_curve(
        MEASURED, outcome="untold", said="customers left waiting", where="At {x}"
    )
    assert figure.caption.startswith("At 30 %, customers left waiting: NAIVE 50 % (40 % to 60 %)")


def test_rows_may_come_in_any_order() -> None:
    shuffled = MEASURED.sort_values("rate", ascending=False)
    assert plots.rate_curve(shuffled).caption == plots.rate_curve(MEASURED).caption


def test_a_frame_that_is_not_tidy_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="no column x or low"):
        plots.rate_curve(MEASURED.drop(columns=["x", "low"]))


def test_an_outcome_that_was_not_measured_is_refused_with_those_that_were() -> None:
    with pytest.raises(ValueError, match="'stuck'; the frame has double_refund or untold"):
        plots.rate_curve(MEASURED, outcome="stuck")


def test_a_formula_for_a_design_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="names MAGIC, but the frame has NAIVE and SAFE"):
        plots.rate_curve(MEASURED, closed_form={"MAGIC": lambda p: p})


def test_equal_frames_give_equal_bytes() -> None:
    assert png(plots.rate_curve(MEASURED)) == png(plots.rate_curve(MEASURED))


LOST = [faults.lose_response("provider.refund")]


def test_the_bars_say_what_was_owed_paid_and_told() -> None:
    figure = plots.ledger_bars(
        {
            "NAIVE": replay(designs.NAIVE, faults=LOST),
            "ONE_SHOT": replay(designs.ONE_SHOT, faults=LOST),
        },
        title="One lost answer",
    )
    assert figure.caption == (
        "NAIVE: $500.00 owed, $1,000.00 paid, $500.00 said to be paid; "
        "ONE_SHOT: $500.00 owed, $500.00 paid, $0.00 said to be paid."
    )
    said = written(figure)
    assert "paid $1,000: $500 too much" in said
    assert said.count("owed $500") == 2
    assert "told $0" in said
    assert inside(figure)


def test_the_bars_are_as_long_as_the_money() -> None:
    (axes,) = plots.ledger_bars({"NAIVE": replay(designs.NAIVE, faults=LOST)}).axes
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [
        (0, 500),  # owed
        (0, 500),  # paid and owed
        (500, 500),  # paid and not owed
        (0, 500),  # told
    ]


def test_nothing_paid_at_all_is_drawn_too() -> None:
    run = replay(designs.ONE_SHOT, faults=[faults.lose_request("provider.refund")])
    figure = plots.ledger_bars({"ONE_SHOT": run})
    assert "paid $0" in written(figure)
    assert inside(figure)


def test_no_run_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        plots.ledger_bars({})
