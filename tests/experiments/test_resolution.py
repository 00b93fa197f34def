from __future__ import annotations

from math import inf, isnan, sqrt
from pathlib import Path
from typing import Any

import pytest

from simulator import Scenario, designs, faults
from simulator.experiments import resolution
from simulator.experiments.replay import store
from simulator.experiments.resolution import (
    ENDS,
    WRONG,
    Followed,
    Log,
    Unknown,
    calm_steps,
    follow,
    lookups,
    recoveries,
    resolutions,
    table,
)
from simulator.experiments.resolution_plots import resolved_over_time
from simulator.experiments.simulate import run_one, world_seed
from simulator.experiments.style import png
from simulator.service.design import Design
from simulator.service.keys import NoKey
from simulator.service.recovery import SameKey
from simulator.service.retry import FullJitter, NoRetry
from simulator.service.silence import again
from simulator.world.faults import Plan
from simulator.world.provider import Effect
from simulator.world.scenario import ProviderSettings
from simulator.world.trace import Event
from simulator.world.world import World

LOST = 0.3
CLAIM = FINISH = 0.002  # seconds: a transaction's round trip
CALL = 0.05 + 0.1 + 0.05  # seconds: there, work, back
TIMEOUT = 2.0


@pytest.fixture(scope="module")
def safe() -> Followed:
    """SAFE where only answers are lost, each with probability 0.3."""
    (followed,) = follow(designs.SAFE, faults.Rates(lose_response=LOST), refunds=3_000)
    return followed


@pytest.fixture(scope="module")
def sends_again() -> Followed:
    """The same where nobody asks, and the formulas for sending again hold for every loss."""
    design = designs.SAFE.but(recovery=SameKey(asks_from=None))
    (followed,) = follow(design, faults.Rates(lose_response=LOST), refunds=3_000)
    return followed


def test_as_many_outcomes_are_unknown_as_first_answers_are_lost(sends_again: Followed) -> None:
    # four standard errors of a rate of 0.3 in 3,000
    assert abs(len(sends_again.unknowns) / 3_000 - LOST) < 4 * sqrt(LOST * (1 - LOST) / 3_000)


def test_each_send_after_the_first_resolves_it_with_the_chance_of_an_answer(
    sends_again: Followed,
) -> None:
    n = len(sends_again.unknowns)
    for sends in (2, 3, 4):
        expected = (1 - LOST) * LOST ** (sends - 2)
        found = sum(one.sends == sends for one in sends_again.unknowns) / n
        assert abs(found - expected) < 4 * sqrt(expected * (1 - expected) / n)  # 4 standard errors


def test_after_one_lost_answer_the_time_to_resolve_is_a_full_jitter_delay_and_a_round_trip(
    sends_again: Followed,
) -> None:
    least = CLAIM + CALL + FINISH
    times = sorted(one.seconds or 0.0 for one in sends_again.unknowns if one.sends == 2)
    n = len(times)
    assert n > 500
    assert least <= times[0]
    assert times[-1] <= least + 1.0
    # Kolmogorov and Smirnov against U(least, least + 1): 1.95 / sqrt(n) is its 99.9 % quantile
    apart = max(
        max(abs(rank / n - (time - least)), abs((rank + 1) / n - (time - least)))
        for rank, time in enumerate(times)
    )
    assert apart < 1.95 / sqrt(n)
    # the mean of a uniform distribution, to four standard errors
    assert abs(sum(times) / n - (least + 0.5)) < 4 / sqrt(12 * n)


def test_each_further_loss_adds_a_timeout_and_a_delay_with_twice_the_ceiling(
    sends_again: Followed,
) -> None:
    surprise = variance = 0.0
    for one in sends_again.unknowns:
        lost = one.sends - 2
        assert lost < 7  # so that no delay comes from anything but full jitter
        ceilings = [min(30.0, 2.0**n) for n in range(lost + 1)]
        expected = sum(ceilings) / 2 + lost * (CLAIM + TIMEOUT + FINISH) + CLAIM + CALL + FINISH
        surprise += (one.seconds or 0.0) - expected
        variance += sum(ceiling**2 for ceiling in ceilings) / 12
    assert abs(surprise) < 4 * sqrt(variance)  # the sum of independent delays, four of its SD


def test_half_of_them_are_resolved_when_the_formula_says(sends_again: Followed) -> None:
    # P(T <= t) = (1 - b)(t - 0.204) while only one answer can have been lost: half at 0.918 s.
    median = CLAIM + CALL + FINISH + 0.5 / (1 - LOST)
    n = len(sends_again.unknowns)
    # a quantile's standard error: sqrt(0.25 / n) over the density 1 - b; four of them
    assert abs(sends_again.resolved_within(0.5) - median) < 4 * sqrt(0.25 / n) / (1 - LOST)


def test_safe_resolves_nothing_wrongly_and_says_how_sure_that_is(safe: Followed) -> None:
    wrong = safe.wrong()
    assert wrong.count == 0
    assert 0 < wrong.high < 0.006  # Wilson, 95 %: 3.84 / (n + 3.84) of about 900
    assert all(one.end == "resolved" for one in safe.unknowns)


def test_the_same_key_is_right_where_requests_are_late_and_asking_first_is_not() -> None:
    late = faults.Rates(delay_request=0.3)
    ways = {name: recoveries()[name] for name in ("same key", "asks, then sends anew")}
    safe, asks = follow(ways, late, refunds=400)
    assert safe.wrong().count == 0
    # the probe race: "not found" while the first request still travels
    assert asks.wrong("paid_again").low > 0.5
    assert [one.refund for one in safe.unknowns] == [one.refund for one in asks.unknowns]


def test_a_look_up_that_lags_makes_a_lost_answer_look_like_a_lost_request() -> None:
    asks = recoveries()["asks, then sends anew"]
    scenarios = {name: lookups()[name] for name in ("exact look-up", "look-up lags 60 s")}
    exact, lags = follow(asks, faults.Rates(lose_response=0.5), 60, scenario=scenarios)
    assert len(exact.unknowns) == len(lags.unknowns) > 20
    assert exact.wrong().count == 0
    # every send is paid, for each has a key of its own
    assert [one.wrong for one in lags.unknowns] == [
        "paid_again" if one.sends > 1 else "" for one in lags.unknowns
    ]
    assert lags.wrong().rate > 0.8


def test_an_unknown_that_nobody_looks_into_is_counted_and_never_resolved() -> None:
    frame = resolutions(
        {"nobody": recoveries()["nobody looks"]}, faults.Rates(lose_response=0.5), 60
    )
    (row,) = frame.to_dict("records")
    assert row["never"] == row["unknown"] > 20
    assert row["resolved"] == row["handed"] == row["wrong"] == 0
    assert row["median"] == row["p99"] == inf


def test_one_that_is_handed_to_a_human_is_not_resolved() -> None:
    impatient = designs.SAFE.but(recovery=SameKey(every=60.0, horizon=30.0), retry=NoRetry())
    setting = lookups()["no look-up"]
    (found,) = follow(impatient, faults.Rates(lose_response=1.0), 5, scenario=setting)
    assert {one.end for one in found.unknowns} == {"handed"}
    assert all(one.seconds is not None and one.seconds > 30.0 for one in found.unknowns)
    assert found.resolved_within(0.5) == inf
    assert table([found]).loc[0, "handed"] == 5


def test_paid_twice_before_anybody_looked_into_it_is_not_the_resolution_s_fault() -> None:
    hasty = recoveries()["asks, then sends anew"].but(key=NoKey(), on_silence=again)
    # It sends again at silence, without a key, and is unknown once its worker dies of that.
    (found,) = follow(hasty, faults.Rates(lose_response=0.5, crash=0.3), 150)
    before = [one for one in found.unknowns if one.paid > 1 and not one.wrong]
    blamed = [one for one in found.unknowns if one.wrong == "paid_again"]
    assert before
    assert all(one.paid > 1 for one in blamed)


@pytest.mark.parametrize("way", recoveries())
def test_times_and_payments_are_those_that_the_trace_of_the_same_history_shows(way: str) -> None:
    design = recoveries()[way]
    rates = faults.Rates(lose_response=0.3, delay_request=0.2, crash=0.05)
    (found,) = follow(design, rates, 60)
    assert len(found.unknowns) > 10
    for one in found.unknowns:
        run = run_one(design, rates, Scenario.one_refund(), world_seed(1, one.refund))
        states = [(event.time, event.what.split("->")[1]) for event in run.trace if is_state(event)]
        since = next(time for time, state in states if state == "outcome_unknown")
        final = [time for time, state in states if state in ("succeeded", "failed")]
        assert one.end == ("resolved" if final else "never")
        assert one.seconds == ((final[0] - since) / 1e6 if final else None)
        assert one.paid == len(run.ledger)


@pytest.mark.parametrize(
    ("booked", "paid", "word"),
    [
        ("succeeded", True, ""),
        ("failed", False, ""),
        ("failed", True, "paid_booked_failed"),
        ("succeeded", False, "unpaid_booked_succeeded"),
        ("outcome_unknown", True, ""),
    ],
)
def test_books_that_contradict_the_provider_are_a_wrong_resolution(
    booked: str, paid: bool, word: str
) -> None:
    with store() as database:
        world = World(designs.SAFE, Scenario.one_refund(), Plan(()), 1, database)
        log = Log(world)
        log.changes = [(1, "a", "outcome_unknown"), (2, "b", "pending"), (3, "a", booked)]
        if paid:
            world.provider.ledger.append(Effect(0, "intent-1", "ORD-1001", 1, "USD", None))
        assert log.wrong("a") == word


def is_state(event: Event) -> bool:
    return event.kind == "state"


@pytest.mark.parametrize("way", ["same key", "sends blindly"])
@pytest.mark.parametrize("where", ["provider", "everywhere"])
def test_histories_that_no_fault_strikes_may_be_left_out(
    way: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = faults.Rates(
        lose_response=0.02, delay_request=0.02, crash=0.01, lose_commit_ack=0.01, where=where
    )
    arguments = (recoveries()[way], rates, 400)
    (quick,) = follow(*arguments)
    monkeypatch.setattr(resolution, "calm_steps", lambda *_: None)
    (all_of_them,) = follow(*arguments)
    assert quick == all_of_them
    assert len(quick.unknowns) > 5


def test_a_calm_history_that_depends_on_luck_is_never_taken_for_another() -> None:
    one, busy = Scenario.one_refund(), Scenario.double_click()
    crowded = busy.but(provider=ProviderSettings(limit=1, limit_window=30.0))
    with store() as database:
        steps = calm_steps(designs.SAFE, one, database)
        assert steps is not None
        assert ("worker-1", "provider.refund", 1, 1, True) in steps
        # the second `begin` of all, and the first of its process
        assert ("backend-2", "begin", 1, 2, False) in (
            calm_steps(designs.SAFE, busy, database) or []
        )
        # two sends to a provider that takes one in 30 s: what comes then is jitter
        assert calm_steps(keyless(), crowded, database) is None


def keyless() -> Design:
    return designs.NAIVE.but(retry=FullJitter())


def test_processes_and_kept_results_change_nothing(tmp_path: Path) -> None:
    ways = {name: recoveries()[name] for name in ("same key", "sends blindly")}
    arguments = (ways, [faults.Rates(lose_response=p) for p in (0.2, 0.5)], 20)
    frames = [
        resolutions(*arguments),
        resolutions(*arguments, n_jobs=2, keep=tmp_path),
        resolutions(*arguments, keep=tmp_path),
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])
    assert list(frames[0]["lose_response"]) == [0.2, 0.2, 0.5, 0.5]


def test_the_table_has_a_column_for_every_end_and_every_kind_of_wrong() -> None:
    (calm,) = follow(designs.SAFE, faults.Rates(), 2)
    (row,) = table([calm]).to_dict("records")
    assert row["unknown"] == 0
    assert isnan(row["median"])
    assert (row["low"], row["high"]) == (0.0, 1.0)
    assert set(ENDS) | set(WRONG) <= set(row)


def test_quantiles_count_those_that_were_never_resolved() -> None:
    some = [Unknown(n, "resolved", float(n), "", 2, 1) for n in range(1, 10)]
    found = Followed({"design": "x"}, 20, (*some, Unknown(10, "handed", 0.5, "", 2, 1)))
    assert found.resolved_within(0.5) == 5.0
    assert found.resolved_within(0.9) == 9.0
    assert found.resolved_within(0.91) == inf
    with pytest.raises(ValueError, match=r"resolved_within\(0\): a share"):
        found.resolved_within(0)
    with pytest.raises(ValueError, match="'late' is not one of paid_again"):
        found.wrong("late")


def test_what_cannot_be_followed_is_refused_in_a_sentence() -> None:
    rates = faults.Rates()
    with pytest.raises(ValueError, match="nothing to follow: 0 designs, 1 rates"):
        follow([], rates)
    with pytest.raises(ValueError, match="two designs are called 'SAFE'"):
        follow([designs.SAFE, designs.SAFE], rates)
    with pytest.raises(ValueError, match="'two_partial_refunds' has 2 intents"):
        follow(designs.SAFE, rates, scenario=Scenario.two_partial_refunds())
    with pytest.raises(ValueError, match="refunds=0"):
        follow(designs.SAFE, rates, refunds=0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"designs": 5}, r"designs=5: give a list, for example \[designs\.NAIVE"),
        ({"designs": "SAFE"}, "designs='SAFE': give a list"),
        ({"designs": [designs.SAFE, 5]}, "5 is not a design"),
        ({"designs": {"mine": "SAFE"}}, "'SAFE' is not a design"),
        ({"rates": 0.1}, r"rates=0\.1: give a list, for example \[faults\.Rates"),
        ({"rates": [0.1]}, r"0\.1 is not a Rates"),
        ({"seed": None}, "seed=None: give a whole number"),
        ({"seed": 1.5}, r"seed=1\.5: give a whole number"),
        ({"progress": "no"}, "progress='no': say True or False"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    given = {"designs": designs.SAFE, "rates": faults.Rates(), "refunds": 1} | arguments
    with pytest.raises(ValueError, match=sentence):
        follow(**given)


def test_the_figure_says_how_soon_and_how_wrongly_and_is_the_same_every_time() -> None:
    scenarios = {name: lookups()[name] for name in ("exact look-up", "look-up lags 60 s")}
    followed = follow(recoveries(), faults.Rates(lose_response=0.5), 60, scenario=scenarios)
    figure = resolved_over_time(followed)
    assert "never: nobody looks" in figure.caption
    assert "100 % (sends blindly)" in figure.caption
    assert "0 % (same key; at most " in figure.caption
    assert [axes.get_title() for axes in figure.axes] == list(scenarios)
    dashes = {line.get_linestyle() + str(line.get_color()) for line in figure.axes[0].get_lines()}
    assert len(dashes) >= 4
    assert png(figure) == png(resolved_over_time(followed))


def test_a_line_ends_where_the_share_ends() -> None:
    (safe,) = follow(designs.SAFE, faults.Rates(lose_response=0.5), 40)
    half = Followed(
        {"design": "half"}, 40, (*safe.unknowns, *[Unknown(0, "never", None, "", 1, 0)] * 20)
    )
    line = resolved_over_time([half]).axes[0].get_lines()[0]
    assert line.get_ydata()[-1] == pytest.approx(len(safe.unknowns) / len(half.unknowns))


def test_a_figure_of_nothing_and_of_two_namesakes_is_refused() -> None:
    (calm,) = follow(designs.SAFE, faults.Rates(), 1)
    with pytest.raises(ValueError, match="no outcome was unknown"):
        resolved_over_time([calm])
    with pytest.raises(ValueError, match="'SAFE' was followed twice"):
        resolved_over_time([calm, calm])
