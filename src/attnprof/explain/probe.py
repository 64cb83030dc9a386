"""What PyTorch itself answers here: the dispatcher is asked with tensors of the call's shapes and strides."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from attnprof.explain.call import Call, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

# Values of SDPBackend as torch._fused_sdp_choice returns them.
CHOICES = {0: "math", 1: "flash", 2: "mem_efficient", 3: "cudnn", 4: "overrideable"}
MOST_REAL_BYTES = 2**26
NO_KERNEL = "no kernel"


def fused_choice(call: Call, device: str = "cpu") -> str:
    """The backend that this process's dispatcher picks for `call`; `no kernel` where it raises.

    Empty for a dtype that PyTorch does not have, as it cannot be asked.

    torch.backends.cuda.can_use_flash_attention is not asked: it is False on a CPU build while CPU flash runs.
    Tensors are allocated, not filled; those above 64 MiB keep only the last stride, which is all it looks at.
    """
    import torch

    if not all(hasattr(torch, t.dtype) for _, t in call.tensors):
        return ""
    with torch.set_grad_enabled(call.grad_enabled), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = [make(t, device) for _, t in call.tensors]
        mask = make(call.attn_mask, device) if call.attn_mask else None
        choose: Any = torch._fused_sdp_choice
        try:
            code = choose(
                *tensors, mask, call.dropout_p, call.is_causal, scale=call.scale, enable_gqa=call.enable_gqa
            )
        except RuntimeError:
            return NO_KERNEL
    return CHOICES.get(int(code), NO_KERNEL)


def make(spec: TensorSpec, device: str) -> Tensor:
    """An unfilled tensor of that shape, those strides, dtype and gradient; a large one repeats its last row."""
    import torch

    dtype = getattr(torch, spec.dtype)
    if _extent(spec.shape, spec.strides) * spec.item_bytes <= MOST_REAL_BYTES:
        tensor = torch.empty_strided(spec.shape, spec.strides, dtype=dtype, device=device)
    else:
        strides = (*(0 for _ in spec.strides[:-1]), spec.strides[-1])
        row = torch.empty(_extent(spec.shape, strides), dtype=dtype, device=device)
        tensor = row.as_strided(spec.shape, strides)
    return tensor.requires_grad_() if spec.requires_grad and dtype.is_floating_point else tensor


def _extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last that a strided tensor reaches."""
    if math.prod(shape) == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
