"""How sure we are: confidence intervals for rates, means and ratios.

Every interval is two-sided with confidence 95 % unless told otherwise, and assumes independent
observations: one world per refund, one seed per repetition. SciPy is loaded when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt
from typing import Literal

__all__ = [
    "Mean",
    "Rate",
    "difference_interval",
    "mean_interval",
    "rate_interval",
    "ratio_interval",
]


@dataclass(frozen=True)
class Rate:
    """How often something happened: `count` of `total`, as a share with its interval."""

    count: int
    total: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Mean:
    """A mean of `n` observations, its standard error, and its interval."""

    mean: float
    se: float
    low: float
    high: float
    n: int


def rate_interval(
    count: int,
    total: int,
    confidence: float = 0.95,
    method: Literal["wilson", "exact"] = "wilson",
) -> Rate:
    """The share `count / total` with its confidence interval.

    Args:
        count: how often it happened, 0 to `total`.
        total: how many independent trials there were.
        confidence: between 0 and 1.
        method: "wilson" (Wilson, 1927: right on average, and never empty at 0 of n) or "exact"
            (Clopper and Pearson, 1934: never less than `confidence`, a little wider).

    Returns:
        Without trials, the share is NaN and the interval is all of [0, 1].

    Raises:
        ValueError: `count` is not between 0 and `total`.
    """
    if not 0 <= count <= total:
        raise ValueError(f"count is {count} of {total}; it must be between 0 and the total.")
    if total == 0:
        return Rate(0, 0, nan, 0.0, 1.0)
    from scipy.stats import binomtest

    interval = binomtest(count, total).proportion_ci(confidence, method)
    return Rate(count, total, count / total, float(interval.low), float(interval.high))


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Mean:
    """The mean of independent values with its interval (Student's t).

    Returns:
        Of one value, the interval is the whole line; of none, the mean is NaN as well.
    """
    n = len(values)
    if n == 0:
        return Mean(nan, inf, -inf, inf, 0)
    mean = sum(values) / n
    if n == 1 or not isfinite(mean):
        return Mean(mean, inf, -inf, inf, n)
    from scipy.stats import t

    se = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    reach = se * float(t.ppf((1 + confidence) / 2, n - 1))
    return Mean(mean, se, mean - reach, mean + reach, n)


def difference_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> Mean:
    """The mean of first - second, pair by pair: for two designs that had the same luck.

    Raises:
        ValueError: the two are not of the same length.
    """
    return mean_interval([a - b for a, b in zip(first, second, strict=True)], confidence)


def ratio_interval(
    numerators: Sequence[float], denominators: Sequence[float], confidence: float = 0.95
) -> Mean:
    """sum(numerators) / sum(denominators), for pairs that were observed together.

    For example calls a refund over many runs. The standard error is the linear one (Cochran,
    "Sampling Techniques", 1977, section 2.11): good when the denominators vary by less than a
    tenth of their mean, or when there are thirty pairs or more.

    Raises:
        ValueError: the two are not of the same length, or the denominators add up to 0.
    """
    total = sum(denominators)
    if total == 0:
        raise ValueError("the denominators add up to 0; a ratio to them means nothing.")
    ratio = sum(numerators) / total
    n = len(numerators)
    scale = n / total
    spread = mean_interval(
        [(a - ratio * b) * scale for a, b in zip(numerators, denominators, strict=True)], confidence
    )
    reach = spread.high - spread.mean
    return Mean(ratio, spread.se, ratio - reach, ratio + reach, n)
