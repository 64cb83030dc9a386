"""Everything that the laboratory's README says, gathered from one run: derived, traced, timed, and cited figures."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import msgspec

from attnprof.core.ceilings import Ceilings, Roof
from attnprof.core.dtypes import DType
from attnprof.core.problem import Problem
from attnprof.core.record import Identity
from attnprof.core.record import Measured as MeasuredOutcome
from attnprof.lab import gpu, measure_bytes
from attnprof.lab.measure_bytes import CAPACITIES, LENGTHS, Measured
from attnprof.textbook import Comparison, compare, crossover

PLOTTED = tuple(256 * 2**i for i in range(7))  # 256..16384
SCANNED = tuple(range(32, 513, 32))
ROOFLINE_N = 2048
CEILING_BUDGET_S = 25.0
Progress = Callable[[str], None]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Median time of one call on this machine, for one head at N = 2048."""

    name: str
    time_s: float
    flops_per_s: float


class Data(msgspec.Struct, frozen=True, kw_only=True):
    """What the files are written from."""

    identity: Identity
    commit: str
    started_at: str
    seconds: float
    derived: dict[str, list[Comparison]]
    plotted: list[Comparison]
    measured: list[Measured]
    levels: list[Measured]
    scanned: list[Measured]
    half: list[Measured]
    profiler: dict[str, dict[str, int]]
    crossovers: dict[int, float | None]
    question_2: Comparison
    ceilings: Ceilings
    ceilings_from: str
    timings: list[Timing]
    gpus: list[gpu.Resources]

    @property
    def roof(self) -> Roof:
        """This machine's ceilings in fp32."""
        return self.ceilings.roof(DType.FLOAT32)

    def at(self, method: str, N: int) -> Measured:
        """The measurement of one method at one length."""
        return next(row for row in self.measured if (row.method, row.N) == (method, N))

    @property
    def worst_deviation(self) -> float:
        """Largest absolute deviation of a measurement from theory."""
        return max(abs(row.deviation) for row in self.measured)

    @property
    def wins_from(self) -> int:
        """The first scanned length at which flash moves fewer bytes than naive in a memory of CAPACITY."""
        pairs = {row.N: row.total_bytes for row in self.scanned if row.method == "flash"}
        return next(row.N for row in self.scanned if row.method == "naive" and pairs[row.N] < row.total_bytes)

    def level(self, method: str, capacity_bytes: int) -> Measured:
        """The measurement at N = 2048 in a memory of one capacity."""
        return next(r for r in self.levels if (r.method, r.capacity_bytes) == (method, capacity_bytes))


def collect(progress: Progress, *, lengths: tuple[int, ...] = LENGTHS, started_at: str, commit: str) -> Data:
    """Derive, trace, time. Takes about two minutes on two cores; `lengths` are those that are measured."""
    from attnprof.bench.devices import open_device
    from attnprof.lab import derive_bytes

    begin = perf_counter()
    device = open_device("cpu")
    identity = device.identity()
    progress("ceilings of this machine")
    ceilings, source = _ceilings(device, identity)
    progress(f"bytes at N = {', '.join(map(str, lengths))}")
    measured = [
        row for N in lengths for name in measure_bytes.FUNCTIONS for row in measure_bytes.measure(name, N)
    ]
    progress("other memories, crossover, 16 bit")
    details = _details()
    progress(f"time at N = {ROOFLINE_N}")
    timings = _timings()
    return Data(
        identity=identity,
        commit=commit,
        started_at=started_at,
        derived={str(e): derive_bytes.derived(e) for e in (2, 4)},
        plotted=[compare(N, measure_bytes.D, dtype_bytes=4) for N in PLOTTED],
        measured=measured,
        crossovers={B_r: crossover(measure_bytes.D, B_r) for B_r in (8, 16, 32, 64, 128)},
        question_2=compare(8192, 128, 64, 64, dtype_bytes=2),
        ceilings=ceilings,
        ceilings_from=source,
        timings=timings,
        gpus=[gpu.resources(name, ROOFLINE_N, measure_bytes.D) for name in gpu.CHIPS],
        seconds=perf_counter() - begin,
        **details,
    )


def _details() -> dict[str, Any]:
    functions = measure_bytes.FUNCTIONS
    softmax_in_fp32 = {"float16": None, "float16, softmax in fp32": measure_bytes.attn_naive_fp32_softmax}
    return {
        "levels": [
            r for name in functions for r in measure_bytes.measure(name, ROOFLINE_N, capacities=CAPACITIES)
        ],
        "scanned": [row for N in SCANNED for name in functions for row in measure_bytes.measure(name, N)],
        "half": [
            row
            for function in softmax_in_fp32.values()
            for row in measure_bytes.measure("naive", 1024, dtype="float16", function=function)
        ],
        "profiler": {name: measure_bytes.profiler_view(name, 1024) for name in functions},
    }


def _ceilings(device: Any, identity: Identity) -> tuple[Ceilings, str]:
    """Stored ones if they are of this device and state, else measured now."""
    from attnprof.bench.probes.measure import measure, probes_of
    from attnprof.core.errors import StoreError
    from attnprof.store.ceilings import ceilings_for

    try:
        return ceilings_for(identity), "stored by `attnprof ceilings`"
    except StoreError:
        return measure(device, probes_of(device), budget_s=CEILING_BUDGET_S), "measured in this run"


def _timings() -> list[Timing]:
    """Naive (as measured in bytes), and PyTorch's flash kernel for the CPU."""
    from attnprof import profile

    problem = Problem(q_len=ROOFLINE_N, head_dim=measure_bytes.D)
    found = []
    for name, kernel in (("naive", measure_bytes.attn_naive_cpu), ("sdpa_flash", "sdpa_flash")):
        outcome = profile(kernel, problem).outcome
        assert isinstance(outcome, MeasuredOutcome), outcome
        seconds = sorted(outcome.samples_s)[len(outcome.samples_s) // 2]
        found.append(Timing(name=name, time_s=seconds, flops_per_s=problem.useful_flops / seconds))
    return found
