"""What the variants of optional packages share: layouts, alignment, whether package and GPU are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attnprof.core.mask import UNLIMITED, Align, Causal, Full, Window
from attnprof.core.problem import Problem
from attnprof.core.schedules import fa2_cost
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits
from attnprof.variants._packages import missing
from attnprof.variants._sdpa import HALF

if TYPE_CHECKING:
    from torch import Tensor

CUDA = frozenset({"cuda"})
Needs = Callable[[str], str | None]


def bottom_right_only(problem: Problem) -> str | None:
    """Refuses masks whose diagonal starts top-left on unequal lengths: these kernels start it bottom-right."""
    mask = problem.mask
    if isinstance(mask, Causal | Window) and mask.align is Align.TOP_LEFT and problem.q_len != problem.kv_len:
        return (
            f"mask {mask} is top-left and this kernel's is bottom-right: on {problem.q_len} x {problem.kv_len} "
            "they differ, use :bottom_right"
        )
    return None


FLASH_ATTN = Limits(
    devices=CUDA,
    dtypes=HALF,
    masks=(Full, Causal, Window),
    unequal_dims=False,
    max_head_dim=256,
    extra=bottom_right_only,
)


def needs(package: str, capability: tuple[int, int] = (8, 0)) -> Needs:
    """Why a package's kernel cannot run: not installed, or the GPU is older than it supports."""

    def check(device: str) -> str | None:
        import torch

        if reason := missing(package):
            return reason
        found = torch.cuda.get_device_capability(device)
        wanted = "".join(map(str, capability))
        return (
            None if found >= capability else f"{package} needs sm{wanted}, {device} is sm{found[0]}{found[1]}"
        )

    return check


def window_limits(problem: Problem, unlimited: int | None = UNLIMITED) -> tuple[int | None, int | None]:
    """(left, right) as flash-attn takes them; `unlimited` is how a package writes no limit."""
    mask = problem.mask
    if not isinstance(mask, Window):
        return unlimited, unlimited
    left, right = (unlimited if x == UNLIMITED else x for x in (mask.left, mask.right))
    return left, right


def flash_attn_kernel(
    function: Callable[..., Any], problem: Problem, unlimited: int | None = UNLIMITED
) -> Kernel:
    """A function of flash-attn's signature, (B, N, H, D) with bottom-right masks, on (B, H, N, D) by views."""
    options = {
        "softmax_scale": problem.effective_scale,
        "causal": isinstance(problem.mask, Causal),
        "window_size": window_limits(problem, unlimited),
    }

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        result = function(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), **options)
        output: Tensor = result[0] if isinstance(result, tuple) else result
        return output.transpose(1, 2)

    return attention


def flash_attn_cost(rows: int, cols: int) -> Callable[[Problem], Cost]:
    """FlashAttention-2's loop order with a kernel's usual tiles."""
    return lambda problem: fa2_cost(problem, rows=rows, cols=cols)
