"""Tiling loops in plain PyTorch: which keys a tile of queries sees, the online softmax, the recomputing backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnprof.core.mask import Band, Dense
from attnprof.core.problem import Problem
from attnprof.variants._tensors import mask_tensor

Loop = Callable[[Tensor, Tensor, Tensor, "Plan", bool], tuple[Tensor, Tensor]]


@dataclass(frozen=True, kw_only=True)
class Head:
    """One query head of one batch element: its band of keys, and its explicit mask if there is one."""

    band: Band
    dense: Tensor | None

    def keys(self, start: int, stop: int, cols: int) -> range:
        """First keys of the key tiles that queries [start, stop) see."""
        stop = min(stop, self.band.q_len)
        if start >= stop:
            return range(0)
        first, last = self.band.span(start)[0], self.band.span(stop - 1)[1]
        return range(first // cols * cols, last, cols)

    def hidden(self, rows: tuple[int, int], keys: tuple[int, int]) -> Tensor | None:
        """True where a pair of the tile is not visible; None when all are."""
        if self.dense is not None:
            part = self.dense[rows[0] : rows[1]] if len(self.dense) > 1 else self.dense
            return ~part[:, keys[0] : keys[1]]
        band, hidden = self.band, None
        past_end = rows[1] > band.q_len
        high, low = band.high, band.low
        if high is not None and keys[1] - 1 > rows[0] + high:
            hidden = _grid(keys) > _grid(rows)[:, None] + high
        if low is not None and keys[0] < rows[1] - 1 + low:
            before = _grid(keys) < _grid(rows)[:, None] + low
            hidden = before if hidden is None else hidden | before
        if past_end:
            padding = (_grid(rows) >= band.q_len)[:, None].expand(-1, keys[1] - keys[0])
            hidden = padding if hidden is None else hidden | padding
        return hidden


def _grid(interval: tuple[int, int]) -> Tensor:
    return torch.arange(*interval)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A problem cut into tiles of `rows` queries by `cols` keys."""

    problem: Problem
    rows: int
    cols: int
    dense: Tensor | None

    @property
    def dtype(self) -> torch.dtype:
        """Type of the tiles on the chip: float64 for float64, else float32."""
        return torch.float64 if self.problem.dtype.bits == 64 else torch.float32

    def heads(self) -> Iterator[tuple[int, int, int, Head]]:
        """(batch element, query head, its KV head, what it sees)."""
        p = self.problem
        for b, band in enumerate(self._bands()):
            for h in range(p.q_heads):
                yield b, h, h // p.group, Head(band=band, dense=self._dense(b, h))

    def tiles(self, length: int, size: int) -> Iterator[tuple[int, int]]:
        """Half-open intervals of at most `size`."""
        return ((start, min(start + size, length)) for start in range(0, length, size))

    def _bands(self) -> Iterator[Band]:
        p = self.problem
        if isinstance(p.mask, Dense):
            yield from (Band(q_len=p.q_len, kv_len=p.kv_len) for _ in range(p.batch))
            return
        for count, band in p.mask.bands(p.batch, p.q_len, p.kv_len):
            yield from (band for _ in range(count))

    def _dense(self, b: int, h: int) -> Tensor | None:
        mask = self.dense
        if mask is None or mask.dim() == 2:
            return mask
        return mask[min(b, len(mask) - 1), min(h, mask.shape[1] - 1)]


def tiled_kernel(
    problem: Problem, rows: int, cols: int, loop: Loop
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """f(q, k, v) that runs `loop` forward and, where a gradient is asked for, the recomputing backward."""
    dense = mask_tensor(problem, "cpu") if isinstance(problem.mask, Dense) else None
    plan = Plan(problem=problem, rows=rows, cols=cols, dense=dense)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
            return _Tiled.apply(q, k, v, plan, loop)  # type: ignore[no-any-return,no-untyped-call]  # torch leaves it untyped
        return loop(q, k, v, plan, False)[0]

    return attention


def outer_queries(q: Tensor, k: Tensor, v: Tensor, plan: Plan, keep_lse: bool) -> tuple[Tensor, Tensor]:
    """FlashAttention-2's order: a tile of queries stays, K and V stream past it; (o, lse)."""
    out = q.new_empty((*q.shape[:3], v.shape[3]))
    lse = torch.empty(q.shape[:3] if keep_lse else (0,), dtype=plan.dtype)
    for b, h, kv, head in plan.heads():
        for start, stop in plan.tiles(q.shape[2], plan.rows):
            tile = Online(q[b, h, start:stop], v.shape[3], plan)
            for first in head.keys(start, stop, plan.cols):
                keys = (first, min(first + plan.cols, head.band.kv_len))
                tile.add(k[b, kv, slice(*keys)], v[b, kv, slice(*keys)], head.hidden((start, stop), keys))
            out[b, h, start:stop] = tile.output()
            if keep_lse:
                lse[b, h, start:stop] = tile.lse()
    return out, lse


class Online:
    """A tile of queries with its online softmax: row maximum, row sum, unnormalised output."""

    def __init__(self, q: Tensor, v_dim: int, plan: Plan) -> None:
        self._q = q.to(plan.dtype) * plan.problem.effective_scale
        self._max = q.new_full((len(q), 1), float("-inf"), dtype=plan.dtype)
        self._sum = q.new_zeros((len(q), 1), dtype=plan.dtype)
        self._out = q.new_zeros((len(q), v_dim), dtype=plan.dtype)

    def add(self, k: Tensor, v: Tensor, hidden: Tensor | None) -> None:
        """Take one tile of keys and values in."""
        weights = self._q @ k.to(self._q.dtype).T
        if hidden is not None:
            weights.masked_fill_(hidden, float("-inf"))
        top = torch.maximum(self._max, weights.amax(dim=-1, keepdim=True))
        finite = top.masked_fill(top == float("-inf"), 0.0)  # a row that has seen no key yet
        weights.sub_(finite).exp_()
        shrink = (self._max - finite).exp_()
        self._max = top
        self._sum.mul_(shrink).add_(weights.sum(dim=-1, keepdim=True))
        self._out.mul_(shrink).addmm_(weights, v.to(weights.dtype))

    def output(self) -> Tensor:
        """The rows of the result; 0 for a row that saw no key."""
        return self._out.div_(self._sum.masked_fill(self._sum == 0, 1.0))

    def lse(self) -> Tensor:
        """Log of the row sums of exp; infinite for a row that saw no key, so that its weights come out as 0."""
        return (self._max + self._sum.log()).masked_fill_(self._sum == 0, float("inf"))[:, 0]


class _Tiled(torch.autograd.Function):
    """Forward by a tiling loop; backward recomputes P from the saved LSE."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: Plan, loop: Loop) -> Tensor:
        """Save q, k, v, o and LSE, nothing of size N x N."""
        out, lse = loop(q, k, v, plan, True)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.plan = plan
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """FlashAttention-2's backward: a tile of keys stays, queries stream past it, dQ is summed in memory."""
        q, k, v, out, lse = ctx.saved_tensors
        return (*_backward(grads[0], q, k, v, out, lse, ctx.plan), None, None)


def _backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, plan: Plan
) -> tuple[Tensor, Tensor, Tensor]:
    sums = torch.empty(lse.shape, dtype=plan.dtype)  # D = rowsum(dO * O)
    total = q.new_zeros(q.shape, dtype=plan.dtype)  # dQ, summed in the tiles' type
    dk = q.new_empty((*q.shape[:2], *k.shape[2:]))  # by query head
    dv = q.new_empty((*q.shape[:2], *v.shape[2:]))
    for b, h, kv, head in plan.heads():
        for start, stop in plan.tiles(q.shape[2], plan.rows):
            rows = (b, h, slice(start, stop))
            sums[rows] = (grad[rows].to(plan.dtype) * out[rows]).sum(dim=-1)
        for first, last in plan.tiles(k.shape[2], plan.cols):
            keys = KeyTile(k[b, kv, first:last], v[b, kv, first:last], plan)
            seen = min(last, head.band.kv_len)
            for start, stop in plan.tiles(q.shape[2], plan.rows):
                if first in head.keys(start, stop, plan.cols):
                    rows = (b, h, slice(start, stop))
                    hidden = head.hidden((start, stop), (first, seen))
                    keys.add(q[rows], grad[rows], lse[rows], sums[rows], total[rows], hidden)
            dk[b, h, first:last], dv[b, h, first:last] = keys.gradients()
            del keys  # the tile leaves the chip now, not at the function's end
    return q.new_empty(q.shape).copy_(total), _by_kv_head(dk, k), _by_kv_head(dv, v)


class KeyTile:
    """A tile of keys and values with the gradients that queries add to it."""

    def __init__(self, k: Tensor, v: Tensor, plan: Plan) -> None:
        self._k, self._v, self._scale = k.to(plan.dtype), v.to(plan.dtype), plan.problem.effective_scale
        self._dk = k.new_zeros(k.shape, dtype=plan.dtype)
        self._dv = v.new_zeros(v.shape, dtype=plan.dtype)

    def add(
        self, q: Tensor, grad: Tensor, lse: Tensor, sums: Tensor, dq: Tensor, hidden: Tensor | None
    ) -> None:
        """Let a tile of queries pass: adds to its dq and to dk, dv of the keys (cut to the visible width)."""
        width = len(self._k) if hidden is None else hidden.shape[1]
        k, v, grad = self._k[:width], self._v[:width], grad.to(dq.dtype)
        weights = (q.to(dq.dtype) * self._scale) @ k.T
        if hidden is not None:
            weights.masked_fill_(hidden, float("-inf"))
        weights.sub_(lse[:, None]).exp_()
        self._dv[:width].addmm_(weights.T, grad)
        scores = (grad @ v.T).sub_(sums[:, None]).mul_(weights).mul_(self._scale)
        dq.addmm_(scores, k)
        self._dk[:width].addmm_(scores.T, q.to(dq.dtype))

    def gradients(self) -> tuple[Tensor, Tensor]:
        """(dk, dv)."""
        return self._dk, self._dv


def _by_kv_head(gradient: Tensor, like: Tensor) -> Tensor:
    """Gradients by query head summed over the heads that share a KV head."""
    if gradient.shape == like.shape:
        return gradient
    batch, kv_heads, length, dim = like.shape
    return gradient.view(batch, kv_heads, -1, length, dim).sum(dim=2)
