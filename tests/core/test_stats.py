"""Statistics: intervals that cover, pairs that cancel drift, growth that is found."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnprof.core.stats import (
    Interval,
    by_round,
    drift,
    growth_exponent,
    median_interval,
    paired_ratio,
    quantile,
)

numbers = st.floats(-1e6, 1e6)


@pytest.mark.parametrize("n", [6, 7, 10, 15, 31, 100])
@pytest.mark.parametrize(
    "draw", [random.Random.gauss, lambda rng: rng.expovariate(1), lambda rng: rng.lognormvariate(0, 2)]
)
def test_the_interval_covers_the_median_as_often_as_it_says(n, draw):
    rng = random.Random(n)
    true_median = {"gauss": 0.0, "exp": math.log(2), "log": 1.0}[_kind(draw)]
    made = [median_interval([draw(rng) for _ in range(n)]) for _ in range(1500)]
    covered = sum(i.low <= true_median <= i.high for i in made) / 1500
    assert 0.94 <= covered <= 0.995


def _kind(draw):
    value = draw(random.Random(0))
    return (
        "gauss"
        if draw is random.Random.gauss
        else "exp"
        if value == random.Random(0).expovariate(1)
        else "log"
    )


def test_the_interval_is_made_of_ranks():
    assert median_interval(range(1, 11)) == Interval(5.5, 2, 9)  # P(2..9) = 97.9%, P(3..8) = 89.1%
    assert median_interval(range(1, 7)) == Interval(3.5, 1, 6)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_samples_give_their_whole_range(n):
    samples = [float(i) for i in range(n)]
    assert median_interval(samples) == Interval(median(samples), samples[0], samples[-1])


def test_a_wider_confidence_is_a_wider_interval():
    rng = random.Random(1)
    samples = [rng.random() for _ in range(50)]
    narrow, wide = median_interval(samples, 0.8), median_interval(samples, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert narrow.relative_width == pytest.approx((narrow.high - narrow.low) / 2 / narrow.value)
    assert Interval(0.0, -1.0, 1.0).relative_width == math.inf


@given(st.lists(numbers, min_size=1, max_size=30), st.floats(0, 1))
def test_quantiles_agree_with_numpy(samples, q):
    numpy = pytest.importorskip("numpy")
    assert quantile(samples, q) == pytest.approx(float(numpy.quantile(samples, q)), abs=1e-6)


def test_a_paired_ratio_cancels_what_both_share():
    rng = random.Random(2)
    machine = {r: math.exp(0.1 * r + rng.gauss(0, 0.01)) for r in range(20)}
    fast, slow = machine, {r: 3 * value for r, value in machine.items()}
    assert paired_ratio(slow, fast) == pytest.approx((3.0, 3.0, 3.0))


def test_rounds_that_one_side_lacks_are_left_out():
    assert paired_ratio({0: 2.0, 1: 4.0, 7: 100.0}, {0: 1.0, 1: 2.0, 9: 5.0}).value == 2.0
    with pytest.raises(ValueError, match="no round"):
        paired_ratio({0: 1.0}, {1: 1.0})


def test_a_round_is_the_median_of_its_samples():
    assert by_round([1.0, 9.0, 2.0, 5.0], [0, 1, 0, 0]) == {0: 2.0, 1: 9.0}
    with pytest.raises(ValueError, match="zip"):
        by_round([1.0], [0, 1])


def test_drift_is_told_from_noise_and_from_an_outlier():
    rng = random.Random(3)
    assert drift([1 + 0.01 * i for i in range(30)]) == pytest.approx(0.191, abs=0.01)
    assert abs(drift([1 + rng.gauss(0, 0.02) for _ in range(90)])) < 0.02
    assert drift([1.0] * 29 + [50.0]) == 0.0
    assert drift([1.0, 2.0]) == 0.0
    assert drift([0.0] * 9) == 0.0


@given(st.floats(-3, 3), st.floats(0.01, 100))
def test_a_power_law_gives_its_exponent(exponent, factor):
    sizes = [64, 128, 256, 512, 1024, 2048]
    assert growth_exponent(sizes, [factor * n**exponent for n in sizes]) == pytest.approx(exponent, abs=1e-6)


def test_growth_needs_two_lengths_with_values():
    assert growth_exponent([64, 128], [0.0, 1.0]) is None
    assert growth_exponent([64, 64], [1.0, 2.0]) is None
    assert growth_exponent([], []) is None


@pytest.mark.parametrize("n", [501, 1100, 20_000])
def test_many_samples_have_an_interval_that_meets_the_exact_one(n):
    low, high = (median_interval([float(x) for x in range(n)])[i] for i in (1, 2))
    exact = _exact_rank(n)
    assert abs(low - exact) <= 1
    assert high == n - 1 - low


def _exact_rank(n: int) -> int:
    """The rank by whole numbers, without rounding: the largest with at most 2.5% of the binomial below."""
    term, below, rank = 1, 0, 0
    while (below + term) * 40 <= 2**n:
        below += term
        term = term * (n - rank) // (rank + 1)
        rank += 1
    return rank - 1
