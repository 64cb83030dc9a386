"""What every schedule shares: the compulsory table and the assembly of a `Cost`."""

from __future__ import annotations

from attnprof.core.problem import Direction, Problem
from attnprof.core.traffic import ByteKind, Cost, Term, Tiles, Traffic


def compulsory(problem: Problem) -> Traffic:
    """Each input read once, each result written once."""
    terms = (
        Term(tensor="inputs", read_bytes=problem.compulsory_read_bytes),
        Term(tensor="outputs", write_bytes=problem.compulsory_write_bytes),
    )
    return Traffic(kind=ByteKind.COMPULSORY, level="any", policy="each storage once", terms=terms)


def cost(
    problem: Problem,
    *,
    logical: Traffic,
    executed_pairs: int,
    workspace_bytes: int,
    backward_factor: float,
    op_boundary: Traffic | None = None,
    tiles: Tiles | None = None,
) -> Cost:
    """Assemble a `Cost`; `executed_pairs` is summed over batch and query heads."""
    share = executed_pairs / problem.total_pairs if problem.total_pairs else 0
    useful = problem.flops(backward_factor)
    forward = problem.direction is Direction.FWD
    return Cost(
        useful_flops=useful,
        executed_flops=round(useful * share) if share else 0,
        exp_ops=executed_pairs,
        backward_factor=None if forward else backward_factor,
        compulsory=compulsory(problem),
        logical=logical,
        op_boundary=op_boundary,
        output_bytes=problem.compulsory_write_bytes,
        workspace_bytes=workspace_bytes,
        tiles=tiles,
    )
