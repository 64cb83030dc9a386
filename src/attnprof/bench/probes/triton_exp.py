"""The exp rate of a GPU: a Triton kernel that keeps its numbers in registers. Imported only where Triton is."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl

import triton
from attnprof.bench.devices.base import Call

BLOCK = 1024


@triton.jit  # type: ignore[untyped-decorator]  # Triton ships no types
def exp_chain(x_ptr: Any, count: Any, REPEATS: tl.constexpr, BLOCK: tl.constexpr) -> None:
    """2^-x applied REPEATS times to each element; each step needs the one before, so none can be left out."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + offsets, mask=offsets < count, other=0.0)
    for _ in range(REPEATS):
        value = tl.exp2(-value)
    tl.store(x_ptr + offsets, value, mask=offsets < count)


def run_exp(x: torch.Tensor, repeats: int) -> torch.Tensor:
    """The chain on every element of x, in place."""
    exp_chain[(-(-x.numel() // BLOCK),)](x, x.numel(), REPEATS=repeats, BLOCK=BLOCK)
    return x


def exp_call(device: str, elements: int, repeats: int) -> Call:
    """A call that runs the chain once over so many elements."""
    x = torch.linspace(-1, 0, elements, device=device)
    return lambda: run_exp(x, repeats)
