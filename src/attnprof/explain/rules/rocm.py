"""Flash and memory-efficient attention on AMD GPUs: AOTriton kernels behind the same two names."""

from __future__ import annotations

from collections.abc import Iterator

from attnprof.explain.reason import Rejection, Rule, Situation
from attnprof.explain.rules import shared
from attnprof.explain.rules.cuda import check_no_mask, check_square_causal, flash_head_dim, mem_head_dim


def flash(s: Situation) -> Iterator[Rejection]:
    """Why AOTriton's flash does not take the call."""
    yield from shared.check_switch(s, "flash")
    yield from check_arch(s)
    yield from check_no_mask(s)
    yield from check_square_causal(s)
    yield from shared.check_dtype(s, s.rules.rocm.flash_dtypes, "flash-dtype", "flash")
    if not s.call.is_4d:
        yield from shared.check_rank(s)
        return
    yield from flash_head_dim(s, max_head_dim(s), "rocm-head-dim")
    yield from shared.check_batch(s)
    yield from shared.check_heads(s, gqa=True)
    yield from shared.check_lengths(s)
    yield from shared.check_stride(s, singleton_allowed=True)


def mem_efficient(s: Situation) -> Iterator[Rejection]:
    """Why AOTriton's memory-efficient attention does not take the call."""
    yield from shared.check_switch(s, "mem_efficient")
    yield from check_arch(s)
    yield from shared.check_dtype(s, s.rules.rocm.mem_efficient_dtypes, "mem-dtype", "memory-efficient")
    yield from check_mask_dtype(s)
    if not s.call.is_4d:
        yield from shared.check_rank(s)
        return
    yield from flash_head_dim(s, max_head_dim(s), "rocm-head-dim")
    half = s.call.q.dtype in {"float16", "bfloat16"}
    yield from mem_head_dim(s, 8 if half else 4, "rocm-head-dim")
    yield from shared.check_lengths(s)
    yield from shared.check_stride(s, singleton_allowed=False)
    yield from shared.check_batch(s)
    yield from shared.check_heads(s, gqa=False, cite="mem-gqa")


def max_head_dim(s: Situation) -> int:
    """The widest head dim of an architecture."""
    limits = s.rules.rocm
    narrow = (
        limit for prefix, limit in limits.max_head_dim_by_arch.items() if s.target.arch.startswith(prefix)
    )
    return next(narrow, limits.max_head_dim)


def check_arch(s: Situation) -> Iterator[Rejection]:
    """Architectures that AOTriton is built for, some only when an environment variable is set."""
    limits = s.rules.rocm
    if s.target.arch in limits.archs:
        return
    if s.target.arch in limits.experimental_archs:
        if not s.switches.has(limits.experimental_env):
            yield s.reject(
                Rule.ENVIRONMENT, "rocm-device", f"{s.target.arch} is experimental in AOTriton and not enabled",
                f"export {limits.experimental_env} before the first attention call", cost_bytes=0,
            )  # fmt: skip
        return
    yield s.reject(
        Rule.DEVICE, "rocm-device", f"AOTriton is not built for {s.target.arch or s.target.name}",
        f"none on this device: it is built for {', '.join(limits.archs)}", cost="another device",
    )  # fmt: skip


def check_mask_dtype(s: Situation) -> Iterator[Rejection]:
    """Masks are boolean or of q's dtype."""
    mask = s.call.attn_mask
    if mask is not None and mask.dtype not in {"bool", s.call.q.dtype}:
        yield s.reject(
            Rule.MASK, "rocm-mask", f"attn_mask is {mask.dtype} and q {s.call.q.dtype}",
            f"attn_mask.to({s.call.q.dtype})", cost="reads and writes", cost_bytes=2 * mask.shape_bytes,
        )  # fmt: skip
