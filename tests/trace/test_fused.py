"""PyTorch's fused CPU kernel, played tile by tile: forward with masks and 16-bit types, backward, training step."""

from __future__ import annotations

import pytest
import torch

from attnprof import Causal, Dense, Problem, trace

ALL_FITS = 2**34
TILE = 256 * 1024


def traced(problem, capacity):
    return trace("sdpa_flash", problem, capacities=[capacity])[0]


def unlike_a_rule(rows, cols):
    return Dense(torch.arange(rows * cols).reshape(rows, cols) % 3 > 0)


@pytest.mark.parametrize("direction", ["fwd", "bwd", "fwd_bwd"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_memory_that_holds_everything_sees_the_compulsory_bytes(direction, dtype):
    problem = Problem(q_heads=4, kv_heads=4, q_len=192, head_dim=32, dtype=dtype, direction=direction)
    point = traced(problem, ALL_FITS)
    statistics = 4 * problem.q_heads * problem.q_len * (2 if dtype == "float64" else 1)
    stored_output = problem.o_bytes if direction == "bwd" else 0  # the forward's output and LSE are read back
    extra = stored_output + 2 * statistics
    assert problem.compulsory_bytes <= point.total_bytes <= problem.compulsory_bytes + extra


@pytest.mark.parametrize("direction", ["fwd", "bwd"])
def test_causal_skips_tiles(direction):
    full = Problem(q_heads=2, q_len=2048, head_dim=64, direction=direction)
    assert traced(full.replace(mask=Causal()), TILE).total_bytes < 0.85 * traced(full, TILE).total_bytes


def test_a_mask_is_read_block_by_block():
    problem = Problem(batch=2, q_heads=2, q_len=600, kv_len=700, head_dim=16, mask=unlike_a_rule(600, 700))
    plain = problem.replace(mask=Problem(q_len=1).mask)
    assert traced(problem, ALL_FITS).read_bytes >= traced(plain, ALL_FITS).read_bytes + problem.mask_bytes


def test_16_bit_types_have_a_reduced_copy_of_the_scores():
    problem = Problem(q_heads=1, q_len=512, head_dim=16, dtype="bfloat16")
    tiny = 32 * 1024  # smaller than a tile: its scratch goes through
    assert traced(problem, tiny).total_bytes > traced(problem, ALL_FITS).total_bytes > 0
