"""Preset: query heads in groups of four on one KV head, K and V expanded inside the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnprof.core.errors import InvalidProblem
from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._costs import expanded_sdpa_cost
from attnprof.variants._sdpa import sdpa_kernel_for
from attnprof.variants._tensors import expand_kv

if TYPE_CHECKING:
    from torch import Tensor

GROUP = 4


def grouped(problem: Problem) -> Problem:
    """The same problem with a quarter of the KV heads; one that is grouped already stays as it is.

    Raises: InvalidProblem when the query heads do not form groups of four.

    >>> grouped(Problem(q_heads=12, q_len=64)).kv_heads
    3
    """
    if problem.group > 1:
        return problem
    if problem.q_heads % GROUP:
        raise InvalidProblem(
            f"q_heads={problem.q_heads} do not form groups of {GROUP}: use a multiple of {GROUP}"
        )
    return problem.replace(kv_heads=problem.q_heads // GROUP)


@variant(
    name="gqa_4kv",
    title="GQA in groups of 4, K/V expanded by repeat_interleave, then SDPA",
    preset=grouped,
    cost=expanded_sdpa_cost,
)
def gqa_4kv(problem: Problem, setting: Setting) -> Kernel:
    """The 4 of its name is the group size: 12 query heads use 3 KV heads. The expansion is timed."""
    attend = sdpa_kernel_for(problem.replace(kv_heads=problem.q_heads), setting)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = expand_kv(k, v, problem.group)
        return attend(q, k, v)

    return attention
