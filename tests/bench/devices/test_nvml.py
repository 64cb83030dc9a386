"""NVML readings through a stand-in for the package `pynvml`."""

from __future__ import annotations

from itertools import count

import pytest

from attnprof.bench.devices.cuda import under_load
from attnprof.bench.devices.fake import FakeDevice
from attnprof.bench.devices.nvml import open_sensors

UUID = "0b1c"


class FakeNvml:
    """The functions that Sensors asks, named as in the package; `missing` ones raise as on an old card."""

    class NVMLError(Exception):
        pass

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, *, throttle=0, missing=(), energy_step_mj=500):
        self.throttle, self.missing = throttle, missing
        self.energy_mj = count(1000, energy_step_mj)

    def _answer(self, name, value):
        if name in self.missing:
            raise self.NVMLError(name)
        return value

    def nvmlInit(self):  # noqa: N802
        self._answer("init", None)

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802
        if uuid != f"GPU-{UUID}":
            raise self.NVMLError("not found")
        return "handle"

    def nvmlSystemGetDriverVersion(self):  # noqa: N802
        return self._answer("driver", "570.1")

    def nvmlDeviceGetClockInfo(self, handle, domain):  # noqa: N802
        assert handle == "handle"
        return self._answer("clock", 1980 if domain == self.NVML_CLOCK_SM else 2619)

    def nvmlDeviceGetTemperature(self, _handle, _sensor):  # noqa: N802
        return self._answer("temperature", 45)

    def nvmlDeviceGetPowerUsage(self, _handle):  # noqa: N802
        return self._answer("power", 350_000)

    def nvmlDeviceGetTotalEnergyConsumption(self, _handle):  # noqa: N802
        return self._answer("energy", next(self.energy_mj))

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _handle):  # noqa: N802
        return self._answer("throttle", self.throttle)


def sensors(**options):
    found = open_sensors(UUID, FakeNvml(**options))
    assert found is not None
    return found


def test_readings_are_in_base_units():
    assert sensors().read() == {
        "gpu_clock_hz": 1.98e9,
        "memory_clock_hz": 2.619e9,
        "temperature_c": 45.0,
        "power_w": 350.0,
    }
    assert sensors().driver() == "570.1"


def test_a_reading_that_the_card_lacks_is_absent_not_zero():
    assert "power_w" not in sensors(missing=("power",)).read()
    assert sensors(missing=("driver",)).driver() == ""


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        (0x0, ()),
        (0x1, ()),  # idle is no fault
        (0x4, ("sw_power_cap",)),
        (0x48, ("hw_slowdown", "hw_thermal_slowdown")),
    ],
)
def test_throttle_reasons(mask, reasons):
    assert sensors(throttle=mask).throttle_reasons() == reasons


def test_the_uuid_is_taken_with_or_without_its_prefix():
    assert open_sensors(f"GPU-{UUID}", FakeNvml()) is not None
    assert open_sensors("another", FakeNvml()) is None


def test_no_driver_means_no_sensors():
    assert open_sensors(UUID, FakeNvml(missing=("init",))) is None


def test_energy_per_call_and_mean_power_under_load():
    device, calls = FakeDevice(), []

    def call():
        calls.append(1)
        device.advance(0.5)

    readings = under_load(
        sensors(throttle=0x4), call, 1.25, synchronize=lambda: None, clock=lambda: device.now_s
    )
    assert len(calls) == 3
    assert readings["energy_j"] == pytest.approx(0.5 / 3)
    assert readings["power_w"] == pytest.approx(0.5 / 1.5)
    assert readings["throttle_sw_power_cap"] == 1.0


def test_short_calls_are_queued_in_growing_batches():
    device, batches = FakeDevice(), []

    def call():
        batches[-1] += 1
        device.advance(0.001)

    under_load(sensors(), call, 0.06, synchronize=lambda: batches.append(0), clock=lambda: device.now_s)
    assert batches == [1, 2, 4, 8, 16, 32, 0]


def test_a_card_that_counts_no_energy_keeps_its_momentary_power():
    readings = under_load(sensors(missing=("energy",)), lambda: None, 0.0, synchronize=lambda: None)
    assert "energy_j" not in readings
    assert readings["power_w"] == 350.0
