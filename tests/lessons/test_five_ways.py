"""What lesson 02 counts on: its logs, its lists of histories, its formulas and its pictures."""

from __future__ import annotations

import pandas as pd
import pytest

from simulator import Scenario, designs, faults, replay, sweep
from simulator.experiments.closed_forms import doubled_by_naive_retries
from simulator.experiments.style import png
from simulator.lessons import rates_plots
from simulator.lessons.five_ways import FORMULAS, histories, log_of

FOUR = [designs.NAIVE, designs.ONE_SHOT, designs.DURABLE_RECORD, designs.PROVIDER_KEY]

RATES = {
    "request lost": lambda p: faults.Rates(lose_request=p),
    "answer lost": lambda p: faults.Rates(lose_response=p),
    "service dies": lambda p: faults.Rates(crash=p),
    "delivered twice": lambda p: faults.Rates(duplicate_request=p, where="everywhere"),
}


def counts(refunds: int, levels: tuple[float, ...] = (0.1, 0.3)) -> dict[str, pd.DataFrame]:
    return {
        fault: pd.concat(sweep(FOUR, way(p), refunds=refunds, seed=3).assign(x=p) for p in levels)
        for fault, way in RATES.items()
    }


@pytest.fixture(scope="module")
def counted() -> dict[str, pd.DataFrame]:
    return counts(300)


def test_the_log_of_a_quiet_refund_has_each_word_once() -> None:
    assert log_of(replay(designs.NAIVE)) == ["asked", "sent", "paid", "heard", "booked"]


def test_calls_that_reach_a_dead_service_are_not_in_its_log() -> None:
    log = log_of(replay(designs.NAIVE, faults=[faults.crash("provider.refund")]))
    assert log[:5] == ["asked", "sent", "paid", "heard", "died"]
    assert log.count("asked") == 2, "three calls were made, and one found nobody"


def test_a_second_click_shows_in_the_log_before_the_first_is_booked() -> None:
    log = log_of(replay(designs.NAIVE, Scenario.double_click()))
    assert log.index("booked") > log.index("asked", 1)


def test_one_fault_is_enough_for_one_shot_to_lie_and_none_makes_the_key_pay_twice() -> None:
    tried = histories(designs.ONE_SHOT)
    assert tried[0] == ([], frozenset())
    assert min(len(plan) for plan, verdict in tried if "false_answer" in verdict) == 1
    assert all("double_refund" not in verdict for _, verdict in histories(designs.PROVIDER_KEY))


def test_every_formula_of_the_lesson_agrees_with_what_is_counted(
    counted: dict[str, pd.DataFrame],
) -> None:
    missed = [
        (fault, outcome, row.design, row.x)
        for (fault, outcome), formulas in FORMULAS.items()
        for row in counted[fault].query("outcome == @outcome").itertuples()
        if not row.low - 1e-9 <= formulas[row.design](row.x) <= row.high + 1e-9
    ]
    # 95 % intervals, and designs that share their luck: of 96 about one in twenty may miss.
    assert len(missed) <= 7, missed


def test_formulas_that_are_wrong_by_a_third_miss_what_is_counted(
    counted: dict[str, pd.DataFrame],
) -> None:
    frame = counted["answer lost"]
    row = frame.query("design == 'NAIVE' and outcome == 'double_refund' and x == 0.3").iloc[0]
    assert not row.low <= 4 / 3 * FORMULAS["answer lost", "double_refund"]["NAIVE"](0.3) <= row.high


def test_the_grid_names_the_worst_of_each_design(counted: dict[str, pd.DataFrame]) -> None:
    figure = rates_plots.rate_grid(counted, FORMULAS)
    assert len(figure.axes) == 12
    assert "PROVIDER_KEY is at its worst with" in figure.caption
    assert "never paid (service dies)" in figure.caption
    assert "of 96 counted intervals" in figure.caption
    assert png(figure).startswith(b"\x89PNG")


def test_a_grid_without_counts_says_what_it_needs() -> None:
    with pytest.raises(ValueError, match="at least one fault"):
        rates_plots.rate_grid({}, FORMULAS)
    with pytest.raises(ValueError, match="have no column x"):
        rates_plots.rate_grid({"f": counts(1)["answer lost"].drop(columns="x")}, FORMULAS)


def test_attempts_are_drawn_with_the_first_and_the_last_in_the_caption() -> None:
    rows = [
        {"x": n, "outcome": outcome, "rate": 0.1 * n, "low": 0.0, "high": 1.0}
        for n in (1, 2)
        for outcome in rates_plots.OUTCOMES
    ]
    theory = dict.fromkeys(rates_plots.OUTCOMES, lambda n: doubled_by_naive_retries(0.2, 0.16, n))
    figure = rates_plots.by_attempts(pd.DataFrame(rows), theory)
    assert figure.caption.startswith("With 1 and with 2 attempts: paid twice 10 % and 20 %")
    assert "6 of 6 counted intervals" in figure.caption


@pytest.mark.parametrize(("a_day", "day"), [(40, 18), (400, 2), (4_000, 1)])
def test_the_day_of_even_odds_is_the_first_on_which_they_are_even(a_day: int, day: int) -> None:
    found = rates_plots.days_to_even_odds(a_day, 0.001)
    assert found == day
    assert 0.999 ** (a_day * found) <= 0.5 < 0.999 ** (a_day * (found - 1))


def test_the_picture_of_the_first_double_names_every_day() -> None:
    figure = rates_plots.first_double([40, 4_000], 0.001)
    assert "day 18 at 40 a day and day 1 at 4,000 a day" in figure.caption
