"""Checks on a call's shapes, dtypes, heads and flags; no data is read."""

from __future__ import annotations

from collections.abc import Iterator

from attnprof.core.record import Judgment, Severity
from attnprof.explain import problem_checks
from attnprof.explain.call import Call, known_dtype
from attnprof.explain.cpu import cpu_flags, emulated_judgment

FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})


def alarm(code: str, message: str, remedy: str) -> Judgment:
    """A judgment that refuses the call."""
    return Judgment(code=code, message=message, remedy=remedy, severity=Severity.ALARM)


def check_shapes(call: Call) -> Iterator[Judgment]:
    """What PyTorch raises on with every backend, and the one thing it should raise on and does not."""
    if min(t.ndim for _, t in call.tensors) < 2:
        ranks = ", ".join(f"{name} has {t.ndim}" for name, t in call.tensors)
        yield alarm(
            "rank", f"{ranks} dimensions", "give all three as (B, H, N, d); unsqueeze what is missing"
        )
        return
    yield from check_kv_lengths(call)
    if call.q.shape[-1] != call.k.shape[-1]:
        dims = f"q has head dim {call.q.shape[-1]}, k {call.k.shape[-1]}"
        yield alarm("qk-dim", dims, "make them equal: QK^T sums over it")
    yield from check_dtypes(call)
    yield from check_heads(call)
    yield from check_batches(call)
    yield from check_mask_shape(call)


def check_kv_lengths(call: Call) -> Iterator[Judgment]:
    """Each key needs its value: PyTorch's CPU flash reads past a shorter v without an error."""
    keys, values = call.k.shape[-2], call.v.shape[-2]
    if keys != values:
        yield alarm(
            "kv-length",
            f"k has {keys} keys, v has {values}",
            "give k and v one length (CPU flash would read past the shorter one without an error)",
        )


def check_dtypes(call: Call) -> Iterator[Judgment]:
    """One dtype for q, k, v; a mask that is boolean, float32 or of q's dtype."""
    names = [t.dtype for _, t in call.tensors]
    if len(set(names)) > 1:
        yield alarm("mixed-dtypes", f"q is {names[0]}, k {names[1]}, v {names[2]}", "cast them to one dtype")
    mask = call.attn_mask
    if mask is not None and mask.dtype not in {"bool", "float32", call.q.dtype}:
        yield alarm(
            "mask-dtype",
            f"attn_mask is {mask.dtype} for {call.q.dtype} queries",
            "give a boolean mask (True = visible), or an additive one of float32 or of q's dtype",
        )


def check_heads(call: Call) -> Iterator[Judgment]:
    """Query heads on KV heads."""
    if min(t.ndim for _, t in call.tensors) < 3:
        return
    q_heads, k_heads, v_heads = (t.shape[-3] for _, t in call.tensors)
    if call.enable_gqa:
        if not k_heads or not v_heads or q_heads % k_heads or q_heads % v_heads:
            yield alarm(
                "gqa-heads",
                f"{k_heads} KV heads (v: {v_heads}) do not divide {q_heads} query heads",
                "each KV head must serve the same number of query heads",
            )
    elif not _broadcast(q_heads, k_heads, v_heads):
        yield alarm(
            "gqa-not-enabled",
            f"q has {q_heads} heads, k {k_heads}, v {v_heads}, and enable_gqa is False",
            "pass enable_gqa=True, or repeat_interleave k and v to the query heads",
        )


def check_batches(call: Call) -> Iterator[Judgment]:
    """Batch sizes are equal, or 1 where the math backend may broadcast them."""
    if call.is_4d and not _broadcast(*(t.shape[0] for _, t in call.tensors)):
        sizes = ", ".join(f"{name} {t.shape[0]}" for name, t in call.tensors)
        yield alarm("batch", f"batch sizes differ: {sizes}", "give q, k and v one batch size")


def _broadcast(*sizes: int) -> bool:
    return len({size for size in sizes if size != 1}) <= 1


def check_mask_shape(call: Call) -> Iterator[Judgment]:
    """A mask must broadcast to the scores."""
    mask = call.attn_mask
    if mask is None:
        return
    scores = (*call.q.shape[:-1], call.k.shape[-2])
    pairs = zip(reversed(mask.shape), reversed(scores), strict=False)
    if not 2 <= mask.ndim <= len(scores) or any(have not in (1, want) for have, want in pairs):
        yield alarm(
            "mask-shape",
            f"attn_mask {tuple(mask.shape)} does not broadcast to the scores {scores}",
            "give it as (N_q, N_k) or (B or 1, H or 1, N_q, N_k)",
        )


def check_both_set(call: Call, meaning: str = "") -> Iterator[Judgment]:
    """A mask together with is_causal; `meaning` says what both together would let through."""
    if call.attn_mask is None or not call.is_causal:
        return
    result = f": {meaning}" if meaning else ""
    yield alarm(
        "mask-and-causal",
        "attn_mask and is_causal=True are both set: CPU flash applies both, math raises",
        f"AND them into one boolean mask with Dense(mask).intersect(Causal(), q_len, kv_len){result}",
    )


def check_labels(call: Call) -> Iterator[Judgment]:
    """What a call should be labelled with although it runs."""
    q_len, kv_len = call.q.shape[-2], call.k.shape[-2]
    if call.is_causal and q_len and kv_len:
        yield from problem_checks.check_causal_lengths(q_len, kv_len)
    sizes = call.sizes
    if sizes is not None:
        yield from problem_checks.check_layout(sizes)
        yield from problem_checks.check_index_limits(sizes)
        yield from problem_checks.check_grid(sizes, call.device)
    if call.attn_mask is not None:
        yield from problem_checks.over_int32("mask", call.attn_mask.numel)
    yield from check_dropout(call)
    dtype = known_dtype(call.q.dtype)
    emulated = emulated_judgment(dtype, cpu_flags()) if call.device == "cpu" and dtype else None
    if emulated:
        yield emulated


def check_dropout(call: Call) -> Iterator[Judgment]:
    """Dropout where nothing is trained: by `training`, or else by whether a gradient is asked for."""
    trained = call.needs_grad if call.training is None else call.training
    if call.dropout_p > 0 and not trained:
        yield problem_checks.dropout_judgment(call.dropout_p)
