"""FlashInfer's kernels for one request: prefill, or decode where there is one query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnprof.core.mask import UNLIMITED, Causal, Full, Window
from attnprof.core.problem import Direction, Problem
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants._external import CUDA, bottom_right_only, flash_attn_cost, needs
from attnprof.variants._sdpa import HALF

if TYPE_CHECKING:
    from torch import Tensor


def _one_request(problem: Problem) -> str | None:
    mask = problem.mask
    if problem.batch != 1:
        return f"batch {problem.batch}: FlashInfer's single-request kernels take a batch of 1"
    if isinstance(mask, Window) and mask.right != 0:
        return f"mask {mask}: FlashInfer's window has a left limit only, right must be 0"
    return bottom_right_only(problem)


@variant(
    name="flashinfer",
    title="FlashInfer, single request (package flashinfer-python)",
    cost=flash_attn_cost(128, 64),
    limits=Limits(
        devices=CUDA,
        dtypes=HALF,
        masks=(Full, Causal, Window),
        directions=frozenset({Direction.FWD}),
        unequal_dims=False,
        max_head_dim=256,
        extra=_one_request,
    ),
    needs=needs("flashinfer-python", (7, 5)),
    install="pip install flashinfer-python",
    compiles=True,
)
def flashinfer_single(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the package follows the tensors
    """Compiled at the first call of a configuration; masks are bottom-right."""
    from flashinfer import single_prefill_with_kv_cache

    window = problem.mask.left if isinstance(problem.mask, Window) else UNLIMITED
    options = {
        "causal": isinstance(problem.mask, Causal | Window),
        "kv_layout": "HND",
        "sm_scale": problem.effective_scale,
        "window_left": window,
    }

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        output: Tensor = single_prefill_with_kv_cache(q[0].transpose(0, 1), k[0], v[0], **options)
        return output.transpose(0, 1)[None]

    return attention
