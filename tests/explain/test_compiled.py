"""torch.compile of a textbook attention: rewritten, recompiled, and its compile time kept apart."""

import math

import pytest
import torch

from attnprof.core.problem import Problem
from attnprof.core.variant import Setting
from attnprof.explain.compiled import compile_report
from attnprof.explain.observed import observe_backend
from attnprof.variants.naive_compiled import naive_compiled

pytestmark = pytest.mark.filterwarnings("ignore")  # Inductor and its compiler warn of their own affairs


def textbook(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v


def rand(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.slow
def test_compiled_naive_is_sdpa_and_a_second_shape_makes_a_second_graph():
    torch._dynamo.reset()
    one, two = ((rand(2, 4, n, 32), rand(2, 4, n, 32), rand(2, 4, n, 32)) for n in (64, 96))
    first = compile_report(textbook, one)
    assert first.label == "compiled: rewritten to SDPA"
    assert (first.graphs, first.recompiles, first.rewrites) == (1, 0, 1)
    assert first.backend == "compiled: rewritten to SDPA (flash)"
    torch._dynamo.reset()
    both = compile_report(textbook, one, two)
    assert (both.graphs, both.recompiles) == (2, 1)
    assert both.compile_s > 10 * sum(both.run_s)


@pytest.mark.slow
def test_the_variant_computes_attention_and_its_row_says_what_ran():
    p = Problem(batch=2, q_heads=4, q_len=64, head_dim=32)
    q, k, v = rand(2, 4, 64, 32), rand(2, 4, 64, 32), rand(2, 4, 64, 32)
    kernel = naive_compiled.prepare(p, Setting())
    torch.testing.assert_close(kernel(q, k, v), textbook(q, k, v))
    assert observe_backend(lambda: kernel(q, k, v)).startswith("compiled")
