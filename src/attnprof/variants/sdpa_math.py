"""PyTorch's scaled_dot_product_attention, forced to its unfused path."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.schedules import math_cost
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._sdpa import forced, sdpa_kernel_for


@variant(
    name="sdpa_math",
    title="SDPA: unfused math backend, forced",
    cost=math_cost,
    backend="MATH",
    scope=forced("MATH"),
)
def sdpa_math(problem: Problem, setting: Setting) -> Kernel:
    """Composed of matmuls and a softmax; 16-bit inputs are computed in float32."""
    return sdpa_kernel_for(problem, setting)
