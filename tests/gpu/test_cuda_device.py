"""The CUDA device, ceilings and counters on a real GPU."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnprof.bench.devices import open_device
from attnprof.bench.devices.cuda import cuda_unavailable
from attnprof.bench.ncu import Target, count, counters_unavailable
from attnprof.bench.probes.measure import measure, probes_of
from attnprof.core.errors import KernelError
from attnprof.core.problem import Problem
from attnprof.core.units import MIB

REASON = cuda_unavailable()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(REASON is not None, reason=f"no CUDA device: {REASON}")]


@pytest.fixture(scope="module")
def device():
    return open_device("cuda")


def tensors(length=1024, dtype=torch.float16):
    return [torch.randn(1, 8, length, 64, device="cuda", dtype=dtype) for _ in range(3)]


def test_identity_names_chip_driver_and_cache(device):
    identity = device.identity()
    assert identity.compute_capability.count(".") == 1
    assert identity.caches_bytes["L2"] > 0
    assert {"cuda", "cudnn", "torch"} <= identity.versions.keys()


def test_event_times_grow_with_the_work(device):
    small, large = ([torch.randn(n, n, device="cuda") for _ in range(2)] for n in (1024, 8192))
    times = [
        min(device.time_calls(lambda ab=ab: ab[0] @ ab[1], 5) for _ in range(5)) for ab in (small, large)
    ]
    assert 0 < times[0] < times[1] / 50


def test_a_graph_computes_the_same(device):
    q, k, v = tensors()
    replay = device.captured(lambda: sdpa(q, k, v))
    q.copy_(torch.randn_like(q))
    assert torch.allclose(replay(), sdpa(q, k, v), atol=1e-3)


def test_peak_memory_of_flash_is_its_output_and_statistics(device):
    q, k, v = tensors()
    result, memory = device.peak_bytes(lambda: sdpa(q, k, v))
    assert memory.output_bytes == 2 * result.numel()
    assert memory.workspace_bytes < 2 * MIB


def test_the_workspace_of_cublas_is_named_and_repeats(device):
    q, k, v = tensors()

    def naive():
        scores = q @ k.transpose(-2, -1)
        weights = scores.softmax(dim=-1)
        return weights @ v

    peaks = [device.peak_bytes(naive)[1] for _ in range(2)]
    assert peaks[0] == peaks[1]
    assert peaks[0].allocator_bytes > MIB
    assert peaks[0].peak_bytes - peaks[0].allocator_bytes == pytest.approx(33 * MIB, rel=0.05)


def test_a_flush_slows_what_the_l2_held(device):
    x = torch.ones(device.identity().caches_bytes["L2"] // 16, device="cuda")

    def cold():
        device.flush_cache()
        return device.time_calls(x.sum, 1)

    warm = min(device.time_calls(x.sum, 20) for _ in range(10))
    assert min(cold() for _ in range(20)) > warm


def test_kernels_have_names(device):
    q, k, v = tensors()
    assert len(device.kernel_names(lambda: sdpa(q, k, v))) >= 1


def test_telemetry_has_clock_and_energy(device):
    if device._sensors is None:
        pytest.skip("nvidia-ml-py is not installed or NVML does not answer")
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    readings = device.telemetry(lambda: a @ a, 1.0)
    assert readings["gpu_clock_hz"] > 1e8
    assert 1e-4 < readings["energy_j"] < 100


def test_every_ceiling_is_measured(device):
    found = measure(device, probes_of(device), budget_s=20)
    assert found.unavailable == {}
    assert found.flops["float16"].best > found.flops["float32"].best
    assert found.bandwidth["L2"]["read"].best > found.bandwidth["DRAM"]["read"].best


def test_counted_bytes_are_at_least_compulsory():
    reason = counters_unavailable("cuda")
    if reason:
        pytest.skip(reason)
    problem = Problem(q_heads=8, q_len=4096, head_dim=64, dtype="float16")
    try:
        counted = count(Target(variant="sdpa_default", problem=problem))
    except KernelError as error:
        pytest.skip(str(error))
    assert counted.dram.read_bytes >= 0.95 * problem.compulsory_read_bytes
    assert counted.l2.total_bytes > problem.compulsory_bytes
