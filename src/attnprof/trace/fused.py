"""Fused operators played as the tile schedule that they run inside, with their scratch.

Source: the loops, block sizes and scratch of PyTorch's CPU kernel, aten/src/ATen/native/cpu/FlashAttentionKernel.cpp
(BSD-3), read at version 2.13. Query blocks are played in one thread's order; each thread of the real kernel has its
own scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnprof.trace.stream import Operand

if TYPE_CHECKING:
    from torch import Tensor

Access = Operand | tuple["Tensor", bool]  # a scratch operand, or a tensor and whether it is written
Scratch = Callable[[bool], Operand]
Workspace = Callable[[int], Scratch]
Steps = Callable[[dict[str, Any], "list[Tensor]", Workspace], Iterator[list[Access]]]

KV_BLOCK = 512


@dataclass(frozen=True, kw_only=True)
class Play:
    """A fused operator's schedule: steps of operands touched together, and what to tell the reader."""

    steps: Steps
    note: str


def schedule_of(name: str) -> Play | None:
    """The schedule of a fused operator, None when it has none."""
    return _SCHEDULES.get(name)


def cpu_query_block(q_len: int) -> int:
    """Query rows of one block of PyTorch's CPU flash kernel.

    >>> cpu_query_block(2048), cpu_query_block(512), cpu_query_block(100)
    (256, 64, 32)
    """
    return 256 if q_len >= 768 else 64 if q_len >= 192 else 32


def _blocks(length: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, length)) for start in range(0, length, size))


def _cpu_flash(
    arguments: dict[str, Any], results: list[Tensor], workspace: Workspace
) -> Iterator[list[Access]]:
    q, k, v = (arguments[name] for name in ("query", "key", "value"))
    out, lse = results[0], results[1]
    mask, causal = arguments.get("attn_mask"), bool(arguments.get("is_causal", False))
    q_len, kv_len, group = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    rows, cols = min(cpu_query_block(q_len), q_len), min(KV_BLOCK, kv_len)
    accumulate = 8 if q.element_size() == 8 else 4
    scores = workspace(rows * cols * accumulate)
    acc = workspace(rows * v.shape[3] * accumulate)
    statistics = workspace(2 * rows * accumulate)
    reduced = workspace(rows * cols * q.element_size()) if q.element_size() < 4 else None
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            key, value = k[batch, head // group], v[batch, head // group]
            for start, stop in _blocks(q_len, rows):
                query = q[batch, head, start:stop]
                for first, last in _blocks(min(stop, kv_len) if causal else kv_len, cols):
                    yield [(key[first:last], False)]
                    yield [(query, False), scores(True)]
                    if mask is not None:
                        yield [
                            (_mask_block(mask, batch, head, start, stop, first, last), False),
                            scores(True),
                        ]
                    yield [scores(False), scores(True), statistics(True)]
                    if reduced is not None:
                        yield [scores(False), reduced(True)]
                    yield [(value[first:last], False)]
                    yield [(reduced or scores)(False), acc(True)]
                yield [acc(False), (out[batch, head, start:stop], True)]
                yield [statistics(False), (_lse_rows(lse, batch, head, start, stop), True)]


def _mask_block(mask: Tensor, batch: int, head: int, start: int, stop: int, first: int, last: int) -> Tensor:
    full = mask if mask.dim() == 4 else mask[None, None]
    part = full[batch if full.shape[0] > 1 else 0, head if full.shape[1] > 1 else 0]
    return (part[start:stop] if part.shape[0] > 1 else part)[:, first:last] if part.shape[1] > 1 else part


def _lse_rows(lse: Tensor, batch: int, head: int, start: int, stop: int) -> Tensor:
    return lse[batch, head, start:stop]


def _cpu_flash_backward(
    arguments: dict[str, Any], results: list[Tensor], workspace: Workspace
) -> Iterator[list[Access]]:
    grad_out, q, k, v, out, lse = (
        arguments[name] for name in ("grad_out", "query", "key", "value", "out", "logsumexp")
    )
    dq, dk, dv = results[:3]
    causal, q_len, kv_len = bool(arguments.get("is_causal", False)), q.shape[2], k.shape[2]
    group = q.shape[1] // k.shape[1]
    rows, cols = min(cpu_query_block(q_len), q_len), min(KV_BLOCK, kv_len)
    accumulate = 8 if q.element_size() == 8 else 4
    scores, gradients = workspace(rows * cols * accumulate), workspace(rows * cols * accumulate)
    sums = workspace(q_len * accumulate)
    yield [(dq, True)]
    yield [(dk, True)]
    yield [(dv, True)]
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            kv = head // group
            yield [(grad_out[batch, head], False), (out[batch, head], False), sums(True)]
            for first, last in _blocks(kv_len, cols):
                key, value = k[batch, kv, first:last], v[batch, kv, first:last]
                dkey, dvalue = dk[batch, kv, first:last], dv[batch, kv, first:last]
                for start, stop in _blocks(q_len, rows):
                    if causal and stop <= first:
                        continue
                    query, gradient = q[batch, head, start:stop], grad_out[batch, head, start:stop]
                    dquery = dq[batch, head, start:stop]
                    yield [(key, False)]
                    yield [(query, False), scores(True)]
                    yield [scores(False), (_lse_rows(lse, batch, head, start, stop), False), scores(True)]
                    yield [(gradient, False)]
                    yield [scores(False), (dvalue, False), (dvalue, True)]
                    yield [(value, False)]
                    yield [(gradient, False), gradients(True)]
                    yield [scores(False), gradients(False), sums(False), gradients(True)]
                    yield [(key, False)]
                    yield [gradients(False), (dquery, False), (dquery, True)]
                    yield [(query, False)]
                    yield [gradients(False), (dkey, False), (dkey, True)]


_SCHEDULES = {
    "_scaled_dot_product_flash_attention_for_cpu": Play(
        steps=_cpu_flash,
        note="fused; played as the CPU kernel's own tiles (256, 64 or 32 queries by 512 keys), scratch of one thread",
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": Play(
        steps=_cpu_flash_backward,
        note="fused; played as the CPU backward kernel's own tiles with its scratch, one thread",
    ),
}
