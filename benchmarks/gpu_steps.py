"""The steps of the GPU check; each leaves its section for the report, or says why it cannot run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from attnprof.bench.devices import Device
from attnprof.bench.direction import directed
from attnprof.bench.inputs import make_inputs
from attnprof.bench.ncu import Target, count, counters_unavailable
from attnprof.bench.ncu_csv import SECTOR_BYTES
from attnprof.core.ceilings import Chip
from attnprof.core.dtypes import parse_dtype
from attnprof.core.errors import AttnprofError, UnknownName, UsageError
from attnprof.core.mask import Causal
from attnprof.core.problem import Problem
from attnprof.core.units import format_bytes, format_seconds, format_si
from attnprof.core.variant import Setting, Variant
from attnprof.store.ceilings import PATH_VARIABLE, load_ceilings
from attnprof.store.machines import find_chip
from attnprof.trace.api import trace
from attnprof.variants.catalog import find

TOTAL_S = 570.0
TRACED_VARIANTS = ("naive",)  # operator by operator the same on both devices
COUNTED_VARIANTS = ("naive", "sdpa_flash", "triton_flash")
LAUNCHED_VARIANTS = ("naive", "sdpa_default", "sdpa_flash", "triton_flash", "flex")
ATTNPROF = [sys.executable, "-c", "from attnprof.cli.main import main; main()"]


class Skip(Exception):
    """A step that cannot run here; the message says why."""


@dataclass(kw_only=True)
class Check:
    """One run of the check: where it runs, where it writes, and what each step left for the report."""

    device: Device
    out: Path
    quick: bool
    sections: dict[str, str] = field(default_factory=dict)
    steps: list[tuple[str, str, float]] = field(default_factory=list)  # name, status, seconds

    @property
    def problem(self) -> Problem:
        """The problem of the counters and of the launches."""
        length, dtype = (256, "float32") if self.quick else (4096, "float16")
        return Problem(q_heads=8, q_len=length, head_dim=64, dtype=dtype, mask=Causal())

    def command(self, *arguments: str, limit_s: float) -> None:
        """An attnprof command; its ceilings are this run's. Raises: AttnprofError with its last words."""
        run_command([*ATTNPROF, *arguments], limit_s, self.out)

    def run(self, name: str, step: Callable[[Check, float], None], limit_s: float) -> None:
        """One step within its limit; whatever happens is recorded."""
        print(f"{name} ...", file=sys.stderr, flush=True)
        begun = time.monotonic()
        try:
            if limit_s <= 0:
                raise Skip(f"the {TOTAL_S:.0f} s of the whole check are spent")
            step(self, limit_s)
            status = "done"
        except Skip as reason:
            status = f"skipped: {reason}"
        except Exception as error:  # a broken step must not hide what the others find
            status = f"failed: {type(error).__name__}: {str(error)[:500]}"
        self.steps.append((name, status, time.monotonic() - begun))
        print(f"{name}: {status}", file=sys.stderr, flush=True)


def run_command(command: list[str], limit_s: float, out: Path) -> None:
    """Run a child, with the ceilings of this check. Raises: AttnprofError when it fails or takes too long."""
    environment = {**os.environ, PATH_VARIABLE: str(out / "ceilings.json")}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise AttnprofError(f"it took more than {limit_s:.0f} s") from None
    if done.returncode not in (0, 1):  # 1: a case failed; its row says so
        raise AttnprofError((done.stderr or done.stdout).strip()[-500:])


def ceilings(check: Check, limit_s: float) -> None:
    """Measured ceilings beside the datasheet's."""
    path = check.out / "ceilings.json"
    budget = 5 if check.quick else 45
    check.command(
        "ceilings", "--device", check.device.name, "--out", str(path), "--budget-s", str(budget), limit_s=limit_s
    )  # fmt: skip
    found = load_ceilings(path)
    try:
        chip = find_chip(found.identity.device_name)
    except UnknownName as error:
        chip = None
        check.sections["Datasheet"] = f"n/a: {error}"
    rows = ["| ceiling | measured | datasheet | share |", "|---|---|---|---|"]
    for dtype, rate in found.flops.items():
        rows.append(_compared(f"matmul {dtype}", rate.best, _peak(chip, dtype), "FLOP/s"))
    for dtype, rate in found.exp.items():
        rows.append(_compared(f"exp {dtype}", rate.best, chip.exp_per_s if chip else None, "exp/s"))
    for level, kernels in found.bandwidth.items():
        peak = chip.bandwidth_bytes_per_s if chip and level == "DRAM" else None
        for kernel, rate in kernels.items():
            rows.append(_compared(f"{level} {kernel}", rate.best, peak, "B/s"))
    rows += [f"| {name} | n/a: {reason} | | |" for name, reason in found.unavailable.items()]
    check.sections["Ceilings"] = "\n".join(rows)


def _peak(chip: Chip | None, dtype: str) -> float | None:
    if chip is None:
        return None
    return chip.tf32_flops_per_s if dtype == "tf32" else chip.flops_per_s(parse_dtype(dtype))


def _compared(name: str, measured: float, peak: float | None, unit: str) -> str:
    if peak is None:
        return f"| {name} | {format_si(measured, unit)} | n/a | n/a |"
    return f"| {name} | {format_si(measured, unit)} | {format_si(peak, unit)} | {measured / peak:.0%} |"


def tests(check: Check, limit_s: float) -> None:
    """The tests that need a GPU."""
    if not check.device.name.startswith("cuda"):
        raise Skip("the tests marked gpu need CUDA")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:randomly", "tests"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    (check.out / "pytest.txt").write_text(done.stdout + done.stderr)
    check.sections["Tests"] = f"`{' '.join(command[1:])}`: {done.stdout.strip().splitlines()[-1]}"
    if done.returncode:
        raise AttnprofError(f"pytest exit code {done.returncode}, see pytest.txt")


def sweep(direction: str) -> Callable[[Check, float], None]:
    """A sweep of one direction with cold caches."""

    def step(check: Check, limit_s: float) -> None:
        lengths, dtype = ("128", "float32") if check.quick else ("512:8192:x4", "float16")
        quick = (
            ["--variants", "naive,sdpa_default", "--budget-s", "0.1"]
            if check.quick
            else ["--budget-s", "0.3"]
        )
        check.command(
            "run", "--device", check.device.name, "--seq-lens", lengths, "--heads", "8", "--dtype", dtype,
            "--direction", direction, "--cache", "cold", "--out", str(check.out / direction), *quick, limit_s=limit_s,
        )  # fmt: skip
        check.command("report", str(check.out / direction), limit_s=max(30.0, limit_s / 3))
        check.sections[f"Sweep, {direction}"] = (
            f"[report]({direction}/report.html), `{direction}/results.csv`"
        )

    return step


def counters(check: Check, limit_s: float) -> None:
    """Counted DRAM and L2 bytes beside the models, cold and warm."""
    reason = counters_unavailable(check.device.name)
    if reason:
        raise Skip(reason)
    rows = [
        "| variant | caches | level | counted | model | counted / model | traced |",
        "|---|---|---|---|---|---|---|",
    ]
    until = time.monotonic() + limit_s
    for name in COUNTED_VARIANTS:
        for cold in (True, False):
            if time.monotonic() < until and not _refused(check, find(name)):
                rows += _counted_rows(check, name, cold)
    check.sections["Counted bytes"] = f"{check.problem}\n\n" + "\n".join(rows)


def _counted_rows(check: Check, name: str, cold: bool) -> list[str]:
    variant = find(name)
    state = "cold" if cold else "warm"
    try:
        counted = count(Target(variant=name, problem=check.problem, device=check.device.name), cold=cold)
    except AttnprofError as error:
        return [f"| {name} | {state} | n/a | {error} | | | |"]
    cost = variant.cost(variant.problem_for(check.problem)) if variant.cost else None
    models = {"DRAM": cost.compulsory.total_bytes, "L2": cost.logical.total_bytes} if cost else {}
    return [
        f"| {name} | {state} | {level} | {format_bytes(traffic.total_bytes)} | {format_bytes(models[level])} | "
        f"{traffic.total_bytes / models[level]:.3f} | {_traced(check, name) if level == 'DRAM' else ''} |"
        for level, traffic in (("DRAM", counted.dram), ("L2", counted.l2))
        if traffic is not None and models.get(level)
    ]


def _traced(check: Check, name: str) -> str:
    """Bytes of the same operators through an exact LRU memory of the L2's size, where they are the same on a CPU.

    bfloat16 stands for float16: as many bytes, and not emulated.
    """
    if name not in TRACED_VARIANTS:
        return "n/a: another kernel on a CPU"
    problem = check.problem.replace(dtype="bfloat16") if check.problem.dtype == "float16" else check.problem
    (point,) = trace(name, problem, [check.device.identity().caches_bytes["L2"]], line_bytes=SECTOR_BYTES)
    return format_bytes(point.total_bytes)


def launches(check: Check, _limit_s: float) -> None:
    """Eager call against CUDA graph, the kernels that run, energy per call."""
    rows = ["| variant | eager | graph | energy a call | kernels |", "|---|---|---|---|---|"]
    for name in LAUNCHED_VARIANTS:
        reason = _refused(check, find(name))
        rows.append(f"| {name} | n/a: {reason} | | | |" if reason else _launch_row(check, find(name)))
    check.sections["Launches"] = f"{check.problem}, warm\n\n" + "\n".join(rows)


def _launch_row(check: Check, variant: Variant) -> str:
    problem, setting = variant.problem_for(check.problem), Setting(device=check.device.name)
    inputs = make_inputs(problem, check.device.name, 0)
    with variant.entered(setting):
        call = directed(variant.prepare(problem, setting), inputs, problem.direction)
        eager = _median_s(check.device, call)
        try:
            graph = format_seconds(_median_s(check.device, check.device.captured(call)))
        except (UsageError, RuntimeError) as error:
            graph = f"n/a: {str(error).splitlines()[0]}"
        joules = check.device.telemetry(call, 0.5).get("energy_j")
        kernels = "; ".join(check.device.kernel_names(call))[:300]
    energy = format_si(joules, "J") if joules else "n/a: no energy counter"
    return f"| {variant.name} | {format_seconds(eager)} | {graph} | {energy} | {kernels} |"


def _median_s(device: Device, call: Callable[[], object]) -> float:
    call()
    device.synchronize()
    return median(device.time_calls(call, 10) for _ in range(7))


def _refused(check: Check, variant: Variant) -> str | None:
    return variant.unavailable(check.device.name) or variant.refuse(check.problem, check.device.name)
