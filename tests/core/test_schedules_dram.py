"""Predicted DRAM bytes: published cache studies, a simulation of the wavefront, and the bracket."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from attnprof.core.errors import InvalidInput
from attnprof.core.mask import Causal, Lengths
from attnprof.core.problem import Problem
from attnprof.core.schedules import fa1_cost, fa2_cost, naive_cost
from attnprof.core.schedules.dram import USABLE_SHARE, Regime, predict_dram
from attnprof.core.units import MIB

SECTOR = 32
GB10_SMS, GB10_L2, TILE = 48, 24 * MIB, 80


def gb10(length: int) -> Problem:
    """The study's problem (arXiv 2601.16032): one head, d = 64, fp16, tiles of 80."""
    return Problem(q_len=length, head_dim=64, dtype="float16")


def tiled(problem: Problem):
    return fa2_cost(problem, rows=TILE, cols=TILE, lse=False)


def test_gb10_printed_sectors():
    sectors = tiled(gb10(32 * 1024)).logical.total_bytes / SECTOR
    assert sectors == pytest.approx(107_729_467, rel=0.005)


def test_gb10_printed_sectors_of_a_causal_mask():
    """Printed closed form 8S(S/2T + 1/2), with Q and O beside."""
    length = 32 * 1024
    problem = gb10(length).replace(mask=Causal())
    sectors = tiled(problem).logical.total_bytes / SECTOR
    assert sectors == pytest.approx(8 * length * (length / (2 * TILE) + 0.5), rel=0.025)


def wavefront_misses(length: int, capacity_bytes: int) -> tuple[int, int]:
    """(misses, accesses) of K/V tiles in an LRU memory shared by `GB10_SMS` query tiles in lock-step."""
    tiles, tile_bytes = -(-length // TILE), TILE * 64 * 2 * 2
    memory: OrderedDict[int, None] = OrderedDict()
    misses = 0
    for _ in range(-(-tiles // GB10_SMS)):
        for tile in range(tiles):
            if tile in memory:
                memory.move_to_end(tile)
            else:
                misses += 1
                memory[tile] = None
                if len(memory) * tile_bytes > capacity_bytes:
                    memory.popitem(last=False)
    return misses, tiles * tiles


def test_gb10_knee_is_near_20_mib():
    """K and V of 80K keys are 20 MiB; the printed misses start there. The rule's knee lies within 10% of it."""
    usable = round(20 / 24 * GB10_L2)
    assert wavefront_misses(79 * 1024, usable)[0] == -(-79 * 1024 // TILE)  # compulsory only
    assert wavefront_misses(82 * 1024, usable)[0] > 10 * (82 * 1024 // TILE)

    def keeps(length: int) -> bool:
        problem = gb10(length)
        prediction = predict_dram(problem, tiled(problem), llc_bytes=GB10_L2, resident=GB10_SMS)
        return prediction.value_bytes == prediction.low_bytes

    knee = next(n for n in range(60, 100) if not keeps(n * 1024))
    assert knee == pytest.approx(80, rel=0.1)


def test_gb10_hit_rate_beyond_the_knee():
    """Printed: 1 - 1/48."""
    length = 128 * 1024
    misses, accesses = wavefront_misses(length, 20 * MIB)
    assert 1 - misses / accesses == pytest.approx(1 - 1 / GB10_SMS, abs=0.001)
    problem = gb10(length)
    cost = tiled(problem)
    streamed = sum(t.read_bytes for t in cost.logical.terms if t.tensor in "KV")
    prediction = predict_dram(problem, cost, llc_bytes=GB10_L2, resident=GB10_SMS)
    from_dram = prediction.value_bytes - problem.q_bytes - problem.o_bytes
    assert 1 - from_dram / streamed == pytest.approx(1 - 1 / GB10_SMS, abs=0.001)


def test_flash_attention_figure_2():
    """Printed for an A100, forward and backward, 64 x 16 heads, N = 1024, d = 64, fp16: standard attention with a
    key-padding mask 35.3 GB; flash 4.4 GB (the printed GFLOP are not those of its matmuls: docs/bytes.md)."""
    problem = Problem(batch=64, q_heads=16, q_len=1024, head_dim=64, dtype="float16", direction="fwd_bwd")
    padded = problem.replace(mask=Lengths((1024,) * 64, (1000,) * 64))
    standard = naive_cost(padded, scale_pass=False)
    assert standard.logical.total_bytes == pytest.approx(35.3e9, rel=0.05)
    assert standard.op_boundary.total_bytes == pytest.approx(35.3e9, rel=0.05)
    textbook = naive_cost(problem, scale_pass=False).logical.total_bytes
    copies = 64 * 16 * 1024 * 2
    assert textbook == copies * (11 * 1024 + 12 * 64)  # Algorithms 0 and 3: 11 N^2 + 12 N d
    flash = fa1_cost(
        problem, rows=64, cols=256, dq_fp32=False
    )  # B_c = ceil(M / 4d) for 128 KiB of the A100's memory
    assert flash.logical.total_bytes == pytest.approx(4.4e9, rel=0.07)
    assert naive_cost(problem).useful_flops == pytest.approx(824.6e9, rel=1e-3)
    assert fa1_cost(problem).useful_flops == pytest.approx(962.1e9, rel=1e-3)


@pytest.mark.parametrize("length", [256, 2048, 16384])
@pytest.mark.parametrize("llc", [MIB, 50 * MIB])
@pytest.mark.parametrize("method", [naive_cost, fa2_cost, fa1_cost])
def test_the_value_is_inside_its_bracket(method, llc, length):
    problem = Problem(batch=2, q_heads=8, kv_heads=2, q_len=length, dtype="float16")
    cost = method(problem)
    p = predict_dram(problem, cost, llc_bytes=llc, resident=132)
    assert (
        problem.compulsory_bytes == p.low_bytes <= p.value_bytes <= p.high_bytes == cost.logical.total_bytes
    )
    usable = USABLE_SHARE * llc
    assert p.claimed == (not usable / 2 < p.active_bytes < usable * 2)
    assert (p.regime is Regime.NEAR) == (not p.claimed)


def test_the_level_matters_65_times():
    """N = 8192, d = 128, fp16: K and V stay in a 50 MiB cache, the scores do not."""
    problem = Problem(q_len=8192, head_dim=128, dtype="float16")
    naive = predict_dram(problem, naive_cost(problem, scale_pass=False), llc_bytes=50 * MIB, resident=132)
    flash = predict_dram(problem, fa2_cost(problem, lse=False), llc_bytes=50 * MIB, resident=132)
    assert flash.value_bytes == 8_388_608
    assert naive.value_bytes / flash.value_bytes == pytest.approx(65.0, abs=0.01)


def test_a_cache_of_nothing_is_refused():
    problem = Problem(q_len=64)
    with pytest.raises(InvalidInput, match="llc_bytes=0"):
        predict_dram(problem, naive_cost(problem), llc_bytes=0)
