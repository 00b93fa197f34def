"""What the simulator predicts, and what is measured on real parts."""

from __future__ import annotations

import pandas as pd
import pytest
from click.testing import CliRunner

from simulator.cli.live import live
from simulator.experiments.closed_forms import doubled_by_naive_retries
from simulator.experiments.simulate import world_seed
from simulator.experiments.statistics import rate_interval
from simulator.experiments.style import png
from simulator.lessons.live_plots import COMPARED, measure, simulated_and_measured
from simulator.live.campaign import Campaign
from simulator.live.trouble import NETWORK, Dice, Trouble
from simulator.service import designs
from simulator.world.faults import Chance, Rates


def test_the_naive_design_doubles_as_often_for_real_as_its_closed_form_says() -> None:
    p = 0.3
    report = Campaign(
        designs.NAIVE,
        refunds=100,
        trouble=Trouble(lose_request=p, lose_response=p, seed=1),
        agents=12,
        shared_orders=False,
        speed=5.0,
    ).run()
    expected = doubled_by_naive_retries(p, (1 - p) * p, attempts=3)
    measured = rate_interval(len(report.findings["double_refund"]), 100, confidence=0.999)
    assert measured.low <= expected <= measured.high, str(report)
    assert report.late <= 2, "an answer that comes too late is a loss that nobody asked for"


def test_the_same_messages_are_lost_for_real_as_in_the_simulator() -> None:
    dice = Dice(Trouble(lose_request=0.3, lose_response=0.3, seed=5), NETWORK)
    rates = Rates(lose_request=0.3, lose_response=0.3)
    for number in range(50):
        chance = Chance(rates, world_seed(5, number))
        for nth in (1, 2, 3):
            fault = chance.strike("backend-1", "provider.refund", nth, nth, True)
            expected = None if fault is None else fault.kind
            assert dice.throw(f"intent-ab12cd34-{number + 1}") == expected


def test_a_measurement_has_a_row_for_each_ground_and_says_how_it_goes() -> None:
    said: list[str] = []
    frame = measure(
        COMPARED[1:2], losses=(0.5,), refunds=10, simulated=100, speed=10.0, say=said.append
    )
    assert list(frame["ground"]) == ["simulated", "measured", "same luck"]
    assert list(frame["of"]) == [100, 10, 10]
    _, measured, twin = frame["count"]
    assert measured == twin, "they lose the same messages"
    assert len(said) == 1
    assert said[0].startswith("ONE_SHOT, 50 % lost: paid, and told it was refused")


def frame_of(measured: int) -> pd.DataFrame:
    rows = []
    for design, count in (("NAIVE", measured), ("SAFE", 0)):
        for x in (0.1, 0.3):
            for ground, number, of in (
                ("simulated", 200 * (design == "NAIVE"), 1000),
                ("measured", count, 100),
                ("same luck", 21 * (design == "NAIVE"), 100),
            ):
                found = rate_interval(number, of)
                shares = (found.rate, found.low, found.high)
                rows.append((design, "paid twice", x, ground, number, of, *shares, 0))
    columns = ["design", "outcome", "x", "ground", "count", "of", "rate", "low", "high", "late"]
    return pd.DataFrame(rows, columns=columns)


def test_the_figure_has_a_panel_for_each_design_and_counts_where_both_agree() -> None:
    figure = simulated_and_measured(frame_of(measured=21))
    assert [axes.get_title("left").splitlines()[0] for axes in figure.axes] == ["NAIVE", "SAFE"]
    assert "NAIVE 20.0 % simulated, 21.0 % measured" in figure.caption
    assert "At 4 of 4 points" in figure.caption
    assert "at 4 the count is exactly that of 100 simulated refunds" in figure.caption
    assert png(figure)[:4] == b"\x89PNG"


def test_the_caption_says_where_they_do_not_agree() -> None:
    assert "At 2 of 4 points" in simulated_and_measured(frame_of(measured=60)).caption


def test_a_frame_without_rows_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"no rows: measure\(\) gives one"):
        simulated_and_measured(frame_of(0)[:0])


def test_the_command_has_its_three_parts() -> None:
    result = CliRunner().invoke(live, ["--help"])
    assert result.exit_code == 0
    assert "interleavings" in result.output
    assert "rates" in result.output
    assert "python -m simulator live --database postgresql --refunds 200 --kills 50" in (
        result.output
    )
