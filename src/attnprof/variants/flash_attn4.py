"""FlashAttention-4 from the package flash-attn-4 (CuTe DSL; Hopper and Blackwell)."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._external import FLASH_ATTN, flash_attn_cost, flash_attn_kernel, needs


@variant(
    name="flash_attn4",
    title="FlashAttention-4 (package flash-attn-4, Hopper and Blackwell)",
    cost=flash_attn_cost(128, 128),
    limits=FLASH_ATTN,
    needs=needs("flash-attn-4", (9, 0)),
    install="pip install flash-attn-4",
    compiles=True,
)
def flash_attn4(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the package follows the tensors
    """Compiled at the first call; an unlimited side of a window is None there, not -1."""
    from flash_attn.cute import flash_attn_func

    return flash_attn_kernel(flash_attn_func, problem, unlimited=None)
