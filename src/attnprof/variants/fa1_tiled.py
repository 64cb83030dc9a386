"""FlashAttention-1's tiling loop in plain PyTorch: outer loop over keys, O and the row statistics bounce."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnprof.core.problem import Problem
from attnprof.core.schedules.flash import fa1_cost
from attnprof.core.schedules.tiling import check_tiles
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits, Setting, Variant

if TYPE_CHECKING:
    from torch import Tensor

    from attnprof.variants._tiled import Plan

ROWS = COLS = 64


def fa1_tiled_with(rows: int = ROWS, cols: int = COLS) -> Variant:
    """The variant with tiles of `rows` queries (B_r) by `cols` keys (B_c).

    Raises: InvalidInput for a tile size below 1.
    """
    check_tiles(B_r=rows, B_c=cols)

    def prepare(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # runs on the CPU only
        from attnprof.variants._tiled import tiled_kernel

        return tiled_kernel(problem, rows, cols, outer_keys)

    def cost(problem: Problem) -> Cost:
        return fa1_cost(problem, rows=rows, cols=cols)

    default = (rows, cols) == (ROWS, COLS)
    return Variant(
        name="fa1_tiled" if default else f"fa1_tiled_{rows}x{cols}",
        title=f"FlashAttention-1 loop in plain PyTorch, tiles {rows}x{cols}",
        prepare=prepare,
        cost=cost,
        limits=Limits(devices=frozenset({"cpu"})),
        note="The tiling loop only: outer loop over keys, so that O is read and written once per key tile.",
    )


def outer_keys(q: Tensor, k: Tensor, v: Tensor, plan: Plan, keep_lse: bool) -> tuple[Tensor, Tensor]:
    """A tile of K and V stays, tiles of queries pass with their output, row maximum and row sum; (o, lse)."""
    import torch

    out = q.new_empty((*q.shape[:3], v.shape[3]))
    top = torch.empty(q.shape[:3], dtype=plan.dtype)
    total = torch.empty(q.shape[:3], dtype=plan.dtype)
    for b, h, kv, head in plan.heads():
        met: set[int] = set()
        for first, last in plan.tiles(head.band.kv_len, plan.cols):
            keys = k[b, kv, first:last].to(plan.dtype), v[b, kv, first:last].to(plan.dtype)
            for start, stop in plan.tiles(q.shape[2], plan.rows):
                if first in head.keys(start, stop, plan.cols):
                    rows = (b, h, slice(start, stop))
                    hidden = head.hidden((start, stop), (first, last))
                    _pass(q[rows], *keys, out[rows], top[rows], total[rows], hidden, plan, start in met)
                    met.add(start)
        _zero_unmet(out[b, h], top[b, h], total[b, h], met, plan)
    return out, _lse(top, total) if keep_lse else top.new_empty(0)


def _pass(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, top: Tensor, total: Tensor, hidden: Tensor | None, plan: Plan,
    again: bool,
) -> None:  # fmt: skip
    """One tile of queries meets one tile of keys; `again` reads back what the last pass left."""
    import torch

    weights = (q.to(k.dtype) * plan.problem.effective_scale) @ k.T
    if hidden is not None:
        weights.masked_fill_(hidden, float("-inf"))
    new_top = weights.amax(dim=-1)
    new_top = torch.maximum(top, new_top) if again else new_top
    finite = new_top.masked_fill(new_top == float("-inf"), 0.0)
    weights.sub_(finite[:, None]).exp_()
    new_total, new_out = weights.sum(dim=-1), weights @ v
    if again:
        kept = total * (top - finite).exp_()
        new_total.add_(kept)
        new_out.add_(out.to(k.dtype).mul_(kept[:, None]))
    new_out.div_(new_total.masked_fill(new_total == 0, 1.0)[:, None])
    out.copy_(new_out)
    top.copy_(new_top)
    total.copy_(new_total)


def _zero_unmet(out: Tensor, top: Tensor, total: Tensor, met: set[int], plan: Plan) -> None:
    for start, stop in plan.tiles(len(out), plan.rows):
        if start not in met:
            out[start:stop] = 0.0
            top[start:stop] = float("-inf")
            total[start:stop] = 0.0


def _lse(top: Tensor, total: Tensor) -> Tensor:
    return (top + total.log()).masked_fill_(total == 0, float("inf"))


fa1_tiled = fa1_tiled_with()
