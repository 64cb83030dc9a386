"""Measuring a few variants of one problem side by side, and writing a table of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import torch

from attnprof.bench.devices import open_device
from attnprof.bench.group import Group
from attnprof.bench.sweep import Conditions
from attnprof.core.problem import Problem
from attnprof.core.record import Measured, Record
from attnprof.core.units import MIB
from attnprof.variants.catalog import find

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def measured(problem: Problem, names: Iterable[str], conditions: Conditions) -> dict[str, Measured]:
    """One interleaved measurement of the named variants. Raises: RuntimeError when one of them gave no time."""
    records: list[Record] = []
    group = Group(problem, [find(name) for name in names], conditions, open_device(conditions.device))
    group.measure(emit=records.append, alive=lambda _: None)
    for record in records:
        if not isinstance(record.outcome, Measured):
            raise RuntimeError(f"{record.variant} on {record.problem}: {record.outcome}")
    return {record.variant: record.outcome for record in records if isinstance(record.outcome, Measured)}


def use_threads(arguments: list[str]) -> None:
    """Threads from the first argument; 1 without one: on a shared machine more of them measure its neighbours."""
    torch.set_num_threads(int(arguments[0]) if arguments else 1)


def time_s(row: Measured) -> float:
    """Median seconds of a call."""
    return median(row.samples_s)


def peak_mib(row: Measured) -> float:
    """Peak of a call without its inputs, in MiB."""
    assert row.memory is not None
    return row.memory.peak_bytes / MIB


def write(name: str, title: str, lines: list[str]) -> None:
    """Print the page and keep it under docs/results."""
    machine, threads = open_device("cpu").identity(), torch.get_num_threads()
    head = [
        f"# {title}",
        "",
        f"Made by `python -m benchmarks.{name} {threads}` on {datetime.now(UTC):%Y-%m-%d}: {machine.device_name}, "
        f"{threads} thread{'s' * (threads != 1)}, PyTorch {torch.__version__}.",
        "",
    ]
    text = "\n".join([*head, *lines]) + "\n"
    print(text)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
