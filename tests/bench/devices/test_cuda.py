"""The CUDA device against a stand-in for torch.cuda: what it asks, and what it makes of the answers."""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from attnprof.bench.devices import open_device
from attnprof.bench.devices.cuda import CudaDevice, cuda_unavailable
from attnprof.bench.devices.nvml import Sensors
from attnprof.core.units import MIB

PROPERTIES = SimpleNamespace(
    name="NVIDIA H100 80GB HBM3",
    L2_cache_size=50 * MIB,
    shared_memory_per_multiprocessor=228 * 1024,
    total_memory=80 * 2**30,
    major=9,
    minor=0,
    uuid="0b1c",
)


class FakeCuda:
    """Clock and allocator of one GPU; `log` holds the calls in order."""

    def __init__(self):
        self.now_ms, self.allocated, self.peak, self.log = 0.0, 1000, 1000, []

    def Event(self, enable_timing):  # noqa: N802  # torch's name
        assert enable_timing
        event = SimpleNamespace(at=None, synchronize=lambda: self.log.append("wait"))
        event.record = lambda: setattr(event, "at", self.now_ms)
        event.elapsed_time = lambda other: other.at - event.at
        return event

    def allocate(self, size):
        self.allocated += size
        self.peak = max(self.peak, self.allocated)


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    answers = {
        "Event": fake.Event,
        "synchronize": lambda _index: fake.log.append("synchronize"),
        "get_device_properties": lambda _index: PROPERTIES,
        "memory_allocated": lambda _index: fake.allocated,
        "max_memory_allocated": lambda _index: fake.peak,
        "memory_reserved": lambda _index: fake.allocated + 500,
        "mem_get_info": lambda _index: (10_000, 80_000),
        "reset_peak_memory_stats": lambda _index: setattr(fake, "peak", fake.allocated),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    monkeypatch.setattr(
        torch._C, "_cuda_clearCublasWorkspaces", lambda: fake.log.append("clear"), raising=False
    )
    return fake


def test_time_is_between_two_events_over_the_calls(cuda):
    def call():
        cuda.now_ms += 2.0

    assert CudaDevice().time_calls(call, 5) == pytest.approx(2e-3)
    assert cuda.log == ["wait"]


def test_peak_names_output_and_what_cublas_keeps(cuda):
    output = torch.ones(25)  # 100 bytes

    def call():
        cuda.allocate(8_519_680)  # cuBLAS workspace, kept
        cuda.allocate(4000)
        cuda.allocate(-4000)
        cuda.allocate(100)
        return output

    result, memory = CudaDevice().peak_bytes(call)
    assert result is output
    assert (memory.peak_bytes, memory.output_bytes, memory.allocator_bytes) == (8_523_680, 100, 8_519_680)
    assert cuda.log == ["synchronize", "clear", "synchronize"]


def test_free_memory_counts_what_the_allocator_holds_unused(cuda):
    assert CudaDevice().available_bytes() == 10_500
    assert cuda.allocated == 1000


@pytest.mark.usefixtures("cuda")
def test_identity_and_weather():
    sensors = SimpleNamespace(
        driver=lambda: "570.1", read=lambda: {"gpu_clock_hz": 1.98e9, "temperature_c": 40.0}
    )
    device = CudaDevice(index=1, sensors=sensors)
    identity, weather = device.identity(), device.weather()
    assert (device.name, identity.device_name) == ("cuda:1", "NVIDIA H100 80GB HBM3")
    assert identity.compute_capability == "9.0"
    assert identity.caches_bytes == {"L2": 50 * MIB, "shared": 228 * 1024}
    assert identity.versions["driver"] == "570.1"
    assert (weather.gpu_clock_hz, weather.temperature_c) == (1.98e9, 40.0)


@pytest.mark.usefixtures("cuda")
def test_no_sensors_no_telemetry(monkeypatch):
    monkeypatch.setattr("attnprof.bench.devices.cuda.open_sensors", lambda _uuid: None)
    device = CudaDevice()
    assert device.telemetry(lambda: None, 0.1) == {}
    assert device.weather().gpu_clock_hz is None


def test_the_flush_overwrites_four_times_the_l2(cuda, monkeypatch):
    made = []

    def empty(size, **options):
        made.append((size, options["device"]))
        return SimpleNamespace(zero_=lambda: made.append("zero"))

    monkeypatch.setattr(torch, "empty", empty)
    device = CudaDevice()
    device.flush_cache()
    device.flush_cache()
    assert made == [(200 * MIB, "cuda:0"), "zero", "zero"]
    assert cuda.log == []


@pytest.mark.usefixtures("cuda")
def test_telemetry_is_read_under_load():
    class Module:
        class NVMLError(Exception):
            pass

        NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

        def __getattr__(self, name):
            return lambda *_: 0

    readings = CudaDevice(sensors=Sensors(nvml=Module(), handle="h")).telemetry(lambda: None, 0.0)
    assert readings["energy_j"] == 0.0


@pytest.mark.parametrize(
    ("version", "available", "count", "said"),
    [
        (None, False, 0, "built without CUDA"),
        ("12.8", False, 0, "no CUDA driver or device"),
        ("12.8", True, 1, r"has 1 CUDA device\(s\)"),
    ],
)
def test_why_cuda_cannot_be_used(monkeypatch, version, available, count, said):
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert re.search(said, cuda_unavailable(1))


def test_opening_makes_it_the_current_device(monkeypatch):
    chosen = []
    monkeypatch.setattr("attnprof.bench.devices.cuda.cuda_unavailable", lambda _index: None)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert open_device("cuda:1").name == "cuda:1"
    assert chosen == [1]


def test_a_device_that_is_there_has_no_reason(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert cuda_unavailable(0) is None


def test_a_graph_is_captured_after_warm_up_on_a_side_stream(monkeypatch):
    log = []

    def scope(name):
        @contextmanager
        def entered(*_):
            log.append(f"enter {name}")
            yield
            log.append(f"leave {name}")

        return entered

    stream = SimpleNamespace(wait_stream=lambda _other: log.append("wait"))
    monkeypatch.setattr(torch.cuda, "Stream", lambda _index: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _index: stream)
    monkeypatch.setattr(torch.cuda, "stream", scope("side"))
    monkeypatch.setattr(torch.cuda, "graph", scope("capture"))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: log.append("replay")))

    replay = CudaDevice().captured(lambda: log.append("call") or "o")
    side = ["wait", "enter side", "call", "call", "call", "leave side", "wait"]
    assert log == [*side, "enter capture", "call", "leave capture"]
    assert replay() == "o"
    assert log[-1] == "replay"


@pytest.mark.usefixtures("cuda")
def test_kernel_names_are_those_on_the_device_in_order_of_start(monkeypatch):
    from torch._C._autograd import DeviceType

    def event(name, start, kind=DeviceType.CUDA):
        return SimpleNamespace(name=lambda: name, start_ns=lambda: start, device_type=lambda: kind)

    events = [event("softmax", 30), event("aten::mm", 5, DeviceType.CPU), event("gemm", 10)]
    profiler = SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: events))
    monkeypatch.setattr("torch.autograd.profiler.profile", lambda **_: nullcontext(profiler))
    assert CudaDevice().kernel_names(lambda: None) == ("gemm", "softmax")
