"""memory_efficient_attention of the package xformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnprof.core.dtypes import DType
from attnprof.core.mask import Align, Causal, Full
from attnprof.core.problem import Problem
from attnprof.core.schedules import fa2_cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants._external import CUDA, needs
from attnprof.variants._sdpa import HALF

if TYPE_CHECKING:
    from torch import Tensor


@variant(
    name="xformers_memeff",
    title="memory_efficient_attention (package xformers)",
    cost=fa2_cost,
    limits=Limits(devices=CUDA, dtypes=HALF | {DType.FLOAT32}, masks=(Full, Causal), unequal_dims=False),
    needs=needs("xformers", (7, 0)),
    install="pip install xformers",
)
def xformers_memeff(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the package follows the tensors
    """xFormers dispatches to a kernel itself; grouped heads are a fifth dimension, expanded without a copy."""
    from xformers.ops import LowerTriangularMask, fmha, memory_efficient_attention

    bias = None
    if isinstance(problem.mask, Causal):
        bottom_right = problem.mask.align is Align.BOTTOM_RIGHT
        bias = fmha.attn_bias.LowerTriangularFromBottomRightMask() if bottom_right else LowerTriangularMask()
    heads, group = problem.kv_heads, problem.group

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if group > 1:
            q = q.reshape(*q.shape[:2], heads, group, q.shape[3])
            k, v = (x.unsqueeze(3).expand(-1, -1, -1, group, -1) for x in (k, v))
        output: Tensor = memory_efficient_attention(q, k, v, attn_bias=bias, scale=problem.effective_scale)
        return (output.flatten(2, 3) if group > 1 else output).transpose(1, 2)

    return attention
