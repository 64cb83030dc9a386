"""The math backend, and the calls that no backend takes."""

from __future__ import annotations

from collections.abc import Iterator

from attnprof.core.record import Severity
from attnprof.explain.call import Call
from attnprof.explain.call_checks import FLOATS, check_shapes
from attnprof.explain.reason import Rejection, Rule, Situation
from attnprof.explain.rules import shared

_RULES = {
    "mixed-dtypes": Rule.DTYPE,
    "mask-dtype": Rule.MASK,
    "mask-shape": Rule.MASK,
    "gqa-heads": Rule.GQA,
    "gqa-not-enabled": Rule.GQA,
    "qk-dim": Rule.HEAD_DIM,
}


def math(s: Situation) -> Iterator[Rejection]:
    """Why the math backend raises, or is not offered."""
    yield from shared.check_switch(s, "math")
    computes = all(t.numel for _, t in s.call.tensors)  # otherwise it returns before it looks at the mask
    if s.call.attn_mask is not None and s.call.is_causal and computes:
        yield s.reject(
            Rule.CAUSAL,
            "math",
            "both set: attn_mask and is_causal=True together make the math backend raise",
            "AND the causal mask into attn_mask and pass is_causal=False",
            cost="one mask of",
            cost_bytes=s.call.q.shape[-2] * s.call.k.shape[-2],
        )
    if {t.dtype for _, t in s.call.tensors} - FLOATS:
        yield from shared.check_dtype(s, tuple(sorted(FLOATS)), "math", "math")


def invalid(s: Situation) -> tuple[Rejection, ...]:
    """Reasons that hold for every backend: the arguments form no attention call."""
    return tuple(
        s.reject(_RULES.get(j.code, Rule.SHAPE), "math", f"no valid call: {j.message}", j.remedy, cost="")
        for j in check_shapes(s.call)
        if j.severity is Severity.ALARM
    )


def scratch_bytes(call: Call) -> int | None:
    """What math allocates at its peak for scores: two float matrices, in float32 for 16-bit inputs."""
    if call.q.ndim < 2:
        return None
    rows = call.q.numel // call.q.shape[-1] if call.q.shape[-1] else 0
    size = 4 if call.q.dtype in {"float16", "bfloat16"} else int(call.q.item_bytes)
    return 2 * rows * call.k.shape[-2] * size
