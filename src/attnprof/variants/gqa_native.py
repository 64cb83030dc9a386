"""Preset: query heads in groups of four on one KV head, with no expansion of K and V."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._costs import sdpa_cost
from attnprof.variants._sdpa import sdpa_kernel_for
from attnprof.variants.gqa_4kv import grouped


@variant(
    name="gqa_native",
    title="GQA in groups of 4 through SDPA's enable_gqa, no expansion",
    preset=grouped,
    cost=sdpa_cost,
)
def gqa_native(problem: Problem, setting: Setting) -> Kernel:
    """The problem of gqa_4kv; the kernel indexes the shared KV head itself."""
    return sdpa_kernel_for(problem, setting)
