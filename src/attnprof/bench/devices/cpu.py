"""The CPU of this machine: wall clock, allocation events, cache sweep."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

from attnprof.bench.devices import host
from attnprof.bench.devices.base import Call, storage_bytes
from attnprof.core.errors import UsageError
from attnprof.core.record import Identity, Memory, Weather
from attnprof.core.units import MIB

if TYPE_CHECKING:
    from torch import Tensor

FALLBACK_CACHE_BYTES = 64 * MIB  # flushed when the machine does not tell the size of its last-level cache
MEMORY_METHOD = "sum of the allocator's events (torch.profiler)"


@dataclass(frozen=True, kw_only=True)
class CpuDevice:
    """The host processor, with the threads that PyTorch uses."""

    name: str = "cpu"

    def identity(self) -> Identity:
        """What must match for two runs to be compared."""
        import torch

        return Identity(
            device=self.name,
            device_name=f"{host.cpu_name()}, {os.cpu_count()} cores",
            threads=torch.get_num_threads(),
            versions=host.library_versions(),
            caches_bytes=host.cache_sizes(),
            memory_bytes=host.total_memory(),
        )

    def weather(self) -> Weather:
        """Governor, load and clock resolution."""
        return host.host_weather()

    def synchronize(self) -> None:
        """Nothing to wait for: calls return when they are done."""

    def time_calls(self, call: Call, calls: int) -> float:
        """Seconds per call by the monotonic wall clock."""
        repeat = range(calls)
        start = perf_counter()
        for _ in repeat:
            call()
        return (perf_counter() - start) / calls

    def captured(self, call: Call) -> Call:  # noqa: ARG002  # the protocol's argument
        """Raises: UsageError, since a CPU has no graphs."""
        raise UsageError(
            "graph replay was asked for on cpu: only CUDA has graphs; use --device cuda or leave it out"
        )

    def flush_cache(self) -> None:
        """Read and write twice the last-level cache, so that earlier data are evicted."""
        self._sweep.add_(1)

    @cached_property
    def _sweep(self) -> Tensor:
        import torch

        size = 2 * max(host.cache_sizes().values(), default=FALLBACK_CACHE_BYTES)
        return torch.zeros(size // 4, dtype=torch.float32)

    def available_bytes(self) -> int:
        """Free memory within the limit of the control group."""
        return host.available_memory()

    def peak_bytes(self, call: Call) -> tuple[object, Memory]:
        """Peak of the live allocations that the call makes, scratch of fused kernels included.

        The allocator reports each allocation and release, so the figure is exact and does not depend on what
        ran before. What stays allocated beyond the result is the allocator's (a library's cache).
        """
        result, changes = _allocations(call)
        live = peak = 0
        for change in changes:
            live += change
            peak = max(peak, live)
        output = min(storage_bytes(result), peak)
        kept = max(0, live - output)
        memory = Memory(peak_bytes=peak, output_bytes=output, allocator_bytes=kept, method=MEMORY_METHOD)
        return result, memory

    def telemetry(self, call: Call, seconds: float) -> dict[str, float]:  # noqa: ARG002  # the protocol's arguments
        """Empty: no portable power sensor is read on a CPU."""
        return {}

    def kernel_names(self, call: Call) -> tuple[str, ...]:
        """The outermost PyTorch operators of one call, in order."""
        _, events = _profiled(call)
        spans = sorted((e.start_ns(), -e.end_ns(), e.name()) for e in events if e.name().startswith("aten::"))
        names, until = [], -1
        for start, minus_end, name in spans:
            if start >= until:
                names.append(name)
                until = -minus_end
        return tuple(names)


def _allocations(call: Call) -> tuple[object, list[int]]:
    """The result, and every change of allocated bytes in order of time (releases are negative)."""
    result, events = _profiled(call)
    memory = [event for event in events if event.name() == "[memory]"]
    memory.sort(key=lambda event: event.start_ns())
    return result, [event.nbytes() for event in memory]


def _profiled(call: Call):  # type: ignore[no-untyped-def]  # the events' class is private to PyTorch
    from torch.autograd.profiler import profile

    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # it otherwise prints to stderr at each start and stop
    with profile(use_kineto=True, profile_memory=True) as profiler:
        result = call()
    return result, profiler.kineto_results.events()
