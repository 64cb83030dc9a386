"""Two runs compared: what differs in the environment first, then a verdict per case, and what else changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from statistics import NormalDist, median

import msgspec

from attnprof.core.record import Manifest, Measured, Record, Run, Verdict
from attnprof.core.stats import Interval
from attnprof.report.compare_timing import Estimate, Rounds, as_timed, beside_controls, log_rounds, scatter
from attnprof.report.metrics import question
from attnprof.store.runs import identity_differences

MIN_ROUNDS = 6  # below it no 95% interval of a median exists
CONFIDENCE = 0.95  # that no unchanged case of the whole comparison gets a verdict
FEWEST_FOR_SCATTER = 5
RUN_TO_RUN = 0.01  # two runs of one build differ by so much at least (placement of memory, of threads)
MIN_MEMORY_CHANGE_BYTES = 2**20


class CaseVerdict(StrEnum):
    """B against A."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference"
    NOT_COMPARABLE = "not comparable"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something else than time that changed; `regression` trips the gate."""

    what: str
    text: str
    regression: bool = False


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One case of both runs. Ratios are B's time over A's: above 1 is slower.

    `ratio` is what the verdict rests on; `judged` says whether it is the time itself or the time beside the other
    variants of the same question. `resolution` is the smallest change that this case could have shown.
    """

    key: str
    variant: str
    asked: str
    verdict: CaseVerdict
    reason: str = ""
    judged: str = ""
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    ratio_as_timed: float | None = None
    resolution: float | None = None
    median_a_s: float | None = None
    median_b_s: float | None = None
    rounds_a: int = 0
    rounds_b: int = 0
    changes: tuple[Change, ...] = ()

    @property
    def regression(self) -> bool:
        """Whether this case trips the gate."""
        return self.verdict is CaseVerdict.SLOWER or any(change.regression for change in self.changes)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side. `environment` must match for times to be judged, `versions` and `weather` may differ.

    `common_ratio` is the median of all cases' times, B over A: what the machine, or a version, did to everything.
    """

    threshold: float
    environment: tuple[str, ...]
    versions: tuple[str, ...]
    weather: tuple[str, ...]
    damaged: tuple[str, ...]
    common_ratio: float | None
    scatter: float
    cases: tuple[Case, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]

    @property
    def regressions(self) -> tuple[Case, ...]:
        """The cases that trip the gate."""
        return tuple(case for case in self.cases if case.regression)

    def count(self, verdict: CaseVerdict) -> int:
        """How many cases got a verdict."""
        return sum(case.verdict is verdict for case in self.cases)


def compare(a: Run, b: Run, *, threshold: float = 0.05, absolute: bool = False) -> Comparison:
    """Compare run `b` with run `a`, case by case; a case is one `Record.key`.

    A verdict needs both: a ratio beyond `threshold`, and an interval (95% for all cases together) without 1.
    `absolute` judges the times as they are, without taking out what moved all variants alike.
    """
    in_a, in_b = ({record.key: record for record in run.records} for run in (a, b))
    shared = [key for key in in_a if key in in_b]
    environment, versions = _environment(a.manifest, b.manifest)
    timed = _Timed([(in_a[key], in_b[key]) for key in shared], absolute=absolute)
    barrier = _barrier(environment)
    return Comparison(
        threshold=threshold,
        environment=environment,
        versions=versions,
        weather=_weather(a.manifest, b.manifest),
        damaged=tuple(f"{side}: {text}" for side, run in (("A", a), ("B", b)) for text in run.damaged),
        common_ratio=timed.common_ratio,
        scatter=timed.overall_scatter,
        cases=tuple(_case(in_a[key], in_b[key], timed, threshold, barrier) for key in shared),
        only_in_a=tuple(key for key in in_a if key not in in_b),
        only_in_b=tuple(key for key in in_b if key not in in_a),
    )


# --- environment --------------------------------------------------------------------------------------------


def _environment(a: Manifest | None, b: Manifest | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Differences of machine and threads, and differences of versions (which are often what is compared)."""
    if a is None or b is None:
        sides = [side for side, manifest in (("A", a), ("B", b)) if manifest is None]
        return tuple(f"environment of {side}: unknown, its manifest cannot be read" for side in sides), ()
    found = identity_differences(a.identity, b.identity)
    versions = [text for text in found if text.split(":")[0].endswith(" version")]
    if a.attnprof_version != b.attnprof_version:
        versions.insert(0, f"attnprof version: {a.attnprof_version} -> {b.attnprof_version}")
    return tuple(text for text in found if text not in versions), tuple(versions)


def _barrier(environment: Sequence[str]) -> str:
    return "; ".join(environment)


def _weather(a: Manifest | None, b: Manifest | None) -> tuple[str, ...]:
    if a is None or b is None:
        return ()
    one, other = (msgspec.structs.asdict(manifest.weather) for manifest in (a, b))
    times = ("started_at", "finished_at", "clock_resolution_s")
    names = [name for name in one if name not in times and one[name] != other[name]]
    return tuple(f"{name}: {_known(one[name])} -> {_known(other[name])}" for name in names)


def _known(value: object) -> str:
    return "unknown" if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)


# --- times --------------------------------------------------------------------------------------------------


class _Timed:
    """Log ratios of every case that both runs measured often enough."""

    def __init__(self, pairs: Sequence[tuple[Record, Record]], *, absolute: bool) -> None:
        usable = [(a, b) for a, b in pairs if _why_not_timed(a, b) is None]
        groups: dict[object, list[tuple[Record, Record]]] = {}
        for a, b in usable:
            groups.setdefault(question(a), []).append((a, b))
        self.raw: dict[str, Estimate] = {}
        self.beside: dict[str, Estimate] = {}
        self.variants = {a.key: a.variant for a, _ in usable}
        for group in groups.values():
            self._ratios(group, absolute=absolute)

    def _ratios(self, group: Sequence[tuple[Record, Record]], *, absolute: bool) -> None:
        one, other = ({pair[side].variant: _rounds(pair[side]) for pair in group} for side in (0, 1))
        for a, _ in group:
            self.raw[a.key] = as_timed(one[a.variant], other[a.variant])
            beside = None if absolute else beside_controls(a.variant, one, other)
            if beside is not None:
                self.beside[a.key] = beside

    def judged(self, key: str) -> Estimate:
        """The ratio that a verdict rests on."""
        return self.beside.get(key, self.raw[key])

    def scatter(self, key: str) -> float:
        """Run-to-run scatter seen in the other variants' cases, at least 1%."""
        others = [self.judged(k) for k, variant in self.variants.items() if variant != self.variants[key]]
        return max(RUN_TO_RUN, scatter(others) if len(others) >= FEWEST_FOR_SCATTER else 0.0)

    @property
    def overall_scatter(self) -> float:
        """Run-to-run scatter over all cases."""
        return scatter([self.judged(key) for key in self.raw])

    @property
    def common_ratio(self) -> float | None:
        """Median ratio of all cases as timed."""
        return math.exp(median(ratio.value for ratio in self.raw.values())) if self.raw else None

    def interval(self, key: str) -> Interval:
        """Ratio with an interval that holds for all cases together with 95%."""
        judged = self.judged(key)
        tail = (1 - CONFIDENCE) / 2 / max(len(self.raw), 1)
        half = NormalDist().inv_cdf(1 - tail) * math.hypot(judged.error, self.scatter(key))
        return Interval(math.exp(judged.value), math.exp(judged.value - half), math.exp(judged.value + half))


def _rounds(record: Record) -> Rounds:
    return log_rounds(record.measured) if record.measured else {}


def _why_not_timed(a: Record, b: Record) -> str | None:
    for side, record in (("A", a), ("B", b)):
        if record.measured is None:
            return f"{side} is {_outcome(record)}"
        rounds = len(_rounds(record))
        if rounds < MIN_ROUNDS:
            return f"{side} has {rounds} rounds of samples, {MIN_ROUNDS} are needed"
    if a.problem != b.problem:
        return f"A computed {a.problem}, B {b.problem}"
    return None


def _outcome(record: Record) -> str:
    outcome = record.outcome
    tag = str(outcome.__struct_config__.tag)
    return f"{tag}: {getattr(outcome, 'reason', '') or getattr(outcome, 'message', '')}".rstrip(": ")


def _case(a: Record, b: Record, timed: _Timed, threshold: float, barrier: str) -> Case:
    case = Case(
        key=a.key, variant=a.variant, asked=str(a.asked), verdict=CaseVerdict.NOT_COMPARABLE,
        reason=barrier or _why_not_timed(a, b) or "", median_a_s=_median_s(a), median_b_s=_median_s(b),
        rounds_a=len(_rounds(a)), rounds_b=len(_rounds(b)), changes=tuple(_changes(a, b, threshold)),
    )  # fmt: skip
    if a.key not in timed.raw:
        return case
    interval = timed.interval(a.key)
    as_timed_ratio = math.exp(timed.raw[a.key].value)
    return msgspec.structs.replace(
        case,
        verdict=case.verdict if barrier else _verdict(interval, as_timed_ratio, threshold),
        judged="beside the other variants" if a.key in timed.beside else "as timed",
        ratio=interval.value,
        ratio_low=interval.low,
        ratio_high=interval.high,
        ratio_as_timed=as_timed_ratio,
        resolution=max(threshold, interval.high / interval.value - 1),
    )


def _verdict(ratio: Interval, as_timed_ratio: float, threshold: float) -> CaseVerdict:
    """Threshold and test together; the time itself must have moved the same way, by half the threshold at least.

    That last rule keeps an unchanged kernel from a verdict when its neighbours changed.
    """
    limit, half = math.log1p(threshold), math.log1p(threshold / 2)
    moved, timed = math.log(ratio.value), math.log(as_timed_ratio)
    if moved > limit and ratio.low > 1 and timed > half:
        return CaseVerdict.SLOWER
    if moved < -limit and ratio.high < 1 and timed < -half:
        return CaseVerdict.FASTER
    return CaseVerdict.SAME


def _median_s(record: Record) -> float | None:
    return median(record.measured.samples_s) if record.measured and record.measured.samples_s else None


# --- what else changed --------------------------------------------------------------------------------------


def _changes(a: Record, b: Record, threshold: float) -> Iterator[Change]:
    if a.outcome.__struct_config__.tag != b.outcome.__struct_config__.tag:
        failed = a.measured is not None and b.outcome.__struct_config__.tag == "failed"
        yield Change(what="outcome", text=f"{_outcome(a)} -> {_outcome(b)}", regression=failed)
    if a.measured and b.measured:
        yield from _measured_changes(a.measured, b.measured, threshold)


def _measured_changes(a: Measured, b: Measured, threshold: float) -> Iterator[Change]:
    if a.memory and b.memory:
        grown = b.memory.peak_bytes - a.memory.peak_bytes
        if abs(grown) >= max(MIN_MEMORY_CHANGE_BYTES, threshold * a.memory.peak_bytes):
            mib = [f"{memory.peak_bytes / 2**20:.2f} MiB" for memory in (a.memory, b.memory)]
            yield Change(what="peak memory", text=" -> ".join(mib), regression=grown > 0)
    if a.backend != b.backend:
        yield Change(what="backend", text=f"{a.backend or 'unknown'} -> {b.backend or 'unknown'}")
    if a.accuracy and b.accuracy and a.accuracy.verdict is not b.accuracy.verdict:
        worse = b.accuracy.verdict in (Verdict.WRONG, Verdict.NAN)
        yield Change(
            what="error verdict", text=f"{a.accuracy.verdict} -> {b.accuracy.verdict}", regression=worse
        )


def by_verdict(cases: Sequence[Case]) -> Mapping[CaseVerdict, tuple[Case, ...]]:
    """Cases grouped by verdict, in the order slower, faster, not comparable, no difference."""
    order = (CaseVerdict.SLOWER, CaseVerdict.FASTER, CaseVerdict.NOT_COMPARABLE, CaseVerdict.SAME)
    return {verdict: tuple(case for case in cases if case.verdict is verdict) for verdict in order}
