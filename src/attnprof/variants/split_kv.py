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
    spans = [(s, min(s + PART_KEYS, problem.kv_len)) for s in range(0, max(problem.kv_len, 1), PART_KEYS)]
    statistics = torch.float64 if problem.dtype.bits == 64 else torch.float32

    def part(q: Tensor, k: Tensor, v: Tensor, span: tuple[int, int]) -> tuple[Tensor, Tensor]:
        keys = slice(*span)
        scores = (q @ k[:, :, keys].transpose(-2, -1)).to(statistics) * scale
        if hidden is not None:
            scores = scores.masked_fill(hidden[..., keys], float("-inf"))
        lse = scores.logsumexp(dim=-1, keepdim=True)
        weights = (scores - lse.clamp_min(torch.finfo(statistics).min)).exp()
        return (weights.to(v.dtype) @ v[:, :, keys]).to(statistics), lse

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        packed = q.reshape(problem.batch, problem.kv_heads, group * problem.q_len, problem.qk_dim)
        outputs, lses = zip(*(part(packed, k, v, span) for span in spans), strict=True)
        shares = torch.stack(lses).softmax(dim=0)  # exp(LSE_i - LSE)
        combined = (torch.stack(outputs) * shares.nan_to_num(0.0)).sum(dim=0)
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
