"""A run as the JSON list that continuous-benchmark actions read (`customSmallerIsBetter`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from attnprof.core.record import Measured, Record, Run
from attnprof.core.stats import median_interval
from attnprof.core.units import MIB

MICRO = 1e6


def benchmark_entries(run: Run) -> list[dict[str, Any]]:
    """Two entries a measured row, smaller is better: its median time in us and its peak memory in MiB.

    Rows without a measurement have no entry (an action would draw a 0); a wrong result says so in `extra`.
    """
    return [entry for record in run.records for entry in _entries(record)]


def write_benchmark_json(run: Run, path: Path) -> None:
    """Write benchmark.json: the entries of `benchmark_entries`."""
    path.write_text(json.dumps(benchmark_entries(run), allow_nan=False, indent=1), encoding="utf-8")


def _entries(record: Record) -> Iterator[dict[str, Any]]:
    done = record.measured
    if done is None or not done.samples_s:
        return
    extra = _extra(record, done)
    yield {
        "name": f"{record.key} | time",
        "unit": "us",
        "value": median(done.samples_s) * MICRO,
        "range": _range(done),
        "extra": extra,
    }
    if done.memory is not None:
        peak = done.memory.peak_bytes / MIB
        yield {"name": f"{record.key} | peak memory", "unit": "MiB", "value": peak, "extra": extra}


def _range(done: Measured) -> str:
    interval = median_interval(done.samples_s)
    return f"± {(interval.high - interval.low) / 2 * MICRO:.4g}"


def _extra(record: Record, done: Measured) -> str:
    verdict = done.accuracy.verdict if done.accuracy else "not checked"
    lines = [
        f"computes: {record.problem}",
        f"samples: {len(done.samples_s)}",
        f"backend: {done.backend or 'unknown'}",
        f"result: {verdict}",
    ]
    return "\n".join(lines)
