"""Block-sparse and chunked schedules: FlexAttention's block mask, and chunks of eager operators."""

from __future__ import annotations

from attnprof.core.mask import Full
from attnprof.core.problem import BACKWARD_RECOMPUTING_P, Problem
from attnprof.core.schedules.common import cost, has_backward, has_forward, logical
from attnprof.core.schedules.flash import LSE
from attnprof.core.schedules.formula import Number, cdiv, evaluate, make_term, symbols_of
from attnprof.core.schedules.tiling import block_visits, check_tiles, visits
from attnprof.core.traffic import Cost, Term, Tiles

FLEX_BLOCK = 128


def flex_cost(problem: Problem, *, rows: int = FLEX_BLOCK, cols: int = FLEX_BLOCK) -> Cost:
    """FlexAttention: blocks in which the mask shows a pair are computed whole; the block lists are int32.

    >>> from attnprof.core.mask import Causal
    >>> flex_cost(Problem(q_len=1024, mask=Causal())).exp_ops
    589824
    """
    seen = block_visits(problem, rows, cols)
    listed = cdiv(problem.q_len, rows) * (cdiv(problem.kv_len, cols) + 1)
    at = symbols_of(problem, B_r=rows, B_c=cols, L=seen.keys, R=seen.rows, n_b=listed)
    terms = _forward(at) if has_forward(problem) else []
    if has_backward(problem):
        terms += _backward(at)
    parts = [LSE, "B*H_q*N_q*4" if has_backward(problem) else "0"]
    return cost(
        problem,
        logical=logical("l2", f"blocks {rows}x{cols}, outer loop over queries", terms),
        executed_pairs=problem.q_heads * seen.padded_pairs,
        workspace_bytes=sum(evaluate(part, at) for part in parts),
        backward_factor=BACKWARD_RECOMPUTING_P,
        tiles=Tiles(rows=rows, cols=cols),
    )


def _forward(at: dict[str, Number]) -> list[Term]:
    return [
        make_term(at, "Q", read="B*H_q*N_q*d*e"),
        make_term(at, "K", read="H_q*L*d*e"),
        make_term(at, "V", read="H_q*L*d_v*e"),
        make_term(at, "block lists", read="n_b*4"),
        make_term(at, "O", write="B*H_q*N_q*d_v*e"),
        make_term(at, "LSE", write=LSE),
    ]


def _backward(at: dict[str, Number]) -> list[Term]:
    """Two passes, over queries for dQ and over keys for dK and dV: nothing is summed through memory."""
    return [
        make_term(at, "O", read="B*H_q*N_q*d_v*e", note="for D"),
        make_term(at, "dO", read="2*B*H_q*N_q*d_v*e + H_q*R*d_v*e"),
        make_term(at, "Q (backward)", read="B*H_q*N_q*d*e + H_q*R*d*e"),
        make_term(at, "K (backward)", read="H_q*L*d*e + B*H_q*N_k*d*e"),
        make_term(at, "V (backward)", read="H_q*L*d_v*e + B*H_q*N_k*d_v*e"),
        make_term(at, "LSE, D (backward)", read="2*(B*H_q*N_q + H_q*R)*4", write="B*H_q*N_q*4"),
        make_term(at, "dQ", write="B*H_q*N_q*d*e"),
        make_term(at, "dK", write="B*H_k*N_k*d*e"),
        make_term(at, "dV", write="B*H_k*N_k*d_v*e"),
    ]


def chunked_cost(problem: Problem, *, rows: int = 128, cols: int | None = None) -> Cost:
    """Chunks of queries (and of keys) by eager operators (Rabe and Staats, arXiv 2112.05682).

    Saves memory, not traffic: every score chunk is still written and read by QK^T, scale, mask and softmax.
    `cols` None takes all keys at once. The backward is an estimate. Raises: InvalidInput for a chunk below 1.
    """
    width = cols or max(problem.kv_len, 1)
    check_tiles(rows=rows, cols=width)
    seen = visits(problem, rows, width, skip=False)
    passes = 3 if isinstance(problem.mask, Full) else 4
    at = symbols_of(problem, B_r=min(rows, max(problem.q_len, 1)), B_c=width, L=seen.keys, R=seen.rows)
    terms = _chunked_forward(at, passes == 4) if has_forward(problem) else []
    if has_backward(problem):
        terms += _chunked_backward(at, passes)
    return cost(
        problem,
        logical=logical("dram", f"chunks {rows}x{width}, no cache", terms),
        executed_pairs=problem.batch * problem.q_heads * problem.q_len * problem.kv_len,
        workspace_bytes=evaluate("3*B*H_q*B_r*B_c*e + B*H_q*B_r*d_v*e*cdiv(N_k, B_c)", at),
        backward_factor=BACKWARD_RECOMPUTING_P,
        tiles=Tiles(rows=rows, cols=width, padded=False),
    )


def _chunked_forward(at: dict[str, Number], masked: bool) -> list[Term]:
    """Scores are written by QK^T, scale, (mask), subtraction, exp; read by those after QK^T, maximum, PV and sum.

    The values of each chunk are written, stacked, weighted and summed; the sum is divided and joined to O.
    """
    score, part, out = "B*H_q*N_q*N_k*e", "H_q*R*d_v*e", "B*H_q*N_q*d_v*e"
    writes = 4 + masked
    return [
        make_term(at, "Q", read="H_q*R*d*e"),
        make_term(at, "K", read="H_q*L*d*e"),
        make_term(at, "V", read="H_q*L*d_v*e"),
        make_term(at, "S, P", read=f"{writes + 2}*{score}", write=f"{writes}*{score}"),
        make_term(at, "mask", read="B*H_q*N_q*N_k" if masked else ""),
        make_term(at, "O by chunk", read=f"3*{part}", write=f"3*{part}"),
        make_term(at, "O", read=f"2*{out}", write=f"3*{out}"),
    ]


def _chunked_backward(at: dict[str, Number], passes: int) -> list[Term]:
    """Scores of a chunk of queries are computed again, then its gradients; dK and dV sum over chunks."""
    score = "B*H_q*N_q*N_k*e"
    return [
        make_term(at, "Q (backward)", read="2*B*H_q*N_q*d*e"),
        make_term(at, "K (backward)", read="2*H_q*L*d*e"),
        make_term(at, "V (backward)", read="H_q*L*d_v*e"),
        make_term(at, "S (backward)", read=f"{passes - 1}*{score}", write=f"{passes - 1}*{score}"),
        make_term(at, "P (backward)", read=f"2*{score}", write=score),
        make_term(at, "dO", read="2*B*H_q*N_q*d_v*e"),
        make_term(at, "dP, dS", read=f"{passes + 1}*{score}", write=f"{passes}*{score}"),
        make_term(at, "dQ", write="B*H_q*N_q*d*e"),
        make_term(at, "dK", read="H_q*L*d*e", write="H_q*L*d*e + B*H_k*N_k*d*e"),
        make_term(at, "dV", read="H_q*L*d_v*e", write="H_q*L*d_v*e + B*H_k*N_k*d_v*e"),
    ]
