"""Measured ceilings of this machine, and where the rows of a run stand under them: docs/results/ceilings.md.

    attnprof ceilings && attnprof run --out DIR && python benchmarks/ceilings_table.py DIR

Run it on an idle machine: other load lowers ceilings and times alike, and the page says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

import attnprof
from attnprof.cli.ceilings import warnings
from attnprof.core.ceilings import Ceilings
from attnprof.core.units import format_seconds, format_si
from attnprof.report.load import Results
from attnprof.report.row import Row

OUT = Path(__file__).parent.parent / "docs" / "results" / "ceilings.md"


def ceilings_tables(found: Ceilings) -> list[str]:
    """Rates, then bandwidth by level and kernel."""
    lines = ["| ceiling | best | median below it | conditions |", "|---|---|---|---|"]
    for title, unit, rates in (("matmul", "FLOP/s", found.flops), ("exp", "exp/s", found.exp)):
        for name, rate in rates.items():
            best = format_si(rate.best, unit)
            lines.append(f"| {title} {name} | {best} | {rate.spread:.0%} | {rate.conditions} |")
    floor = found.floor_s
    lines.append(f"| empty call | {format_seconds(floor.best)} | {floor.spread:.0%} | {floor.conditions} |")
    lines += ["", "| level | threads | read | write | copy | triad |", "|---|---|---|---|---|---|"]
    for threads, levels in ((found.identity.threads, found.bandwidth), (1, found.core_bandwidth)):
        for level, kernels in levels.items():
            cells = " | ".join(format_si(rate.best, "B/s", 3) for rate in kernels.values())
            lines.append(f"| {level} | {threads} | {cells} |")
    return lines


def placed_line(row: Row) -> str:
    """One row of the run under its roof."""
    shares = " | ".join(
        "n/a" if s is None else f"{s:.1%}" for s in (row.matmul_share, row.exp_share, row.memory_share)
    )
    alarms = "; ".join(j.message for j in row.judgments if j.code == "above_ceiling") or "none"
    bound = f"{row.times_bound:.3g} | {row.binding}"
    return (
        f"| {row.variant} | {row.q_len} | {row.dtype} | {bound} | {shares} | {row.memory_level} | {alarms} |"
    )


def page(results: Results) -> str:
    """The page. Raises: SystemExit when the run's device has no ceilings."""
    found, reason = results.ceilings
    if found is None:
        sys.exit(reason)
    placed = [row for row in results.rows if row.times_bound is not None]
    doubts = [f"**{line}**" for line in warnings(found)]
    head = f"{found.identity.device_name}, {found.identity.threads} threads, {found.measured_at}."
    columns = "| variant | N | dtype | times bound | binding | matmul | exp | memory | level | alarms |"
    return "\n".join([
        "# Ceilings of this machine, and a sweep under them", "", head, "", *doubts, "", *ceilings_tables(found), "",
        f"{len(placed)} measured rows; `times bound` is the measured time over the longest least time.", "",
        columns, "|" + "---|" * 10, *map(placed_line, placed), "",
    ])  # fmt: skip


if __name__ == "__main__":
    OUT.write_text(page(attnprof.load(sys.argv[1])))
    print(f"written to {OUT}")
