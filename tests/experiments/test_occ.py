"""Table A of the reference: aws-samples/aws-arch-backoff-simulator, 100 repetitions."""

from __future__ import annotations

from math import sqrt

import pytest

from simulator.experiments.occ import POLICIES, Race, compare, race
from simulator.experiments.statistics import Mean, difference_interval, mean_interval
from simulator.service.retry import NoRetry

# clients: (calls, milliseconds), each for none, exponential, full, equal, decorrelated
TABLE_A = {
    10: ((50.6, 51.1, 39.1, 42.4, 37.8), (376, 3566, 461, 711, 441)),
    50: ((690.0, 620.8, 331.9, 347.9, 376.9), (1140, 36708, 2863, 4340, 2168)),
    100: ((2427.6, 1859.1, 796.4, 813.5, 1007.1), (2026, 63983, 4916, 6686, 4568)),
    190: ((8004.9, 5173.7, 1770.0, 1760.4, 2439.1), (3537, 101581, 7486, 9347, 7907)),
}
TABLE_REPETITIONS = 100


def agrees(found: Mean, table: float, errors: float) -> bool:
    """Within 2 %, or within so many standard errors of the difference.

    The table's own error is that of 100 repetitions; our spread is as good an estimate of it as
    any, and equals what the table states where it states one (N = 100).
    """
    spread = found.se * sqrt(found.n)
    error = sqrt(found.se**2 + spread**2 / TABLE_REPETITIONS)
    return abs(found.mean - table) <= max(0.02 * table, errors * error)


def check(repetitions: dict[int, int], errors: float, misses: int) -> None:
    missed = []
    for clients, columns in TABLE_A.items():
        frame = compare([clients], repetitions=repetitions[clients])
        for metric, values in zip(("calls", "seconds"), columns, strict=True):
            for policy, value in zip(POLICIES, values, strict=True):
                (row,) = frame[(frame["policy"] == policy) & (frame["metric"] == metric)].to_dict(
                    "records"
                )
                found = Mean(row["mean"], row["se"], row["low"], row["high"], row["n"])
                table = value / 1_000 if metric == "seconds" else value
                if not agrees(found, table, errors):
                    missed.append((clients, policy, metric, found, table))
                assert agrees(found, table, 2 * errors), missed[-1]
    assert len(missed) <= misses, missed


def test_table_a_is_reproduced() -> None:
    # Of 40 figures some 20 vary by more than 2 %. Each of these is beyond two standard errors once
    # in twenty times: one is expected, four or more come once in sixty. None is beyond four.
    check({10: 100, 50: 20, 100: 8, 190: 3}, errors=2, misses=3)


@pytest.mark.slow
def test_table_a_is_reproduced_with_as_many_repetitions_as_it_had() -> None:
    # 39 of 40 (seed 1): at N = 10 equal jitter takes 777 ms, not 711, 2.00 standard errors away;
    # with 400 repetitions it is 741 ms.
    check(dict.fromkeys(TABLE_A, 100), errors=2, misses=2)


def races(clients: int, policy: str, repetitions: int, service: float = 0.0) -> list[Race]:
    return [
        race(clients, POLICIES[policy], service=service, seed=seed) for seed in range(repetitions)
    ]


def test_at_190_clients_equal_jitter_does_less_work_than_full() -> None:
    # The article: "full jitter does the least work". Table A: 1,760.4 against 1,770.0.
    less = difference_interval(
        *([one.calls for one in races(190, policy, 40)] for policy in ("equal", "full"))
    )
    assert less.high < 0


def test_decorrelated_jitter_is_faster_than_full_at_50_clients_and_not_at_190() -> None:
    def sooner(clients: int, repetitions: int) -> Mean:
        return difference_interval(
            *(
                [one.seconds for one in races(clients, policy, repetitions)]
                for policy in ("decorrelated", "full")
            )
        )

    assert sooner(50, 40).high < 0  # table A: 2.2 against 2.9 s
    assert sooner(190, 40).low > -0.1  # 7.9 against 7.5 s: if at all, it is slower


@pytest.mark.slow
def test_at_190_clients_full_jitter_is_faster_than_decorrelated() -> None:
    later = difference_interval(
        *([one.seconds for one in races(190, policy, 200)] for policy in ("decorrelated", "full"))
    )
    assert later.low > 0


def test_no_backoff_wins_only_because_the_server_has_no_limits() -> None:
    def finish(policy: str, service: float) -> Mean:
        return mean_interval([one.seconds for one in races(190, policy, 3, service)])

    endless = {policy: finish(policy, 0.0) for policy in POLICIES}
    assert min(endless, key=lambda policy: endless[policy].mean) == "none"
    busy = {policy: finish(policy, 0.002) for policy in POLICIES}  # 500 requests/s
    assert max(busy, key=lambda policy: busy[policy].mean) == "none"
    assert min(busy, key=lambda policy: busy[policy].mean) == "full"
    assert busy["none"].low > 2 * busy["full"].high


def test_a_client_alone_needs_one_write_and_four_legs() -> None:
    alone = [race(1, POLICIES["none"], seed=seed) for seed in range(400)]
    assert {one.calls for one in alone} == {1}
    found = mean_interval([one.seconds for one in alone], confidence=0.999)
    assert found.low < 0.040 < found.high
    assert found.se * sqrt(400) == pytest.approx(0.004, rel=0.15)  # four legs of SD 2 ms


def test_who_does_not_retry_leaves_the_row_to_the_first() -> None:
    lost = race(20, NoRetry())
    assert lost.calls == 20


def test_the_number_of_processes_changes_nothing() -> None:
    one, two = (compare([5], repetitions=3, n_jobs=jobs) for jobs in (1, 2))
    assert one.equals(two)
