"""Two runs compared: differences of the environment first, then a verdict per case, and what else changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import median
from typing import NamedTuple

import msgspec

from attnprof.core.record import Record, Run
from attnprof.core.stats import Interval
from attnprof.report.compare_facts import (
    Change,
    changes,
    environment_differences,
    weather_differences,
)
from attnprof.report.compare_ratios import Ratios, exp, rounds_of, why_not_timed


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

    @property
    def judged(self) -> int:
        """How many cases got a verdict on their times."""
        return len(self.cases) - self.count(CaseVerdict.NOT_COMPARABLE)

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
    timed = Ratios(pairs, half=math.log1p(threshold / 2), absolute=absolute)
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


class _Rule(NamedTuple):
    """How cases are judged; `barrier` is why none may be."""

    threshold: float
    barrier: str
    one_build: bool


def _case(a: Record, b: Record, timed: Ratios, rule: _Rule) -> Case:
    case = Case(
        key=a.key, variant=a.variant, asked=str(a.asked), verdict=CaseVerdict.NOT_COMPARABLE,
        reason=rule.barrier or why_not_timed(a, b) or "", median_a_s=_median_s(a), median_b_s=_median_s(b),
        rounds_a=len(rounds_of(a)), rounds_b=len(rounds_of(b)), changes=tuple(changes(a, b, rule.threshold)),
    )  # fmt: skip
    if a.key not in timed.raw:
        return case
    interval = timed.interval(a.key)
    own = timed.raw[a.key].value
    witness = interval.value if rule.one_build and timed.machine_moved(a.key) else exp(own)
    return msgspec.structs.replace(
        case,
        verdict=case.verdict if rule.barrier else _verdict(interval, witness, rule.threshold),
        judged="beside the other variants" if a.key in timed.beside else "as timed",
        ratio=interval.value,
        ratio_low=interval.low,
        ratio_high=interval.high,
        ratio_as_timed=exp(own),
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
