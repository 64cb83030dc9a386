"""What the PyTorch variants share: masks as tensors, KV expansion, empty rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnprof.core.mask import Dense, Full, Lengths
from attnprof.core.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor


def mask_tensor(problem: Problem, device: str, rows: tuple[int, int] | None = None) -> Tensor | None:
    """The mask as a boolean tensor, True = visible; (N_q, N_k) or (B, 1 or H, N_q, N_k); None when all is visible.

    `rows` = (start, stop) gives those query rows only.
    """
    import torch

    mask = problem.mask
    if isinstance(mask, Full):
        return None
    if isinstance(mask, Dense):
        bits = torch.frombuffer(bytearray(mask.array, "ascii"), dtype=torch.uint8) == ord("1")
        whole = bits.view(mask.shape).to(device)
        return whole if rows is None or whole.shape[-2] == 1 else whole[..., rows[0] : rows[1], :]
    bands = mask.bands(problem.batch, problem.q_len, problem.kv_len)
    start, stop = rows or (0, problem.q_len)
    queries = torch.arange(start, stop, device=device)[:, None]
    keys = torch.arange(problem.kv_len, device=device)[None, :]
    parts = []
    for _, band in bands:
        visible = (queries < band.q_len) & (keys < band.kv_len)
        if band.low is not None:
            visible = visible & (keys >= queries + band.low)
        if band.high is not None:
            visible = visible & (keys <= queries + band.high)
        parts.append(visible)
    return torch.stack(parts)[:, None] if isinstance(mask, Lengths) else parts[0]


def expand_kv(k: Tensor, v: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """Repeat each KV head for the query heads that it serves (a copy; the same tensors when group is 1)."""
    if group == 1:
        return k, v
    return k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)


def zero_empty_rows(weights: Tensor, mask: Tensor) -> Tensor:
    """Softmax of a row without keys is NaN; the output of such a row is 0 by definition."""
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
