"""Checks that need only a problem's sizes, mask, dtype and direction."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attnprof.core.dtypes import DType
from attnprof.core.mask import Align, Causal, Dense, Full, Lengths, Mask, Window
from attnprof.core.problem import Direction, Problem
from attnprof.core.record import Judgment, Severity
from attnprof.core.units import format_bytes

INT32_MAX = 2**31 - 1
UINT32_COUNT = 2**32
GRID_LIMIT = 65_535
FUSED = frozenset({"flash", "mem_efficient", "cudnn", "flex"})
MOST_HEADS_IN_USE = 128  # the widest published models have 128 query heads


def check_alignment(p: Problem) -> Iterator[Judgment]:
    """Top-left causal masks on unequal lengths hide the newest keys from a decoding query."""
    unlimited = isinstance(p.mask, Window) and p.mask.left == p.mask.right == -1
    aligned = isinstance(p.mask, Causal | Window) and p.mask.align is Align.TOP_LEFT
    if aligned and not unlimited and p.batch:
        yield from _unequal(p.q_len, p.kv_len, p.counted.visible_keys // p.batch)


def check_causal_lengths(q_len: int, kv_len: int) -> Iterator[Judgment]:
    """The same for a call with is_causal."""
    yield from _unequal(q_len, kv_len, min(q_len, kv_len))


def _unequal(q_len: int, kv_len: int, visible: int) -> Iterator[Judgment]:
    if q_len == kv_len:
        return
    yield Judgment(
        code="causal-top-left",
        message=f"{visible} of {kv_len} keys visible; is_causal is top-left",
        remedy="for queries at the end of a cache use the bottom_right alignment: --mask causal:bottom_right",
        severity=Severity.WARNING if visible < kv_len else Severity.NOTE,
    )


def check_empty_rows(p: Problem) -> Iterator[Judgment]:
    """Queries without a key: their output is 0 by definition."""
    rows = p.total_empty_rows
    if rows and p.kv_len:
        yield Judgment(
            code="empty-rows",
            message=f"{rows} empty row{'s' * (rows != 1)}: queries that see no key",
            remedy="their output is 0 by definition; a textbook softmax gives NaN there",
            severity=Severity.NOTE,
        )


def check_mask_is_rule(p: Problem) -> Iterator[Judgment]:
    """A dense mask (or a window) that says no more than causal or full costs bytes and fast kernels."""
    rule = equal_rule(p.mask, p.q_len, p.kv_len)
    if rule is None:
        return
    flag = "no mask at all" if isinstance(rule, Full) else f"--mask {rule}"
    cost = f"{format_bytes(p.mask_bytes)} are read for it, and " if p.mask_bytes else ""
    yield Judgment(
        code=f"mask-equals-{'full' if isinstance(rule, Full) else 'causal'}",
        message=f"mask {p.mask} equals {rule}: {cost}a kernel that takes the rule can skip hidden tiles",
        remedy=f"use {flag}; PyTorch's CUDA flash takes is_causal but no mask tensor",
        severity=Severity.NOTE,
    )


def equal_rule(mask: Mask, q_len: int, kv_len: int) -> Mask | None:
    """Full or Causal when `mask`, given in another form, lets exactly the same pairs through."""
    if isinstance(mask, Full | Causal | Lengths) or q_len * kv_len == 0:
        return None
    rules = (Full(), Causal(Align.TOP_LEFT), Causal(Align.BOTTOM_RIGHT))
    return next((rule for rule in rules if _same_pairs(mask, rule, q_len, kv_len)), None)


def _same_pairs(mask: Mask, rule: Mask, q_len: int, kv_len: int) -> bool:
    (_, wanted), *_ = rule.bands(1, q_len, kv_len)  # type: ignore[union-attr]  # rules are banded
    if isinstance(mask, Dense):
        if mask.shape[-2] != q_len:  # one row for all queries: only a full row can equal a rule
            return isinstance(rule, Full) and "0" not in mask.array
        spans = [wanted.span(i) for i in range(q_len)]
        return all(row == _bits(spans[i % q_len], kv_len) for i, row in enumerate(mask.rows()))
    (_, band), *_ = mask.bands(1, q_len, kv_len)
    probes = {0, q_len // 2, q_len - 1}
    return band.pairs == wanted.pairs and all(band.span(i) == wanted.span(i) for i in probes)


def _bits(span: tuple[int, int], width: int) -> str:
    start, stop = span
    return "0" * start + "1" * (stop - start) + "0" * (width - stop)


def check_index_limits(p: Problem, backend: str = "") -> Iterator[Judgment]:
    """32-bit indices: masks, scores (which a fused `backend` does not store), and each operand."""
    pairs = p.q_len * p.kv_len
    if not isinstance(p.mask, Full):
        stored = math.prod(p.mask.shape) if isinstance(p.mask, Dense) else pairs
        yield from over_int32("mask", max(stored, pairs))
    if backend not in FUSED:
        yield from over_int32("score matrix", p.batch * p.q_heads * pairs)
    for name, sizes in (
        ("q", (p.batch, p.q_heads, p.q_len, p.qk_dim)),
        ("k", (p.batch, p.kv_heads, p.kv_len, p.qk_dim)),
        ("v", (p.batch, p.kv_heads, p.kv_len, p.v_dim)),
    ):
        yield from over_int32(name, math.prod(sizes))


def over_int32(name: str, elements: int) -> Iterator[Judgment]:
    """A judgment when an array has more elements than a signed 32-bit index reaches."""
    if elements <= INT32_MAX:
        return
    beyond = f" and > 2^32 = {UINT32_COUNT:,}: memory-efficient kernels index masks in 32 bits"
    yield Judgment(
        code=f"int32-{name.replace(' ', '-')}",
        message=f"{name} has {elements:,} elements > 2^31-1 = {INT32_MAX:,}"
        + (beyond if name == "mask" and elements > UINT32_COUNT else ""),
        remedy="kernels with 32-bit indices can reach the wrong place: check the last rows or split the call",
        severity=Severity.WARNING if name != "score matrix" else Severity.NOTE,
    )


def check_grid(p: Problem, device: str) -> Iterator[Judgment]:
    """CUDA's limit on the second and third grid axis."""
    if device.partition(":")[0] in {"cpu", "mps", "meta"}:
        return
    axes = (
        ("batch", p.batch, Severity.WARNING),
        ("q_heads", p.q_heads, Severity.WARNING),
        ("batch * q_heads (one axis in many Triton kernels)", p.batch * p.q_heads, Severity.NOTE),
    )
    over = next(((name, size, severity) for name, size, severity in axes if size > GRID_LIMIT), None)
    if over:
        name, size, severity = over
        yield Judgment(
            code="grid-limit",
            message=f"{name} = {size:,} > {GRID_LIMIT:,}, CUDA's limit on the y and z axes of a grid",
            remedy=f"split the batch into calls of at most {GRID_LIMIT:,}",
            severity=severity,
        )


def check_dropout(p: Problem) -> Iterator[Judgment]:
    """Dropout in a pass without gradients."""
    if p.dropout > 0 and p.direction is Direction.FWD:
        yield dropout_judgment(p.dropout)


def dropout_judgment(dropout: float) -> Judgment:
    """The warning of dropout where nothing is trained."""
    return Judgment(
        code="dropout-in-eval",
        message=f"dropout_p={dropout:g} without training: SDPA applies it all the same",
        remedy="pass dropout_p=(p if module.training else 0.0); two runs differ, so the error is n/a",
    )


def check_layout(p: Problem) -> Iterator[Judgment]:
    """(B, S, H, D) tensors read as (B, H, S, D) give attention over heads."""
    many = p.q_heads > MOST_HEADS_IN_USE
    odd = p.q_heads >= 32 and p.q_len > 1 and p.q_heads >= 2 * p.q_len
    if p.q_heads > p.q_len and p.kv_heads > p.kv_len and (many or odd):
        yield Judgment(
            code="layout-suspicion",
            message=f"{p.q_heads} heads of {p.q_len} queries: is this (B, S, H, D) read as (B, H, S, D)?",
            remedy="transpose(1, 2) before the call if dimension 1 is the sequence",
            severity=Severity.WARNING if many else Severity.NOTE,
        )


def check_math_memory(p: Problem, backend: str) -> Iterator[Judgment]:
    """What the math backend allocates, doubled by its float32 copies of 16-bit inputs."""
    if backend != "math":
        return
    upcast = p.dtype in {DType.FLOAT16, DType.BFLOAT16}
    unit = 4 if upcast else p.dtype.bytes
    scores = 2 * p.batch * p.q_heads * p.q_len * p.kv_len * unit
    heads = p.q_heads  # math repeats K and V for every query head
    copies = p.batch * heads * (p.q_len * p.qk_dim + p.kv_len * (p.qk_dim + p.v_dim)) * unit
    if not upcast or not scores:
        return
    yield Judgment(
        code="math-upcast",
        message=f"math computes {p.dtype} in float32: {format_bytes(scores)} for two score matrices and "
        f"{format_bytes(copies)} for copies of q, k, v",
        remedy="use a fused backend; or torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True) on CUDA",
    )
