"""Preset: a causal window of 128 tokens, computed as a full masked matrix."""

from __future__ import annotations

from attnprof.core.errors import InvalidProblem
from attnprof.core.mask import Align, Causal, Dense, Lengths, Window
from attnprof.core.problem import Problem
from attnprof.core.schedules.eager import naive_cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants.naive import naive

WINDOW = 128


def windowed(problem: Problem) -> Problem:
    """The same problem under a window of 128 tokens with itself, keeping the alignment.

    Raises: InvalidProblem for masks that are not a band.
    """
    mask = problem.mask
    if isinstance(mask, Lengths | Dense):
        raise InvalidProblem(f"the window preset replaces full, causal and window masks, not {mask}")
    align = mask.align if isinstance(mask, Causal | Window) else Align.TOP_LEFT
    return problem.replace(mask=Window(WINDOW - 1, 0, align))


@variant(
    name="sliding_w128",
    title="Window of 128 tokens as a full masked matrix",
    preset=windowed,
    cost=naive_cost,
    limits=Limits(masks=(Window,)),
)
def sliding_w128(problem: Problem, setting: Setting) -> Kernel:
    """Another function than full or causal attention, computed as naive does: N x N scores, mostly masked."""
    return naive.prepare(problem, setting)
