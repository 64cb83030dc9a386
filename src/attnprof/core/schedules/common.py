"""What every schedule shares: the compulsory table and the assembly of a `Cost`."""

from __future__ import annotations

from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules.formula import Number, make_term, symbols_of
from attnprof.core.traffic import ByteKind, Cost, Term, Tiles, Traffic


def compulsory(problem: Problem) -> Traffic:
    """Each input read once (of K and V the visible rows), each result written once."""
    at = symbols_of(problem, W=problem.counted.visible_keys, A=problem.mask_bytes)
    backward = problem.direction is not Direction.FWD
    terms = [
        make_term(at, "Q", read="B*H_q*N_q*d*e"),
        make_term(at, "K", read="W*H_k*d*e"),
        make_term(at, "V", read="W*H_k*d_v*e"),
    ]
    if problem.mask_bytes:
        terms.append(make_term(at, "mask", read="A"))
    if problem.direction is not Direction.BWD:
        terms.append(make_term(at, "O", write="B*H_q*N_q*d_v*e"))
    if backward:
        terms += [
            make_term(at, "dO", read="B*H_q*N_q*d_v*e"),
            make_term(at, "dQ", write="B*H_q*N_q*d*e"),
            make_term(at, "dK", write="B*H_k*N_k*d*e"),
            make_term(at, "dV", write="B*H_k*N_k*d_v*e"),
        ]
    return Traffic(kind=ByteKind.COMPULSORY, level="any", policy="each storage once", terms=tuple(terms))


def logical(level: str, policy: str, terms: list[Term]) -> Traffic:
    """A logical table; terms without bytes are left out."""
    kept = tuple(t for t in terms if t.read_formula or t.write_formula)
    return Traffic(kind=ByteKind.LOGICAL, level=level, policy=policy, terms=kept)


def cost(
    problem: Problem,
    *,
    logical: Traffic,
    executed_pairs: Number,
    workspace_bytes: int,
    backward_factor: float,
    op_boundary: Traffic | None = None,
    tiles: Tiles | None = None,
) -> Cost:
    """Assemble a `Cost`; `executed_pairs` is summed over batch and query heads."""
    forward = problem.direction is Direction.FWD
    dims = problem.qk_dim + problem.v_dim
    passes = {Direction.FWD: 1.0, Direction.BWD: backward_factor, Direction.FWD_BWD: 1 + backward_factor}
    return Cost(
        useful_flops=problem.flops(backward_factor),
        executed_flops=round(2 * executed_pairs * dims * passes[problem.direction]),
        exp_ops=round(executed_pairs),
        backward_factor=None if forward else backward_factor,
        compulsory=compulsory(problem),
        logical=logical,
        op_boundary=op_boundary,
        output_bytes=problem.compulsory_write_bytes,
        workspace_bytes=workspace_bytes,
        tiles=tiles,
    )


def has_forward(problem: Problem) -> bool:
    """Whether the forward pass is part of the call."""
    return problem.direction is not Direction.BWD


def has_backward(problem: Problem) -> bool:
    """Whether the backward pass is part of the call."""
    return problem.direction is not Direction.FWD
