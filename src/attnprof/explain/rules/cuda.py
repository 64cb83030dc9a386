"""CUDA's flash and memory-efficient backends, and cuDNN's."""

from __future__ import annotations

from collections.abc import Iterator

from attnprof.explain.reason import Rejection, Rule, Situation
from attnprof.explain.rules import shared
from attnprof.explain.rules.cpu import unequal_dims
from attnprof.explain.rules.ruleset import Capability

HALF = ("float16", "bfloat16")


def flash(s: Situation) -> Iterator[Rejection]:
    """Why PyTorch's CUDA flash backend (FlashAttention-2) does not take the call."""
    limits = s.rules.flash
    yield from shared.check_switch(s, "flash")
    yield from check_capability(s, limits.min_capability, limits.max_capability, "flash-device", "flash")
    yield from check_no_mask(s)
    yield from check_square_causal(s)
    yield from shared.check_dtype(s, half_types(s, limits.dtypes), "flash-dtype", "flash")
    if not s.call.is_4d:
        yield from shared.check_rank(s)
        return
    yield from flash_head_dim(s, limits.max_head_dim, "flash-head-dim")
    yield from check_training(s)
    yield from shared.check_batch(s)
    yield from shared.check_heads(s, gqa=True)
    yield from shared.check_lengths(s)
    yield from shared.check_stride(s, singleton_allowed=True)


def half_types(s: Situation, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The 16-bit types of a device: bfloat16 from compute capability 8.0 on."""
    return dtypes if s.target.sm >= (8, 0) or s.target.kind == "rocm" else ("float16",)


def check_capability(
    s: Situation, low: Capability, high: Capability, cite: str, backend: str
) -> Iterator[Rejection]:
    """The range of compute capabilities that a backend is built for."""
    sm = s.target.sm
    if low <= sm <= high:
        return
    need = f"{low[0]}.{low[1]} to {high[0]}.{high[1]}"
    newer = (
        "a PyTorch that knows this device"
        if sm > high
        else f"a device of compute capability {low[0]}.{low[1]}+"
    )
    yield s.reject(
        Rule.CAPABILITY,
        cite,
        f"{s.target.name} has compute capability {sm[0]}.{sm[1]}; {backend} is built for {need}",
        f"none on this device: it takes {newer}",
        cost="another device",
    )


def check_no_mask(s: Situation) -> Iterator[Rejection]:
    """CUDA flash takes no mask tensor."""
    mask = s.call.attn_mask
    if mask is None:
        return
    yield s.reject(
        Rule.MASK,
        "flash-mask",
        f"attn_mask {tuple(mask.shape)} is set: flash on a GPU takes no mask tensor, only is_causal",
        "is_causal=True if the mask is causal, none if it hides nothing; for windows and documents FlexAttention",
        cost="the mask is no longer read: saves",
        cost_bytes=mask.shape_bytes,
    )


def check_square_causal(s: Situation) -> Iterator[Rejection]:
    """is_causal on unequal lengths would mean another alignment."""
    if not s.call.is_causal or s.call.q.shape[-2] == s.call.k.shape[-2]:
        return
    yield s.reject(
        Rule.CAUSAL,
        "flash-causal",
        f"is_causal with q_len {s.call.q.shape[-2]} and kv_len {s.call.k.shape[-2]}: PyTorch means top-left, the "
        "kernel bottom-right",
        "attn_mask=torch.nn.attention.bias.causal_lower_right(N_q, N_k) if bottom-right is meant (decode: no mask)",
        cost_bytes=0,
    )


def flash_head_dim(s: Situation, limit: int, cite: str) -> Iterator[Rejection]:
    """One head dim, not above the limit."""
    dims = [t.shape[-1] for _, t in s.call.tensors]
    if len(set(dims)) > 1:
        yield unequal_dims(s, cite, "flash takes one head dim for all three")
    if dims[0] > limit:
        yield s.reject(
            Rule.HEAD_DIM,
            cite,
            f"head dim {dims[0]} is above {limit}",
            "none in this backend: use memory-efficient or FlexAttention, or a model with narrower heads",
            cost="another kernel",
        )


def check_training(s: Situation) -> Iterator[Rejection]:
    """Head dims that flash cannot train on devices with little shared memory."""
    dim, dropout = s.call.q.shape[-1], s.call.dropout_p > 0
    gap = 192 < dim <= 224 or (dim > 224 and dropout)
    if s.call.needs_grad and s.target.sm in s.rules.flash.train_gap_archs and gap:
        yield s.reject(
            Rule.GRAD,
            "flash-train",
            f"training with head dim {dim}{' and dropout' if dropout else ''} on compute capability "
            f"{s.target.sm[0]}.{s.target.sm[1]}: its backward needs more shared memory than there is",
            "run under torch.no_grad() if no gradient is needed"
            + (", or without dropout" if dim > 224 else ""),
            cost_bytes=0,
        )


def mem_efficient(s: Situation) -> Iterator[Rejection]:
    """Why the CUTLASS memory-efficient backend does not take the call."""
    limits = s.rules.mem_efficient
    yield from shared.check_switch(s, "mem_efficient")
    yield from check_capability(
        s, limits.min_capability, limits.max_capability, "mem-device", "memory-efficient"
    )
    dtypes = limits.dtypes if s.target.sm >= (8, 0) else limits.dtypes_before_8_0
    yield from shared.check_dtype(s, dtypes, "mem-dtype", "memory-efficient on this device")
    if not s.call.is_4d:
        yield from shared.check_rank(s)
        return
    yield from mem_head_dim(s, alignment(s), "mem-head-dim")
    if limits.checks_offset:
        yield from check_offset(s)
    yield from shared.check_lengths(s)
    yield from shared.check_stride(s, singleton_allowed=False)
    yield from shared.check_batch(s)
    yield from shared.check_heads(s, gqa=limits.gqa, cite="mem-gqa")


def alignment(s: Situation) -> int:
    """Elements that a head dim must be a multiple of: by tensor cores and dtype."""
    half = s.call.q.dtype in HALF
    tensor_cores = s.target.sm >= (8, 0) or (s.target.sm >= (7, 0) and half)
    least = 4 if s.target.sm >= (8, 0) else 1
    return max(least, 128 // (16 if half else 32)) if tensor_cores else least


def mem_head_dim(s: Situation, multiple: int, cite: str) -> Iterator[Rejection]:
    """Head dims that are multiples of the alignment; d of q and k alike."""
    dims = (s.call.q.shape[-1], s.call.v.shape[-1])
    if all(dim > 0 and dim % multiple == 0 for dim in dims):
        return
    padded = sum(
        t.shape_bytes + int(t.shape_bytes * -(-t.shape[-1] // multiple) * multiple / t.shape[-1])
        for _, t in s.call.tensors
        if t.shape[-1] % multiple
    )
    yield s.reject(
        Rule.HEAD_DIM,
        cite,
        f"head dims {dims[0]} and {dims[1]} (v): {s.call.q.dtype} needs multiples of {multiple} on this device",
        f"pad with zeros to a multiple of {multiple} and keep the scale",
        cost="reads and writes",
        cost_bytes=padded,
    )


def check_offset(s: Situation) -> Iterator[Rejection]:
    """Views whose first element is not aligned."""
    if s.target.sm < (8, 0):
        return
    need = int(alignment(s) * s.call.q.item_bytes)
    wrong = [
        (name, t) for name, t in s.call.tensors if t.numel and int(t.storage_offset * t.item_bytes) % need
    ]
    if wrong:
        listed = ", ".join(f"{name} {int(t.storage_offset * t.item_bytes)} B" for name, t in wrong)
        yield s.reject(
            Rule.STRIDE,
            "mem-offset",
            f"views start at {listed} in their storage, which is no multiple of {need} B",
            f"{wrong[0][0]}.clone() before the call, or slice at a multiple of {need} B",
            cost="reads and writes",
            cost_bytes=sum(2 * t.shape_bytes for _, t in wrong),
        )
