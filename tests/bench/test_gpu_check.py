"""The GPU check's frame: skipped with a reason, each step recorded, counters beside the models."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

from attnprof.bench.devices.fake import FakeDevice
from attnprof.bench.ncu import Counted
from attnprof.bench.ncu_csv import DRAM_READ, DRAM_WRITE, L2_READ, L2_WRITE, KernelCounts
from attnprof.core.errors import AttnprofError, KernelError
from attnprof.core.record import Identity

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu_check
    import gpu_steps

    return gpu_check, gpu_steps


@pytest.fixture
def check(modules, tmp_path):
    identity = Identity(
        device="cuda:0", device_name="gpu", threads=1, versions={}, caches_bytes={"L2": 64 * 1024**2}
    )
    return modules[1].Check(device=FakeDevice(name="cuda:0", identity=identity), out=tmp_path, quick=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_it_says_why_and_succeeds(modules, capsys, tmp_path):
    assert modules[0].main(["--out", str(tmp_path)]) == 0
    assert "gpu-check skipped: device 'cuda' cannot be used" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_every_step_is_recorded_whatever_happens(modules, check):
    def skips(_check, _limit_s):
        raise modules[1].Skip("no sensor")

    def breaks(_check, _limit_s):
        raise RuntimeError("boom")

    check.run("a", lambda _check, _limit_s: None, 1.0)
    check.run("b", skips, 1.0)
    check.run("c", breaks, 1.0)
    check.run("d", breaks, 0.0)
    assert [status for _, status, _ in check.steps] == [
        "done",
        "skipped: no sensor",
        "failed: RuntimeError: boom",
        "skipped: the 570 s of the whole check are spent",
    ]


def test_the_limits_of_all_steps_are_within_ten_minutes(modules):
    assert modules[1].TOTAL_S < 600
    assert {name for name, _, _ in modules[0].STEPS} == {
        "ceilings", "sweep fwd", "counters", "launches", "sweep bwd", "tests",
    }  # fmt: skip


def test_a_child_that_fails_or_hangs_is_an_error(modules, monkeypatch, tmp_path):
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 2, "", "wrong option")
    )
    with pytest.raises(AttnprofError, match="wrong option"):
        modules[1].run_command(["x"], 1.0, tmp_path)

    def hangs(command, **_):
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(AttnprofError, match="more than 1 s"):
        modules[1].run_command(["x"], 1.0, tmp_path)


def test_counted_bytes_stand_beside_the_models(modules, check, monkeypatch):
    values = {DRAM_READ: 1000.0, DRAM_WRITE: 24.0, L2_READ: 3.0, L2_WRITE: 1.0}

    def counted(target, *, cold):
        if target.variant != "naive":
            raise KernelError("ncu failed")
        return Counted(kernels=(KernelCounts(name="k", values=values),), cold=cold)

    monkeypatch.setattr(modules[1], "counters_unavailable", lambda _device: "")
    monkeypatch.setattr(modules[1], "count", counted)
    monkeypatch.setattr(modules[1], "_refused", lambda _check, _variant: None)
    modules[1].counters(check, 60.0)
    text = check.sections["Counted bytes"]
    compulsory = check.problem.compulsory_bytes
    traced = "2.062 MiB"  # compulsory, and the 64 KiB of the mask: the scores die in a memory that holds them
    assert (
        f"| naive | cold | DRAM | 1 KiB | {compulsory // 1048576} MiB | {1024 / compulsory:.3f} | {traced} |"
        in text
    )
    assert "| naive | warm | L2 | 128 B |" in text
    assert "| sdpa_flash | cold | n/a | ncu failed |" in text


def test_no_counters_skip_the_step(modules, check):
    check.device.name = "cpu"
    with pytest.raises(modules[1].Skip, match=r"PMU|perf or likwid"):
        modules[1].counters(check, 1.0)


def test_the_report_names_the_device_the_steps_and_the_sections(modules, tmp_path):
    identity = Identity(device="cuda:0", device_name="H100", threads=1, versions={"torch": "2.13"})
    check = modules[1].Check(device=FakeDevice(identity=identity), out=tmp_path, quick=True)
    check.steps.append(("ceilings", "done", 12.3))
    check.sections["Ceilings"] = "a table"
    text = modules[0].report(check)
    for part in ("# GPU check: H100", "torch 2.13", "| ceilings | done | 12 |", "## Ceilings\n\na table"):
        assert part in text
