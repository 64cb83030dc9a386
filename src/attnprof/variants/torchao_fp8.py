"""FP8 attention of the package torchao, its quantisation inside the timed call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attnprof.core.mask import Causal, Full
from attnprof.core.problem import Direction, Problem
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants._external import CUDA, needs
from attnprof.variants._sdpa import HALF, square_causal_only
from attnprof.variants.sage_attention import sage_cost

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def _flash_attention_3(setting: Setting) -> Iterator[None]:  # noqa: ARG001  # the protocol's argument
    from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl

    activate_flash_attention_impl("FA3")
    try:
        yield
    finally:
        restore_flash_attention_impl()


@variant(
    name="torchao_fp8",
    title="FP8 attention on FlashAttention-3, quantisation included (package torchao)",
    cost=sage_cost,
    scope=_flash_attention_3,
    limits=Limits(
        devices=CUDA,
        dtypes=HALF,
        masks=(Full, Causal),
        directions=frozenset({Direction.FWD}),
        unequal_dims=False,
        max_head_dim=256,
        extra=square_causal_only,
    ),
    needs=needs("torchao", (9, 0)),
    install="pip install torchao, and flash-attn-3 for Hopper",
)
def torchao_fp8(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the package follows the tensors
    """A prototype interface of torchao; approximate: its row shows the error that FP8 costs."""
    from torchao.prototype.attention.fp8_fa3.attention import fp8_fa3_sdpa

    causal, scale, grouped = isinstance(problem.mask, Causal), problem.effective_scale, problem.group > 1

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        output: Tensor = fp8_fa3_sdpa(q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)
        return output

    return attention
