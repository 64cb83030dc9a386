"""The cost table of a kernel as it runs on a GPU, by variant name or by published kernel name."""

from __future__ import annotations

from attnprof.core.errors import InvalidInput
from attnprof.core.problem import Problem
from attnprof.core.schedules.flash import decode_cost, fa1_cost, fa2_cost
from attnprof.core.traffic import Cost
from attnprof.predict.kernels import EAGER, SPLIT_KV, Family
from attnprof.variants.catalog import variants

_CPU_SCHEDULES = frozenset({"sdpa_default", "sdpa_flash", "gqa_native"})


def cost_on_gpu(name: str, problem: Problem, family: Family) -> Cost:
    """What the kernel does on a GPU: the variant's own table, or its family's where the variant describes the CPU.

    Raises: InvalidInput when the variant has no table.
    """
    known = variants()
    if name in known and name not in _CPU_SCHEDULES:
        cost = known[name].cost
        if cost is None:
            raise InvalidInput(f"variant {name!r} states no cost, so its bytes and time are n/a")
        return cost(known[name].problem_for(problem))
    return _of_family(family, problem)


def _of_family(family: Family, problem: Problem) -> Cost:
    if family in EAGER:
        name = "sdpa_math" if family is Family.MATH else "naive"
        cost = variants()[name].cost
        assert cost is not None  # both state one
        return cost(problem)
    if family in SPLIT_KV:
        return decode_cost(problem)
    return fa1_cost(problem) if family is Family.FA1 else fa2_cost(problem, rows=128, cols=128)
