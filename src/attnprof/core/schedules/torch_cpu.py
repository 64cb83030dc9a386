"""PyTorch's CPU flash kernel: its tile sizes, its scratch per thread.

Source: aten/src/ATen/native/cpu/FlashAttentionKernel.cpp of PyTorch 2.13: (256, 512) from 768 queries,
(64, 512) from 192, (32, 512) below; scratch per thread: one fp32 score tile, output tile and two row vectors.
"""

from __future__ import annotations

from attnprof.core.mask import Align, Causal, Full
from attnprof.core.problem import BACKWARD_RECOMPUTING_P, Problem
from attnprof.core.schedules.common import cost, has_backward, has_forward, logical
from attnprof.core.schedules.flash import LSE
from attnprof.core.schedules.formula import Number, evaluate, make_term, symbols_of
from attnprof.core.schedules.tiling import visits
from attnprof.core.traffic import Cost, Term, Tiles

KV_SPLIT = 512
# Per thread a score tile, row maximum and sum, and an output tile; types below 32 bit add a tile of their own.
_FORWARD_SCRATCH = "t*B_r*(B_c + d_v + 2)*c"
# A copy of dO; per thread the tiles of P and dS; one row vector.
_BACKWARD_SCRATCH = "B*H_q*N_q*d_v*e + 2*t*B_r*B_c*c + B_r*c"
_Q_SPLITS = ((768, 256), (192, 64), (0, 32))


def torch_cpu_tiles(problem: Problem) -> Tiles:
    """(q_split, kv_split) that the kernel takes; ragged tiles are computed at their real size.

    >>> torch_cpu_tiles(Problem(q_len=1024)).rows
    256
    """
    rows = next(split for least, split in _Q_SPLITS if problem.q_len >= least)
    return Tiles(
        rows=max(min(rows, problem.q_len), 1), cols=max(min(KV_SPLIT, problem.kv_len), 1), padded=False
    )


def torch_cpu_flash_cost(problem: Problem, *, threads: int = 2) -> Cost:
    """PyTorch's CPU flash kernel; `threads` sets its scratch. Only `is_causal` makes it skip tiles."""
    tiles = torch_cpu_tiles(problem)
    square = problem.q_len == problem.kv_len
    skips = isinstance(problem.mask, Causal) and (problem.mask.align is Align.TOP_LEFT or square)
    seen = visits(problem, tiles.rows, tiles.cols, skip=skips)
    masked = not isinstance(problem.mask, Full) and not skips
    at = symbols_of(
        problem,
        B_r=tiles.rows,
        B_c=tiles.cols,
        L=seen.keys,
        R=seen.rows,
        t=threads,
        c=max(4, problem.dtype.bits // 8),
    )
    terms = _forward(at, masked) if has_forward(problem) else []
    if has_backward(problem):
        terms += _backward(at)
    return cost(
        problem,
        logical=logical("cache", f"tiles {tiles.rows}x{tiles.cols}, outer loop over queries", terms),
        executed_pairs=problem.q_heads * seen.pairs,
        workspace_bytes=_workspace(problem, at, masked),
        backward_factor=BACKWARD_RECOMPUTING_P,
        tiles=tiles,
    )


def _forward(at: dict[str, Number], masked: bool) -> list[Term]:
    terms = [
        make_term(at, "Q", read="B*H_q*N_q*d*e"),
        make_term(at, "K", read="H_q*L*d*e"),
        make_term(at, "V", read="H_q*L*d_v*e"),
        make_term(at, "O", write="B*H_q*N_q*d_v*e"),
        make_term(at, "LSE", write=LSE),
    ]
    if masked:
        terms.append(make_term(at, "mask", read="B*H_q*N_q*N_k*e"))
    return terms


def _backward(at: dict[str, Number]) -> list[Term]:
    """Outer loop over queries: dQ stays, dK and dV are read and written per query tile."""
    return [
        make_term(at, "O", read="B*H_q*N_q*d_v*e"),
        make_term(at, "dO", read="B*H_q*N_q*d_v*e"),
        make_term(at, "LSE (backward)", read=LSE),
        make_term(at, "Q (backward)", read="B*H_q*N_q*d*e"),
        make_term(at, "K (backward)", read="H_q*L*d*e"),
        make_term(at, "V (backward)", read="H_q*L*d_v*e"),
        make_term(at, "dQ", write="B*H_q*N_q*d*e"),
        make_term(at, "dK", read="H_q*L*d*e", write="H_q*L*d*e + B*H_k*N_k*d*e"),
        make_term(at, "dV", read="H_q*L*d_v*e", write="H_q*L*d_v*e + B*H_k*N_k*d_v*e"),
    ]


def _workspace(problem: Problem, at: dict[str, Number], masked: bool) -> int:
    """Peak above the results: LSE and a mask copied to the element type stay, the two passes' scratch does not.

    The forward's scratch is gone when the gradients are allocated, so a training call needs the larger of both.
    """
    scratch = 0
    if has_backward(problem):
        scratch = evaluate(_BACKWARD_SCRATCH, at) + (
            evaluate("2*t*B_r*B_c*e", at) if at["e"] != at["c"] else 0
        )
    if not has_forward(problem):
        return scratch
    forward = evaluate(_FORWARD_SCRATCH, at) + (evaluate("t*B_r*B_c*e", at) if at["e"] != at["c"] else 0)
    gradients = problem.compulsory_write_bytes - problem.o_bytes
    kept = evaluate(LSE, at) + (evaluate("N_q*N_k*e", at) if masked else 0)
    return kept + max(scratch, forward - gradients)
