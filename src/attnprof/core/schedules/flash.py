"""Tiled (flash) attention: the score matrix stays on the chip; K/V or Q are streamed again per tile.

Source: loop orders of FlashAttention (arXiv 2205.14135, Algorithms 1 and 4) and FlashAttention-2 (2307.08691,
Algorithms 1 and 2).
"""

from __future__ import annotations

from fractions import Fraction

from attnprof.core.mask import Dense, Full
from attnprof.core.problem import BACKWARD_RECOMPUTING_P, Problem
from attnprof.core.schedules.common import cost, has_backward, has_forward, logical
from attnprof.core.schedules.formula import Number, cdiv, evaluate, make_term, symbols_of
from attnprof.core.schedules.tiling import Visits, check_tiles, visits
from attnprof.core.traffic import Cost, Term, Tiles, Traffic

LEVEL = "l2"  # what the tiles of a core ask of the next level of memory
LSE = "B*H_q*N_q*4"


def fa2_cost(
    problem: Problem,
    *,
    rows: int = 64,
    cols: int = 64,
    lse: bool = True,
    expanded: bool = False,
    packed: bool = False,
) -> Cost:
    """FlashAttention-2: outer loop over queries; Q, O, LSE once, K and V per query tile that sees them.

    `expanded`: K and V are first copied out to the query heads. `packed`: a tile holds the query heads of one
    KV head together, so that their K/V are streamed once (full masks; with another mask tiles are by head).
    Raises: InvalidInput for a tile size below 1.
    """
    seen = visits(problem, rows, cols)
    at = _symbols(problem, seen, rows, cols)
    terms: list[Term] = []
    if expanded and problem.group > 1:
        terms += _expansion(at)
    if has_forward(problem):
        terms += _fa2_forward(problem, at, lse, packed and not expanded)
    if has_backward(problem):
        terms += _fa2_backward(at)
    statistics = lse or has_backward(problem)
    order = f"tiles {rows}x{cols}, outer loop over queries"
    workspace = _workspace(problem, at, lse=statistics, expanded=expanded)
    return _assemble(problem, logical(LEVEL, order, terms), seen, workspace, Tiles(rows=rows, cols=cols))


def fa1_cost(
    problem: Problem, *, rows: int = 64, cols: int = 64, first_pass: bool = False, dq_fp32: bool = True
) -> Cost:
    """FlashAttention-1: outer loop over keys; K, V once; Q read and O, row max and sum bounced per key tile.

    `first_pass` follows Algorithm 1 to the letter: O, maximum and sum are first written as zeros, and read
    back in the first pass too; otherwise the first pass of a row reads nothing back. Kernels sum dQ in fp32;
    without `dq_fp32` it is in the element type, as Algorithm 4 has it.
    Raises: InvalidInput for a tile size below 1.
    """
    seen = visits(problem, rows, cols)
    at = _symbols(problem, seen, rows, cols)
    terms = _fa1_forward(problem, at, first_pass) if has_forward(problem) else []
    if has_backward(problem):
        terms += _fa2_backward(at, dq_fp32=dq_fp32)
    order = f"tiles {rows}x{cols}, outer loop over keys"
    workspace = _workspace(problem, at, lse=True, expanded=False)
    return _assemble(problem, logical(LEVEL, order, terms), seen, workspace, Tiles(rows=rows, cols=cols))


def split_kv_cost(
    problem: Problem, *, splits: int, rows: int = 64, cols: int = 128, packed: bool = True
) -> Cost:
    """Flash-Decoding: keys in `splits` parts, each with a partial O and LSE in fp32, then one combination.

    Raises: InvalidInput for a tile size or a number of parts below 1.
    """
    check_tiles(splits=splits)
    seen = visits(problem, rows, cols)
    at = _symbols(problem, seen, rows, cols) | {"s": splits}
    terms = _fa2_forward(problem, at, True, packed)
    if splits > 1:
        partial = "s*B*H_q*N_q*(d_v + 1)*4"
        terms = [
            make_term(at, "Q", read="s*B*H_q*N_q*d*e"), *terms[1:],
            make_term(at, "partial O, LSE", read=partial, write=partial),
        ]  # fmt: skip
    workspace = evaluate(LSE, at) + (evaluate("s*B*H_q*N_q*(d_v + 1)*4", at) if splits > 1 else 0)
    table = logical(LEVEL, f"tiles {rows}x{cols}, {splits} parts", terms)
    return _assemble(problem, table, seen, workspace, Tiles(rows=rows, cols=cols))


def decode_cost(problem: Problem, *, cols: int = 128) -> Cost:
    """One pass over the cache for few queries: K and V once per KV head, all its query heads in one tile."""
    return fa2_cost(problem, rows=max(problem.q_len * problem.group, 1), cols=cols, packed=True)


def true_window_cost(problem: Problem, *, rows: int = 64, cols: int = 64) -> Cost:
    """A kernel that computes only the tiles a window touches (`naive_cost` is the masked full matrix)."""
    return fa2_cost(problem, rows=rows, cols=cols)


def _symbols(problem: Problem, seen: Visits, rows: int, cols: int) -> dict[str, Number]:
    return symbols_of(
        problem,
        B_r=rows,
        B_c=cols,
        L=seen.keys,
        R=seen.rows,
        R_0=seen.rows_met,
        W=seen.keys_met,
        A=problem.mask_bytes,
    )


def streamed_keys(problem: Problem, packed: bool) -> str:
    """Formula of the keys that all heads stream: exact text for a full mask, the counted L otherwise."""
    if isinstance(problem.mask, Full | Dense):
        return "H_k*B*cdiv(g*N_q, B_r)*N_k" if packed else "H_q*B*cdiv(N_q, B_r)*N_k"
    return "H_q*L"


def _fa2_forward(problem: Problem, at: dict[str, Number], lse: bool, packed: bool) -> list[Term]:
    keys = streamed_keys(problem, packed)
    terms = [
        make_term(at, "Q", read="B*H_q*N_q*d*e"),
        make_term(at, "K", read=f"{keys}*d*e"),
        make_term(at, "V", read=f"{keys}*d_v*e"),
        make_term(at, "O", write="B*H_q*N_q*d_v*e"),
    ]
    if problem.mask_bytes:
        terms.append(make_term(at, "mask", read="B*H_q*N_q*N_k"))
    if lse:
        terms.append(make_term(at, "LSE", write=LSE))
    return terms


def _fa1_forward(problem: Problem, at: dict[str, Number], first_pass: bool) -> list[Term]:
    """Rows that no key tile meets are read once and written once, as zeros."""
    full = isinstance(problem.mask, Full)
    visited = "B*cdiv(N_k, B_c)*N_q" if full else "R"
    met = "B*N_q" if full and at["N_k"] else "R_0"  # R_0 = B*N_q where every row meets a key
    back = visited if first_pass else f"({visited} - {met})"
    asked = visited if met == "B*N_q" else f"({visited} + B*N_q - {met})"
    out = visited if first_pass else asked
    terms = [
        make_term(at, "Q", read=f"H_q*{asked}*d*e"),
        make_term(at, "K", read="B*H_q*N_k*d*e" if full else "H_q*W*d*e"),
        make_term(at, "V", read="B*H_q*N_k*d_v*e" if full else "H_q*W*d_v*e"),
        make_term(at, "O", read=f"H_q*{back}*d_v*e", write=f"H_q*{out}*d_v*e"),
        make_term(at, "row max, sum", read=f"H_q*{back}*8", write=f"H_q*{out}*8"),
    ]
    if first_pass:
        terms.append(make_term(at, "O, max, sum set to 0", write="B*H_q*N_q*(d_v*e + 8)"))
    return terms


def _fa2_backward(at: dict[str, Number], *, dq_fp32: bool = True) -> list[Term]:
    """Outer loop over keys; P recomputed from LSE; dQ summed tile by tile; D = rowsum(dO * O) first."""
    grouped = at["g"] != 1
    summed = [
        make_term(at, "dQ in fp32", read="H_q*R*d*4 + B*H_q*N_q*d*4", write="B*H_q*N_q*d*4 + H_q*R*d*4"),
        make_term(at, "dQ", write="B*H_q*N_q*d*e"),
    ]
    if not dq_fp32:
        summed = [make_term(at, "dQ", read="H_q*(R - R_0)*d*e", write="H_q*(R + B*N_q - R_0)*d*e")]
    terms = [
        make_term(at, "O", read="B*H_q*N_q*d_v*e", note="for D"),
        make_term(at, "dO", read="B*H_q*N_q*d_v*e + H_q*R*d_v*e"),
        make_term(at, "D", read="H_q*R*4", write="B*H_q*N_q*4"),
        make_term(at, "LSE (backward)", read="H_q*R*4"),
        make_term(at, "Q (backward)", read="H_q*R*d*e"),
        make_term(at, "K (backward)", read="B*H_q*N_k*d*e"),
        make_term(at, "V (backward)", read="B*H_q*N_k*d_v*e"),
        *summed,
    ]
    if grouped:
        expanded = "B*H_q*N_k*(d + d_v)*e"
        terms.append(make_term(at, "dK, dV by query head", read=expanded, write=expanded))
    return [*terms, make_term(at, "dK", write="B*H_k*N_k*d*e"), make_term(at, "dV", write="B*H_k*N_k*d_v*e")]


def _expansion(at: dict[str, Number]) -> list[Term]:
    return [
        make_term(at, "K expanded", read="B*H_k*N_k*d*e", write="B*H_q*N_k*d*e"),
        make_term(at, "V expanded", read="B*H_k*N_k*d_v*e", write="B*H_q*N_k*d_v*e"),
    ]


def _workspace(problem: Problem, at: dict[str, Number], *, lse: bool, expanded: bool) -> int:
    parts = [LSE if lse else "0"]
    if expanded and problem.group > 1:
        parts.append("B*H_q*N_k*(d + d_v)*e")
    if has_backward(problem):
        parts += ["B*H_q*N_q*4", "B*H_q*N_q*d*4", "B*H_q*N_k*(d + d_v)*e" if problem.group > 1 else "0"]
    return sum(evaluate(part, at) for part in parts)


def _assemble(problem: Problem, table: Traffic, seen: Visits, workspace: int, tiles: Tiles) -> Cost:
    return cost(
        problem,
        logical=table,
        executed_pairs=problem.q_heads * seen.padded_pairs,
        workspace_bytes=workspace,
        backward_factor=BACKWARD_RECOMPUTING_P,
        tiles=tiles,
    )


def tile_capacity_bytes(problem: Problem, rows: int, cols: int) -> int:
    """On-chip bytes from which the form applies: Q, K, V tiles; O, S, P tiles and row statistics in fp32."""
    e = Fraction(problem.dtype.bits, 8)
    tiles = (rows * problem.qk_dim + cols * (problem.qk_dim + problem.v_dim)) * e
    return cdiv(tiles + 4 * (rows * problem.v_dim + 2 * rows * cols + 2 * rows), 1)
