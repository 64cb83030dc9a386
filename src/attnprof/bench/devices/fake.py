"""A device whose clock is scripted: the measuring wing is tested to the digit, without time passing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attnprof.bench.devices.base import Call
from attnprof.core.record import Identity, Memory, Weather
from attnprof.core.units import GIB


class FakeDevice:
    """A device in which only `advance` makes time pass.

    A kernel under test calls `device.advance(seconds)`; `noise_s` adds a scripted value to each sample, the
    last one from then on. `log` holds what was asked of the device, in order.

    >>> device = FakeDevice()
    >>> device.time_calls(lambda: device.advance(0.25), calls=4)
    0.25
    """

    def __init__(
        self,
        *,
        name: str = "cpu",
        noise_s: Iterable[float] = (0.0,),
        identity: Identity | None = None,
        available_bytes: int = 8 * GIB,
        memory: Memory | None = None,
    ) -> None:
        self.name = name
        self.now_s = 0.0
        self.log: list[str] = []
        self._noise: Iterator[float] = iter(noise_s)
        self._last_noise_s = 0.0
        self._identity = identity or Identity(device=name, device_name="scripted", threads=1, versions={})
        self._available = available_bytes
        self._memory = memory or Memory(peak_bytes=0, output_bytes=0, method="scripted")

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds

    def identity(self) -> Identity:
        """As given."""
        return self._identity

    def weather(self) -> Weather:
        """A machine at rest."""
        return Weather(load_1min=0.0, clock_resolution_s=0.0)

    def synchronize(self) -> None:
        """Logged."""
        self.log.append("synchronize")

    def time_calls(self, call: Call, calls: int) -> float:
        """Scripted seconds per call."""
        self.log.append(f"time {calls}")
        start = self.now_s
        for _ in range(calls):
            call()
        self._last_noise_s = next(self._noise, self._last_noise_s)
        return (self.now_s - start) / calls + self._last_noise_s

    def captured(self, call: Call) -> Call:
        """The call itself; logged."""
        self.log.append("capture")
        return call

    def flush_cache(self) -> None:
        """Logged."""
        self.log.append("flush")

    def available_bytes(self) -> int:
        """As given."""
        return self._available

    def peak_bytes(self, call: Call) -> tuple[object, Memory]:
        """The result of one call and the memory as given."""
        self.log.append("memory")
        return call(), self._memory

    def telemetry(self, call: Call, seconds: float) -> dict[str, float]:  # noqa: ARG002  # the protocol's argument
        """Empty after one call; logged."""
        self.log.append("telemetry")
        call()
        return {}

    def kernel_names(self, call: Call) -> tuple[str, ...]:
        """One kernel named after the device."""
        call()
        return ("scripted",)
