"""Statistics of timing samples: order statistics, exact intervals of the median, paired comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, median
from typing import NamedTuple

_EXACT_SAMPLES = 500  # beyond about 1,000 the binomial's terms no longer fit a float


class Interval(NamedTuple):
    """A value with its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def relative_width(self) -> float:
        """Half the interval's width over the value."""
        return (self.high - self.low) / 2 / self.value if self.value else math.inf


def quantile(samples: Sequence[float], q: float) -> float:
    """Quantile by linear interpolation between order statistics.

    >>> quantile([1.0, 2.0, 3.0], 0.5)
    2.0
    """
    ordered = sorted(samples)
    position = q * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> Interval:
    """Distribution-free confidence interval of the median, from binomial ranks.

    With fewer than six samples no such interval of 95% exists; the whole range is returned.
    """
    ordered = sorted(samples)
    n = len(ordered)
    rank = _median_rank(n, confidence)
    return Interval(median(ordered), ordered[rank], ordered[n - 1 - rank])


def _median_rank(n: int, confidence: float) -> int:
    """Largest r such that P(r < Binomial(n, 1/2) < n - r) >= confidence: the r-th samples from both ends.

    Exact up to `_EXACT_SAMPLES`; beyond, the normal approximation, whose error is below one rank there.
    """
    if n > _EXACT_SAMPLES:
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        return max(math.floor(n / 2 - z * math.sqrt(n) / 2) - 1, 0)
    tail = 0.0
    for rank in range(n // 2):
        tail += 2 * math.comb(n, rank) * 0.5**n
        if 1 - tail < confidence:
            return max(rank - 1, 0)
    return max(n // 2 - 1, 0)


def paired_ratio(
    numerator: dict[int, float], denominator: dict[int, float], confidence: float = 0.95
) -> Interval:
    """Median of the ratios of samples taken in the same round, with its interval.

    Rounds that one side lacks are left out. Raises: ValueError when no round is shared.
    """
    shared = sorted(numerator.keys() & denominator.keys())
    if not shared:
        raise ValueError("no round has both samples")
    return median_interval([numerator[r] / denominator[r] for r in shared], confidence)


def by_round(samples: Sequence[float], rounds: Sequence[int]) -> dict[int, float]:
    """One value a round: the median of the round's samples."""
    grouped: dict[int, list[float]] = {}
    for value, number in zip(samples, rounds, strict=True):
        grouped.setdefault(number, []).append(value)
    return {number: median(values) for number, values in grouped.items()}


def drift(samples: Sequence[float]) -> float:
    """Relative change of the median from the first to the last third of the samples, in order of time."""
    third = len(samples) // 3
    if third == 0:
        return 0.0
    first = median(samples[:third])
    return median(samples[-third:]) / first - 1 if first else 0.0


def growth_exponent(sizes: Sequence[float], values: Sequence[float]) -> float | None:
    """Exponent a of values ~ sizes^a by least squares in log-log; None with fewer than two usable points.

    >>> round(growth_exponent([64, 128, 256], [1.0, 4.0, 16.0]), 3)
    2.0
    """
    points = [(math.log(x), math.log(y)) for x, y in zip(sizes, values, strict=True) if x > 0 and y > 0]
    if len({x for x, _ in points}) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
