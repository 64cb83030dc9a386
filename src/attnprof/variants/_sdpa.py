"""What the variants built on PyTorch's scaled_dot_product_attention share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from attnprof.core.dtypes import DType
from attnprof.core.mask import Align, Causal, Full
from attnprof.core.problem import Problem
from attnprof.core.variant import FLOAT_DTYPES, Kernel, Limits, Setting
from attnprof.variants._tensors import mask_tensor

if TYPE_CHECKING:
    from torch import Tensor

HALF = frozenset({DType.FLOAT16, DType.BFLOAT16})
CPU_FLASH = Limits(dtypes=FLOAT_DTYPES, unequal_dims=False)
Scope = Callable[[Setting], AbstractContextManager[object]]


def sdpa_kernel_for(problem: Problem, setting: Setting) -> Kernel:
    """F.scaled_dot_product_attention with the problem's mask, scale and grouping; K/V are not expanded."""
    from torch.nn.functional import scaled_dot_product_attention

    causal = uses_is_causal(problem)
    mask = None if causal else mask_tensor(problem, setting.device)
    scale = problem.effective_scale
    grouped = problem.group > 1

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=grouped
        )

    return attention


def uses_is_causal(problem: Problem) -> bool:
    """Whether the mask is what PyTorch's `is_causal` means: causal, top-left, or equal lengths."""
    mask = problem.mask
    return isinstance(mask, Causal) and (mask.align is Align.TOP_LEFT or problem.q_len == problem.kv_len)


def forced(*names: str) -> Scope:
    """A scope in which PyTorch may use only the named backends (names of torch.nn.attention.SDPBackend)."""

    def scope(setting: Setting) -> AbstractContextManager[object]:  # noqa: ARG001  # the protocol's argument
        from torch.nn.attention import SDPBackend, sdpa_kernel

        return sdpa_kernel([getattr(SDPBackend, name) for name in names])

    return scope


def square_causal_only(problem: Problem) -> str | None:
    """Refuses causal problems of unequal lengths, which CUDA's flash kernel does not take through SDPA."""
    if isinstance(problem.mask, Causal) and problem.q_len != problem.kv_len:
        return f"PyTorch's CUDA flash kernel is causal on equal lengths only, not {problem.q_len} x {problem.kv_len}"
    return None


CUDA_FLASH = Limits(
    dtypes=HALF, masks=(Full, Causal), unequal_dims=False, max_head_dim=256, extra=square_causal_only
)


def below_sm80(device: str) -> bool:
    """Whether a CUDA device is older than the first that FlashAttention-2 supports."""
    import torch

    return device.startswith("cuda") and torch.cuda.get_device_capability(device) < (8, 0)


def not_on_cpu(what: str) -> Callable[[str], str | None]:
    """A `needs` for kernels that PyTorch builds for CUDA only."""

    def needs(device: str) -> str | None:
        return f"PyTorch has no {what} kernel for the CPU" if device.startswith("cpu") else None

    return needs
