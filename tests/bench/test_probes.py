"""Probes: their work is counted right, their rates come from the clock, and what cannot run says why."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from attnprof.bench.devices.fake import FakeDevice
from attnprof.bench.probes import cpu, cuda, loops
from attnprof.bench.probes.measure import measure
from attnprof.bench.probes.sampling import Probe, repeated, sample, sample_seconds
from attnprof.core.ceilings import Ceilings
from attnprof.core.dtypes import DType
from attnprof.core.record import Identity
from attnprof.core.units import GIB, KIB, MIB

CACHES = {"L1": 48 * KIB, "L2": MIB, "L3": 32 * MIB}


def probe_of(device, seconds, *, path=("flops", "float32"), work=1000.0):
    return Probe(path=path, work=work, make=lambda: lambda: device.advance(seconds), conditions="scripted")


def test_a_rate_is_work_over_the_shortest_time_with_the_spread_of_the_median():
    device = FakeDevice(noise_s=[0.0, 0.3, 0.1, 0.2])
    rate = sample(device, probe_of(device, 0.1), budget_s=0.3)
    assert rate.samples == 3
    assert rate.best == pytest.approx(1000 / 0.2)
    assert rate.median == pytest.approx(1000 / 0.3)
    assert rate.spread == pytest.approx(1 - 0.2 / 0.3)


def test_short_calls_are_repeated_and_the_budget_bounds_the_samples():
    device = FakeDevice()
    rate = sample(device, probe_of(device, 1e-5), budget_s=0.205)
    assert "time 1000" in device.log
    assert rate.samples == 20
    assert rate.best == pytest.approx(1e8)


def test_a_floor_is_the_shortest_time():
    device = FakeDevice(noise_s=[0.0, 3e-6, 1e-6, 2e-6])
    floor = sample_seconds(device, probe_of(device, 0.0, path=("floor_s",), work=1), budget_s=0.0)
    assert (floor.best, floor.median) == (pytest.approx(1e-6), pytest.approx(2e-6))


def ceilings_of(*probes, device):
    floor = probe_of(device, 1e-6, path=("floor_s",), work=1)
    return measure(device, [floor, *probes], budget_s=1.0, clock=lambda: device.now_s)


def test_rates_are_gathered_by_path_and_the_best_of_one_path_stays():
    device = FakeDevice()
    found = ceilings_of(
        probe_of(device, 0.02),
        probe_of(device, 0.01),
        probe_of(device, 0.04),
        probe_of(device, 0.5, path=("bandwidth", "L2", "copy")),
        device=device,
    )
    assert found.flops["float32"].best == pytest.approx(1e5)
    assert found.bandwidth["L2"]["copy"].best == pytest.approx(2000)
    assert found.roof(DType.FLOAT32).flops_per_s == pytest.approx(1e5)
    assert found.floor_s.best == pytest.approx(1e-6)


def test_a_probe_that_cannot_run_is_named_with_its_reason_and_the_rest_goes_on():
    device = FakeDevice()

    def fail():
        raise RuntimeError("no kernel for this type")

    broken = Probe(path=("flops", "float16"), work=1.0, make=fail, conditions="")
    found = ceilings_of(broken, probe_of(device, 0.01), device=device)
    assert found.unavailable == {"flops float16": "RuntimeError: no kernel for this type"}
    assert set(found.flops) == {"float32"}


def test_progress_is_told_before_each_probe_and_at_the_end():
    device, told = FakeDevice(), []
    floor = probe_of(device, 1e-6, path=("floor_s",), work=1)
    measure(device, [floor, probe_of(device, 0.01)], budget_s=0.1, progress=lambda *now: told.append(now))
    assert told == [(0, 2, "floor_s"), (1, 2, "flops float32"), (2, 2, "done")]


def test_a_slow_probe_leaves_less_time_to_the_next_but_both_are_sampled():
    device = FakeDevice()
    found = ceilings_of(probe_of(device, 5.0), probe_of(device, 0.01, path=("exp", "float32")), device=device)
    assert (found.flops["float32"].samples, found.exp["float32"].samples) == (3, 3)


@pytest.mark.parametrize("library", cpu.EXP_LIBRARIES)
def test_every_exp_library_is_counted_by_elements_passes_and_threads(library):
    probe = cpu._exp(library, 2)
    assert probe.work == 2 * 64 * 16_384
    assert probe.make()() == [None, None]


def test_working_sets_of_a_cpu_stay_inside_their_level():
    sets = cpu.working_sets(CACHES, 16 * GIB, threads=2)
    assert sets == {"L1": 24 * KIB, "L2": 512 * KIB, "L3": 8 * MIB, "DRAM": 128 * MIB}
    assert cpu.working_sets({}, 400 * MIB, threads=1) == {"DRAM": 100 * MIB}


def test_every_level_and_kernel_of_a_cpu_is_probed_for_all_threads_and_for_one():
    identity = Identity(device="cpu", device_name="box", threads=4, versions={}, caches_bytes=CACHES)
    paths = [probe.path for probe in cpu.probes(FakeDevice(identity=identity))]
    for kind in ("bandwidth", "core_bandwidth"):
        assert {path[1:] for path in paths if path[0] == kind} == {
            (level, kernel) for level in (*CACHES, "DRAM") for kernel in ("read", "write", "copy", "triad")
        }
    assert {path[1] for path in paths if path[0] == "flops"} == {"float32", "bfloat16", "float16", "float64"}


def test_bytes_of_a_stream_are_passes_times_arrays_times_threads():
    identity = Identity(device="cpu", device_name="box", threads=2, versions={}, caches_bytes={"L2": MIB})
    probe = next(
        p for p in cpu.probes(FakeDevice(identity=identity)) if p.path == ("bandwidth", "L2", "triad")
    )
    moved = 3 * 4 * (512 * KIB // 12 // 64 * 64)
    assert probe.work == 2 * (256 * MIB // moved) * moved


def test_the_loops_do_what_they_are_named_after():
    a, b, c = (np.full(1000, value, dtype=np.float32) for value in (1.0, 2.0, 6.0))
    assert loops.read(a, 3) == 1000
    loops.triad(a, b, c, 1)
    assert (a == 5.0).all()
    loops.copy(a, b, 1)
    assert (a == 2.0).all()
    loops.write(a, 4)
    assert (a == 3.0).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_streaming_call_runs_on_every_thread(threads):
    results = cpu._streaming_call("read", 4096, 2, threads)()
    assert results == (4096.0 if threads == 1 else [4096.0, 4096.0])


@pytest.mark.parametrize(
    ("capability", "dtypes"),
    [
        ("7.5", {"float32", "float16"}),
        ("8.0", {"float32", "tf32", "bfloat16", "float16"}),
        ("9.0", {"float32", "tf32", "bfloat16", "float16", "float8_e4m3fn"}),
    ],
)
def test_a_gpu_is_probed_for_the_types_that_it_has(capability, dtypes):
    identity = Identity(
        device="cuda:0",
        device_name="gpu",
        threads=1,
        versions={},
        caches_bytes={"L2": 50 * MIB},
        compute_capability=capability,
    )
    found = list(cuda.probes(FakeDevice(name="cuda:0", identity=identity)))
    assert {probe.path[1] for probe in found if probe.path[0] == "flops"} == dtypes
    assert {probe.path[1] for probe in found if probe.path[0] == "bandwidth"} == {"L2", "DRAM"}
    assert "8.0" in cuda.missing("bfloat16", msgspec.structs.replace(identity, compute_capability="7.5"))


def test_private_caches_hold_once_a_thread_and_the_last_level_once():
    identity = Identity(
        device="cpu", device_name="box", threads=2, versions={}, caches_bytes=CACHES, memory_bytes=GIB
    )
    assert cpu.capacities(identity) == {"L1": 96 * KIB, "L2": 2 * MIB, "L3": 32 * MIB, "DRAM": GIB}


def test_working_sets_of_a_gpu():
    assert cuda.working_sets(50 * MIB, 80 * GIB) == {"L2": round(12.5 * MIB), "DRAM": 800 * MIB}
    assert cuda.working_sets(4 * MIB, 600 * MIB)["DRAM"] == 300 * MIB


def test_a_repeated_call_is_made_so_many_times():
    made = []
    repeated(lambda: made.append(1), 7)()
    assert len(made) == 7


@pytest.mark.triton
def test_the_exp_kernel_computes_its_chain_under_the_interpreter():
    program = (
        "import torch; from attnprof.bench.probes.triton_exp import run_exp; x = torch.tensor([0.0, 1.0]);"
        "print(run_exp(x.clone(), 3).tolist(), [v for v in (-torch.exp2(-torch.exp2(-x))).exp2().tolist()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    got, expected = done.stdout.strip().split("] [")
    assert got.strip("[]") == expected.strip("[]")


def test_ceilings_survive_their_json():
    device = FakeDevice()
    found = ceilings_of(probe_of(device, 0.01), device=device)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Ceilings) == found
