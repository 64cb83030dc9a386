"""Bytes that hardware counters saw: one call under Nsight Compute, in a child process.

Run as `python -m attnprof.bench.ncu TARGET.json` this module is that child: it warms up, then makes one call between
the profiler's start and stop.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from attnprof.bench.ncu_csv import (
    DRAM_READ,
    DRAM_WRITE,
    L2_ALL,
    L2_READ,
    L2_WRITE,
    METRICS,
    SECTOR_BYTES,
    KernelCounts,
    parse_ncu_csv,
)
from attnprof.core.errors import KernelError
from attnprof.core.problem import Problem
from attnprof.core.traffic import ByteKind, Term, Traffic

WARMUP_CALLS = 3
TIMEOUT_S = 180.0


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The call to count."""

    variant: str
    problem: Problem
    device: str = "cuda"
    seed: int = 0


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of one call, kernel by kernel. `cold` when the caches were flushed before each kernel."""

    kernels: tuple[KernelCounts, ...]
    cold: bool

    def total(self, metric: str) -> float | None:
        """Sum over the kernels; None when the counter was not recorded."""
        values = [kernel.values[metric] for kernel in self.kernels if metric in kernel.values]
        return sum(values) if values else None

    @property
    def dram(self) -> Traffic | None:
        """Bytes that crossed the chip's boundary, kernel by kernel."""
        return self._traffic("DRAM", DRAM_READ, DRAM_WRITE, 1)

    @property
    def l2(self) -> Traffic | None:
        """Bytes that the SMs asked of the L2 (sectors of 32 bytes), kernel by kernel."""
        return self._traffic("L2", L2_READ, L2_WRITE, SECTOR_BYTES)

    def _traffic(self, level: str, read: str, write: str, unit: int) -> Traffic | None:
        if self.total(read) is None or self.total(write) is None:
            return None
        terms = tuple(
            Term(
                tensor=kernel.name,
                read_bytes=round(unit * kernel.values.get(read, 0)),
                write_bytes=round(unit * kernel.values.get(write, 0)),
            )
            for kernel in self.kernels
        )
        policy = (
            "Nsight Compute, caches flushed before each kernel"
            if self.cold
            else "Nsight Compute, warm caches"
        )
        return Traffic(kind=ByteKind.COUNTED, level=level, policy=policy, terms=terms)

    def figures(self) -> dict[str, float]:
        """Totals by name with unit, as a record keeps them."""
        names = {
            "counted_dram_read_bytes": (DRAM_READ, 1),
            "counted_dram_write_bytes": (DRAM_WRITE, 1),
            "counted_l2_bytes": (L2_ALL, 1),
            "counted_l2_read_bytes": (L2_READ, SECTOR_BYTES),
            "counted_l2_write_bytes": (L2_WRITE, SECTOR_BYTES),
        }
        totals = {name: (self.total(metric), unit) for name, (metric, unit) in names.items()}
        return {name: value * unit for name, (value, unit) in totals.items() if value is not None}


def counters_unavailable(device: str, root: Path = Path("/")) -> str:
    """Why no hardware counter of memory traffic can be read on `device`; empty when Nsight Compute can be tried."""
    if device.startswith("cuda"):
        return "" if shutil.which("ncu") else "Nsight Compute (ncu) is not on the PATH"
    if not (root / "sys/bus/event_source/devices/cpu").exists():
        return "no PMU in this virtual machine"
    return "the CPU's counters are not read by attnprof: use perf or likwid on the bare machine"


def ncu_command(target_file: Path, *, cold: bool) -> list[str]:
    """The command line: few counters, so that one pass over each kernel is enough."""
    return [
        "ncu", "--csv", "--page", "details", "--print-units", "base", "--metrics", ",".join(METRICS),
        "--cache-control", "all" if cold else "none", "--clock-control", "none", "--replay-mode", "kernel",
        "--profile-from-start", "off", "--target-processes", "all",
        sys.executable, "-m", "attnprof.bench.ncu", str(target_file),
    ]  # fmt: skip


def count(
    target: Target,
    *,
    cold: bool = True,
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run,
) -> Counted:
    """Counters of one call of a variant.

    Raises: KernelError when ncu fails, with its own words and the way out.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "target.json"
        path.write_bytes(msgspec.json.encode(target))
        try:
            done = run(
                ncu_command(path, cold=cold), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except FileNotFoundError:
            raise KernelError(
                "ncu is not on the PATH: install Nsight Compute (it comes with the CUDA toolkit)"
            ) from None
        except subprocess.TimeoutExpired:
            raise KernelError(
                f"ncu took more than {TIMEOUT_S:.0f} s for {target.variant}: try a smaller problem"
            ) from None
    output = done.stdout + done.stderr
    if done.returncode or "==ERROR==" in output:
        raise KernelError(_failure(output))
    return Counted(kernels=parse_ncu_csv(done.stdout), cold=cold)


def _failure(output: str) -> str:
    if "ERR_NVGPUCTRPERM" in output:
        return (
            "ncu may not read the GPU's counters (ERR_NVGPUCTRPERM): run as root, or load the driver with "
            "NVreg_RestrictProfilingToAdminUsers=0"
        )
    said = [
        line for line in output.splitlines() if "ERROR" in line or "Error" in line
    ] or output.splitlines()[-1:]
    return f"ncu failed: {' '.join(said) or 'no output'}"


def run_target(target: Target) -> None:
    """The child: warm up, then one call inside the profiled range."""
    import torch

    from attnprof.bench.direction import directed
    from attnprof.bench.inputs import make_inputs
    from attnprof.core.variant import Setting
    from attnprof.variants.catalog import find

    torch.cuda.set_device(torch.device(target.device).index or 0)
    variant = find(target.variant)
    problem = variant.problem_for(target.problem)
    inputs = make_inputs(problem, target.device, target.seed)
    setting = Setting(device=target.device)
    runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]  # untyped in PyTorch
    with variant.entered(setting):
        call = directed(variant.prepare(problem, setting), inputs, problem.direction)
        for _ in range(WARMUP_CALLS):
            call()
        torch.cuda.synchronize()
        runtime.cudaProfilerStart()
        call()
        torch.cuda.synchronize()
        runtime.cudaProfilerStop()


def main(arguments: Sequence[str]) -> None:
    """Entry point of the child: the file that describes the target."""
    run_target(msgspec.json.decode(Path(arguments[0]).read_bytes(), type=Target))


if __name__ == "__main__":
    main(sys.argv[1:])
