"""FlashAttention-2's tiling loop in plain PyTorch: slow, readable, and moves exactly the bytes of the textbook form."""

from __future__ import annotations

from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules.flash import fa2_cost
from attnprof.core.schedules.tiling import check_tiles
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits, Setting, Variant

ROWS = COLS = 64


def flash_tiled_with(rows: int = ROWS, cols: int = COLS) -> Variant:
    """The variant with tiles of `rows` queries (B_r) by `cols` keys (B_c).

    Raises: InvalidInput for a tile size below 1.
    """
    check_tiles(B_r=rows, B_c=cols)

    def prepare(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # runs on the CPU only
        from attnprof.variants._tiled import outer_queries, tiled_kernel

        return tiled_kernel(problem, rows, cols, outer_queries)

    def cost(problem: Problem) -> Cost:
        return fa2_cost(problem, rows=rows, cols=cols, lse=problem.direction is not Direction.FWD)

    default = (rows, cols) == (ROWS, COLS)
    return Variant(
        name="flash_tiled" if default else f"flash_tiled_{rows}x{cols}",
        title=f"FlashAttention-2 loop in plain PyTorch, tiles {rows}x{cols}",
        prepare=prepare,
        cost=cost,
        limits=Limits(devices=frozenset({"cpu"})),
        note="The tiling loop only: outer loop over queries; its bytes are the point, not its speed.",
    )


flash_tiled = flash_tiled_with()
