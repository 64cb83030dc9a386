"""Split-KV attention for decoding: the cache in parts, each with its own output and LSE, then one combination."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules import split_kv_cost
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants._tensors import mask_tensor

if TYPE_CHECKING:
    from torch import Tensor

PART_KEYS = 1024
MAX_QUERIES = 64


def parts_of(problem: Problem) -> int:
    """How many parts the keys are split into.

    >>> parts_of(Problem(q_len=1, kv_len=8192))
    8
    """
    return max(1, -(-problem.kv_len // PART_KEYS))


def _few_queries(problem: Problem) -> str | None:
    if problem.q_len > MAX_QUERIES:
        return (
            f"split-KV is for few queries: q_len {problem.q_len} is above {MAX_QUERIES}, use a flash kernel"
        )
    return None


def _cost(problem: Problem) -> Cost:
    rows = max(problem.q_len * problem.group, 1)
    return split_kv_cost(problem, splits=parts_of(problem), rows=rows, cols=PART_KEYS)


@variant(
    name="split_kv",
    title="Split-KV (flash-decoding): parts of the cache, combined by LSE",
    cost=_cost,
    limits=Limits(directions=frozenset({Direction.FWD}), extra=_few_queries),
)
def split_kv(problem: Problem, setting: Setting) -> Kernel:
    """The query heads of a KV head share one read of its keys; parts are combined with weights exp(LSE_i - LSE)."""
    import torch

    group, scale = problem.group, problem.effective_scale
    hidden = _hidden(problem, setting.device)
    whole = (
        problem.kv_len // PART_KEYS * PART_KEYS
    )  # keys in parts of full size; the rest is a part of its own
    spans = [span for span in ((0, whole), (whole, problem.kv_len)) if span[0] < span[1]] or [(0, 0)]
    statistics = torch.float64 if problem.dtype.bits == 64 else torch.float32

    def cut(span: tuple[int, int]) -> tuple[int, int]:
        """How many parts a span has, and the keys of each."""
        keys = span[1] - span[0]
        count = max(1, keys // PART_KEYS)
        return count, keys // count

    def parts(x: Tensor, span: tuple[int, int]) -> Tensor:
        """Keys [start, stop) of (B, H, N, D) as (B, H, parts, keys of a part, D)."""
        return x[:, :, slice(*span)].reshape(*x.shape[:2], *cut(span), x.shape[3])

    def attend(q: Tensor, k: Tensor, v: Tensor, span: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Outputs and LSEs of the parts in a span."""
        scores = (q.unsqueeze(2) @ parts(k, span).transpose(-2, -1)).to(statistics) * scale
        if hidden is not None:
            part = hidden[..., slice(*span)]
            split = part.reshape(*part.shape[:3], *cut(span)).transpose(2, 3)
            scores = scores.masked_fill(split, float("-inf"))
        lse = scores.logsumexp(dim=-1, keepdim=True)
        weights = (scores - lse.clamp_min(torch.finfo(statistics).min)).exp()
        return (weights.to(v.dtype) @ parts(v, span)).to(statistics), lse

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        packed = q.reshape(problem.batch, problem.kv_heads, group * problem.q_len, problem.qk_dim)
        outputs, lses = zip(*(attend(packed, k, v, span) for span in spans), strict=True)
        shares = torch.cat(lses, dim=2).softmax(dim=2)  # exp(LSE_i - LSE)
        combined = (torch.cat(outputs, dim=2) * shares.nan_to_num(0.0)).sum(dim=2)
        return combined.to(q.dtype).reshape(problem.batch, problem.q_heads, problem.q_len, problem.v_dim)

    return attention


def _hidden(problem: Problem, device: str) -> Tensor | None:
    """True = not visible, (B or 1, H_k or 1, group * N_q, N_k), as the packed queries are laid out."""
    mask = mask_tensor(problem, device)
    if mask is None:
        return None
    mask = (mask if mask.dim() == 4 else mask[None, None]).expand(-1, -1, problem.q_len, -1)
    if mask.shape[1] == 1:
        return ~mask.repeat(1, 1, problem.group, 1)
    return ~mask.reshape(mask.shape[0], problem.kv_heads, problem.group * problem.q_len, problem.kv_len)
