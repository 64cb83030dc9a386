"""Two runs compared: differences of the environment first, then a verdict per case, and what else changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import NormalDist, median
from typing import NamedTuple

import msgspec

from attnprof.core.record import Record, Run
from attnprof.core.stats import Interval
from attnprof.report.compare_facts import (
    Change,
    changes,
    environment_differences,
    outcome_text,
    weather_differences,
)
from attnprof.report.compare_timing import (
    Beside,
    Estimate,
    Rounds,
    as_timed,
    beside_controls,
    log_rounds,
    scatter,
    spread,
)
from attnprof.report.metrics import question

MIN_ROUNDS = 6  # below it no 95% interval of a median exists
CONFIDENCE = 0.95  # that no unchanged case of the whole comparison gets a verdict
FEWEST_FOR_SCATTER = 5
RUN_TO_RUN = 0.01  # two runs of one build differ by so much at least (placement of memory, of threads)


class CaseVerdict(StrEnum):
    """B against A."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference"
    NOT_COMPARABLE = "not comparable"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One case of both runs. Ratios are B's time over A's: above 1 is slower.

    `ratio` is what the verdict rests on; `judged` says whether it is the time itself or the time beside the
    other variants of the same question. `resolution` is the smallest change that this case could have shown.
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
    """Two runs side by side. `environment` must match for times to be judged, `versions` need not.

    `common_ratio` is the median ratio of all cases as timed: what the machine, or a version, did to all.
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
    environment, versions = environment_differences(a.manifest, b.manifest)
    rule = _Rule(threshold=threshold, barrier="; ".join(environment), one_build=not versions)
    pairs = [(in_a[key], in_b[key]) for key in shared]
    timed = _Timed(pairs, half=math.log1p(threshold / 2), absolute=absolute)
    return Comparison(
        threshold=threshold,
        environment=environment,
        versions=versions,
        weather=weather_differences(a.manifest, b.manifest),
        damaged=tuple(f"{side}: {text}" for side, run in (("A", a), ("B", b)) for text in run.damaged),
        common_ratio=timed.common_ratio,
        scatter=timed.overall_scatter,
        cases=tuple(_case(in_a[key], in_b[key], timed, rule) for key in shared),
        only_in_a=tuple(key for key in in_a if key not in in_b),
        only_in_b=tuple(key for key in in_b if key not in in_a),
    )


# --- times --------------------------------------------------------------------------------------------------


class _Timed:
    """Log ratios of every case that both runs measured often enough."""

    def __init__(self, pairs: Sequence[tuple[Record, Record]], *, half: float, absolute: bool) -> None:
        usable = [(a, b) for a, b in pairs if _why_not_timed(a, b) is None]
        groups: dict[object, list[tuple[Record, Record]]] = {}
        for a, b in usable:
            groups.setdefault(question(a), []).append((a, b))
        self.raw: dict[str, Estimate] = {}
        self.beside: dict[str, Beside] = {}
        self.variants = {a.key: a.variant for a, _ in usable}
        for group in groups.values():
            self._ratios(group, half, absolute=absolute)

    def _ratios(self, group: Sequence[tuple[Record, Record]], half: float, *, absolute: bool) -> None:
        one, other = ({pair[side].variant: _rounds(pair[side]) for pair in group} for side in (0, 1))
        for a, _ in group:
            self.raw[a.key] = as_timed(one[a.variant], other[a.variant])
            beside = None if absolute else beside_controls(a.variant, one, other, half)
            if beside is not None:
                self.beside[a.key] = beside

    def judged(self, key: str) -> Estimate:
        """The ratio that a verdict rests on."""
        return self.beside[key].ratio if key in self.beside else self.raw[key]

    def machine_moved(self, key: str) -> bool:
        """Whether all other variants of the question moved alike."""
        return key in self.beside and self.beside[key].unanimous

    def scatter(self, key: str) -> float:
        """Run-to-run scatter, at least 1%: of the other variants' cases, which a real change leaves alone.

        A case that is judged as timed has no witness of the machine's level: there the problems tell how much
        they differ from each variant's common ratio.
        """
        others = [self.judged(k) for k, variant in self.variants.items() if variant != self.variants[key]]
        known = [RUN_TO_RUN, scatter(others) if len(others) >= FEWEST_FOR_SCATTER else 0.0]
        if key not in self.beside:
            known.append(spread([self._series(variant, key) for variant in set(self.variants.values())]))
        return max(known)

    def _series(self, variant: str, but: str) -> list[Estimate]:
        return [self.raw[k] for k, name in self.variants.items() if name == variant and k != but]

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
            return f"{side} is {outcome_text(record)}"
        rounds = len(_rounds(record))
        if rounds < MIN_ROUNDS:
            return f"{side} has {rounds} rounds of samples, {MIN_ROUNDS} are needed"
    if a.problem != b.problem:
        return f"A computed {a.problem}, B {b.problem}"
    return None


class _Rule(NamedTuple):
    """How cases are judged; `barrier` is why none may be."""

    threshold: float
    barrier: str
    one_build: bool


def _case(a: Record, b: Record, timed: _Timed, rule: _Rule) -> Case:
    case = Case(
        key=a.key, variant=a.variant, asked=str(a.asked), verdict=CaseVerdict.NOT_COMPARABLE,
        reason=rule.barrier or _why_not_timed(a, b) or "", median_a_s=_median_s(a), median_b_s=_median_s(b),
        rounds_a=len(_rounds(a)), rounds_b=len(_rounds(b)), changes=tuple(changes(a, b, rule.threshold)),
    )  # fmt: skip
    if a.key not in timed.raw:
        return case
    interval = timed.interval(a.key)
    own = timed.raw[a.key].value
    witness = interval.value if rule.one_build and timed.machine_moved(a.key) else math.exp(own)
    return msgspec.structs.replace(
        case,
        verdict=case.verdict if rule.barrier else _verdict(interval, witness, rule.threshold),
        judged="beside the other variants" if a.key in timed.beside else "as timed",
        ratio=interval.value,
        ratio_low=interval.low,
        ratio_high=interval.high,
        ratio_as_timed=math.exp(own),
        resolution=max(rule.threshold, interval.high / interval.value - 1),
    )


def _verdict(ratio: Interval, witness: float, threshold: float) -> CaseVerdict:
    """Threshold and test together; `witness` must have moved the same way by half the threshold.

    The witness is the ratio as timed: an unchanged kernel gets no verdict because its neighbours changed.
    Where one build saw all neighbours move alike, that was the machine, and no witness is needed.
    """
    limit, half = math.log1p(threshold), math.log1p(threshold / 2)
    moved, seen = math.log(ratio.value), math.log(witness)
    if moved > limit and ratio.low > 1 and seen > half:
        return CaseVerdict.SLOWER
    if moved < -limit and ratio.high < 1 and seen < -half:
        return CaseVerdict.FASTER
    return CaseVerdict.SAME


def _median_s(record: Record) -> float | None:
    return median(record.measured.samples_s) if record.measured and record.measured.samples_s else None


def by_verdict(cases: Sequence[Case]) -> Mapping[CaseVerdict, tuple[Case, ...]]:
    """Cases grouped by verdict, in the order slower, faster, not comparable, no difference."""
    order = (CaseVerdict.SLOWER, CaseVerdict.FASTER, CaseVerdict.NOT_COMPARABLE, CaseVerdict.SAME)
    return {verdict: tuple(case for case in cases if case.verdict is verdict) for verdict in order}
