"""PyTorch's scaled_dot_product_attention, forced to its memory-efficient kernel (CUDA only)."""

from __future__ import annotations

from attnprof.core.dtypes import DType
from attnprof.core.problem import Problem
from attnprof.core.schedules import fa2_cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants._sdpa import HALF, forced, not_on_cpu, sdpa_kernel_for


@variant(
    name="sdpa_memeff",
    title="SDPA: memory-efficient kernel, forced",
    cost=fa2_cost,
    backend="EFFICIENT_ATTENTION",
    scope=forced("EFFICIENT_ATTENTION"),
    limits=Limits(dtypes=HALF | {DType.FLOAT32}, grouped_heads=False),
    needs=not_on_cpu("memory-efficient"),
)
def sdpa_memeff(problem: Problem, setting: Setting) -> Kernel:
    """The kernel of xFormers' lineage; it takes no grouped heads."""
    return sdpa_kernel_for(problem, setting)
