"""Measure every ceiling of a device and gather them in one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from time import perf_counter
from types import ModuleType
from typing import Any

from attnprof.bench.devices.base import Device
from attnprof.bench.probes.sampling import Probe, sample, sample_seconds
from attnprof.core.ceilings import Ceilings, Rate

Progress = Callable[[int, int, str], None]  # probes done, probes in all, title of the next

BUDGET_S = 40.0


def unseen(done: int, total: int, title: str) -> None:
    """The progress of a caller that shows none."""


def probes_of(device: Device) -> list[Probe]:
    """The probes for this kind of device."""
    return list(_probes_module(device).probes(device))


def _probes_module(device: Device) -> ModuleType:
    if device.name.startswith("cuda"):
        from attnprof.bench.probes import cuda

        return cuda
    from attnprof.bench.probes import cpu

    return cpu


def measure(
    device: Device,
    probes: Iterable[Probe],
    *,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = perf_counter,
    progress: Progress = unseen,
) -> Ceilings:
    """Run the probes within about `budget_s` seconds and gather their rates; of several with one path the best stays.

    Each probe may take an equal part of the time that is left.

    A probe that cannot run (no Triton, no kernel for its type) is named in `unavailable` with its reason.
    """
    queue = list(probes)
    found: dict[tuple[str, ...], Rate] = {}
    unavailable: dict[str, str] = {}
    started, until = datetime.now(UTC), clock() + budget_s
    for done, probe in enumerate(queue):
        progress(done, len(queue), probe.title)
        try:
            rate = _rate(device, probe, max(0.0, until - clock()) / (len(queue) - done))
        except (ImportError, RuntimeError, NotImplementedError, AttributeError) as error:
            unavailable[probe.title] = f"{type(error).__name__}: {error}"
            continue
        known = found.get(probe.path)
        found[probe.path] = rate if known is None else _better(probe, known, rate)
    progress(len(queue), len(queue), "done")
    return _ceilings(device, found, unavailable, started.isoformat(timespec="seconds"))


def _rate(device: Device, probe: Probe, budget_s: float) -> Rate:
    return (sample_seconds if probe.path == ("floor_s",) else sample)(device, probe, budget_s)


def _better(probe: Probe, first: Rate, second: Rate) -> Rate:
    sign = -1 if probe.path == ("floor_s",) else 1
    return max(first, second, key=lambda rate: sign * rate.best)


def _ceilings(
    device: Device, found: dict[tuple[str, ...], Rate], unavailable: dict[str, str], measured_at: str
) -> Ceilings:
    identity = device.identity()
    nested: dict[str, Any] = {"flops": {}, "exp": {}, "bandwidth": {}, "core_bandwidth": {}}
    for path, rate in found.items():
        place = nested
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = rate
    return Ceilings(
        identity=identity,
        weather=device.weather(),
        measured_at=measured_at,
        capacities_bytes=_probes_module(device).capacities(identity),
        unavailable=unavailable,
        **nested,
    )
