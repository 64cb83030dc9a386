"""`attnprof::triton_flash` as a PyTorch operator: autograd, fake tensors, torch.compile."""

from __future__ import annotations

import torch
from torch import Tensor

import triton
from attnprof.core.errors import InvalidInput
from attnprof.kernels.flash_backward import delta_kernel, key_gradient_kernel, query_gradient_kernel
from attnprof.kernels.flash_config import padded_dim
from attnprof.kernels.flash_forward import forward_kernel

MAX_GRID_Y = 65_535


def interpreted() -> bool:
    """Whether the kernels run under Triton's interpreter (TRITON_INTERPRET=1 when triton was imported)."""
    return not isinstance(forward_kernel, triton.runtime.JITFunction)


@torch.library.custom_op("attnprof::triton_flash", mutates_args=())
def triton_flash(
    q: Tensor, k: Tensor, v: Tensor, bands: Tensor, scale: float, config: list[int]
) -> tuple[Tensor, Tensor]:
    """Attention output and the log-sum-exp of each row (-inf where a row sees no key).

    Shapes: q (B, H_q, N_q, d), k (B, H_k, N_k, d), v (B, H_k, N_k, d_v), bands (B, 4) int32 with q_len, kv_len,
    low, high: row i of element b sees keys [i + low, i + high] below kv_len. o (B, H_q, N_q, d_v), lse float32.
    """
    q, k, v = (_rows_contiguous(x) for x in (q, k, v))
    batch, q_heads, q_len, qk_dim = q.shape
    o = q.new_empty(batch, q_heads, q_len, v.shape[3])
    lse = q.new_empty(batch, q_heads, q_len, dtype=torch.float32)
    m, n, warps, stages = config[:4]
    if o.numel():
        forward_kernel[_grid(q_len, m, batch * q_heads)](
            q, k, v, o, lse, bands, *_strides(q, k, v, o), q_heads, q_heads // k.shape[1], q_len, qk_dim,
            v.shape[3], scale, m, n, *_padded_dims(q, v), _widen(q), num_warps=warps, num_stages=stages,
        )  # fmt: skip
    return o, lse


@triton_flash.register_fake
def _(
    q: Tensor,
    k: Tensor,  # noqa: ARG001
    v: Tensor,
    bands: Tensor,  # noqa: ARG001
    scale: float,  # noqa: ARG001
    config: list[int],  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    o = q.new_empty(*q.shape[:3], v.shape[3])
    return o, q.new_empty(q.shape[:3], dtype=torch.float32)


@torch.library.custom_op("attnprof::triton_flash_backward", mutates_args=())
def triton_flash_backward(
    grad_o: Tensor, grad_lse: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,
    bands: Tensor, scale: float, config: list[int],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of q, k and v, from those of o and lse."""
    grad_o, q, k, v = (_rows_contiguous(x) for x in (grad_o, q, k, v))
    batch, q_heads, q_len, qk_dim = q.shape
    kv_heads, kv_len = k.shape[1:3]
    grad_q, grad_k, grad_v = (torch.zeros(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    if q.numel() == 0 or k.numel() == 0:
        return grad_q, grad_k, grad_v
    m, n, warps, stages = config[4:]
    delta = torch.empty_like(lse)
    rows = _grid(q_len, m, batch * q_heads)
    blocks = {"num_warps": warps, "num_stages": stages}
    delta_kernel[rows](
        o, grad_o, grad_lse.contiguous(), delta, *_strides(o, grad_o), q_heads, q_len, v.shape[3], m,
        padded_dim(v.shape[3]),
    )  # fmt: skip
    shared = (q, k, v, grad_o, lse, delta, bands)
    sizes = (qk_dim, v.shape[3], scale, m, n, *_padded_dims(q, v), _widen(q))
    group = q_heads // kv_heads
    key_gradient_kernel[_grid(kv_len, n, batch * kv_heads)](
        *shared, grad_k, grad_v, *_strides(q, k, v, grad_o, grad_k, grad_v), kv_heads, group, q_len, kv_len,
        *sizes, **blocks,
    )  # fmt: skip
    query_gradient_kernel[rows](
        *shared, grad_q, *_strides(q, k, v, grad_o, grad_q), q_heads, group, q_len, *sizes, **blocks
    )
    return grad_q, grad_k, grad_v


@triton_flash_backward.register_fake
def _(
    grad_o: Tensor, grad_lse: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,  # noqa: ARG001
    bands: Tensor, scale: float, config: list[int],  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    q, k, v = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    return q, k, v


def _save(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]  # autograd's context has no public type
    q, k, v, bands, ctx.scale, ctx.config = inputs
    ctx.save_for_backward(q, k, v, bands, *output)


def _backward(ctx, grad_o, grad_lse):  # type: ignore[no-untyped-def]  # autograd's context has no public type
    q, k, v, bands, o, lse = ctx.saved_tensors
    grad_o = torch.zeros_like(o) if grad_o is None else grad_o
    grad_lse = torch.zeros_like(lse) if grad_lse is None else grad_lse
    gradients = triton_flash_backward(grad_o, grad_lse, q, k, v, o, lse, bands, ctx.scale, ctx.config)
    return *gradients, None, None, None


triton_flash.register_autograd(_backward, setup_context=_save)


def _rows_contiguous(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _strides(*tensors: Tensor) -> tuple[int, ...]:
    return tuple(x.stride(axis) for x in tensors for axis in range(3))


def _padded_dims(q: Tensor, v: Tensor) -> tuple[int, int]:
    return padded_dim(q.shape[3]), padded_dim(v.shape[3])


def _widen(q: Tensor) -> bool:
    return interpreted() and q.dtype == torch.bfloat16


def _grid(length: int, tile: int, heads: int) -> tuple[int, int]:
    if heads > MAX_GRID_Y:
        raise InvalidInput(
            f"batch * heads = {heads} is above the {MAX_GRID_Y} that a CUDA grid takes: split the batch"
        )
    return triton.cdiv(length, tile), heads
