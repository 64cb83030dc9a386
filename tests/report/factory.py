"""Records built by hand for the tests of the reading wing."""

from __future__ import annotations

from typing import Any

from attnprof.core.ceilings import Ceilings, Rate
from attnprof.core.mask import Causal
from attnprof.core.problem import Problem
from attnprof.core.record import (
    Accuracy,
    Identity,
    Manifest,
    Measured,
    Memory,
    Record,
    Verdict,
    Weather,
)
from attnprof.core.schedules.eager import naive_cost
from attnprof.core.units import MIB

HOSTILE = "<script>alert(1)</script>"
US = 1e-6


def problem(length: int = 1024, **changes: Any) -> Problem:
    """A causal problem of the study's shape."""
    sizes: dict[str, Any] = {"q_heads": 12, "q_len": length, "head_dim": 64, "mask": Causal()}
    return Problem(**(sizes | changes))


def measured(median_us: float = 100.0, **changes: Any) -> Measured:
    """Nine samples in nine rounds, within 2% of the median."""
    samples = tuple(median_us * US * (1 + 0.004 * step) for step in (0, 1, -1, 2, -2, 3, -3, 4, -4))
    facts: dict[str, Any] = {
        "samples_s": samples,
        "rounds": tuple(range(len(samples))),
        "calls_per_sample": 10,
        "warmup_calls": 3,
        "first_call_s": 5 * median_us * US,
        "prepare_s": 1e-4,
        "floor_s": 1e-7,
        "stopped": "interval",
        "memory": Memory(peak_bytes=12 * MIB, output_bytes=3 * MIB, method="allocator"),
        "accuracy": Accuracy(
            verdict=Verdict.PASS, max_abs_error=1e-7, rel_l2_error=2e-7, naive_error=1e-7, floor=3e-8
        ),
        "backend": "flash",
    }
    return Measured(**(facts | changes))


def record(variant: str = "naive", length: int = 1024, outcome: Any = None, **changes: Any) -> Record:
    """A record of `variant` on `problem(length)`, measured unless another outcome is given."""
    asked = changes.pop("asked", None) or problem(length)
    facts: dict[str, Any] = {
        "problem": asked,
        "device": "cpu",
        "outcome": outcome or measured(),
        "cost": naive_cost(asked),
    }
    return Record(variant=variant, asked=asked, **(facts | changes))


def sweep(lengths: tuple[int, ...] = (256, 512, 1024, 2048)) -> tuple[Record, ...]:
    """naive and flash over lengths: flash wins from 512 on; memory grows as N^2 and as N."""
    made = []
    for length in lengths:
        scale = length / 256
        naive = measured(
            100 * scale**2, memory=Memory(peak_bytes=int(MIB * scale**2), output_bytes=9, method="x")
        )
        flash = measured(120 * scale, memory=Memory(peak_bytes=int(MIB * scale), output_bytes=9, method="x"))
        made += [record("naive", length, naive), record("sdpa_flash", length, flash)]
    return tuple(made)


def manifest(**changes: Any) -> Manifest:
    """How a run came to be, on a machine whose name has quotes."""
    identity = Identity(device="cpu", device_name='Zen "4" <b>', threads=2, versions={"torch": "2.13.0"})
    facts: dict[str, Any] = {
        "attnprof_version": "0.1.0",
        "command": ("attnprof", "run", "--out", "a path"),
        "sweep": {},
        "seed": 0,
        "identity": identity,
        "weather": Weather(started_at="2026-11-29T12:00:00Z"),
    }
    return Manifest(**(facts | changes))


def ceilings(peak_flops_per_s: float = 100e12, dtype: str = "float32") -> Ceilings:
    """Ceilings of the manifest's machine: two levels of memory and a matmul rate."""
    levels = {"L2": 5e12, "DRAM": 1e12}
    return Ceilings(
        identity=manifest().identity,
        weather=Weather(),
        measured_at="2026-11-29T12:00:00Z",
        flops={dtype: _rate(peak_flops_per_s)},
        exp={dtype: _rate(1e12)},
        bandwidth={name: {"read": _rate(value)} for name, value in levels.items()},
        capacities_bytes={"L2": 40 * MIB, "DRAM": 80 * 1024 * MIB},
        floor_s=_rate(1e-7),
    )


def _rate(best: float) -> Rate:
    return Rate(best=best, median=best, spread=0.0, samples=9, conditions="")
