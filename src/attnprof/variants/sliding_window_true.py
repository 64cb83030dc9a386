"""A window that is really computed as one: each block of queries meets only the keys that it sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnprof.core.mask import UNLIMITED, Window
from attnprof.core.problem import Problem
from attnprof.core.schedules import true_window_cost
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants.sliding_w128 import windowed

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 256  # queries per call: the overlap of one block's keys with the next one's is a window, so wider is less work


@dataclass(frozen=True, kw_only=True)
class Block:
    """Queries [start, stop), the keys [first, last) that they see, and which pairs of them are visible."""

    start: int
    stop: int
    first: int
    last: int
    mask: Tensor


def _asked_or_windowed(problem: Problem) -> Problem:
    return problem if isinstance(problem.mask, Window) else windowed(problem)


def _needs_both_limits(problem: Problem) -> str | None:
    if isinstance(problem.mask, Window) and UNLIMITED in (problem.mask.left, problem.mask.right):
        return f"mask {problem.mask} has no limit on one side: its cost is that of a full matrix, use flash"
    return None


def _cost(problem: Problem) -> Cost:
    return true_window_cost(problem, rows=BLOCK, cols=1)


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

    blocks = tuple(_blocks(problem, setting.device))
    scale, grouped = problem.effective_scale, problem.group > 1

    def attend(q: Tensor, k: Tensor, v: Tensor, block: Block) -> Tensor:
        keys = slice(block.first, block.last)
        rows = q[:, :, block.start : block.stop]
        return scaled_dot_product_attention(
            rows, k[:, :, keys], v[:, :, keys], attn_mask=block.mask, scale=scale, enable_gqa=grouped
        )

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
            parts = [attend(q, k, v, block) for block in blocks]
            return torch.cat(parts, dim=2) if parts else q.new_zeros(*q.shape[:3], v.shape[3])
        output = q.new_empty(*q.shape[:3], v.shape[3])
        for block in blocks:
            output[:, :, block.start : block.stop] = attend(q, k, v, block)
        return output

    return attention


def _blocks(problem: Problem, device: str) -> Iterator[Block]:
    """Blocks of queries in order; interior ones share one mask, so masks take O(W) memory in all."""
    import torch

    ((_, band),) = problem.mask.bands(problem.batch, problem.q_len, problem.kv_len)  # type: ignore[union-attr]  # a window
    low, high = band.low or 0, band.high or 0
    masks: dict[tuple[int, int, int], Tensor] = {}
    for start in range(0, problem.q_len, BLOCK):
        stop = min(start + BLOCK, problem.q_len)
        first, last = band.span(start)[0], max(band.span(start)[0], band.span(stop - 1)[1])
        shape = (stop - start, last - first, first - start)
        if shape not in masks:
            distance = (
                torch.arange(first, last, device=device) - torch.arange(start, stop, device=device)[:, None]
            )
            masks[shape] = (distance >= low) & (distance <= high)
        yield Block(start=start, stop=stop, first=first, last=last, mask=masks[shape])
