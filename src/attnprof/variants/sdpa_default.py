"""PyTorch's scaled_dot_product_attention, with the backend that PyTorch chooses."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._costs import sdpa_cost
from attnprof.variants._sdpa import sdpa_kernel_for


@variant(name="sdpa_default", title="SDPA: the backend that PyTorch chooses", cost=sdpa_cost)
def sdpa_default(problem: Problem, setting: Setting) -> Kernel:
    """One call; which kernel runs depends on device, dtype, mask and head dims."""
    return sdpa_kernel_for(problem, setting)
