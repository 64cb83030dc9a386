"""Speed-up over naive by length, growth of memory and time, and their exponents; results/analysis.json.

python analyze_attention.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from study import RESULTS, V1_VARIANTS, exponent, published_table, results

from attnprof.report.row import Row

Table = dict[str, dict[int, float]]


def table(rows: Iterable[Row], column: str, batch: int) -> Table:
    """Values of a column by variant and length, where they exist."""
    found: Table = {}
    for row in sorted(rows, key=lambda row: V1_VARIANTS.index(row.variant)):
        value = getattr(row, column)
        if row.batch == batch and value is not None:
            found.setdefault(row.variant, {})[row.q_len] = value
    return found


def growth(points: dict[int, float]) -> dict[str, float | int | None]:
    """First and last value, their ratio, and the exponent of the power law through all of them."""
    first, last = min(points), max(points)
    return {
        "from_length": first, "to_length": last, "from": points[first], "to": points[last],
        "ratio": points[last] / points[first], "exponent": exponent(points),
    }  # fmt: skip


def per_variant(found: Table) -> dict[str, dict[str, float | int | None]]:
    """Growth of every variant that has two lengths."""
    return {name: growth(points) for name, points in found.items() if len(points) > 1}


def analyze(rows: Iterable[Row]) -> dict[str, Any]:
    """Speed-ups and growth per batch size of one run."""
    rows = list(rows)
    made = {}
    for batch in sorted({row.batch for row in rows}):
        made[str(batch)] = {
            "speedup_vs_naive": table(rows, "speedup_vs_naive", batch),
            "time_us": per_variant(table(rows, "time_median_us", batch)),
            "peak_mib": per_variant(table(rows, "peak_mib", batch)),
        }
    missing = {row.variant: f"{row.outcome}: {row.reason}" for row in rows if row.outcome != "measured"}
    return {"batches": made, "without_numbers": missing}


def analyze_published() -> dict[str, Any]:
    """The same for the published RTX 2070 figures; speed-ups are recomputed from their times."""
    times = published_table("time_us")
    speedups = {
        name: {length: times["naive"][length] / value for length, value in points.items()}
        for name, points in times.items()
    }
    return {
        "speedup_vs_naive": speedups,
        "time_us": per_variant(times),
        "peak_mb": per_variant(published_table("peak_mb")),
    }


def lines(title: str, analysis: dict[str, Any], memory: str) -> Iterable[str]:
    """An analysis as text."""
    yield title
    yield "  speed-up over naive by length"
    for name, points in analysis["speedup_vs_naive"].items():
        yield f"    {name:<14}" + "".join(f"  {length}: {value:.2f}" for length, value in points.items())
    yield "  growth (first -> last length, ratio, exponent)"
    for quantity in ("time_us", memory):
        for name, g in analysis[quantity].items():
            ends = f"{g['from']:.4g} -> {g['to']:.4g}"
            yield f"    {quantity:<8} {name:<14} {ends:<20} x{g['ratio']:<7.3g} O(n^{g['exponent']:.2f})"


def main() -> None:
    """Print and write the analysis."""
    found = {name: analyze(results(name).rows) for name in ("v1", "v2")}
    found["rtx2070_published"] = analyze_published()
    (RESULTS / "analysis.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name in ("v1", "v2"):
        for batch, analysis in found[name]["batches"].items():
            print("\n".join(lines(f"{name}, batch {batch}, this machine", analysis, "peak_mib")))
    print("\n".join(lines("RTX 2070, batch 1, published", found["rtx2070_published"], "peak_mb")))


if __name__ == "__main__":
    main()
