"""Variants that compute less or in another order: true window, split-KV, chunks, block masks."""

from __future__ import annotations

import pytest
import torch
from tests.variants import reference
from torch.utils._python_dispatch import TorchDispatchMode

from attnprof.core.mask import Causal, Dense, Lengths, Window
from attnprof.core.problem import Problem
from attnprof.core.variant import Setting
from attnprof.variants.catalog import find
from attnprof.variants.split_kv import parts_of


class Largest(TorchDispatchMode):
    """The largest storage that any operator returns, in bytes."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, tuple | list) else (result,):
            if isinstance(x, torch.Tensor):
                self.bytes = max(self.bytes, x.untyped_storage().nbytes())
        return result


def run(name, problem, tensors):
    variant = find(name)
    with variant.entered(Setting()):
        return variant.prepare(problem, Setting())(*tensors)


@pytest.mark.parametrize(
    "mask", [Window(127, 0), Window(30, 40), Window(0, 0), Window(100, 50, "bottom_right"), Window(600, 2)]
)
def test_true_window_over_several_blocks(mask):
    problem = Problem(q_heads=2, kv_heads=1, q_len=700, kv_len=650, head_dim=16, mask=mask)
    q, k, v = reference.inputs(problem)
    masked = run("naive", problem, (q, k, v))
    assert torch.allclose(run("sliding_window_true", problem, (q, k, v)), masked, atol=1e-6)


def test_true_window_allocates_no_matrix_of_scores():
    problem = Problem(q_len=4096, head_dim=64, mask=Window(127, 0))
    tensors = reference.inputs(problem)
    with Largest() as largest:
        run("sliding_window_true", problem, tensors)
    assert largest.bytes <= 4096 * 64 * 4


def test_true_window_takes_the_asked_window_and_128_otherwise():
    variant = find("sliding_window_true")
    assert variant.problem_for(Problem(q_len=9, mask=Window(3, 1))).mask == Window(3, 1)
    assert variant.problem_for(Problem(q_len=9, mask=Causal())).mask == Window(127, 0)
    assert "no limit on one side" in variant.refuse(Problem(q_len=9, mask=Window(-1, 0)))


def test_true_window_work_is_linear_in_the_length():
    costs = [find("sliding_window_true").cost(Problem(q_len=n, mask=Window(127, 0))) for n in (4096, 16384)]
    assert costs[1].executed_flops / costs[0].executed_flops < 4.2
    assert costs[1].logical.total_bytes / costs[0].logical.total_bytes < 4.2


@pytest.mark.parametrize("kv_len", [1, 1024, 1025, 3000])
@pytest.mark.parametrize("q_len", [1, 3])
def test_split_kv_over_several_parts(q_len, kv_len):
    problem = Problem(batch=2, q_heads=4, kv_heads=2, q_len=q_len, kv_len=kv_len, mask=Causal("bottom_right"))
    q, k, v = reference.inputs(problem)
    assert torch.allclose(run("split_kv", problem, (q, k, v)), run("naive", problem, (q, k, v)), atol=1e-6)


def test_split_kv_with_parts_that_no_query_sees():
    problem = Problem(batch=2, q_heads=2, q_len=1, kv_len=2500, mask=Lengths((1, 1), (2500, 10)))
    q, k, v = reference.inputs(problem)
    output = run("split_kv", problem, (q, k, v))
    alone = run("naive", Problem(q_heads=2, q_len=1, kv_len=10), (q[1:], k[1:, :, :10], v[1:, :, :10]))
    assert torch.allclose(output[1:], alone, atol=1e-6)


def test_split_kv_is_for_few_queries():
    assert "q_len 65 is above 64" in find("split_kv").refuse(Problem(q_len=65))
    assert parts_of(Problem(q_len=1, kv_len=8193)) == 9


def test_split_kv_reads_grouped_keys_once():
    problem = Problem(q_heads=32, kv_heads=8, q_len=1, kv_len=8192, head_dim=128, dtype="bfloat16")
    cost = find("split_kv").cost(problem)
    keys = sum(term.read_bytes for term in cost.logical.terms if term.tensor in ("K", "V"))
    assert keys == problem.k_bytes + problem.v_bytes


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_chunks_that_a_row_does_not_see_do_not_count(dtype):
    """The second chunk alone is visible and its scores are far below 0: it must keep its full weight."""
    problem = Problem(q_len=2, kv_len=700, head_dim=16, dtype=dtype, mask=Window(90, 0, "bottom_right"))
    q, k, v = reference.inputs(problem)
    q, k = q.abs() + 1, -k.abs() * 8
    output = run("chunked_memeff", problem, (q, k, v))
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    assert torch.allclose(output.double(), reference.attention(problem, q, k, v), atol=tolerance)


def test_chunks_keep_memory_below_the_matrix_of_scores():
    problem = Problem(q_len=2048, head_dim=16, mask=Causal())
    with Largest() as largest:
        run("chunked_memeff", problem, reference.inputs(problem))
    assert largest.bytes < 2048 * 2048 * 4 / 8


BLOCK_MASKS = {
    "causal": Problem(q_len=300, kv_len=260, mask=Causal()),
    "bottom_right": Problem(q_len=300, kv_len=400, mask=Causal("bottom_right")),
    "window": Problem(q_len=400, mask=Window(100, 20)),
    "wide_window": Problem(q_len=400, mask=Window(390, 300)),
    "document": Problem(batch=2, q_len=300, mask=Lengths((300, 140), (300, 10), Causal())),
    "prefix": Problem(
        q_len=260, mask=Dense([[int(j <= i or j < 150) for j in range(260)] for i in range(260)])
    ),
}


@pytest.mark.parametrize("case", list(BLOCK_MASKS))
def test_block_mask_shows_the_pairs_of_the_mask(case):
    from attnprof.variants._block_mask import BLOCK, block_mask
    from attnprof.variants._tensors import mask_tensor

    problem = BLOCK_MASKS[case]
    blocks = block_mask(problem, "cpu")
    wanted = mask_tensor(problem, "cpu")
    wanted = wanted if wanted.dim() == 4 else wanted[None, None]
    for b in range(wanted.shape[0]):
        got = torch.zeros(problem.q_len, problem.kv_len, dtype=torch.bool)
        for counts, lists, mod in (
            (blocks.kv_num_blocks, blocks.kv_indices, blocks.mask_mod),
            (blocks.full_kv_num_blocks, blocks.full_kv_indices, None),
        ):
            for row, many in enumerate(counts[b, 0].tolist()):
                for column in lists[b, 0, row, :many].tolist():
                    i = torch.arange(row * BLOCK, min((row + 1) * BLOCK, problem.q_len))[:, None]
                    j = torch.arange(column * BLOCK, min((column + 1) * BLOCK, problem.kv_len))[None, :]
                    got[i, j] = True if mod is None else mod(torch.tensor(b), torch.tensor(0), i, j)
        assert torch.equal(got, wanted[b, 0])


def test_block_mask_computes_36_of_64_blocks():
    from attnprof.variants._block_mask import block_mask

    blocks = block_mask(Problem(q_len=1024, mask=Causal()), "cpu")
    assert blocks.kv_num_blocks.sum() + blocks.full_kv_num_blocks.sum() == 36
    assert find("flex").cost(Problem(q_len=1024, mask=Causal())).executed_flops == 36 * 128 * 128 * 4 * 64
