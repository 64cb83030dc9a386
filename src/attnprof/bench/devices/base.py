"""What the measuring wing asks of a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from attnprof.core.record import Identity, Memory, Weather

if TYPE_CHECKING:
    from torch import Tensor

Call = Callable[[], object]


class Device(Protocol):
    """One place where kernels run. Times are seconds per call; memory is bytes above the inputs."""

    @property
    def name(self) -> str:
        """As PyTorch names it: `cpu`, `cuda:0`."""
        ...

    def identity(self) -> Identity:
        """What must match for two runs to be compared."""
        ...

    def weather(self) -> Weather:
        """What may differ between two runs; the caller adds commit and timestamps."""
        ...

    def synchronize(self) -> None:
        """Wait until the work handed to the device is done."""
        ...

    def time_calls(self, call: Call, calls: int) -> float:
        """Seconds per call over `calls` back-to-back calls."""
        ...

    def captured(self, call: Call) -> Call:
        """Replays `call` without its launch cost (a CUDA graph). Raises: UsageError where there is none."""
        ...

    def flush_cache(self) -> None:
        """Evict what the last-level cache holds, outside any timed region."""
        ...

    def available_bytes(self) -> int:
        """Memory that a new process could still take here."""
        ...

    def peak_bytes(self, call: Call) -> tuple[object, Memory]:
        """The result of one call, and its peak of memory above what was held before."""
        ...

    def telemetry(self, call: Call, seconds: float) -> dict[str, float]:
        """Power, clocks, energy per call, throttle reasons while `call` repeats; empty without a sensor."""
        ...

    def kernel_names(self, call: Call) -> tuple[str, ...]:
        """The kernels (on a CPU: the operators) that one call runs, in order."""
        ...


def tensors_in(result: object) -> Iterable[Tensor]:
    """Every tensor of a result: a tensor, or tuples, lists and dicts of results."""
    import torch

    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, dict):
        for value in result.values():
            yield from tensors_in(value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from tensors_in(value)


def storage_bytes(result: object) -> int:
    """Bytes of the distinct storages behind a result: views of one storage count once."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors_in(result)}
    return sum(storages.values())
