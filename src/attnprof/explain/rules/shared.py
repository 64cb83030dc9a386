"""Rules that the fused backends share: rank, batch and heads, lengths, strides, dtype, switches."""

from __future__ import annotations

from collections.abc import Iterator

from attnprof.explain.reason import Rejection, Rule, Situation

SWITCHES = {
    "flash": "torch.backends.cuda.enable_flash_sdp",
    "mem_efficient": "torch.backends.cuda.enable_mem_efficient_sdp",
    "cudnn": "torch.backends.cuda.enable_cudnn_sdp",
    "math": "torch.backends.cuda.enable_math_sdp",
}


def check_switch(s: Situation, backend: str) -> Iterator[Rejection]:
    """A backend that was turned off globally or by sdpa_kernel."""
    if not s.switches.enabled(backend):
        yield s.reject(
            Rule.SWITCH,
            "switch",
            f"{backend} is switched off for this process or by an sdpa_kernel(...) block",
            f"{SWITCHES[backend]}(True), or leave or widen the sdpa_kernel block",
            cost_bytes=0,
        )


def check_rank(s: Situation) -> Iterator[Rejection]:
    """Fused kernels take (B, H, N, d) only."""
    ranks = {t.ndim for _, t in s.call.tensors}
    if ranks == {4}:
        return
    low = max(ranks) < 4
    yield s.reject(
        Rule.SHAPE,
        "rank",
        f"q, k, v have {', '.join(str(t.ndim) for _, t in s.call.tensors)} dimensions; a fused kernel takes 4 each",
        "unsqueeze(0) to (1, H, N, d)" if low else "flatten the leading dimensions into one batch",
        cost_bytes=0,
    )


def check_batch(s: Situation) -> Iterator[Rejection]:
    """Equal batch sizes."""
    sizes = [t.shape[0] for _, t in s.call.tensors]
    if len(set(sizes)) > 1:
        yield s.reject(
            Rule.SHAPE,
            "batch",
            f"batch sizes q {sizes[0]}, k {sizes[1]}, v {sizes[2]} differ; fused kernels do not broadcast the batch",
            f"k.expand({max(sizes)}, -1, -1, -1) and likewise v: a view with stride 0",
            cost_bytes=0,
        )


def check_heads(
    s: Situation, *, gqa: bool, same_kv_heads: bool = True, cite: str = "gqa"
) -> Iterator[Rejection]:
    """Query heads on KV heads."""
    q_heads, k_heads, v_heads = (t.shape[1] for _, t in s.call.tensors)
    if q_heads == k_heads == v_heads:
        return
    if s.rules.mqa and k_heads == v_heads == 1 and q_heads and (gqa or s.target.kind == "cpu"):
        return
    divides = k_heads and v_heads and not q_heads % k_heads and not q_heads % v_heads
    if s.call.enable_gqa and gqa and divides and (k_heads == v_heads or not same_kv_heads):
        return
    yield _heads_rejection(s, gqa=gqa, divides=bool(divides), cite=cite)


def _heads_rejection(s: Situation, *, gqa: bool, divides: bool, cite: str) -> Rejection:
    q_heads, k_heads, v_heads = (t.shape[1] for _, t in s.call.tensors)
    heads = f"{q_heads} query heads on {k_heads} (k) and {v_heads} (v)"
    if not divides:
        return s.reject(
            Rule.GQA, cite, f"{heads}: KV heads must divide query heads", "change the head counts"
        )
    if k_heads == v_heads == 1 and not s.call.enable_gqa:
        return s.reject(
            Rule.GQA, cite, f"{heads}: one KV head is not broadcast by a fused kernel",
            "k.expand(-1, H_q, -1, -1) and likewise v (a view with stride 0), or enable_gqa=True", cost_bytes=0,
        )  # fmt: skip
    if gqa and not s.call.enable_gqa:
        return s.reject(Rule.GQA, cite, f"{heads} without enable_gqa", "pass enable_gqa=True", cost_bytes=0)
    reason = "this backend takes no grouped heads" if not gqa else "k and v must have one head count"
    return s.reject(
        Rule.GQA, cite, f"{heads}: {reason}", "repeat_interleave k and v to the query heads before the call",
        cost="reads and writes", cost_bytes=expansion_bytes(s),
    )  # fmt: skip


def expansion_bytes(s: Situation) -> int:
    """Traffic of repeating K and V for every query head: read once, written H_q / H_k times."""
    q_heads = s.call.q.shape[1]
    pairs = ((t, q_heads // t.shape[1]) for _, t in s.call.tensors[1:])
    return sum(t.shape_bytes * (1 + group) for t, group in pairs if group > 1)


def check_lengths(s: Situation) -> Iterator[Rejection]:
    """No empty sequences."""
    if 0 in (s.call.q.shape[2], s.call.k.shape[2]):
        yield s.reject(
            Rule.SHAPE,
            "zero-length",
            f"q_len {s.call.q.shape[2]}, kv_len {s.call.k.shape[2]}: fused kernels take no length of 0",
            "skip the call: its output is empty or all zeros",
            cost_bytes=0,
        )


def check_stride(s: Situation, *, singleton_allowed: bool) -> Iterator[Rejection]:
    """The last dimension is contiguous (and the mask's, on a GPU)."""
    wrong = [(name, t) for name, t in s.call.tensors if t.strides[-1] != 1]
    if singleton_allowed and s.call.q.shape[-1] == 1:
        wrong = []
    mask = s.call.attn_mask
    if mask is not None and s.target.kind != "cpu" and mask.strides[-1] != 1:
        wrong.append(("attn_mask", mask))
    if wrong:
        listed = ", ".join(f"{name} {t.strides[-1]}" for name, t in wrong)
        yield s.reject(
            Rule.STRIDE,
            "stride",
            f"the last dimension must have stride 1; strides: {listed}",
            f"{wrong[0][0]}.contiguous() before the call, or transpose other dimensions than the last",
            cost="reads and writes",
            cost_bytes=sum(2 * t.shape_bytes for _, t in wrong),
        )


def check_dtype(s: Situation, allowed: tuple[str, ...], cite: str, where: str) -> Iterator[Rejection]:
    """One dtype, of those that the kernel is built for."""
    used = [t.dtype for _, t in s.call.tensors]
    if set(used) <= set(allowed) and len(set(used)) == 1:
        return
    size = sum(t.shape_bytes for _, t in s.call.tensors)
    half = sum(2 * t.numel for _, t in s.call.tensors)
    target = "float16" if "float16" in allowed else allowed[0]
    better = "bfloat16 keeps float32's range" if "bfloat16" in allowed else "float16 overflows above 65,504"
    yield s.reject(
        Rule.DTYPE,
        cite,
        f"dtype {', '.join(dict.fromkeys(used))}: {where} takes {', '.join(allowed)}",
        f"cast q, k, v to {target} or run under torch.autocast ({better})",
        cost="rounds the inputs; moves",
        cost_bytes=size + half,
    )


def check_mask_shape(s: Situation) -> Iterator[Rejection]:
    """Masks of 2 or 4 dimensions that need no gradient."""
    mask, call = s.call.attn_mask, s.call
    if mask is None:
        return
    if mask.requires_grad:
        yield s.reject(
            Rule.GRAD,
            "mask-shape",
            "attn_mask requires a gradient, which this kernel does not compute (PyTorch gives no reason here)",
            "attn_mask.detach() if its gradient is not needed; otherwise math, or FlexAttention with score_mod",
            cost_bytes=0,
        )
    want = (call.q.shape[0], call.q.shape[1], call.q.shape[2], call.k.shape[2])
    fits = all(have in (1, size) for have, size in zip(reversed(mask.shape), reversed(want), strict=False))
    if mask.ndim not in (2, 4) or not fits:
        yield s.reject(
            Rule.MASK,
            "mask-shape",
            f"attn_mask has shape {tuple(mask.shape)}; taken are (N_q, N_k) and (B or 1, H or 1, N_q, N_k)",
            "attn_mask.unsqueeze(0)" if mask.ndim == 3 else "reshape the mask to one of these",
            cost_bytes=0,
        )
