"""Known values of the schedules: published, measured or by hand."""

from __future__ import annotations

import pytest

from attnprof.core.errors import InvalidInput
from attnprof.core.mask import Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules import (
    chunked_cost,
    decode_cost,
    fa1_cost,
    fa2_cost,
    flex_cost,
    math_cost,
    naive_cost,
    split_kv_cost,
    torch_cpu_flash_cost,
    true_window_cost,
)
from attnprof.core.units import MIB

TILED = (chunked_cost, decode_cost, fa1_cost, fa2_cost, flex_cost, torch_cpu_flash_cost)
ALL = (*TILED, math_cost, naive_cost)
SHAPES = (
    Problem(batch=2, q_heads=4, q_len=100, kv_len=77, head_dim=16),
    Problem(batch=2, q_heads=4, kv_heads=2, q_len=65, kv_len=130, qk_dim=16, v_dim=32, dtype="bfloat16"),
    Problem(batch=0, q_len=16),
    Problem(q_len=0, kv_len=16),
    Problem(q_len=16, kv_len=0),
)
MASKS = (Full(), Causal(), Causal("bottom_right"), Window(5, 0), Window(3, 3, "bottom_right"))


def test_like_for_like_prototype_values_in_fp32_to_the_byte():
    p = Problem(q_len=2048, head_dim=64)
    assert fa2_cost(p, rows=64, cols=64, lse=False).logical.total_bytes == 34_603_008
    assert naive_cost(p).logical.total_bytes == 69_206_016 + 2 * p.score_bytes  # one more pass: the scale


def test_peak_memory_as_observed_on_the_cpu():
    """Observed, MiB: 66.0, 74.0, 3.16; bf16 33.25 (0.25 inside matmul), 80.0, 2.66; GQA 24.0, 2.19."""
    p = Problem(q_heads=8, q_len=1024, head_dim=64)
    half, gqa = p.replace(dtype="bfloat16"), Problem(q_heads=32, kv_heads=4, q_len=256, head_dim=64)

    def peaks(problem):
        return [round(f(problem).peak_bytes / MIB, 2) for f in (naive_cost, math_cost, torch_cpu_flash_cost)]

    assert peaks(p) == [66.0, 74.0, 3.16]
    assert peaks(half) == [33.0, 80.0, 2.66]
    assert peaks(gqa)[1:] == [24.0, 2.19]


def test_peak_memory_of_the_cpu_kernel_s_backward_as_observed():
    """Allocator events of PyTorch 2.13, two threads, 8 heads of 512 x 64 in fp32: 4.50 MiB backward, 5.52 both."""
    p = Problem(q_heads=8, q_len=512, head_dim=64)
    backward = torch_cpu_flash_cost(p.replace(direction="bwd"))
    assert backward.peak_bytes == 3 * MIB + 1_048_576 + 524_288 + 256
    both = torch_cpu_flash_cost(p.replace(direction="fwd_bwd"))
    assert both.peak_bytes == backward.peak_bytes + MIB + 8 * 512 * 4


def test_flex_blocks_of_a_causal_mask():
    cost = flex_cost(Problem(q_len=1024, mask=Causal()))
    assert cost.exp_ops == 589_824 == 36 * 128 * 128
    assert cost.executed_flops == 4 * 64 * 589_824
    assert cost.useful_flops == 4 * 64 * 524_800


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_method_moves_less_than_the_compulsory_bytes(method, direction, mask, shape):
    p = shape.replace(direction=direction, mask=mask)
    cost = method(p)
    assert cost.logical.total_bytes >= cost.compulsory.total_bytes == p.compulsory_bytes
    assert cost.executed_flops >= 0
    assert cost.workspace_bytes >= 0
    if p.total_pairs:
        assert cost.exp_ops >= p.total_pairs


def test_naive_reads_each_tensor_as_often_as_its_operators_do():
    p = Problem(q_heads=2, q_len=64, head_dim=32, mask=Causal())
    by_tensor = {t.tensor: (t.read_bytes, t.write_bytes) for t in naive_cost(p).logical.terms}
    score, stored = p.score_bytes, 64 * 64
    assert by_tensor["S"] == (3 * score, 3 * score)  # QK^T, scale, mask; read by scale, mask, softmax
    assert by_tensor["P"] == (score, score)
    assert by_tensor["mask"] == (stored + 2 * stored, stored)  # inverted once, then asked for by each head
    boundary = {t.tensor: t.read_bytes for t in naive_cost(p).op_boundary.terms}
    assert boundary["mask"] == 2 * stored


def test_gqa_is_native_or_expanded():
    p = Problem(q_heads=8, kv_heads=2, q_len=128, head_dim=64)
    native, expanded = fa2_cost(p), fa2_cost(p, expanded=True)
    copies = 2 * (p.k_bytes + 4 * p.k_bytes)
    assert expanded.logical.total_bytes - native.logical.total_bytes == copies
    packed = fa2_cost(p, rows=512, packed=True)
    keys = sum(t.read_bytes for t in packed.logical.terms if t.tensor in "KV")
    assert keys == p.k_bytes + p.v_bytes


def test_decode_reads_the_cache_once_and_splits_add_partials():
    p = Problem(q_heads=32, kv_heads=8, q_len=1, kv_len=4096, head_dim=128, dtype="float16")
    lse = 32 * 4
    assert decode_cost(p).logical.total_bytes == 16_793_600 + lse
    split = split_kv_cost(p, splits=8)
    extra = split.logical.total_bytes - decode_cost(p).logical.total_bytes
    assert extra == 2 * 8 * 32 * 129 * 4 + 7 * p.q_bytes


def test_a_true_window_computes_the_tiles_that_it_touches():
    p = Problem(q_len=4096, mask=Window(127, 0))
    assert true_window_cost(p, rows=64, cols=64).exp_ops == (1 + 2 + 62 * 3) * 64 * 64
    assert naive_cost(p).exp_ops == 4096 * 4096


def test_lengths_are_summed_over_the_batch():
    mask = Lengths((10, 3), (8, 20), Causal())
    p = Problem(batch=2, q_len=16, kv_len=20, mask=mask)
    cost = fa2_cost(p, rows=4, cols=4)
    elements = [Problem(q_len=q, kv_len=k, mask=Causal()) for q, k in ((10, 8), (3, 20))]
    assert cost.exp_ops == sum(fa2_cost(p, rows=4, cols=4).exp_ops for p in elements)


def test_block_mask_of_an_explicit_array():
    rows = [[int(abs(i - j) < 2) for j in range(12)] for i in range(12)]
    cost = flex_cost(Problem(q_len=12, mask=Dense(rows)), rows=4, cols=4)
    assert cost.exp_ops == 7 * 16


def test_block_mask_that_differs_by_head():
    band = [[int(abs(i - j) < 2) for j in range(12)] for i in range(12)]
    full = [[1] * 12 for _ in range(12)]
    cost = flex_cost(Problem(q_heads=2, q_len=12, mask=Dense([[band, full]])), rows=4, cols=4)
    assert cost.exp_ops == (7 + 9) * 16


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_tiles_below_one_are_refused(size):
    with pytest.raises(InvalidInput, match="tile size B_r"):
        fa2_cost(Problem(q_len=64), rows=size)
