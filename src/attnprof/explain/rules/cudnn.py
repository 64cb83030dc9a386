"""cuDNN's backend, and when PyTorch prefers it."""

from __future__ import annotations

from collections.abc import Iterator

from attnprof.explain.reason import Rejection, Rule, Situation
from attnprof.explain.rules import shared
from attnprof.explain.rules.cuda import check_capability, half_types


def version_of(s: Situation) -> int:
    """The cuDNN that runs: the device's own, or the one that PyTorch's default wheel ships."""
    return s.target.cudnn_version or s.rules.cudnn.shipped


def is_preferred(s: Situation) -> bool:
    """Whether cuDNN is tried first on this device."""
    limits = s.rules.cudnn
    fits = s.target.sm[0] in limits.preferred_majors and version_of(s) >= limits.preferred_from_cudnn
    return s.target.kind == "cuda" and fits and not s.switches.has(limits.deprioritize_env)


def cudnn(s: Situation) -> Iterator[Rejection]:
    """Why the cuDNN backend does not take the call."""
    limits = s.rules.cudnn
    yield from shared.check_switch(s, "cudnn")
    yield from check_capability(
        s, limits.min_capability, limits.max_capability, "cudnn-device", "cuDNN attention"
    )
    yield from shared.check_dtype(s, half_types(s, limits.dtypes), "cudnn-dtype", "cuDNN attention")
    if s.switches.deterministic:
        yield s.reject(
            Rule.DETERMINISM, "cudnn-deterministic",
            "deterministic algorithms are required, and cuDNN's backward is not deterministic",
            "torch.use_deterministic_algorithms(True, warn_only=True) if that may be", cost_bytes=0,
        )  # fmt: skip
    yield from check_dropout(s)
    if not s.call.is_4d:
        yield from shared.check_rank(s)
        return
    yield from shared.check_mask_shape(s)
    yield from shared.check_lengths(s)
    yield from shared.check_stride(s, singleton_allowed=True)
    yield from shared.check_batch(s)
    yield from shared.check_heads(s, gqa=True, same_kv_heads=False)
    yield from check_sizes(s)
    yield from check_head_dims(s)


def check_dropout(s: Situation) -> Iterator[Rejection]:
    """Dropout that this cuDNN does not compute."""
    p, version = s.call.dropout_p, version_of(s)
    if p > 0 and 91100 < version < 91400:
        yield s.reject(
            Rule.VERSION, "cudnn-dropout", f"cuDNN {_text(version)} has no dropout in attention (9.11 to 9.13)",
            "another cuDNN, or dropout_p=0", cost="an installation",
        )  # fmt: skip
    if s.rules.cudnn.dropout_sixteenths and (p * 16) % 1:
        yield s.reject(
            Rule.DROPOUT, "cudnn-dropout", f"dropout_p={p:g} is not a multiple of 1/16",
            f"dropout_p={max(round(p * 16), 1) / 16:g}", cost="another probability",
        )  # fmt: skip


def check_sizes(s: Situation) -> Iterator[Rejection]:
    """Batch, heads and lengths."""
    batch, heads, q_len, _ = s.call.q.shape
    limit = s.rules.cudnn.max_batch_or_heads
    if limit is not None and max(batch, heads) > limit:
        yield s.reject(
            Rule.SHAPE, "cudnn-shapes", f"batch {batch:,} or heads {heads:,} is above {limit:,}",
            "split the batch", cost="more launches",
        )  # fmt: skip
    if s.call.k.shape[2] == 1:
        yield s.reject(
            Rule.SHAPE, "cudnn-shapes", "kv_len is 1",
            "none needed: the output is v, repeated for every query", cost_bytes=0,
        )  # fmt: skip
    if q_len == 1 and s.call.dropout_p > 0:
        yield s.reject(
            Rule.DROPOUT, "cudnn-shapes", "q_len is 1 together with dropout",
            "dropout_p=0 when decoding", cost_bytes=0,
        )  # fmt: skip


def check_head_dims(s: Situation) -> Iterator[Rejection]:
    """Multiples of 8 up to what this device and cuDNN version take."""
    qk, v = s.call.q.shape[-1], s.call.v.shape[-1]
    limit = head_dim_limit(s)
    if max(qk, v) > limit:
        yield s.reject(
            Rule.HEAD_DIM, "cudnn-shapes", f"head dim {max(qk, v)} is above {limit}, the limit of cuDNN "
            f"{_text(version_of(s))} on compute capability {s.target.sm[0]}.{s.target.sm[1]}",
            "flash takes up to 256, memory-efficient any", cost="another kernel",
        )  # fmt: skip
    if qk % 8 or v % 8:
        yield s.reject(
            Rule.HEAD_DIM, "cudnn-shapes", f"head dims {qk} and {v} (v) must be multiples of 8",
            "pad with zeros to a multiple of 8 and keep the scale", cost="reads and writes",
            cost_bytes=sum(t.shape_bytes * 2 for _, t in s.call.tensors if t.shape[-1] % 8),
        )  # fmt: skip
    trains = max(qk, v) <= 128 or (qk, v) in ((192, 128), (256, 256))
    if s.rules.cudnn.d256_training and limit == 256 and s.call.needs_grad and not trains:
        yield s.reject(
            Rule.GRAD, "cudnn-train", f"cuDNN has no backward for head dims {qk} and {v} (v)",
            "torch.no_grad() if no gradient is needed", cost_bytes=0,
        )  # fmt: skip


def head_dim_limit(s: Situation) -> int:
    """The widest head dim of this device and cuDNN version."""
    dims = (s.call.q.shape[-1], s.call.v.shape[-1])
    for row in s.rules.cudnn.head_dims:
        fits = s.target.sm in row.capabilities and version_of(s) >= row.min_cudnn
        if fits and row.pair in (None, dims):
            return row.max_head_dim
    return s.rules.cudnn.max_head_dim


def _text(version: int) -> str:
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def no_cudnn(s: Situation) -> Iterator[Rejection]:
    """ROCm builds have no cuDNN."""
    yield s.reject(
        Rule.DEVICE, "cudnn-build", f"{s.target.name} is not an NVIDIA GPU: PyTorch for it has no cuDNN",
        "none on this device: use flash or memory-efficient", cost="another kernel",
    )  # fmt: skip
