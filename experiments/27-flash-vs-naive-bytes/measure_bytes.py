"""Block C of the laboratory: the bytes of naive and flash attention, measured on the CPU against the formulas.

Every operator that PyTorch runs is recorded with the storage that it reads and writes, and the stream is played
through an exact LRU memory of CAPACITY bytes: what crosses its boundary is the measurement. Seconds do not matter.

Run it on its own: python measure_bytes.py
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import torch
from torch import Tensor

from attnprof import Problem
from attnprof.textbook import bytes_flash, bytes_naive, bytes_o
from attnprof.trace.api import trace

B_r = B_c = 64
D = 64
CAPACITY = 160 * 1024  # holds the tiles of flash (96.5 KiB), not a score matrix from N = 256 on
CAPACITIES = (32 * 1024, 96 * 1024, CAPACITY, 1024**2, 2 * 1024**2, 64 * 1024**2)
LENGTHS = (64, 256, 512, 1024, 2048, 4096)


def attn_naive_cpu(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(d)) V with explicit matmuls and softmax. Shapes: (batch, heads, N, d)."""
    q, k, v = (t.flatten(0, 1) for t in (Q, K, V))
    nothing = q.new_empty(
        1, 1, 1
    )  # beta = 0: not added; the scale is a factor of the matmul, not one more pass
    S = torch.baddbmm(nothing, q, k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(q.shape[-1]))
    P = torch.softmax(S, dim=-1)
    return torch.bmm(P, v).view(*Q.shape[:-1], v.shape[-1])


def attn_naive_fp32_softmax(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """The same for 16-bit inputs, with the softmax in fp32: a known trap, its intermediates dominate."""
    q, k, v = (t.flatten(0, 1) for t in (Q, K, V))
    nothing = q.new_empty(1, 1, 1)
    S = torch.baddbmm(nothing, q, k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(q.shape[-1]))
    P = torch.softmax(S.float(), dim=-1).to(q.dtype)
    return torch.bmm(P, v).view(*Q.shape[:-1], v.shape[-1])


def attn_flash_reference_cpu(Q: Tensor, K: Tensor, V: Tensor, B_r: int = B_r, B_c: int = B_c) -> Tensor:
    """The tiling loop only: one tile of B_r queries meets all tiles of B_c keys. Shapes: (batch, heads, N, d)."""
    scale = 1 / math.sqrt(Q.shape[-1])
    O = torch.empty(*Q.shape[:-1], V.shape[-1], dtype=Q.dtype)  # noqa: E741  # the field's name
    for head in range(Q.shape[0] * Q.shape[1]):
        q, k, v, o = (t.flatten(0, 1)[head] for t in (Q, K, V, O))
        for i in range(0, len(q), B_r):
            o[i : i + B_r] = _one_tile(q[i : i + B_r] * scale, k, v, B_c)
    return O


def _one_tile(q: Tensor, k: Tensor, v: Tensor, B_c: int) -> Tensor:
    """Online softmax: the running maximum m, the sum l and the output are corrected at every tile of keys."""
    out = torch.zeros(len(q), v.shape[-1], dtype=torch.float32)
    m = torch.full((len(q), 1), -math.inf)
    l = torch.zeros(len(q), 1)  # noqa: E741  # the field's name
    for j in range(0, len(k), B_c):
        s = (q @ k[j : j + B_c].T).float()
        m_new = torch.maximum(m, s.amax(dim=1, keepdim=True))
        p, correction = torch.exp(s - m_new), torch.exp(m - m_new)
        l = l * correction + p.sum(dim=1, keepdim=True)  # noqa: E741
        out = out * correction + p.to(v.dtype) @ v[j : j + B_c]
        m = m_new
    return (out / l).to(v.dtype)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One function at one length: the theory beside what crossed the boundary of a memory of `capacity_bytes`.

    `formula_bytes` has O on both sides. Where everything fits the memory (`working_set_bytes`), theory says that only
    the compulsory bytes move: Q, K, V read and O written once.
    """

    method: str
    N: int
    d: int
    dtype_bytes: int
    capacity_bytes: int
    formula_bytes: float
    compulsory_bytes: int
    working_set_bytes: int
    read_bytes: int
    write_bytes: int
    operand_bytes: int
    terms: dict[str, tuple[int, int]]

    @property
    def total_bytes(self) -> int:
        """Reads and write-backs."""
        return self.read_bytes + self.write_bytes

    @property
    def fits(self) -> bool:
        """Whether the whole working set fits the memory."""
        return self.working_set_bytes <= self.capacity_bytes

    @property
    def expected_bytes(self) -> float:
        """What theory says for this memory."""
        return self.compulsory_bytes if self.fits else self.formula_bytes

    @property
    def deviation(self) -> float:
        """Measured over expected, minus 1."""
        return self.total_bytes / self.expected_bytes - 1


FUNCTIONS = {"naive": attn_naive_cpu, "flash": attn_flash_reference_cpu}


def formula(method: str, N: int, d: int, dtype_bytes: int) -> float:
    """The formula with O counted: naive gets it added, flash has it."""
    if method == "naive":
        return bytes_naive(N, d, dtype_bytes) + bytes_o(N, d, dtype_bytes)
    return bytes_flash(N, d, B_r, B_c, dtype_bytes)


def working_set(method: str, N: int, d: int, dtype_bytes: int) -> int:
    """What must fit for compulsory traffic only: naive's Q, K, V, O, S, P; flash's K, V and tiles (in fp32)."""
    if method == "naive":
        return (4 * N * d + 2 * N * N) * dtype_bytes
    tiles = (B_r + 2 * B_c) * d * dtype_bytes + (B_r * d + 2 * B_r * B_c + 2 * B_r) * 4
    return 2 * N * d * dtype_bytes + tiles


def measure(
    method: str,
    N: int,
    *,
    dtype: str = "float32",
    capacities: tuple[int, ...] = (CAPACITY,),
    function: Any = None,
) -> list[Measured]:
    """Run one function for real and play its reads and writes through memories of the given capacities."""
    problem = Problem(q_len=N, head_dim=D, dtype=dtype)  # type: ignore[arg-type]  # a name is taken
    traced = trace(function or FUNCTIONS[method], problem, capacities=list(capacities))
    dtype_bytes = problem.dtype.bits // 8
    return [
        Measured(
            method=method, N=N, d=D, dtype_bytes=dtype_bytes, capacity_bytes=point.capacity_bytes,
            formula_bytes=formula(method, N, D, dtype_bytes), compulsory_bytes=problem.compulsory_bytes,
            working_set_bytes=working_set(method, N, D, dtype_bytes),
            read_bytes=point.read_bytes, write_bytes=point.write_bytes,
            operand_bytes=traced.op_boundary.total_bytes,
            terms={term.tensor: (term.read_bytes, term.write_bytes) for term in point.by_tensor},
        )
        for point in traced
    ]  # fmt: skip


def profiler_view(method: str, N: int) -> dict[str, int]:
    """What torch.profiler can count: bytes allocated, by operator. It does not see reads and writes."""
    tensors = [torch.randn(1, 1, N, D) for _ in range(3)]
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiled:
        FUNCTIONS[method](*tensors)
    allocated = {event.key: event.self_cpu_memory_usage for event in profiled.key_averages()}
    return {name: size for name, size in allocated.items() if size > 0}


def main() -> None:
    """Print the measured bytes beside the formulas."""
    print(f"fp32, d = {D}, B_r = B_c = {B_r}, memory of {CAPACITY // 1024} KiB, O counted on both sides")
    print(f"{'N':>6} {'method':>7} {'theory':>14} {'measured':>14} {'deviation':>10}")
    for N in LENGTHS:
        for method in FUNCTIONS:
            (row,) = measure(method, N)
            where = "  (all fits: compulsory)" if row.fits else ""
            print(
                f"{N:>6} {method:>7} {row.expected_bytes:>14,.0f} {row.total_bytes:>14,} {row.deviation:>10.4%}{where}"
            )
    print("\ntorch.profiler at N = 1024 sees allocations only:")
    for method in FUNCTIONS:
        view = profiler_view(method, 1024)
        print(
            f"  {method}: {sum(view.values()):,} bytes allocated, most by {max(view, key=view.__getitem__)}"
        )


if __name__ == "__main__":
    main()
