"""Checks on q, k and v as tensors: shapes, dtypes, heads, layout, index limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attnprof.core.dtypes import DType
from attnprof.core.problem import Problem
from attnprof.core.record import Judgment, Severity
from attnprof.explain import problem_checks
from attnprof.explain.cpu import cpu_flags, emulated_judgment

if TYPE_CHECKING:
    from torch import Tensor


def alarm(code: str, message: str, remedy: str) -> Judgment:
    """A judgment that refuses the call."""
    return Judgment(code=code, message=message, remedy=remedy, severity=Severity.ALARM)


def check_kv_lengths(k: Tensor, v: Tensor) -> Iterator[Judgment]:
    """Each key needs its value: PyTorch's CPU flash reads past a shorter v without an error."""
    if k.dim() >= 2 and v.dim() >= 2 and k.shape[-2] != v.shape[-2]:
        yield alarm(
            "kv-length",
            f"k has {k.shape[-2]} keys, v has {v.shape[-2]}",
            "give k and v one length (CPU flash would read past the shorter one without an error)",
        )


def check_dims(q: Tensor, k: Tensor, v: Tensor) -> Iterator[Judgment]:
    """Ranks, and the dimension that q and k are multiplied over."""
    if min(q.dim(), k.dim(), v.dim()) < 2 or not q.dim() == k.dim() == v.dim():
        yield alarm(
            "rank",
            f"q has {q.dim()} dimensions, k {k.dim()}, v {v.dim()}",
            "give all three as (B, H, N, d); unsqueeze what is missing",
        )
    elif q.shape[-1] != k.shape[-1]:
        yield alarm(
            "qk-dim", f"q has head dim {q.shape[-1]}, k {k.shape[-1]}", "make them equal: QK^T sums over it"
        )


def check_dtypes(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None) -> Iterator[Judgment]:
    """One dtype for q, k, v; a mask that is boolean or of a floating type."""
    import torch

    names = [str(t.dtype).removeprefix("torch.") for t in (q, k, v)]
    if len(set(names)) > 1:
        yield alarm("mixed-dtypes", f"q is {names[0]}, k {names[1]}, v {names[2]}", "cast them to one dtype")
    if attn_mask is not None and attn_mask.dtype != torch.bool and not attn_mask.dtype.is_floating_point:
        yield alarm(
            "mask-dtype",
            f"attn_mask is {str(attn_mask.dtype).removeprefix('torch.')}",
            "give a boolean mask (True = visible) or an additive one of a floating type",
        )


def check_heads(q: Tensor, k: Tensor, v: Tensor, enable_gqa: bool) -> Iterator[Judgment]:
    """Query heads on KV heads."""
    if not q.dim() == k.dim() == v.dim() or q.dim() < 3:
        return
    q_heads, k_heads, v_heads = q.shape[-3], k.shape[-3], v.shape[-3]
    if k_heads == v_heads in (q_heads, 1) and not (enable_gqa and k_heads == 0):
        return
    if not enable_gqa:
        yield alarm(
            "gqa-not-enabled",
            f"q has {q_heads} heads, k {k_heads}, v {v_heads}, and enable_gqa is False",
            "pass enable_gqa=True, or repeat_interleave k and v to the query heads",
        )
    elif not k_heads or not v_heads or q_heads % k_heads or q_heads % v_heads:
        yield alarm(
            "gqa-heads",
            f"{k_heads} KV heads (v: {v_heads}) do not divide {q_heads} query heads",
            "each KV head must serve the same number of query heads",
        )


def as_sizes(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Problem | None:
    """The sizes of a 4-D call as a problem without its mask; None where they do not form one."""
    if not q.dim() == k.dim() == v.dim() == 4 or q.shape[1] % max(k.shape[1], 1) or not k.shape[1]:
        return None
    return Problem(
        batch=q.shape[0],
        q_heads=q.shape[1],
        kv_heads=k.shape[1],
        q_len=q.shape[2],
        kv_len=k.shape[2],
        qk_dim=q.shape[3],
        v_dim=v.shape[3],
        dropout=dropout,
    )


def check_layout(q: Tensor, k: Tensor) -> Iterator[Judgment]:
    """(B, S, H, D) read as (B, H, S, D)."""
    sizes = as_sizes(q, k, k)
    if sizes is not None:
        yield from problem_checks.check_layout(sizes)


def check_dropout(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float, training: bool | None
) -> Iterator[Judgment]:
    """Dropout where nothing is trained: by `training`, or else by whether a gradient is asked for."""
    import torch

    asked = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
    if dropout_p > 0 and not (asked if training is None else training):
        yield Judgment(
            code="dropout-in-eval",
            message=f"dropout_p={dropout_p:g} without training: SDPA applies it all the same",
            remedy="pass dropout_p=(p if module.training else 0.0)",
        )


def check_indices(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None) -> Iterator[Judgment]:
    """32-bit index and grid limits."""
    sizes = as_sizes(q, k, v)
    if sizes is not None:
        yield from problem_checks.check_index_limits(sizes)
        yield from problem_checks.check_grid(sizes, q.device.type)
    if attn_mask is not None:
        yield from problem_checks.over_int32("mask", attn_mask.numel())


def check_emulated(q: Tensor) -> Iterator[Judgment]:
    """16-bit types that this CPU has no instructions for."""
    name = str(q.dtype).removeprefix("torch.")
    if q.device.type == "cpu" and name in DType.__members__.values():
        judgment = emulated_judgment(DType(name), cpu_flags())
        if judgment:
            yield judgment
