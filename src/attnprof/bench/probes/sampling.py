"""A probe and how it is sampled: known work over the shortest of several times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from attnprof.bench.devices.base import Call, Device
from attnprof.core.ceilings import Rate

FEWEST_SAMPLES = 3
USUAL_SAMPLES = 5
MOST_SAMPLES = 50
TARGET_SAMPLE_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One ceiling to measure. `make` allocates and returns the call; `work` is what one call does.

    `path` says where its rate goes: ("flops", "float32"), ("bandwidth", "L2", "copy"), ("floor_s",).
    """

    path: tuple[str, ...]
    work: float
    make: Callable[[], Call]
    conditions: str

    @property
    def title(self) -> str:
        """What a progress bar shows."""
        return " ".join(self.path)


def sample(device: Device, probe: Probe, budget_s: float) -> Rate:
    """Rate of a probe: its best sample, with median and spread, within about `budget_s` seconds.

    The best is the ceiling, since everything that disturbs a measurement only slows it.
    """
    call = probe.make()
    call()
    device.synchronize()
    once = device.time_calls(call, 1)
    calls = max(1, math.ceil(min(TARGET_SAMPLE_S, budget_s / USUAL_SAMPLES) / max(once, 1e-9)))
    affordable = int(budget_s / max(once * calls, 1e-9))
    count = min(MOST_SAMPLES, max(FEWEST_SAMPLES, affordable))
    times = [device.time_calls(call, calls) for _ in range(count)]
    best, middle = probe.work / min(times), probe.work / median(times)
    return Rate(
        best=best, median=middle, spread=1 - middle / best, samples=count, conditions=probe.conditions
    )


def sample_seconds(device: Device, probe: Probe, budget_s: float) -> Rate:
    """Seconds of one call of a probe, for ceilings that are times (the floor): best is the shortest."""
    rate = sample(device, probe, budget_s)
    return Rate(
        best=probe.work / rate.best,
        median=probe.work / rate.median,
        spread=rate.spread,
        samples=rate.samples,
        conditions=rate.conditions,
    )


def repeated(call: Call, count: int) -> Call:
    """So many calls as one."""

    def all_calls() -> None:
        for _ in range(count):
            call()

    return all_calls
