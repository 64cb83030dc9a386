"""What charts are drawn from: one series of a run, cut to what an eye can read, as plain tidy values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from attnprof.report.answers import Answer, Series
from attnprof.report.row import BASELINE, Row

MAX_VARIANTS = 10
MAX_LENGTHS = 48

# Okabe and Ito's colour-blind-safe set; grey stands for its black, which a dark page would hide, and yellow comes
# last. Source: Okabe, Ito, "Color Universal Design", 2008.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#F0E442")
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """Colour and marker of a variant: the same in every chart; both together tell up to 64 variants apart."""

    color: str
    shape: str


class SeriesData(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one series that are drawn, by length, and what was left out."""

    series: Series
    points: tuple[tuple[int, Row], ...]
    styles: dict[str, Style]
    left_out: str = ""

    @property
    def lengths(self) -> tuple[int, ...]:
        """The drawn lengths."""
        return tuple(sorted({length for length, _ in self.points}))

    @property
    def variants(self) -> tuple[str, ...]:
        """The drawn variants, naive first."""
        return tuple(self.styles)


def styles(variants: Sequence[str]) -> dict[str, Style]:
    """A colour and a marker per variant; naive is always the first.

    >>> styles(["flex", "naive"])["naive"].color
    '#0072B2'
    """
    ordered = sorted(set(variants), key=lambda name: (name != BASELINE, name))
    n = len(PALETTE)
    return {
        name: Style(color=PALETTE[i % n], shape=SHAPES[(i + i // n) % len(SHAPES)])
        for i, name in enumerate(ordered)
    }


def series_data(found: Sequence[Answer], all_styles: dict[str, Style]) -> tuple[SeriesData, ...]:
    """The chart data of every series, the one with most timed rows first."""
    groups: dict[Series, list[tuple[int, Row]]] = {}
    for answer in found:
        groups.setdefault(answer.series, []).extend((answer.length, row) for row in answer.ranked)
    made = [_cut(key, points, all_styles) for key, points in groups.items()]
    return tuple(
        sorted(made, key=lambda data: -sum(row.time_median_us is not None for _, row in data.points))
    )


def _cut(key: Series, points: list[tuple[int, Row]], all_styles: dict[str, Style]) -> SeriesData:
    timed = [(length, row) for length, row in points if row.time_median_us is not None]
    lengths = _thin(sorted({length for length, _ in timed}))
    variants = _fastest(timed)
    kept = [(length, row) for length, row in timed if length in lengths and row.variant in variants]
    parts = []
    total_variants, total_lengths = (
        len({row.variant for _, row in timed}),
        len({length for length, _ in timed}),
    )
    if len(variants) < total_variants:
        parts.append(f"the {len(variants)} fastest of {total_variants} variants are drawn")
    if len(lengths) < total_lengths:
        parts.append(f"{len(lengths)} of {total_lengths} lengths are drawn")
    chosen = {name: style for name, style in all_styles.items() if name in variants}
    return SeriesData(series=key, points=tuple(kept), styles=chosen, left_out="; ".join(parts))


def _thin(lengths: list[int]) -> set[int]:
    if len(lengths) <= MAX_LENGTHS:
        return set(lengths)
    step = (len(lengths) - 1) / (MAX_LENGTHS - 1)
    return {lengths[round(i * step)] for i in range(MAX_LENGTHS)}


def _fastest(timed: Sequence[tuple[int, Row]]) -> set[str]:
    """Naive and the variants with the best mean rank over the lengths."""
    ranks: dict[str, list[int]] = {}
    by_length: dict[int, list[Row]] = {}
    for length, row in timed:
        by_length.setdefault(length, []).append(row)
    for group in by_length.values():
        for place, row in enumerate(sorted(group, key=lambda r: r.time_median_us or 0.0)):
            ranks.setdefault(row.variant, []).append(place)
    ordered = sorted(ranks, key=lambda name: (name != BASELINE, sum(ranks[name]) / len(ranks[name])))
    return set(ordered[:MAX_VARIANTS])


def tidy(data: SeriesData) -> list[dict[str, Any]]:
    """One value per drawn row, with the fields that the charts read."""
    return [
        {
            "variant": row.variant,
            "length": length,
            "verdict": row.verdict or "not checked",
            "binding": row.binding,
        }
        | {field: _short(getattr(row, column)) for field, column in _FIELDS}
        for length, row in data.points
    ]


def _short(value: float | None) -> float | None:
    """Six digits: more than an eye can see, less than a page must carry."""
    return None if value is None else float(f"{value:.6g}")


_FIELDS = (
    ("time_us", "time_median_us"),
    ("low_us", "time_ci_low_us"),
    ("high_us", "time_ci_high_us"),
    ("speedup", "speedup_vs_naive"),
    ("speedup_low", "speedup_low"),
    ("speedup_high", "speedup_high"),
    ("peak_mib", "peak_mib"),
    ("predicted_peak_mib", "predicted_peak_mib"),
    ("tflop_per_s", "tflop_per_s"),
    ("executed_tflop_per_s", "executed_tflop_per_s"),
    ("intensity", "intensity_flop_per_byte"),
    ("logical_intensity", "logical_intensity_flop_per_byte"),
    ("times_bound", "times_bound"),
    ("max_abs_error", "max_abs_error"),
    ("error_floor", "error_floor"),
)


def tidy_bytes(data: SeriesData) -> list[dict[str, Any]]:
    """One value per drawn row and kind of bytes, with level, policy and read/write split."""
    made: list[dict[str, Any]] = []
    for length, row in data.points:
        base = {"variant": row.variant, "length": length}
        made.append(
            base | {
                "kind": "compulsory (any level)", "bytes": row.compulsory_bytes, "read": row.compulsory_read_bytes,
                "write": row.compulsory_write_bytes, "policy": "each storage once",
            }
        )  # fmt: skip
        if row.logical_bytes is not None:
            made.append(
                base | {
                    "kind": f"logical ({row.logical_level})", "bytes": row.logical_bytes,
                    "read": row.logical_read_bytes, "write": row.logical_write_bytes,
                    "policy": row.logical_policy or "",
                }
            )  # fmt: skip
        if row.op_boundary_bytes is not None:
            made.append(
                base
                | {
                    "kind": "op_boundary (no cache)",
                    "bytes": row.op_boundary_bytes,
                    "policy": "operands summed",
                }
            )
    return [value for value in made if value["bytes"] > 0]
