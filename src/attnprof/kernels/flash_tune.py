"""Tuning of `triton_flash`: every candidate is timed once on the device, the fastest is kept for the process."""

from __future__ import annotations

from functools import lru_cache

import torch
from triton.runtime.errors import OutOfResources
from triton.testing import do_bench

from attnprof.core.errors import KernelError
from attnprof.core.problem import Direction, Problem
from attnprof.kernels.flash_config import Config, band_rows, candidates
from attnprof.kernels.flash_op import triton_flash


@lru_cache(maxsize=1024)
def tuned(problem: Problem, device: str) -> Config:
    """The fastest candidate for `problem` on `device`, in the problem's direction.

    Raises: KernelError when not one candidate fits on the device.
    """
    times = {
        config: seconds for config in candidates(problem) if (seconds := _seconds(problem, device, config))
    }
    if not times:
        raise KernelError(
            f"triton_flash: no tile configuration fits {device} for {problem}: use a smaller head dim"
        )
    return min(times, key=times.__getitem__)


def _seconds(problem: Problem, device: str, config: Config) -> float | None:
    backward = problem.direction is not Direction.FWD
    q, k, v = (x.requires_grad_(backward) for x in _random_inputs(problem, device))
    bands = torch.tensor(band_rows(problem), dtype=torch.int32, device=device).reshape(-1, 4)

    def call() -> None:
        o, _ = triton_flash(q, k, v, bands, problem.effective_scale, config.as_list())
        if backward:
            o.backward(torch.ones_like(o))

    try:
        return float(do_bench(call, warmup=5, rep=20, return_mode="median")) / 1e3
    except OutOfResources:
        return None


def _random_inputs(problem: Problem, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    p = problem
    dtype = getattr(torch, p.dtype)
    q = torch.randn(p.batch, p.q_heads, p.q_len, p.qk_dim, dtype=dtype, device=device)
    k = torch.randn(p.batch, p.kv_heads, p.kv_len, p.qk_dim, dtype=dtype, device=device)
    v = torch.randn(p.batch, p.kv_heads, p.kv_len, p.v_dim, dtype=dtype, device=device)
    return q, k, v
