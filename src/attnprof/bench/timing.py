"""Sampling: warm-up until stable, samples well above the clock's floor, variants of a problem in interleaved rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from attnprof.bench.devices.base import Device
from attnprof.bench.sweep import Conditions
from attnprof.core.stats import median_interval

Call = Callable[[], Any]

TARGET_SAMPLE_S = 1e-3
FLOOR_MULTIPLE = 200  # a sample is at least so many times the measured cost of an empty call
MAX_CALLS = 20_000
WARM_UP_S = 0.25
STABLE_SHARE = 0.1
FEWEST_SAMPLES = 3
LEAST_SHARE = (
    0.1  # of the budget is always sampled: a burst of quick calls tells nothing of a machine's drift
)
HARD_BUDGET_MULTIPLE = 10  # a case so far over its budget stops before min_rounds


@dataclass(kw_only=True)
class Series:
    """One case being sampled. Not a value: it grows while its case runs."""

    call: Call
    scope: Callable[[], AbstractContextManager[Any]]
    calls_per_sample: int
    warmup_calls: int
    samples_s: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    spent_s: float = 0.0
    stopped: str = ""

    def take(self, device: Device, cache: str, number: int) -> None:
        """One sample: seconds per call, in round `number`."""
        with self.scope():
            if cache == "cold":
                device.flush_cache()
            seconds = device.time_calls(self.call, self.calls_per_sample)
        self.samples_s.append(seconds)
        self.rounds.append(number)
        self.spent_s += seconds * self.calls_per_sample

    def stop_reason(self, conditions: Conditions) -> str:
        """Why no further sample is needed; empty when one is."""
        taken = len(self.samples_s)
        over_budget = self.spent_s > conditions.budget_s
        if taken >= FEWEST_SAMPLES and self.spent_s > HARD_BUDGET_MULTIPLE * conditions.budget_s:
            return f"time budget spent {HARD_BUDGET_MULTIPLE} times over ({taken} samples)"
        if taken < conditions.min_rounds or (
            self.spent_s < LEAST_SHARE * conditions.budget_s and taken < conditions.max_rounds
        ):
            return ""
        width = median_interval(self.samples_s).relative_width
        if width <= conditions.precision:
            return f"interval of the median within {conditions.precision:.0%}"
        if over_budget or taken >= conditions.max_rounds:
            return f"time budget spent (interval {width:.1%})"
        return ""


def warm_up(device: Device, call: Call) -> tuple[int, float]:
    """Call until three successive times agree within 10%, or the warm-up budget is spent.

    Returns (calls made, seconds of the last call).
    """
    times: list[float] = []
    while sum(times) < WARM_UP_S or len(times) < 2:
        times.append(device.time_calls(call, 1))
        recent = times[-3:]
        if len(recent) == 3 and max(recent) <= (1 + STABLE_SHARE) * min(recent):
            break
    return len(times), times[-1]


def calls_per_sample(call_s: float, floor_s: float, cache: str) -> int:
    """Calls in one sample so that it is well above the clock's floor; 1 when every call must find a cold cache."""
    if cache == "cold":
        return 1
    target = max(TARGET_SAMPLE_S, FLOOR_MULTIPLE * floor_s)
    return min(MAX_CALLS, max(1, math.ceil(target / max(call_s, 1e-9))))


def measure_floor(device: Device) -> float:
    """Seconds of an empty call: the smallest time that can be told from nothing."""
    return min(device.time_calls(_nothing, 100) for _ in range(5))


def _nothing() -> None:
    return None


def sample_rounds(
    device: Device, names: Iterable[str], series: dict[str, Series], conditions: Conditions,
    before: Callable[[str], None], failed: Callable[[str, Exception], None], done: Callable[[str], None],
) -> None:  # fmt: skip
    """Sample all series in interleaved rounds until each has stopped; the order rotates from round to round.

    `before(name)` is called ahead of each sample (sign of life), `failed` when a sample raises, `done` when a series
    stops; a failed series leaves the others running.
    """
    active = list(names)
    number = 0
    while active:
        shift = number % len(active)
        for name in active[shift:] + active[:shift]:
            before(name)
            try:
                series[name].take(device, conditions.cache, number)
            except Exception as error:  # any kernel may raise anything; the sweep goes on
                failed(name, error)
                active.remove(name)
                continue
            series[name].stopped = series[name].stop_reason(conditions)
            if series[name].stopped:
                done(name)
                active.remove(name)
        number += 1
