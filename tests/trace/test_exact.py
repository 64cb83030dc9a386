"""Traced bytes equal the closed forms of the textbook, to the byte."""

import warnings

import pytest
import torch

from attnprof.core.errors import InvalidInput, KernelError
from attnprof.core.mask import Causal
from attnprof.core.problem import Problem
from attnprof.trace.api import trace, trace_call
from attnprof.trace.policy import Freed, Order, Policy, WriteMiss

KIB, MIB = 1024, 1024**2


def textbook_naive(q, k, v):
    """The scale is folded into q, so that S is written once and read once."""
    return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


def square(n, **more):
    return Problem(q_len=n, head_dim=64, **more)


@pytest.mark.parametrize("n", [256, 512, 1024, 2048])
def test_flash_tiled_is_exact(n):
    (point,) = trace("flash_tiled", square(n), [160 * KIB])
    assert point.total_bytes == 8 * n * 64 * (1 + n // 64)
    assert point.write_bytes == point.tensor_bytes("O") == n * 64 * 4
    assert {term.tensor for term in point.by_tensor} == {"Q", "K", "V", "O"}


@pytest.mark.parametrize("n", [256, 512, 1024, 2048])
def test_textbook_naive_is_exact(n):
    (point,) = trace(textbook_naive, square(n), [160 * KIB])
    assert point.total_bytes == 16 * n * 64 + 16 * n * n
    assert point.tensor_bytes("S") == point.tensor_bytes("P") == 8 * n * n


def test_eager_naive_has_one_more_pass_for_the_scale():
    (point,) = trace("naive", square(1024), [160 * KIB])
    assert point.total_bytes == 16 * 1024 * 64 + 24 * 1024**2


def test_naive_is_compulsory_when_everything_fits():
    (point,) = trace(textbook_naive, square(64), [96 * KIB])
    assert point.total_bytes == square(64).compulsory_bytes == 65_536


def test_flash_falls_to_compulsory_in_a_large_memory():
    (point,) = trace("flash_tiled", square(2048), [32 * MIB])
    assert point.total_bytes == square(2048).compulsory_bytes == 2_097_152


def test_without_a_memory_the_tiling_loop_asks_for_more_than_naive():
    flash = trace("flash_tiled", square(512)).op_boundary
    naive = trace(textbook_naive, square(512)).op_boundary
    assert naive.total_bytes == 16 * 512 * 64 + 16 * 512**2
    assert flash.total_bytes > 3 * naive.total_bytes


def test_points_follow_the_capacities_and_fall_with_them():
    capacities = [4 * KIB, 64 * KIB, 1 * MIB, 64 * MIB]
    traced = trace("flash_tiled", square(512), capacities)
    assert [point.capacity_bytes for point in traced] == capacities
    totals = [point.total_bytes for point in traced]
    assert totals == sorted(totals, reverse=True)
    assert traced.at(1 * MIB) is traced[2]


def test_tensors_and_operators_sum_to_the_same():
    (point,) = trace("naive", square(256, mask=Causal()), [64 * KIB])
    for side in ("read_bytes", "write_bytes"):
        assert sum(getattr(t, side) for t in point.by_operator) == getattr(point, side) > 0
    assert point.tensor_bytes("mask") > 0


def test_backward_of_naive_reads_the_stored_weights():
    n, nd = 512, 512 * 64 * 4
    (point,) = trace(textbook_naive, square(n, direction="bwd"), [160 * KIB])
    s = n * n * 4
    assert point.tensor_bytes("P") == 2 * s  # dV, softmax backward
    assert point.tensor_bytes("dP") == 2 * s
    assert point.tensor_bytes("dS") == 3 * s
    assert point.total_bytes == 7 * s + 8 * nd  # dO twice, Q, K, V once; dQ, dK, dV written


def test_forward_and_backward_are_counted_together():
    both, fwd, bwd = (
        trace(textbook_naive, square(256, direction=d), [160 * KIB])[0].total_bytes
        for d in ("fwd_bwd", "fwd", "bwd")
    )
    assert abs(both - fwd - bwd) <= 160 * KIB  # what is still held when the backward starts


def test_write_allocate_fetches_each_written_line():
    n = 512
    no_fetch, allocate = (
        trace(textbook_naive, square(n), [160 * KIB], policy=Policy(write_miss=kind))[0] for kind in WriteMiss
    )
    assert allocate.read_bytes - no_fetch.read_bytes == 2 * n * n * 4 + n * 64 * 4  # S, P, O
    assert allocate.write_bytes == no_fetch.write_bytes


def test_what_freed_storage_costs_depends_on_the_policy():
    drop, reuse, never = (
        trace("flash_tiled", square(512), [1 * MIB], policy=Policy(freed=kind))[0].total_bytes
        for kind in Freed
    )
    assert drop == square(512).compulsory_bytes
    assert drop < reuse < never


def test_sequential_order_hides_traffic_near_a_tensors_size():
    """All reads before all writes lets S stay in a memory of its own size; operands in step do not."""
    lock, seq = (
        trace(textbook_naive, square(512), [1 * MIB], policy=Policy(order=kind))[0].total_bytes
        for kind in Order
    )
    assert lock > 1.5 * seq


def test_expanded_keys_count_once():
    k = torch.randn(1, 1, 16, 64).expand(1, 4, 16, 64)
    traced = trace_call(lambda k: k.sum(), k, capacities=[64 * KIB])
    assert traced[0].read_bytes == 4_096


@pytest.mark.parametrize(("mask", "nbytes"), [(torch.bool, MIB), (torch.float32, 4 * MIB)])
def test_mask_storage_counts_by_its_dtype(mask, nbytes):
    """A mask broadcast over heads is one storage: read once where it fits, once a head where it does not."""
    s = 1024
    bits = torch.ones(1, 1, s, s, dtype=mask).expand(1, 12, s, s)
    fits, small = trace_call(lambda x: x.sum(), bits, capacities=[8 * MIB, 64 * KIB])
    assert (fits.read_bytes, small.read_bytes) == (nbytes, 12 * nbytes)
    repeated = bits.contiguous()
    assert trace_call(lambda x: x.sum(), repeated, capacities=[64 * MIB])[0].read_bytes == 12 * nbytes


@pytest.mark.parametrize("capacity", [0, -1, 63])
def test_capacity_below_a_line_is_refused(capacity):
    with pytest.raises(
        InvalidInput, match=f"capacity {capacity} bytes: a memory must hold at least one line of 64"
    ):
        trace(textbook_naive, square(8), [capacity])


def test_no_capacity_is_refused():
    with pytest.raises(InvalidInput, match="no capacity given"):
        trace(textbook_naive, square(8), [])


def test_line_size_is_checked():
    with pytest.raises(InvalidInput, match="line_bytes=0"):
        trace(textbook_naive, square(8), line_bytes=0)


def test_wrong_shape_is_named():
    with pytest.raises(InvalidInput, match=r"returned shape \(1, 1, 8, 8\): it must be \(1, 1, 8, 64\)"):
        trace(lambda q, k, v: q @ k.transpose(-1, -2) * v.mean(), square(8))


def test_wrong_type_is_named():
    with pytest.raises(InvalidInput, match="returned tuple"):
        trace(lambda q, k, v: (q, k, v), square(8))


def test_failure_half_way_says_how_far_it_got():
    def breaks(q, k, v):
        return (q @ k.transpose(-1, -2)) @ v[:, :, :3]

    with pytest.raises(
        KernelError, match=r"breaks failed after 1 operators \(the last new one was bmm\): RuntimeError"
    ):
        trace(breaks, square(8))


def test_refused_problem_is_refused_before_it_runs():
    with pytest.raises(InvalidInput, match=r"dropout 0\.5 is not supported"):
        trace("flash_tiled", square(8, dropout=0.5))


def test_sdpa_is_played_as_tiles_and_says_so():
    traced = trace("sdpa_flash", square(512), [1 * MIB])
    assert "played as the CPU kernel's own tiles" in traced.flags[0]
    assert traced[0].total_bytes == square(512).compulsory_bytes


def test_unknown_fused_kernel_is_named_counted_and_flagged():
    """Multi-head attention in eval mode calls one operator that hides all of its matmuls."""
    mha = torch.nn.MultiheadAttention(64, 4, batch_first=True).eval()
    x = torch.randn(1, 128, 64)
    with torch.inference_mode():
        traced = trace_call(lambda x: mha(x, x, x, need_weights=False)[0], x, capacities=[64 * KIB])
    assert "_native_multi_head_attention" in {op.name for op in traced.operators}
    assert any("fused operator without a known schedule" in flag for flag in traced.flags)
    assert traced[0].read_bytes >= x.nbytes + sum(p.nbytes for p in mha.parameters())


def test_kernel_outside_the_dispatcher_is_flagged():
    def through_numpy(q, k, v):
        out = torch.empty_like(q)
        out.numpy()[...] = torch.softmax(q @ k.transpose(-1, -2), -1).numpy() @ v.numpy()
        return out

    assert any(
        "written outside PyTorch's operators" in flag for flag in trace(through_numpy, square(8)).flags
    )
    assert trace(textbook_naive, square(8)).flags == ()


def test_compiled_code_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # raised inside torch.compile
        compiled = torch.compile(textbook_naive)
    with pytest.raises(InvalidInput, match="compiled code cannot be seen operator by operator"):
        trace(compiled, square(8))
    with pytest.raises(InvalidInput, match="compiled code cannot be seen operator by operator"):
        trace("naive_compiled", square(8))


def test_keys_expanded_for_grouped_heads_are_copies():
    (point,) = trace("naive", square(256, q_heads=4, kv_heads=1), [160 * KIB])
    copied = 4 * 256 * 64 * 4
    assert point.tensor_bytes("K copy") == point.tensor_bytes("V copy") == 2 * copied


@pytest.mark.parametrize("name", ["flash_tiled", "fa1_tiled"])
def test_tiled_backward_sums_dq_in_memory(name):
    """FlashAttention's backward: dQ is read and written once per key tile, dK and dV once."""
    n, d = 512, 32
    problem = Problem(q_len=n, head_dim=d, direction="bwd")
    points = trace(name, problem, [64 * KIB])
    tiles, nd = n // 64, n * d * 4
    assert points[0].tensor_bytes("dK") == points[0].tensor_bytes("dV") == nd
    assert points[0].tensor_bytes("dQ partial") == pytest.approx(nd * (1 + 2 * tiles + 1), rel=0.02)


def test_a_trace_prints_its_call_and_totals():
    traced = trace("naive", Problem(q_len=64), [160 * 1024])
    assert repr(traced) == "<Trace of naive, B1 H1 N64 d64 float32 full fwd; 160 KiB: 65,536 B>"
