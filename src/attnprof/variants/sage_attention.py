"""SageAttention: 8-bit QK^T, its quantisation inside the timed call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from attnprof.core.mask import Causal, Full
from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules import fa2_cost
from attnprof.core.schedules.formula import make_term, symbols_of
from attnprof.core.schedules.tiling import visits
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants._external import CUDA, needs
from attnprof.variants._sdpa import HALF

if TYPE_CHECKING:
    from torch import Tensor

ROWS, COLS = 128, 64


def sage_cost(problem: Problem) -> Cost:
    """FlashAttention-2's order on 8-bit Q and K, after one pass that quantises them; V stays in 16 bits."""
    seen = visits(problem, ROWS, COLS)
    at = symbols_of(problem, B_r=ROWS, B_c=COLS, L=seen.keys)
    terms = (
        make_term(at, "Q quantised", read="B*H_q*N_q*d*e", write="B*H_q*N_q*d"),
        make_term(at, "K quantised", read="B*H_k*N_k*d*e", write="B*H_k*N_k*d"),
        make_term(at, "scales", write="4*B*(H_q*cdiv(N_q, B_r) + H_k*cdiv(N_k, B_c))"),
        make_term(at, "Q", read="B*H_q*N_q*d"),
        make_term(at, "K", read="H_q*L*d"),
        make_term(at, "V", read="H_q*L*d_v*e"),
        make_term(at, "O", write="B*H_q*N_q*d_v*e"),
    )
    base = fa2_cost(problem, rows=ROWS, cols=COLS, lse=False)
    quantised = (
        problem.batch * problem.qk_dim * (problem.q_heads * problem.q_len + problem.kv_heads * problem.kv_len)
    )
    table = msgspec.structs.replace(base.logical, terms=terms, policy=f"tiles {ROWS}x{COLS}, 8-bit Q and K")
    return msgspec.structs.replace(base, logical=table, workspace_bytes=quantised)


def _dims(problem: Problem) -> str | None:
    if isinstance(problem.mask, Causal) and problem.q_len != problem.kv_len:
        return f"SageAttention is causal on equal lengths only, not {problem.q_len} x {problem.kv_len}"
    if problem.qk_dim not in (64, 96, 128):
        return f"head dim {problem.qk_dim}: SageAttention takes 64, 96 or 128"
    return None


@variant(
    name="sage_attention",
    title="SageAttention, 8-bit QK^T, quantisation included (package sageattention)",
    cost=sage_cost,
    limits=Limits(
        devices=CUDA,
        dtypes=HALF,
        masks=(Full, Causal),
        directions=frozenset({Direction.FWD}),
        unequal_dims=False,
        extra=_dims,
    ),
    needs=needs("sageattention"),
    install="pip install sageattention",
    compiles=True,
)
def sage_attention(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the package follows the tensors
    """Approximate: its row shows the error that the quantisation costs."""
    from sageattention import sageattn

    causal, scale = isinstance(problem.mask, Causal), problem.effective_scale

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        output: Tensor = sageattn(q, k, v, tensor_layout="HND", is_causal=causal, sm_scale=scale)
        return output

    return attention
