"""Eager forms against the operators that PyTorch really runs: operand bytes and live storage, as observed."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attnprof.core.mask import Causal, Full, Window
from attnprof.core.problem import Problem
from attnprof.core.schedules import math_cost, naive_cost
from attnprof.core.variant import Setting
from attnprof.variants._tensors import mask_tensor
from attnprof.variants.naive import naive


class Operands(TorchDispatchMode):
    """Bytes of each operator's distinct input storages and new outputs; storage alive, at its most."""

    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = self.live = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        del types
        out = func(*args, **(kwargs or {}))
        inputs = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in _tensors((args, kwargs))}
        new = [t.untyped_storage() for t in _tensors(out) if t.untyped_storage()._cdata not in inputs]
        if new:
            self.read += sum(size for size in inputs.values() if size > 16)  # not the scalars of a `where`
        for storage in new:
            self._born(storage)
        return out

    def _born(self, storage) -> None:
        size = storage.nbytes()
        self.written += size if size > 16 else 0
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._died, size)

    def _died(self, size: int) -> None:
        self.live -= size


def _tensors(tree) -> list[torch.Tensor]:
    return [t for t in tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _math(problem: Problem):
    causal = problem.mask == Causal()
    mask = None if causal else mask_tensor(problem, "cpu")

    def attention(q, k, v):
        with sdpa_kernel([SDPBackend.MATH]):
            return scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=problem.group > 1)

    return attention


def observe(kernel, problem: Problem) -> Operands:
    dtype, training = getattr(torch, problem.dtype), problem.direction == "fwd_bwd"

    def make(heads, length, dim):
        return torch.randn(problem.batch, heads, length, dim, dtype=dtype, requires_grad=training)

    q = make(problem.q_heads, problem.q_len, problem.qk_dim)
    k = make(problem.kv_heads, problem.kv_len, problem.qk_dim)
    v = make(problem.kv_heads, problem.kv_len, problem.v_dim)
    do = torch.randn(problem.batch, problem.q_heads, problem.q_len, problem.v_dim, dtype=dtype)
    with Operands() as seen:
        out = kernel(q, k, v)
        grads = torch.autograd.grad(out, (q, k, v), do) if training else ()
    del out, grads
    return seen


SIZES = {
    "square": {"q_len": 96},
    "unequal": {"q_len": 64, "kv_len": 96},
    "gqa": {"q_len": 96, "kv_heads": 2},
}
MASKS = (Full(), Causal(), Window(9, 0), Causal("bottom_right"))


@pytest.mark.parametrize("direction", ["fwd", "fwd_bwd"])
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("sizes", SIZES)
def test_naive_to_the_byte(sizes, mask, direction):
    problem = Problem(batch=2, q_heads=4, head_dim=32, mask=mask, direction=direction, **SIZES[sizes])
    seen, cost = observe(naive.prepare(problem, Setting()), problem), naive_cost(problem)
    assert (seen.read, seen.written) == (cost.op_boundary.read_bytes, cost.op_boundary.write_bytes)
    assert seen.peak == pytest.approx(cost.peak_bytes, rel=0.03)


@pytest.mark.parametrize("direction", ["fwd", "fwd_bwd"])
def test_naive_with_rows_that_see_no_key(direction):
    problem = Problem(q_heads=2, q_len=96, kv_len=64, mask=Causal("bottom_right"), direction=direction)
    assert problem.empty_rows == 32
    seen, cost = observe(naive.prepare(problem, Setting()), problem), naive_cost(problem)
    assert (seen.read, seen.written) == (cost.op_boundary.read_bytes, cost.op_boundary.write_bytes)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("direction", ["fwd", "fwd_bwd"])
@pytest.mark.parametrize("mask", MASKS[:3], ids=str)
@pytest.mark.parametrize("sizes", SIZES)
def test_math_to_the_byte(sizes, mask, direction, dtype):
    """Its softmax also looks for empty rows: a byte a pair of scratch, inside one operator."""
    problem = Problem(
        batch=2, q_heads=4, head_dim=32, mask=mask, direction=direction, dtype=dtype, **SIZES[sizes]
    )
    seen, cost = observe(_math(problem), problem), math_cost(problem)
    assert (seen.read, seen.written) == (cost.op_boundary.read_bytes, cost.op_boundary.write_bytes)
    scratch = problem.batch * problem.q_heads * problem.q_len * problem.kv_len
    assert cost.peak_bytes * 0.97 - scratch <= seen.peak <= cost.peak_bytes * 1.03
