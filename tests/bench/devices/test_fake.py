"""The scripted device that other tests measure with."""

from __future__ import annotations

from attnprof.bench.devices.base import Device
from attnprof.bench.devices.fake import FakeDevice


def test_only_the_kernels_own_time_passes():
    device: Device = FakeDevice()
    assert device.time_calls(lambda: None, 5) == 0.0


def test_noise_is_added_sample_by_sample_and_the_last_value_stays():
    device = FakeDevice(noise_s=[1.0, 2.0])
    samples = [device.time_calls(lambda: device.advance(0.5), 2) for _ in range(4)]
    assert samples == [1.5, 2.5, 2.5, 2.5]


def test_the_log_tells_the_order():
    device = FakeDevice()
    device.flush_cache()
    device.time_calls(lambda: None, 3)
    device.synchronize()
    result, memory = device.peak_bytes(lambda: "o")
    assert (result, memory.method) == ("o", "scripted")
    assert device.captured(len) is len
    assert device.telemetry(lambda: None, 1.0) == {}
    assert device.log == ["flush", "time 3", "synchronize", "memory", "capture", "telemetry"]
