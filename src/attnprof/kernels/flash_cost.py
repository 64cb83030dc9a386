"""What `triton_flash` does, by its own tiles: bytes that its loads and stores ask for, tiles that it computes."""

from __future__ import annotations

import msgspec

from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules.common import cost, has_backward, has_forward
from attnprof.core.schedules.formula import make_term, symbols_of
from attnprof.core.schedules.tiling import Visits, visits
from attnprof.core.traffic import ByteKind, Cost, Term, Tiles, Traffic
from attnprof.kernels.flash_config import Config, default_config

STATISTIC_BYTES = 4  # LSE and delta are float32
USEFUL_BACKWARD = (
    2.5  # a backward that recomputes the scores once; this one computes them twice, see executed
)


def triton_flash_cost(problem: Problem, config: Config | None = None) -> Cost:
    """Bytes and FLOPs of the kernels with `config`'s tiles (the default's where none is given)."""
    config = config or default_config(problem)
    ahead = visits(problem, config.m, config.n)
    back = visits(problem, config.backward_m, config.backward_n)
    terms: list[Term] = []
    if has_forward(problem):
        terms += _forward_terms(problem, config, ahead)
    if has_backward(problem):
        terms += _backward_terms(problem, config, back)
    statistics = 2 if has_backward(problem) else 1
    estimate = cost(
        problem,
        logical=Traffic(
            kind=ByteKind.LOGICAL,
            level="L2 to SM",
            policy="tiles, none shared by programs",
            terms=tuple(terms),
        ),
        executed_pairs=ahead.padded_pairs * problem.q_heads,
        workspace_bytes=statistics * STATISTIC_BYTES * problem.batch * problem.q_heads * problem.q_len,
        backward_factor=USEFUL_BACKWARD,
        tiles=Tiles(rows=config.m, cols=config.n),
    )
    return msgspec.structs.replace(estimate, executed_flops=_executed_flops(problem, ahead, back))


def _executed_flops(problem: Problem, ahead: Visits, back: Visits) -> int:
    """Two matmuls of each tile forward; four in the key pass and three in the query pass backward."""
    qk, v = problem.qk_dim, problem.v_dim
    forward = 2 * problem.q_heads * ahead.padded_pairs * (qk + v)
    backward = 2 * problem.q_heads * back.padded_pairs * (4 * qk + 3 * v)
    total = {Direction.FWD: forward, Direction.BWD: backward, Direction.FWD_BWD: forward + backward}
    return int(total[problem.direction])


def _forward_terms(problem: Problem, config: Config, run: Visits) -> list[Term]:
    at = symbols_of(problem, B_r=config.m, B_c=config.n, L=run.keys, R_0=run.rows_met)
    return [
        make_term(at, "Q", read="H_q*R_0*d*e"),
        make_term(at, "K", read="H_q*L*d*e"),
        make_term(at, "V", read="H_q*L*d_v*e"),
        make_term(at, "bands", read="16*B*H_q*cdiv(N_q, B_r)", note="q_len, kv_len, low, high: int32"),
        make_term(at, "O", write="B*H_q*N_q*d_v*e"),
        make_term(at, "LSE", write="4*B*H_q*N_q", note="float32"),
    ]


def _backward_terms(problem: Problem, config: Config, run: Visits) -> list[Term]:
    tiles = {"B_r": config.backward_m, "B_c": config.backward_n}
    at = symbols_of(problem, **tiles, L=run.keys, R=run.rows, R_0=run.rows_met, K_0=run.keys_met)
    return [
        make_term(at, "Q, backward", read="H_q*(R + R_0)*d*e"),
        make_term(at, "dO", read="H_q*(B*N_q + R + R_0)*d_v*e"),
        make_term(at, "O, backward", read="B*H_q*N_q*d_v*e"),
        make_term(at, "K, backward", read="(H_k*K_0 + H_q*L)*d*e"),
        make_term(at, "V, backward", read="(H_k*K_0 + H_q*L)*d_v*e"),
        make_term(at, "LSE, backward", read="4*H_q*(R + R_0)", note="float32"),
        make_term(at, "dLSE", read="4*B*H_q*N_q", note="float32"),
        make_term(at, "delta", read="4*H_q*(R + R_0)", write="4*B*H_q*N_q", note="float32"),
        make_term(at, "bands, backward", read="16*B*(H_k*cdiv(N_k, B_c) + H_q*cdiv(N_q, B_r))"),
        make_term(at, "dQ", write="B*H_q*N_q*d*e"),
        make_term(at, "dK", write="B*H_k*N_k*d*e"),
        make_term(at, "dV", write="B*H_k*N_k*d_v*e"),
    ]
