"""Textbook attention: the whole score matrix is materialised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnprof.core.problem import Problem
from attnprof.core.schedules.eager import naive_cost
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._tensors import expand_kv, mask_tensor, zero_empty_rows

if TYPE_CHECKING:
    from torch import Tensor


@variant(name="naive", title="Naive: QK^T, scale, mask, softmax, PV, all materialised", cost=naive_cost)
def naive(problem: Problem, setting: Setting) -> Kernel:
    """Five eager operators; rows that see no key are set to 0."""
    mask = mask_tensor(problem, setting.device)
    scale = problem.effective_scale
    has_empty_rows = problem.total_empty_rows > 0

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = expand_kv(k, v, problem.group)
        scores = (q @ k.transpose(-2, -1)) * scale
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        if has_empty_rows and mask is not None:
            weights = zero_empty_rows(weights, mask)
        return weights @ v

    return attention
