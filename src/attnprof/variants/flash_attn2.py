"""FlashAttention-2 from the package flash-attn."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._external import FLASH_ATTN, flash_attn_cost, flash_attn_kernel, needs


@variant(
    name="flash_attn2",
    title="FlashAttention-2 (package flash-attn)",
    cost=flash_attn_cost(128, 64),
    limits=FLASH_ATTN,
    needs=needs("flash-attn"),
    install="pip install flash-attn --no-build-isolation",
)
def flash_attn2(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the package follows the tensors
    """Bottom-right masks; grouped heads without expansion."""
    from flash_attn import flash_attn_func

    return flash_attn_kernel(flash_attn_func, problem)
