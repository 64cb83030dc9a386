"""Costs of the variants that are built of several kernels, or whose kernel depends on the problem."""

from __future__ import annotations

import msgspec

from attnprof.core.problem import Problem
from attnprof.core.schedules import math_cost, torch_cpu_flash_cost
from attnprof.core.schedules.common import compulsory, has_backward, has_forward
from attnprof.core.schedules.formula import evaluate, make_term, symbols_of
from attnprof.core.traffic import Cost, Term

EXPANDED = "B*H_q*N_k*(d + d_v)*e"


def cpu_flash_cost(problem: Problem) -> Cost:
    """PyTorch's CPU flash kernel with the threads of this process, which set its scratch."""
    import torch

    return torch_cpu_flash_cost(problem, threads=torch.get_num_threads())


def sdpa_cost(problem: Problem) -> Cost:
    """What PyTorch's choice on a CPU does: its flash kernel, or the math path where v has another dim than q."""
    return math_cost(problem) if problem.qk_dim != problem.v_dim else cpu_flash_cost(problem)


def expanded_sdpa_cost(problem: Problem) -> Cost:
    """K and V copied out to the query heads, then SDPA on as many KV heads as query heads."""
    if problem.group == 1:
        return sdpa_cost(problem)
    inner = sdpa_cost(problem.replace(kv_heads=problem.q_heads))
    at = symbols_of(problem)
    terms = [*(_expansion(problem) if has_forward(problem) else ()), *inner.logical.terms]
    copies = evaluate(EXPANDED, at)
    if has_backward(problem):
        terms += [
            make_term(at, "dK summed by group", read="B*H_q*N_k*d*e", write="B*H_k*N_k*d*e"),
            make_term(at, "dV summed by group", read="B*H_q*N_k*d_v*e", write="B*H_k*N_k*d_v*e"),
        ]
        # Gradients of the copies stand in for dK and dV, which are summed when the kernel's scratch is gone.
        copies = copies * (2 if has_forward(problem) else 1) - problem.k_bytes - problem.v_bytes
    return msgspec.structs.replace(
        inner,
        logical=msgspec.structs.replace(inner.logical, terms=tuple(terms)),
        compulsory=compulsory(problem),
        op_boundary=None,
        output_bytes=problem.compulsory_write_bytes,
        workspace_bytes=inner.workspace_bytes + copies,
    )


def _expansion(problem: Problem) -> tuple[Term, Term]:
    at = symbols_of(problem)
    return (
        make_term(at, "K expanded", read="B*H_k*N_k*d*e", write="B*H_q*N_k*d*e"),
        make_term(at, "V expanded", read="B*H_k*N_k*d_v*e", write="B*H_q*N_k*d_v*e"),
    )
