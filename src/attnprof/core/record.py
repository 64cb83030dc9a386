"""The record: what the measuring wing writes and the reading wing reads. Facts only; judgments are derived."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from attnprof.core.problem import Problem
from attnprof.core.traffic import Cost

SCHEMA = 1


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Peak of one call minus its inputs, in bytes. `allocator_bytes` is library workspace (cuBLAS) inside it."""

    peak_bytes: int
    output_bytes: int
    allocator_bytes: int = 0
    method: str

    @property
    def workspace_bytes(self) -> int:
        """Peak without the output."""
        return max(0, self.peak_bytes - self.output_bytes)


class Verdict(StrEnum):
    """Numerical verdict of a row."""

    PASS = "pass"
    WRONG = "wrong"
    NAN = "nan"
    NOT_APPLICABLE = "n/a"


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Error against the float64 reference on the same (cast) inputs.

    Rule: pass when max_abs_error <= 2 * naive_error + floor, where naive_error is naive's in the same dtype and
    floor is the error of rounding the reference to the dtype.
    """

    verdict: Verdict
    reason: str = ""
    max_abs_error: float | None = None
    rel_l2_error: float | None = None
    naive_error: float | None = None
    floor: float | None = None
    nan_count: int = 0
    inf_count: int = 0
    nan_rows: int = 0


class Measured(msgspec.Struct, frozen=True, kw_only=True, tag="measured"):
    """A finished measurement. `samples_s` are raw seconds per call; `rounds` numbers the interleaved round of each."""

    samples_s: tuple[float, ...]
    rounds: tuple[int, ...]
    calls_per_sample: int
    warmup_calls: int
    first_call_s: float
    prepare_s: float
    floor_s: float
    stopped: str
    memory: Memory | None = None
    accuracy: Accuracy | None = None
    backend: str = ""
    compile_s: float | None = None
    recompiles: int | None = None
    counted: dict[str, float] = {}  # hardware counters and telemetry by name with unit, such as energy_j
    choice: str = ""  # autotuned configuration, where there is one


class Skipped(msgspec.Struct, frozen=True, kw_only=True, tag="skipped"):
    """Not tried, for a reason known before (predicted memory)."""

    reason: str


class Unsupported(msgspec.Struct, frozen=True, kw_only=True, tag="unsupported"):
    """The variant does not compute this problem, or cannot run on this device."""

    reason: str


class FailureKind(StrEnum):
    """How a case failed."""

    EXCEPTION = "exception"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"
    TIMEOUT = "timeout"


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """Tried, and broke."""

    kind: FailureKind
    message: str


Outcome = Measured | Skipped | Unsupported | Failed


class Severity(StrEnum):
    """How much a judgment weighs."""

    NOTE = "note"
    WARNING = "warning"
    ALARM = "alarm"


class Judgment(msgspec.Struct, frozen=True, kw_only=True):
    """A judgment with its remedy, printed beside the row."""

    code: str
    message: str
    remedy: str = ""
    severity: Severity = Severity.WARNING


def case_key(variant: str, asked: Problem, device: str, cache: str) -> str:
    """Identity of a case inside a run."""
    return f"{variant} | {asked} | {device} | {cache}"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One row: asked problem x variant x conditions, with its outcome.

    `asked` groups rows that answer one question; `problem` is what the variant really computed (a preset changes
    it).
    """

    variant: str
    asked: Problem
    problem: Problem
    device: str
    outcome: Outcome
    cost: Cost | None = None
    judgments: tuple[Judgment, ...] = ()
    started_at: str = ""
    cache: str = "warm"
    seed: int = 0

    @property
    def key(self) -> str:
        """Identity of the case inside a run: what `--resume` and `compare` match on."""
        return case_key(self.variant, self.asked, self.device, self.cache)

    @property
    def measured(self) -> Measured | None:
        """The measurement, when there is one."""
        return self.outcome if isinstance(self.outcome, Measured) else None


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What must match for two runs to be compared."""

    device: str
    device_name: str
    threads: int
    versions: dict[str, str]
    caches_bytes: dict[str, int] = {}
    memory_bytes: int = 0
    compute_capability: str = ""


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """What may differ between two runs of one machine."""

    governor: str = ""
    load_1min: float | None = None
    git_commit: str = ""
    started_at: str = ""
    finished_at: str = ""
    clock_resolution_s: float | None = None
    gpu_clock_hz: float | None = None
    temperature_c: float | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """manifest.json: how a run came to be."""

    schema: int = SCHEMA
    attnprof_version: str
    command: tuple[str, ...]
    sweep: dict[str, object]
    seed: int
    identity: Identity
    weather: Weather


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest and its rows; `damaged` names lines that could not be read."""

    manifest: Manifest | None
    records: tuple[Record, ...]
    damaged: tuple[str, ...] = ()
