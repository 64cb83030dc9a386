"""Textbook attention under torch.compile: what Inductor makes of it, which may be SDPA."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.schedules.eager import naive_cost
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._compile import compiled, no_compiler
from attnprof.variants.naive import naive


@variant(
    name="naive_compiled",
    title="Naive under torch.compile (Inductor may rewrite it to SDPA)",
    cost=naive_cost,
    compiles=True,
    needs=no_compiler,
    install="a C++ compiler (CPU) or triton (GPU)",
)
def naive_compiled(problem: Problem, setting: Setting) -> Kernel:
    """Compiled without caches, so that the first call holds the whole compilation; the row says what ran."""
    kernel: Kernel = compiled(naive.prepare(problem, setting))
    return kernel
