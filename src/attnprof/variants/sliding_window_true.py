"""A window that is really computed as one: each block of queries meets only the keys that it sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from attnprof.core.mask import UNLIMITED, Window
from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules import true_window_cost
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants.sliding_w128 import windowed

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 256  # queries per block: the overlap of one block's keys with the next one's is a window, so wider is less work


@dataclass(frozen=True, kw_only=True)
class Run:
    """Blocks of `rows` queries from `start`, each with `keys` keys, the first of which begins at `first`.

    Block n takes queries start + n * rows and keys first + n * rows, and all share one mask of visible pairs.
    """

    start: int
    rows: int
    first: int
    keys: int
    blocks: int
    mask: Tensor

    @property
    def stop(self) -> int:
        """End of its queries."""
        return self.start + self.blocks * self.rows


def _asked_or_windowed(problem: Problem) -> Problem:
    return problem if isinstance(problem.mask, Window) else windowed(problem)


def _needs_both_limits(problem: Problem) -> str | None:
    if isinstance(problem.mask, Window) and UNLIMITED in (problem.mask.left, problem.mask.right):
        return f"mask {problem.mask} has no limit on one side: its cost is that of a full matrix, use flash"
    return None


def _cost(problem: Problem) -> Cost:
    """Forward, a block meets exactly the keys that it sees; backward, a key's gradient is summed over whole blocks."""
    return true_window_cost(problem, rows=BLOCK, cols=1 if problem.direction is Direction.FWD else BLOCK)


@variant(
    name="sliding_window_true",
    title="Window, computing only its band (SDPA on blocks of queries)",
    preset=_asked_or_windowed,
    cost=_cost,
    limits=Limits(masks=(Window,), extra=_needs_both_limits),
)
def sliding_window_true(problem: Problem, setting: Setting) -> Kernel:
    """Time and memory grow with N * W, not N * N; a window of 128 where the problem asks for another mask."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    runs = tuple(_runs(problem, setting.device))
    scale, grouped = problem.effective_scale, problem.group > 1

    def attend(q: Tensor, k: Tensor, v: Tensor, run: Run) -> Tensor:
        rows = _by_block(q[:, :, run.start : run.stop], run.rows, run.rows)
        ahead = slice(run.first, run.first + (run.blocks - 1) * run.rows + run.keys)
        keys, values = (_by_block(x[:, :, ahead], run.keys, run.rows) for x in (k, v))
        output = scaled_dot_product_attention(
            rows, keys, values, attn_mask=run.mask, scale=scale, enable_gqa=grouped
        )
        parted = output.reshape(q.shape[0], run.blocks, *output.shape[1:])
        return parted.transpose(1, 2).reshape(*q.shape[:2], run.blocks * run.rows, v.shape[3])

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if not runs:
            return q.new_zeros(*q.shape[:3], v.shape[3])
        return torch.cat([attend(q, k, v, run) for run in runs], dim=2)

    return attention


def _by_block(x: Tensor, size: int, step: int) -> Tensor:
    """Overlapping blocks along the length as batch elements, (B * blocks, H, size, D): views where B is 1."""
    if x.shape[2] == size:  # one block, which may be of no key
        return x
    return x.unfold(2, size, step).permute(0, 2, 1, 4, 3).flatten(0, 1)


def _runs(problem: Problem, device: str) -> Iterator[Run]:
    """The blocks in order; neighbours with the same shape are one run, so there are few, and few masks."""
    import torch

    ((_, band),) = problem.mask.bands(problem.batch, problem.q_len, problem.kv_len)  # type: ignore[union-attr]  # a window
    low, high = band.low or 0, band.high or 0

    def shape(start: int) -> tuple[int, int, int]:
        stop = min(start + BLOCK, problem.q_len)
        first, last = band.span(start)[0], band.span(stop - 1)[1]
        return stop - start, max(last - first, 0), first - start

    for (rows, keys, shift), starts in groupby(range(0, problem.q_len, BLOCK), key=shape):
        start, *others = starts
        distance = torch.arange(keys, device=device) + shift - torch.arange(rows, device=device)[:, None]
        mask = (distance >= low) & (distance <= high)
        yield Run(start=start, rows=rows, first=start + shift, keys=keys, blocks=1 + len(others), mask=mask)
