"""Eager (unfused) attention: each operator reads and writes whole tensors."""

from __future__ import annotations

from attnprof.core.mask import Full
from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules.common import compulsory, cost
from attnprof.core.traffic import ByteKind, Cost, Term, Traffic


def naive_cost(problem: Problem) -> Cost:
    """QK^T, scale, mask, softmax, PV as separate operators."""
    score = problem.score_bytes
    passes = 3 if isinstance(problem.mask, Full) else 4  # QK^T, scale, (mask), softmax
    terms = (
        Term(tensor="Q", read_bytes=problem.q_bytes),
        Term(tensor="K", read_bytes=problem.k_bytes * problem.group),
        Term(tensor="V", read_bytes=problem.v_bytes * problem.group),
        Term(tensor="S", read_bytes=(passes - 1) * score, write_bytes=(passes - 1) * score),
        Term(tensor="P", read_bytes=score, write_bytes=score),
        Term(tensor="O", write_bytes=problem.o_bytes),
    )
    logical = Traffic(kind=ByteKind.LOGICAL, level="dram", policy="eager operators, no cache", terms=terms)
    return cost(problem, logical=logical, executed_pairs=problem.batch * problem.q_heads * problem.q_len * problem.kv_len,
                workspace_bytes=2 * score, backward_factor=2.0)
