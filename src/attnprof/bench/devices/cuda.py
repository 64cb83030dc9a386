"""A CUDA device: event timing, graphs, L2 flush, allocator statistics, telemetry through NVML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attnprof.bench.devices import host
from attnprof.bench.devices.base import Call, storage_bytes
from attnprof.bench.devices.nvml import Sensors, open_sensors
from attnprof.core.record import Identity, Memory, Weather
from attnprof.core.units import MIB

if TYPE_CHECKING:
    from torch import Tensor

MEMORY_METHOD = "torch.cuda.max_memory_allocated, cuBLAS workspace released before"
L2_SWEEPS = 4  # the flush writes this many times the L2: its replacement is hashed, not strict LRU
SMALLEST_SWEEP_BYTES = 64 * MIB
GRAPH_WARMUP_CALLS = 3
SHORT_BATCH_S = 0.02


def cuda_unavailable(index: int = 0) -> str | None:
    """Why CUDA device `index` cannot be used; None when it can."""
    import torch

    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return f"torch {torch.__version__} is built without CUDA"
    if not torch.cuda.is_available():
        return "torch finds no CUDA driver or device (see nvidia-smi)"
    count = torch.cuda.device_count()
    return None if index < count else f"this machine has {count} CUDA device(s), numbered from 0"


@dataclass(frozen=True, kw_only=True)
class CudaDevice:
    """One GPU. `sensors` is how it reads NVML (None: opened on first use; absent where the package is)."""

    index: int = 0
    sensors: Sensors | None = None

    @property
    def name(self) -> str:
        """As PyTorch names it."""
        return f"cuda:{self.index}"

    @cached_property
    def _properties(self) -> Any:
        import torch

        return torch.cuda.get_device_properties(self.index)

    @cached_property
    def _sensors(self) -> Sensors | None:
        return self.sensors or open_sensors(str(getattr(self._properties, "uuid", "")))

    def identity(self) -> Identity:
        """What must match for two runs to be compared: chip, driver, CUDA, cuDNN."""
        import torch

        p = self._properties
        cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]  # untyped in PyTorch
        extra = {"cuda": str(torch.version.cuda), "cudnn": str(cudnn)}
        driver = self._sensors.driver() if self._sensors else ""
        return Identity(
            device=self.name,
            device_name=p.name,
            threads=torch.get_num_threads(),
            versions={**host.library_versions(), **extra, **({"driver": driver} if driver else {})},
            caches_bytes={"L2": int(p.L2_cache_size), "shared": int(p.shared_memory_per_multiprocessor)},
            memory_bytes=int(p.total_memory),
            compute_capability=f"{p.major}.{p.minor}",
        )

    def weather(self) -> Weather:
        """Clock and temperature from NVML, load of the host."""
        import msgspec

        readings = self._sensors.read() if self._sensors else {}
        return msgspec.structs.replace(
            host.host_weather(),
            gpu_clock_hz=readings.get("gpu_clock_hz"),
            temperature_c=readings.get("temperature_c"),
        )

    def synchronize(self) -> None:
        """Wait for the device."""
        import torch

        torch.cuda.synchronize(self.index)

    def time_calls(self, call: Call, calls: int) -> float:
        """Seconds per call between two CUDA events on the current stream."""
        import torch

        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        for _ in range(calls):
            call()
        stop.record()
        stop.synchronize()
        return float(start.elapsed_time(stop)) / 1e3 / calls

    def captured(self, call: Call) -> Call:
        """Replays the call as a CUDA graph, captured after warm-up calls on a side stream."""
        import torch

        side = torch.cuda.Stream(self.index)  # type: ignore[no-untyped-call]  # untyped in PyTorch
        side.wait_stream(torch.cuda.current_stream(self.index))
        with torch.cuda.stream(side):
            for _ in range(GRAPH_WARMUP_CALLS):
                call()
        torch.cuda.current_stream(self.index).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = call()

        def replay() -> object:
            graph.replay()
            return result

        return replay

    def flush_cache(self) -> None:
        """Overwrite a buffer of several times the L2; ordered before the next kernel by the stream."""
        self._sweep.zero_()

    @cached_property
    def _sweep(self) -> Tensor:
        import torch

        size = max(L2_SWEEPS * int(self._properties.L2_cache_size), SMALLEST_SWEEP_BYTES)
        return torch.empty(size, dtype=torch.int8, device=self.name)

    def available_bytes(self) -> int:
        """Free device memory, with what PyTorch's allocator holds unused."""
        import torch

        free, _ = torch.cuda.mem_get_info(self.index)
        cached = torch.cuda.memory_reserved(self.index) - torch.cuda.memory_allocated(self.index)
        return int(free) + int(cached)

    def peak_bytes(self, call: Call) -> tuple[object, Memory]:
        """Peak of the caching allocator in one call.

        cuBLAS keeps a workspace from its first use on (8.1 MiB up to sm80, 32 MiB on sm90). It is released
        before the call, so that each call shows it and the order of rows does not matter; it is named
        `allocator_bytes`.
        """
        import torch

        self.synchronize()
        torch._C._cuda_clearCublasWorkspaces()
        before = torch.cuda.memory_allocated(self.index)
        torch.cuda.reset_peak_memory_stats(self.index)
        result = call()
        self.synchronize()
        peak = torch.cuda.max_memory_allocated(self.index) - before
        output = min(storage_bytes(result), peak)
        kept = max(0, torch.cuda.memory_allocated(self.index) - before - output)
        memory = Memory(peak_bytes=peak, output_bytes=output, allocator_bytes=kept, method=MEMORY_METHOD)
        return result, memory

    def telemetry(self, call: Call, seconds: float) -> dict[str, float]:
        """NVML readings under load: the call repeats for `seconds`, queued so that the GPU stays busy."""
        return under_load(self._sensors, call, seconds, synchronize=self.synchronize) if self._sensors else {}

    def kernel_names(self, call: Call) -> tuple[str, ...]:
        """The CUDA kernels of one call, in order, from PyTorch's profiler (CUPTI)."""
        from torch._C._autograd import DeviceType
        from torch.autograd.profiler import profile

        with profile(use_kineto=True, use_device="cuda") as profiler:
            call()
            self.synchronize()
        events = [e for e in profiler.kineto_results.events() if e.device_type() == DeviceType.CUDA]
        events.sort(key=lambda event: event.start_ns())
        return tuple(event.name() for event in events)


def under_load(
    sensors: Sensors,
    call: Call,
    seconds: float,
    *,
    synchronize: Callable[[], None],
    clock: Callable[[], float] = perf_counter,
) -> dict[str, float]:
    """Readings of `sensors` after `seconds` of repeated calls, with energy per call where the chip counts it.

    Calls are queued in growing batches, so that the chip does not idle between short ones.

    Units: energy_j joules per call, power_w watts, gpu_clock_hz hertz; `throttle_<reason>` is 1.0 for each
    reason active at the end.
    """
    synchronize()
    start, energy_before, calls, batch = clock(), sensors.energy_j(), 0, 1
    while calls == 0 or clock() - start < seconds:
        begun = clock()
        for _ in range(batch):
            call()
        synchronize()
        calls += batch
        batch *= 2 if clock() - begun < SHORT_BATCH_S else 1
    readings = {**sensors.read(), **{f"throttle_{reason}": 1.0 for reason in sensors.throttle_reasons()}}
    energy_after, elapsed = sensors.energy_j(), clock() - start
    if energy_before is None or energy_after is None:
        return readings
    joules = energy_after - energy_before
    return {**readings, "energy_j": joules / calls, "power_w": joules / elapsed}
