"""The fill rule of the published cases: reproducible inputs without a random generator."""

from __future__ import annotations

import torch

from attnprof.bench.inputs import Inputs
from attnprof.core.problem import Problem


def filled(shape, multiplier, offset, modulus, dtype=torch.float32, times=1.0):
    t = torch.arange(int(torch.tensor(shape).prod()), dtype=torch.int64)
    values = ((multiplier * t + offset) % modulus).double() / modulus - 0.5
    return values.reshape(shape).to(dtype) * times  # the cases cast first


def fill_inputs(p: Problem, times: float = 1.0) -> Inputs:
    dtype = getattr(torch, p.dtype)
    return Inputs(
        q=filled((p.batch, p.q_heads, p.q_len, p.qk_dim), 37, 11, 101, dtype, times),
        k=filled((p.batch, p.kv_heads, p.kv_len, p.qk_dim), 53, 7, 103, dtype, times),
        v=filled((p.batch, p.kv_heads, p.kv_len, p.v_dim), 29, 3, 107, dtype),
    )
