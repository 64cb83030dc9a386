"""Times of one case in two runs: a ratio and its interval that hold while a shared machine drifts.

Everything is in natural logarithms, so that a ratio is a difference. A run gives one value a round (the
median of its samples). Where at least three other variants answered the same question in both runs, what
moved all of them (the machine) is taken out, round by round inside a run and between the runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from attnprof.core.record import Measured
from attnprof.core.stats import by_round, median_interval, quantile

FEWEST_CONTROLS = 3
_Z_95 = 1.959964
_MAD_TO_SIGMA = 1.4826  # of a normal distribution
_MEDIAN_ERROR = 1.2533  # standard error of a median over that of a mean, normal distribution
_QUARTILES_TO_SIGMA = 1.349  # likewise
_STEADY_SPREAD = 0.05  # rounds of a machine without other load differ by less
_MOST_CORRELATION = 0.95
_UNANIMOUS = 0.8
_FEW_CASES = 5  # about Student's quantile over the normal one at the levels used, by degrees of freedom

Rounds = dict[int, float]


class Estimate(NamedTuple):
    """A logarithm and its standard error."""

    value: float
    error: float

    def minus(self, other: Estimate) -> Estimate:
        """Difference of two independent estimates."""
        return Estimate(self.value - other.value, math.hypot(self.error, other.error))


def log_rounds(done: Measured) -> Rounds:
    """Logarithm of each round's median time; rounds without a positive time are left out."""
    return {
        number: math.log(value)
        for number, value in by_round(done.samples_s, done.rounds).items()
        if value > 0
    }


def estimate(values: Sequence[float]) -> Estimate:
    """Median of values in order of time; the error grows when neighbours in time are alike.

    The error is the exact rank interval of the median, widened for an autoregressive process of the measured
    correlation: a drifting machine gives many samples and little evidence. Rounds that differ widely come from an
    overloaded machine, where a whole run may lie at another level: what they spread beyond 5% is added unreduced.
    """
    interval = median_interval(values)
    alike = serial_correlation(values)
    error = (interval.high - interval.low) / (2 * _Z_95) * math.sqrt((1 + alike) / (1 - alike))
    return Estimate(interval.value, math.hypot(error, max(0.0, round_spread(values) - _STEADY_SPREAD)))


def round_spread(values: Sequence[float]) -> float:
    """Standard deviation of the middle half of the values, as of a normal distribution."""
    return (quantile(values, 0.75) - quantile(values, 0.25)) / _QUARTILES_TO_SIGMA


def serial_correlation(values: Sequence[float]) -> float:
    """Rank correlation of each value with the next, corrected for the bias of short series, in [0, 0.95]."""
    n = len(values)
    if n < 4:
        return 0.0
    order = {index: rank for rank, index in enumerate(sorted(range(n), key=values.__getitem__))}
    centred = [order[index] - (n - 1) / 2 for index in range(n)]
    square = sum(x * x for x in centred)
    raw = sum(a * b for a, b in pairwise(centred)) / square
    return min(max((raw * n + 1) / (n - 3), 0.0), _MOST_CORRELATION)


class Beside(NamedTuple):
    """A log ratio beside the other variants, and whether these moved alike (so that it was the machine)."""

    ratio: Estimate
    unanimous: bool


def common_course(run: Mapping[str, Rounds], levels: Mapping[str, float]) -> Rounds:
    """What the variants of `levels` did together in each round, measured from those levels.

    A round that fewer than three of them have is left out.
    """
    numbers = {number for name in levels for number in run[name]}
    moves = {n: [run[name][n] - levels[name] for name in levels if n in run[name]] for n in numbers}
    return {n: median(values) for n, values in moves.items() if len(values) >= FEWEST_CONTROLS}


def without(own: Rounds, course: Rounds) -> list[float]:
    """A case's rounds, in order of time, minus what the others did; rounds that they lack get their median."""
    usual = median(course.values()) if course else 0.0
    return [value - course.get(number, usual) for number, value in sorted(own.items())]


def moved_alike(moves: Sequence[Estimate], tolerance: float) -> bool:
    """Whether four fifths of the moves are none, within `tolerance` or their own error."""
    near = sum(abs(move.value) <= max(tolerance, _Z_95 * move.error) for move in moves)
    return near >= _UNANIMOUS * len(moves)


def as_timed(a: Rounds, b: Rounds) -> Estimate:
    """Log ratio of B's time to A's, nothing taken out."""
    return _change(a, b, {}, {})


def _change(a: Rounds, b: Rounds, course_a: Rounds, course_b: Rounds) -> Estimate:
    return estimate(without(b, course_b)).minus(estimate(without(a, course_a)))


def beside_controls(
    variant: str, a: Mapping[str, Rounds], b: Mapping[str, Rounds], tolerance: float
) -> Beside | None:
    """Log ratio of `variant` beside the other variants of its question; None with fewer than three of them.

    `a` and `b` hold the rounds of every variant that both runs measured for the question. What the others did is
    taken out round by round, from levels that both runs share; so a drift inside a run and another level of the
    machine both cancel.
    """
    names = [name for name in a if name != variant]
    if len(names) < FEWEST_CONTROLS:
        return None
    levels = {name: median(a[name].values()) for name in names}
    courses = common_course(a, levels), common_course(b, levels)
    own = _change(a[variant], b[variant], *courses)
    moves = [_change(a[name], b[name], *courses) for name in names]
    control = _MEDIAN_ERROR * median(move.error for move in moves) / math.sqrt(len(moves))
    return Beside(Estimate(own.value, math.hypot(own.error, control)), moved_alike(moves, tolerance))


def scatter(ratios: Sequence[Estimate]) -> float:
    """Spread of unchanged cases between two runs beyond what their samples explain (robust to a minority).

    >>> scatter([Estimate(0.03, 0.0), Estimate(-0.03, 0.0), Estimate(0.5, 0.0)])
    0.044478
    """
    if not ratios:
        return 0.0
    spread = _MAD_TO_SIGMA * median(abs(ratio.value) for ratio in ratios)
    return math.sqrt(max(0.0, spread**2 - median(ratio.error for ratio in ratios) ** 2))


def spread(series: Sequence[Sequence[Estimate]]) -> float:
    """`scatter` of each variant's ratios around their own common one, larger where few cases tell it.

    Variants with fewer than three cases say nothing; 0 when none says anything.
    """
    residuals, freedom = [], 0
    for ratios in series:
        if len(ratios) >= FEWEST_CONTROLS:
            common = median(ratio.value for ratio in ratios)
            residuals += [Estimate(ratio.value - common, ratio.error) for ratio in ratios]
            freedom += len(ratios) - 1
    return scatter(residuals) * (1 + _FEW_CASES / freedom) if freedom else 0.0
