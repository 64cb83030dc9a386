"""FlexAttention: a function of its own that torch.compile turns into one kernel."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from attnprof.explain.reason import Rejection, Rule, Situation
from attnprof.explain.rules import shared

GPU_MIN_DIM = 16
CPU_DTYPES = ("float32", "bfloat16", "float16")
MIN_CAPABILITY = (7, 0)  # the oldest that Triton, which compiles it, is built for


def flex(s: Situation) -> Iterator[Rejection]:
    """Why flex_attention does not compute the call."""
    for rejection in _refusals(s):
        yield msgspec.structs.replace(rejection, source=s.rules.cite("flex"))


def _refusals(s: Situation) -> Iterator[Rejection]:
    if s.target.kind == "other":
        yield no_such_device(s)
    if s.target.kind == "cuda" and s.target.sm < MIN_CAPABILITY:
        yield s.reject(
            Rule.CAPABILITY, "flex", f"{s.target.name} has compute capability {s.target.sm[0]}.{s.target.sm[1]}; "
            "Triton compiles for 7.0 and later", "none on this device", cost="another device",
        )  # fmt: skip
    if s.call.dropout_p > 0:
        yield s.reject(
            Rule.DROPOUT,
            "flex",
            "flex_attention has no dropout",
            "dropout_p=0 outside training",
            cost_bytes=0,
        )
    if s.target.kind == "cpu":
        yield from _on_cpu(s)
    if not s.call.is_4d:
        yield from shared.check_rank(s)
        return
    yield from shared.check_batch(s)
    yield from shared.check_heads(s, gqa=True)
    yield from _narrow(s)


def _on_cpu(s: Situation) -> Iterator[Rejection]:
    if any(t.requires_grad for _, t in s.call.tensors):
        yield s.reject(
            Rule.GRAD, "flex", "flex_attention has no backward on a CPU",
            "requires_grad_(False) or detach() for inference", cost_bytes=0,
        )  # fmt: skip
    yield from shared.check_dtype(s, CPU_DTYPES, "flex", "flex_attention on a CPU")


def _narrow(s: Situation) -> Iterator[Rejection]:
    dims = (s.call.q.shape[-1], s.call.v.shape[-1])
    if s.target.kind != "cpu" and min(dims) < GPU_MIN_DIM:
        yield s.reject(
            Rule.HEAD_DIM, "flex", f"head dims {dims[0]} and {dims[1]} (v): a GPU's matrix unit needs at least 16",
            "pad with zeros to 16 and keep the scale", cost="reads and writes",
            cost_bytes=sum(t.shape_bytes + t.numel // max(t.shape[-1], 1) * 16 * int(t.item_bytes)
                           for _, t in s.call.tensors if t.shape[-1] < GPU_MIN_DIM),
        )  # fmt: skip


def no_such_device(s: Situation) -> Rejection:
    """A device that attnprof has no rules for."""
    return s.reject(
        Rule.DEVICE, "order", f"attnprof has no dispatch rules for {s.target.name}: it knows CPU, CUDA and ROCm",
        "ask on the device itself, or read its backend's documentation", cost="no cost known",
    )  # fmt: skip


def note(s: Situation) -> str:
    """What has to be rewritten for flex_attention."""
    parts = ["another function: torch.compile(flex_attention)"]
    if s.call.is_causal:
        parts.append("is_causal becomes a mask_mod with create_block_mask")
    if s.call.attn_mask is not None:
        parts.append("attn_mask becomes a mask_mod (boolean) or score_mod (additive)")
    return "; ".join(parts)
