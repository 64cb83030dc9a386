"""The CPU's dispatcher: flash or math."""

from __future__ import annotations

from collections.abc import Iterator

from attnprof.explain.reason import Rejection, Rule, Situation
from attnprof.explain.rules import shared


def flash(s: Situation) -> Iterator[Rejection]:
    """Why PyTorch's CPU flash kernel does not take the call."""
    yield from shared.check_switch(s, "flash")
    if s.call.dropout_p > 0:
        yield s.reject(
            Rule.DROPOUT,
            "cpu-dropout",
            f"dropout_p={s.call.dropout_p:g}: the CPU flash kernel has no dropout",
            "pass 0.0 outside training; in training only math applies it on a CPU",
            cost_bytes=0,
        )
    if not s.call.is_4d:
        yield from shared.check_rank(s)
        return
    yield from shared.check_batch(s)
    yield from shared.check_heads(s, gqa=True)
    yield from shared.check_mask_shape(s)
    yield from check_head_dim(s)
    yield from shared.check_lengths(s)
    yield from shared.check_stride(s, singleton_allowed=False)
    yield from shared.check_dtype(s, s.rules.cpu_flash_dtypes, "cpu-dtype", "the CPU flash kernel")


def check_head_dim(s: Situation) -> Iterator[Rejection]:
    """q, k and v of one head dim."""
    dims = [t.shape[-1] for _, t in s.call.tensors]
    if len(set(dims)) > 1:
        yield unequal_dims(s, "cpu-head-dim", "the CPU flash kernel takes one head dim for all three")


def unequal_dims(s: Situation, cite: str, rule: str) -> Rejection:
    """Unequal head dims, with padding as the fix."""
    widest = max(t.shape[-1] for _, t in s.call.tensors)
    dims = ", ".join(f"{name} {t.shape[-1]}" for name, t in s.call.tensors)
    padded = sum(
        t.shape_bytes + int(t.shape_bytes * widest / t.shape[-1])
        for _, t in s.call.tensors
        if 0 < t.shape[-1] < widest
    )
    return s.reject(
        Rule.HEAD_DIM,
        cite,
        f"head dims differ ({dims}): {rule}",
        f"pad the narrower with zeros to {widest}, keep scale at 1/sqrt(d of q), cut the output",
        cost="reads and writes",
        cost_bytes=padded,
    )


def unavailable(s: Situation, backend: str) -> Iterator[Rejection]:
    """Backends that PyTorch builds for GPUs only (its own message is `No viable backend`)."""
    yield s.reject(
        Rule.DEVICE,
        "cpu-order",
        f"{backend} is not available on CPU: PyTorch's CPU dispatcher knows flash and math",
        "leave the choice to PyTorch on a CPU, or move q, k, v to a GPU",
        cost="moves",
        cost_bytes=sum(t.shape_bytes for _, t in s.call.tensors),
    )
