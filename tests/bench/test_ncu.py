"""Nsight Compute: its CSV in the forms that it prints, its failures, and the command line; no GPU is needed."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
import torch

from attnprof.bench.ncu import METRICS, Target, count, counters_unavailable, ncu_command, run_target
from attnprof.bench.ncu_csv import DRAM_READ, DRAM_WRITE, L2_ALL, L2_READ, L2_WRITE, parse_ncu_csv
from attnprof.core.errors import InvalidInput, KernelError
from attnprof.core.problem import Problem
from attnprof.core.variant import renamed
from attnprof.variants import catalog

TARGET = Target(variant="naive", problem=Problem(q_len=64))
COLUMNS = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)


def details(*rows, unit="byte"):
    """A details page: (id, kernel, metric, value) each as its own line."""
    lines = ["==PROF== Connected to process 4242 (/usr/bin/python3.11)", "hello from the kernel's author"]
    lines += ['==PROF== Profiling "flash_fwd_kernel" - 0: 0%....50%....100% - 1 pass', COLUMNS]
    for number, kernel, metric, value in rows:
        this = "sector" if "sectors" in metric else unit
        lines.append(
            f'"{number}","4242","python3.11","127.0.0.1","{kernel}","1","7","(128, 1, 1)","(16, 8, 1)","0","9.0",'
            f'"Command line profiler metrics","{metric}","{this}","{value}"'
        )
    return "\n".join([*lines, "==PROF== Disconnected from process 4242"])


TWO_KERNELS = details(
    ("0", "void gemm<half, 128>(Params)", DRAM_READ, "4,194,304"),
    ("0", "void gemm<half, 128>(Params)", DRAM_WRITE, "33,554,432"),
    ("0", "void gemm<half, 128>(Params)", L2_READ, "1,000"),
    ("0", "void gemm<half, 128>(Params)", L2_WRITE, "500"),
    ("1", "softmax_warp", DRAM_READ, "33,554,432"),
    ("1", "softmax_warp", DRAM_WRITE, "0"),
    ("1", "softmax_warp", L2_READ, "7"),
    ("1", "softmax_warp", L2_WRITE, "3"),
)


def test_details_page_kernel_by_kernel():
    first, second = parse_ncu_csv(TWO_KERNELS)
    assert first.name == "void gemm<half, 128>(Params)"
    assert first.values == {DRAM_READ: 4_194_304, DRAM_WRITE: 33_554_432, L2_READ: 1000, L2_WRITE: 500}
    assert second.values[DRAM_WRITE] == 0


def test_two_launches_of_one_kernel_stay_apart():
    text = details(("0", "k", DRAM_READ, "1"), ("1", "k", DRAM_READ, "2"))
    assert [kernel.values[DRAM_READ] for kernel in parse_ncu_csv(text)] == [1, 2]


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [("Kbyte", "1.5", 1500), ("Mbyte", "4.19", 4_190_000), ("Gbyte", "2", 2e9), ("byte", "12", 12)],
)
def test_scaled_units_are_read(unit, value, expected):
    (kernel,) = parse_ncu_csv(details(("0", "k", DRAM_READ, value), unit=unit))
    assert kernel.values[DRAM_READ] == pytest.approx(expected)


def test_raw_page_with_its_row_of_units():
    text = "\n".join(
        [
            f'"ID","Kernel Name","{DRAM_READ}","{L2_READ}","launch__waves_per_multiprocessor"',
            '"","","Mbyte","sector",""',
            '"0","flash_fwd","8.39","262,144","1.5"',
            '"1","combine","0.5","",""',
        ]
    )
    first, second = parse_ncu_csv(text)
    assert first.values == {DRAM_READ: pytest.approx(8.39e6), L2_READ: 262_144}
    assert second.values == {DRAM_READ: pytest.approx(5e5)}


def test_no_table_no_kernel():
    with pytest.raises(InvalidInput, match="no CSV table"):
        parse_ncu_csv("==WARNING== No kernels were profiled.\n")


@pytest.mark.parametrize(
    ("unit", "value", "said"), [("byte", "n/a", "not a number"), ("cycle", "5", "unknown")]
)
def test_what_is_no_byte_count_is_refused(unit, value, said):
    with pytest.raises(InvalidInput, match=said):
        parse_ncu_csv(details(("0", "k", DRAM_READ, value), unit=unit))


def answering(stdout="", stderr="", code=0):
    return lambda command, **_: subprocess.CompletedProcess(command, code, stdout, stderr)


def test_counts_become_traffic_at_both_levels():
    counted = count(TARGET, run=answering(TWO_KERNELS))
    assert (counted.dram.read_bytes, counted.dram.write_bytes) == (37_748_736, 33_554_432)
    assert (counted.l2.read_bytes, counted.l2.write_bytes) == (1007 * 32, 503 * 32)
    assert [term.tensor for term in counted.dram.terms] == ["void gemm<half, 128>(Params)", "softmax_warp"]
    assert counted.dram.kind == "counted"
    assert "flushed" in counted.dram.policy
    assert counted.total(L2_ALL) is None
    assert counted.figures() == {
        "counted_dram_read_bytes": 37_748_736,
        "counted_dram_write_bytes": 33_554_432,
        "counted_l2_read_bytes": 1007 * 32,
        "counted_l2_write_bytes": 503 * 32,
    }


def test_a_level_without_counters_has_no_traffic():
    counted = count(
        TARGET, cold=False, run=answering(details(("0", "k", DRAM_READ, "1"), ("0", "k", DRAM_WRITE, "1")))
    )
    assert counted.l2 is None
    assert "warm" in counted.dram.policy


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answering(stderr="==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"), "run as root"),
        (
            answering(stdout="==ERROR== Failed to find metric lts__x", code=9),
            "ncu failed: ==ERROR== Failed to find",
        ),
        (
            answering(stderr="Traceback\nRuntimeError: no kernel image", code=1),
            "RuntimeError: no kernel image",
        ),
        (answering(code=11), "no output"),
    ],
)
def test_failures_say_the_way_out(answer, said):
    with pytest.raises(KernelError, match=said):
        count(TARGET, run=answer)


def test_a_missing_program_and_a_hanging_one():
    def missing(*_args, **_options):
        raise FileNotFoundError

    def hanging(command, **_):
        raise subprocess.TimeoutExpired(command, 180)

    with pytest.raises(KernelError, match="install Nsight Compute"):
        count(TARGET, run=missing)
    with pytest.raises(KernelError, match="smaller problem"):
        count(TARGET, run=hanging)


def test_the_command_asks_for_the_counters_of_one_call(tmp_path):
    command = ncu_command(tmp_path / "t.json", cold=True)
    text = " ".join(command)
    assert ",".join(METRICS) in command
    assert "--profile-from-start off" in text
    assert "--cache-control all" in text
    assert command[-3:] == ["-m", "attnprof.bench.ncu", str(tmp_path / "t.json")]
    assert "--cache-control none" in " ".join(ncu_command(tmp_path, cold=False))


def test_why_there_are_no_counters(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert counters_unavailable("cuda:0") == "Nsight Compute (ncu) is not on the PATH"
    assert counters_unavailable("cpu", tmp_path) == "no PMU in this virtual machine"
    (tmp_path / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
    assert "perf or likwid" in counters_unavailable("cpu", tmp_path)
    monkeypatch.setattr("shutil.which", lambda _name: "/usr/local/cuda/bin/ncu")
    assert counters_unavailable("cuda") == ""


def test_the_child_counts_one_call_after_the_warm_up(monkeypatch):
    log = []
    runtime = SimpleNamespace(
        cudaProfilerStart=lambda: log.append("start"), cudaProfilerStop=lambda: log.append("stop")
    )
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: log.append(f"device {index}"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: log.append("wait"))
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    spied = renamed(
        catalog.find("naive"), prepare=lambda _problem, _setting: lambda q, _k, _v: log.append("call") or q
    )
    monkeypatch.setattr(catalog, "find", lambda _name: spied)
    run_target(Target(variant="spied", problem=Problem(q_len=16), device="cpu"))
    assert log == ["device 0", "call", "call", "call", "wait", "start", "call", "wait", "stop"]
