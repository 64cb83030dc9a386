"""The laboratory's formulas, their like-for-like versions and their consequences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnprof.core.errors import InvalidInput
from attnprof.core.problem import Problem
from attnprof.core.schedules import fa2_cost, naive_cost
from attnprof.textbook import (
    bytes_flash,
    bytes_naive,
    bytes_o,
    compare,
    crossover,
    flops,
    io_lower_bound,
    ratio_limit,
    score_fits,
)

sizes = st.integers(1, 5000)


@given(sizes, sizes, sizes, sizes, st.sampled_from([1, 2, 4, 8]))
def test_the_formulas_as_written(N, d, B_r, B_c, e):
    assert bytes_naive(N, d, e) == (12 * N * d + 16 * N**2) * e / 4
    assert bytes_flash(N, d, B_r, B_c, e) == pytest.approx(8 * N * d * (1 + N / B_r) * e / 4, rel=1e-12)


def test_two_bytes_an_element_unless_said():
    assert bytes_naive(64, 64) == (12 * 64 * 64 + 16 * 64 * 64) // 2
    assert bytes_flash(64, 64, 64, 64) == 8 * 64 * 64 * 2 // 2


@pytest.mark.parametrize(
    ("N", "d", "naive", "flash"),
    [
        (64, 64, 114_688, 65_536),
        (1024, 64, 17_563_648, 8_912_896),
        (2048, 64, 68_681_728, 34_603_008),
        (4096, 64, 271_581_184, 136_314_880),
        (8192, 128, 1_086_324_736, 1_082_130_432),
        (32768, 128, 17_230_200_832, 17_213_423_616),
    ],
)
def test_the_exercise_s_table_in_fp32(N, d, naive, flash):
    assert (bytes_naive(N, d, 4), bytes_flash(N, d, 64, 64, 4)) == (naive, flash)


@given(st.integers(1, 8), st.integers(1, 64))
def test_they_are_the_schedules_o_apart(tiles, d):
    N = 64 * tiles
    p = Problem(q_len=N, head_dim=d)
    assert bytes_naive(N, d, 4) + bytes_o(N, d, 4) == naive_cost(p, scale_pass=False).logical.total_bytes
    assert bytes_flash(N, d, 64, 32, 4) == fa2_cost(p, rows=64, cols=32, lse=False).logical.total_bytes


def test_the_ratio_1_004_and_its_limit():
    c = compare(8192, 128, dtype_bytes=4)
    assert c.naive_bytes / c.flash_bytes == c.ratio == pytest.approx(1.0039, abs=5e-5)
    assert c.ratio_with_o == pytest.approx(1.0078, abs=5e-5)
    assert c.ratio_without_o > c.ratio
    assert ratio_limit(128, 64) == 1.0
    assert compare(2**24, 64).ratio == pytest.approx(ratio_limit(64, 64), rel=1e-4)


def test_the_ratio_in_dram_is_65():
    c = compare(8192, 128)
    assert (c.naive_with_o_bytes, c.flash_dram_bytes) == (545_259_520, 8_388_608)
    assert c.dram_ratio == 65.0
    assert c.flash_intensity / c.naive_intensity == pytest.approx(c.ratio)


@pytest.mark.parametrize("like_for_like", [False, True])
def test_the_crossover_is_where_the_forms_meet(like_for_like):
    d, B_r = 512, 64
    at = crossover(d, B_r, like_for_like=like_for_like)
    o = bytes_o(1, d, 4) if like_for_like else 0

    def naive_minus_flash(N):
        return bytes_naive(N, d, 4) - (bytes_flash(N, d, B_r, 64, 4) - o * N)

    assert naive_minus_flash(int(at) - 1) > 0 > naive_minus_flash(int(at) + 2)
    assert crossover(64, 64, like_for_like=like_for_like) is None


def test_on_chip_score_matrix():
    """N = 64 in fp32: 16 KiB, inside a 32 KiB L1; from N = 91 on it is not."""
    assert score_fits(32 * 1024, 4) == 90
    assert score_fits(16 * 1024, 4) == 64


def test_flops_and_lower_bound():
    assert flops(2048, 64) == 4 * 2048 * 2048 * 64
    assert io_lower_bound(8192, 128, 192 * 1024, 2) == 2 * 8192**2 * 128**2 / (96 * 1024)
    small = io_lower_bound(8192, 128, 16 * 1024, 2)  # 8,192 elements, below d squared
    assert small == pytest.approx(2 * 8192**2 * 128 / 8192**0.5)
    assert io_lower_bound(64, 64, 2**30, 4) == 4 * 64 * 64 * 4


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: bytes_naive(0, 64), "N=0"),
        (lambda: bytes_flash(64, 64, 0, 64), "B_r=0"),
        (lambda: bytes_flash(64, 64, 64, -1), "B_c=-1"),
        (lambda: bytes_naive(64, 64, 0), "dtype_bytes=0"),
        (lambda: bytes_naive(64.5, 64), r"N=64\.5"),
    ],
)
def test_sizes_below_one_are_refused(call, name):
    with pytest.raises(InvalidInput, match=name):
        call()
