"""Attention by its definition, in float64, pair by pair: what every variant is held to. Slow and obvious."""

from __future__ import annotations

from itertools import product

import torch

from attnprof.core.mask import Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Problem


def sees(mask, shape, index) -> bool:
    """Whether query i of element b, head h sees key j (`index` = b, h, i, j), by each mask's definition."""
    q_len, kv_len = shape
    b, _, i, j = index
    if isinstance(mask, Full):
        return True
    if isinstance(mask, Causal):
        return j <= i + (kv_len - q_len if mask.align == "bottom_right" else 0)
    if isinstance(mask, Window):
        centre = i + (kv_len - q_len if mask.align == "bottom_right" else 0)
        return (mask.left == -1 or j >= centre - mask.left) and (mask.right == -1 or j <= centre + mask.right)
    if isinstance(mask, Lengths):
        own = (mask.q_lens[b], mask.kv_lens[b])
        return i < own[0] and j < own[1] and sees(mask.causal or Full(), own, index)
    if isinstance(mask, Dense):
        sizes = (1,) * (4 - len(mask.shape)) + tuple(mask.shape)
        place = 0
        for size, at in zip(sizes, index, strict=True):
            place = place * size + (at if size > 1 else 0)
        return mask.array[place] == "1"
    raise AssertionError(mask)


def visible(problem: Problem) -> torch.Tensor:
    """(B, H_q, N_q, N_k) boolean, True = visible."""
    sizes = (problem.batch, problem.q_heads, problem.q_len, problem.kv_len)
    flags = [sees(problem.mask, sizes[2:], index) for index in product(*map(range, sizes))]
    return torch.tensor(flags, dtype=torch.bool).reshape(sizes)


def attention(problem: Problem, q, k, v) -> torch.Tensor:
    """softmax(scale * Q K^T) V over visible keys, in float64; rows without keys are 0."""
    k, v = (x.double().repeat_interleave(problem.group, dim=1) for x in (k, v))
    scale = problem.qk_dim**-0.5 if problem.scale is None else problem.scale
    keep = visible(problem)
    scores = (q.double() @ k.transpose(-1, -2) * scale).masked_fill(~keep, -1e300)
    weights = scores.softmax(dim=-1) * keep if problem.kv_len else scores
    return weights @ v


def inputs(problem: Problem, seed: int = 0, grad: bool = False, strided: bool = False):
    """Random q, k, v of the problem's dtype; `strided` gives views of padded (B, N, H, D) storages."""
    generator = torch.Generator().manual_seed(seed)

    def draw(heads: int, length: int, dim: int) -> torch.Tensor:
        sizes = (problem.batch, length, heads, dim + 8) if strided else (problem.batch, heads, length, dim)
        x = torch.randn(sizes, generator=generator, dtype=torch.float64).to(getattr(torch, problem.dtype))
        x = x.transpose(1, 2)[..., :dim] if strided else x
        return x.requires_grad_(grad)

    p = problem
    return (
        draw(p.q_heads, p.q_len, p.qk_dim),
        draw(p.kv_heads, p.kv_len, p.qk_dim),
        draw(p.kv_heads, p.kv_len, p.v_dim),
    )
