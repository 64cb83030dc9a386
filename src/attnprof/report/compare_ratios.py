"""Ratios of all cases of two runs, with intervals that hold for all of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, median

from attnprof.core.record import Record
from attnprof.core.stats import Interval
from attnprof.report.compare_facts import outcome_text
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
_LARGEST_LOG = 700.0  # of a ratio that is still a float
RUN_TO_RUN = 0.01  # two runs of one build differ by so much at least (placement of memory, of threads)


class Ratios:
    """Log ratios of every case that both runs measured often enough."""

    def __init__(self, pairs: Sequence[tuple[Record, Record]], *, half: float, absolute: bool) -> None:
        usable = [(a, b) for a, b in pairs if why_not_timed(a, b) is None]
        groups: dict[object, list[tuple[Record, Record]]] = {}
        for a, b in usable:
            groups.setdefault(question(a), []).append((a, b))
        self.raw: dict[str, Estimate] = {}
        self.beside: dict[str, Beside] = {}
        self.variants = {a.key: a.variant for a, _ in usable}
        for group in groups.values():
            self._ratios(group, half, absolute=absolute)
        self._others = {name: self._scatter_without(name) for name in set(self.variants.values())}
        self._lengths = spread([self._series(name) for name in self._others])

    def _ratios(self, group: Sequence[tuple[Record, Record]], half: float, *, absolute: bool) -> None:
        one, other = ({pair[side].variant: rounds_of(pair[side]) for pair in group} for side in (0, 1))
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
        """Run-to-run scatter, at least 1%: that of the other variants' cases, which a real change leaves alone.

        A case that is judged as timed has no witness of the machine's level: there the problems tell how much
        they differ from each variant's common ratio.
        """
        lengths = 0.0 if key in self.beside else self._lengths
        return max(RUN_TO_RUN, self._others[self.variants[key]], lengths)

    def _scatter_without(self, variant: str) -> float:
        others = [self.judged(key) for key, name in self.variants.items() if name != variant]
        return scatter(others) if len(others) >= FEWEST_FOR_SCATTER else 0.0

    def _series(self, variant: str) -> list[Estimate]:
        return [self.raw[key] for key, name in self.variants.items() if name == variant]

    @property
    def overall_scatter(self) -> float:
        """Run-to-run scatter over all cases."""
        return scatter([self.judged(key) for key in self.raw])

    @property
    def common_ratio(self) -> float | None:
        """Median ratio of all cases as timed."""
        return exp(median(ratio.value for ratio in self.raw.values())) if self.raw else None

    def interval(self, key: str) -> Interval:
        """Ratio with an interval that holds for all cases together with 95%."""
        judged = self.judged(key)
        tail = (1 - CONFIDENCE) / 2 / max(len(self.raw), 1)
        half = NormalDist().inv_cdf(1 - tail) * math.hypot(judged.error, self.scatter(key))
        low, value, high = (exp(judged.value + step) for step in (-half, 0.0, half))
        return Interval(value, low, high)


def exp(logarithm: float) -> float:
    """A ratio from its logarithm, kept inside what a float can hold (0.0 and infinity are no ratios)."""
    return math.exp(min(max(logarithm, -_LARGEST_LOG), _LARGEST_LOG))


def rounds_of(record: Record) -> Rounds:
    """A record's log time by round; empty when it was not measured."""
    return log_rounds(record.measured) if record.measured else {}


def why_not_timed(a: Record, b: Record) -> str | None:
    """Why two records of one case have no ratio; None when they have one."""
    for side, record in (("A", a), ("B", b)):
        if record.measured is None:
            return f"{side} is {outcome_text(record)}"
        rounds = len(rounds_of(record))
        if rounds < MIN_ROUNDS:
            return f"{side} has {rounds} rounds of samples, {MIN_ROUNDS} are needed"
    if a.problem != b.problem:
        return f"A computed {a.problem}, B {b.problem}"
    return None
