"""Chunked attention in the order of Rabe and Staats: memory O(sqrt N) a head, traffic still O(N^2).

Source: "Self-attention Does Not Need O(n^2) Memory", arXiv 2112.05682: per chunk of queries, every chunk of keys
gives (weighted values, weight sum, maximum); the chunks are combined at the end; the backward recomputes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnprof.core.problem import Problem
from attnprof.core.schedules import chunked_cost
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._tensors import expand_kv, mask_tensor

if TYPE_CHECKING:
    from torch import Tensor

QUERIES = 128
KEYS = 512


def _cost(problem: Problem) -> Cost:
    return chunked_cost(problem, rows=QUERIES, cols=KEYS)


@variant(name="chunked_memeff", title="Chunks of queries and keys (Rabe-Staats order), eager", cost=_cost)
def chunked_memeff(problem: Problem, setting: Setting) -> Kernel:
    """Saves memory, not traffic: every chunk of scores is still written and read by its operators."""
    import torch
    from torch.utils.checkpoint import checkpoint

    scale = problem.effective_scale
    starts = range(0, max(problem.kv_len, 1), KEYS)

    def chunk(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        scores = (q @ k.transpose(-2, -1)) * scale
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        if scores.shape[-1] == 0:
            zero = scores.new_zeros(*scores.shape[:3], 1)
            return scores @ v, zero, zero
        top = scores.detach().amax(dim=-1, keepdim=True)
        weights = (scores - _finite(top)).exp()
        return weights @ v, weights.sum(dim=-1, keepdim=True), top

    def rows(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
        parts = []
        for start in starts:
            keys = slice(start, start + KEYS)
            part = None if hidden is None else hidden[..., keys]
            inputs = (q, k[:, :, keys], v[:, :, keys], part)
            again = _wants_gradient(q, k, v)
            parts.append(checkpoint(chunk, *inputs, use_reentrant=False) if again else chunk(*inputs))
        values, sums, tops = (torch.stack(x) for x in zip(*parts, strict=True))
        share = (tops - _finite(tops.amax(dim=0))).exp()  # 0 for a chunk in which the row sees no key
        total = (sums * share).sum(dim=0)
        return (values * share).sum(dim=0) / total.masked_fill(total == 0, 1.0)

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = expand_kv(k, v, problem.group)
        outputs = []
        for start in range(0, problem.q_len, QUERIES):
            stop = min(start + QUERIES, problem.q_len)
            mask = mask_tensor(problem, setting.device, rows=(start, stop))
            outputs.append(rows(q[:, :, start:stop], k, v, None if mask is None else ~mask))
        return torch.cat(outputs, dim=2) if outputs else q.new_zeros(*q.shape[:3], problem.v_dim)

    return attention


def _finite(top: Tensor) -> Tensor:
    return top.masked_fill(top == float("-inf"), 0.0)


def _wants_gradient(*tensors: Tensor) -> bool:
    import torch

    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
