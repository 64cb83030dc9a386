"""The CPU device: exact peaks of memory, identity, wall clock."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnprof.bench.devices import open_device
from attnprof.bench.devices.cpu import CpuDevice
from attnprof.core.errors import UsageError
from attnprof.core.units import MIB

DEVICE = CpuDevice()


def naive(q, k, v):
    scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    weights = scores.softmax(dim=-1)
    return weights @ v


def forced(backend):
    def attention(q, k, v):
        with sdpa_kernel(backend):
            return sdpa(q, k, v)

    return attention


KERNELS = {"naive": naive, "math": forced(SDPBackend.MATH), "flash": forced(SDPBackend.FLASH_ATTENTION)}


def peak_mib(name, dtype, length=1024):
    q, k, v = (torch.rand(1, 8, length, 64, dtype=dtype) for _ in range(3))
    with torch.no_grad():
        _, memory = DEVICE.peak_bytes(lambda: KERNELS[name](q, k, v))
    return memory.peak_bytes / MIB


@pytest.mark.parametrize(
    ("name", "dtype", "expected_mib"),
    [
        ("naive", torch.float32, 66.0),
        ("math", torch.float32, 74.0),
        ("flash", torch.float32, 3.16),
        ("naive", torch.bfloat16, 33.25),
        ("math", torch.bfloat16, 80.0),
        ("flash", torch.bfloat16, 2.66),
    ],
)
def test_peak_includes_the_scratch_inside_fused_kernels(name, dtype, expected_mib):
    assert peak_mib(name, dtype) == pytest.approx(expected_mib, rel=0.03)


def test_peak_does_not_depend_on_the_order_of_rows():
    cases = [(name, dtype) for name in KERNELS for dtype in (torch.float32, torch.bfloat16)]
    forward = {case: peak_mib(*case, length=256) for case in cases}
    backward = {case: peak_mib(*case, length=256) for case in reversed(cases)}
    assert forward == backward


def test_peak_of_flash_grows_with_the_length_not_with_its_square():
    assert peak_mib("flash", torch.float32, 2048) < 2.5 * peak_mib("flash", torch.float32, 1024)


def test_output_and_workspace_are_told_apart():
    q, k, v = (torch.rand(1, 2, 128, 32) for _ in range(3))
    result, memory = DEVICE.peak_bytes(lambda: naive(q, k, v))
    assert torch.equal(result, naive(q, k, v))
    assert memory.output_bytes == 4 * result.numel()
    assert memory.workspace_bytes == pytest.approx(2 * 4 * 2 * 128 * 128, abs=64)  # two score matrices
    assert memory.allocator_bytes == 0


def test_gradients_are_output_and_views_of_one_storage_count_once():
    def call():
        packed = torch.ones(3, 1000)
        return {"views": (packed[0], packed[1]), "gradients": [torch.ones(500)]}

    assert DEVICE.peak_bytes(call)[1].output_bytes == 4 * 3500


def test_what_a_library_keeps_is_named():
    kept = []
    _, memory = DEVICE.peak_bytes(lambda: kept.append(torch.ones(1000)))
    assert (memory.peak_bytes, memory.output_bytes, memory.allocator_bytes) == (4000, 0, 4000)


def test_the_profiler_prints_nothing():
    # In a process of its own: the profiler reads its log level once.
    call = "CpuDevice().peak_bytes(lambda: torch.ones(10))"
    code = f"import torch\nfrom attnprof.bench.devices.cpu import CpuDevice\n{call}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")


def test_identity_names_what_decides_the_speed():
    identity = DEVICE.identity()
    assert identity.device == "cpu"
    assert identity.threads == torch.get_num_threads()
    assert identity.versions["torch"] == str(torch.__version__)
    assert {"python", "openmp", "cpu_capability"} <= identity.versions.keys()
    assert identity.memory_bytes > 0


def test_time_per_call_is_the_clock_over_the_calls(monkeypatch):
    ticks = iter([10.0, 14.0])
    monkeypatch.setattr("attnprof.bench.devices.cpu.perf_counter", lambda: next(ticks))
    made = []
    assert DEVICE.time_calls(lambda: made.append(1), 8) == 0.5
    assert len(made) == 8


def test_kernel_names_are_the_outermost_operators():
    q, k, v = (torch.rand(1, 2, 16, 8) for _ in range(3))
    names = DEVICE.kernel_names(lambda: naive(q, k, v))
    assert names == ("aten::transpose", "aten::matmul", "aten::mul", "aten::softmax", "aten::matmul")


def test_flush_sweeps_twice_the_largest_cache(monkeypatch):
    monkeypatch.setattr("attnprof.bench.devices.host.cache_sizes", lambda: {"L1": 1024, "L2": 4096})
    device = CpuDevice()
    device.flush_cache()
    assert device._sweep.nbytes == 8192


def test_a_cpu_has_no_graphs_no_telemetry_and_some_memory():
    with pytest.raises(UsageError, match="only CUDA has graphs"):
        DEVICE.captured(lambda: None)
    assert DEVICE.telemetry(lambda: None, 0.1) == {}
    assert DEVICE.available_bytes() > 0


@pytest.mark.parametrize("name", ["gpu", "cpu:1", "cuda:x", "mps", ""])
def test_unknown_devices_are_refused_with_the_known_ones(name):
    with pytest.raises(UsageError, match=r"is unknown.*Known: cpu, cuda"):
        open_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_that_is_not_here_says_why_and_what_to_do():
    with pytest.raises(UsageError, match=r"cuda.*cannot be used: .*(without CUDA|no CUDA driver).*predict"):
        open_device("cuda")


def test_cpu_opens():
    assert open_device("cpu").name == open_device("cpu:0").name == "cpu"
