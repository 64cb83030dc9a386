"""PyTorch's FlexAttention, compiled, with a block mask built from the problem's mask."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from attnprof.core.dtypes import DType
from attnprof.core.mask import Dense, Full
from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules import flex_cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants._compile import compiled, no_compiler
from attnprof.variants._sdpa import HALF

if TYPE_CHECKING:
    from torch import Tensor

MAX_SHAPES = 4096  # graphs that one process may compile; PyTorch's own limit of 8 would stop a sweep


def _refused(problem: Problem) -> str | None:
    mask = problem.mask
    if isinstance(mask, Dense) and len(mask.shape) == 4 and mask.shape[1] > 1:
        return f"mask {mask} differs by head: its blocks are listed per batch element only"
    if 0 in (problem.batch, problem.q_len, problem.kv_len):
        return f"FlexAttention has no block for a size of 0: batch {problem.batch}, {problem.q_len} x {problem.kv_len}"
    return None


def _many_shapes(setting: Setting) -> AbstractContextManager[object]:  # noqa: ARG001  # the protocol's argument
    import torch._dynamo

    patch: AbstractContextManager[object] = torch._dynamo.config.patch(recompile_limit=MAX_SHAPES)
    return patch


_DTYPES = HALF | {DType.FLOAT32}


@variant(
    name="flex",
    title="FlexAttention, compiled, with a block mask",
    cost=flex_cost,
    scope=_many_shapes,
    limits=Limits(dtypes=_DTYPES, directions=frozenset({Direction.FWD}), extra=_refused),
    limits_on={"cuda": Limits(dtypes=_DTYPES, extra=_refused)},
    needs=no_compiler,
    install="a C++ compiler (CPU) or triton (GPU)",
    compiles=True,
)
def flex(problem: Problem, setting: Setting) -> Kernel:
    """Blocks without a visible pair are not computed. On a CPU PyTorch has no backward for it."""
    from torch.nn.attention.flex_attention import flex_attention

    from attnprof.variants._block_mask import block_mask

    mask = None if isinstance(problem.mask, Full) else block_mask(problem, setting.device)
    scale, grouped = problem.effective_scale, problem.group > 1
    kernel = compiled(flex_attention, dynamic=False)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        output: Tensor = kernel(q, k, v, block_mask=mask, scale=scale, enable_gqa=grouped)
        return output

    return attention
