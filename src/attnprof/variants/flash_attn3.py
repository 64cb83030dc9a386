"""FlashAttention-3 from its own package (Hopper)."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._external import FLASH_ATTN, flash_attn_cost, flash_attn_kernel, needs


@variant(
    name="flash_attn3",
    title="FlashAttention-3 (package flash-attn-3, Hopper)",
    cost=flash_attn_cost(128, 128),
    limits=FLASH_ATTN,
    needs=needs("flash-attn-3", (9, 0)),
    install="pip install 'git+https://github.com/Dao-AILab/flash-attention#subdirectory=hopper'",
)
def flash_attn3(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the package follows the tensors
    """Bottom-right masks; some releases return (o, lse), of which o is taken."""
    from flash_attn_interface import flash_attn_func

    return flash_attn_kernel(flash_attn_func, problem)
