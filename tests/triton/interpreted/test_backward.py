"""triton_flash backward under the interpreter: gradients of q, k, v against float64 autograd."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from tests.triton.interpreted.test_forward import DTYPES, LENGTHS, MASKS, RAGGED, SIZES, kernel_of, true_lse
from tests.variants import reference

from attnprof.core.problem import Problem

PROBLEMS = {
    f"{size}-{mask}-{dtype}": Problem(**SIZES[size], mask=MASKS[mask], dtype=dtype)
    for size, mask, dtype in product(("square", "short_q", "long_q", "gqa", "dims"), MASKS, DTYPES)
    if not (size == "dims" and mask.startswith("window"))
} | {
    f"ragged-{name}-{dtype}": Problem(**RAGGED, mask=mask, dtype=dtype)
    for (name, mask), dtype in product(LENGTHS.items(), DTYPES)
}


@pytest.mark.parametrize("case", list(PROBLEMS))
def test_gradients(case):
    problem = PROBLEMS[case]
    tensors = reference.inputs(problem, grad=True, strided=len(case) % 2 == 1)
    exact = tuple(x.detach().double().requires_grad_() for x in tensors)
    want = reference.attention(problem, *exact)
    upstream = torch.randn(want.shape, generator=torch.Generator().manual_seed(2)).to(tensors[0].dtype)
    want.backward(upstream.double())
    kernel_of(problem)(*tensors).backward(upstream)
    largest = max(x.grad.abs().max().item() for x in exact)
    tolerance = 16 * problem.dtype.unit_roundoff * max(largest, 1.0)
    for got, true in zip(tensors, exact, strict=True):
        assert torch.allclose(got.grad.double(), true.grad, rtol=0, atol=tolerance)


def test_gradient_through_the_lse():
    problem = Problem(q_heads=2, kv_heads=1, q_len=18, kv_len=33, head_dim=16)
    tensors = reference.inputs(problem, grad=True)
    exact = tuple(x.detach().double().requires_grad_() for x in tensors)
    output, lse = kernel_of(problem).with_lse(*tensors)
    (output.sum() + lse.sin().sum()).backward()
    (reference.attention(problem, *exact).sum() + true_lse(problem, *exact[:2]).sin().sum()).backward()
    for got, true in zip(tensors, exact, strict=True):
        assert torch.allclose(got.grad.double(), true.grad, rtol=0, atol=1e-5)
