"""NVIDIA's management library: clocks, power, energy, temperature and throttle reasons of one GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Bits of nvmlClocksThrottleReasons, as NVML documents them; idle and application-set clocks are not faults.
THROTTLE_BITS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}


@dataclass(frozen=True, kw_only=True)
class Sensors:
    """Readings of one GPU through the module `pynvml` (or a stand-in with the same functions)."""

    nvml: Any
    handle: Any

    def driver(self) -> str:
        """Version of the driver; empty when it is not told."""
        return str(self._ask("nvmlSystemGetDriverVersion", on_device=False) or "")

    def read(self) -> dict[str, float]:
        """What the GPU tells now: gpu_clock_hz, memory_clock_hz, temperature_c, power_w."""
        asked = {
            "gpu_clock_hz": (self._ask("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_SM), 1e6),
            "memory_clock_hz": (self._ask("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_MEM), 1e6),
            "temperature_c": (self._ask("nvmlDeviceGetTemperature", self.nvml.NVML_TEMPERATURE_GPU), 1.0),
            "power_w": (self._ask("nvmlDeviceGetPowerUsage"), 1e-3),
        }
        return {name: value * unit for name, (value, unit) in asked.items() if value is not None}

    def energy_j(self) -> float | None:
        """Energy since the driver was loaded; None before Volta, which does not count it."""
        millijoules = self._ask("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else millijoules / 1e3

    def throttle_reasons(self) -> tuple[str, ...]:
        """Why the clock is held back now; empty when it is not."""
        mask = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        return tuple(name for bit, name in THROTTLE_BITS.items() if int(mask) & bit)

    def _ask(self, function: str, *arguments: Any, on_device: bool = True) -> Any:
        """The library's answer; None where this GPU or driver does not support the question."""
        try:
            return getattr(self.nvml, function)(*((self.handle, *arguments) if on_device else arguments))
        except self.nvml.NVMLError:
            return None


def open_sensors(uuid: str, nvml: Any = None) -> Sensors | None:
    """Sensors of the GPU with this UUID (CUDA and NVML number GPUs apart); None without package or driver."""
    nvml = nvml or _pynvml()
    if nvml is None:
        return None
    name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
    try:
        nvml.nvmlInit()
        return Sensors(nvml=nvml, handle=nvml.nvmlDeviceGetHandleByUUID(name))
    except nvml.NVMLError:
        return None


def _pynvml() -> Any:
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml
