"""The page's table as compact columns: text is stored once and referred to by number, so 10,000 rows load fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnprof.report.export import judgment_text
from attnprof.report.row import Row

# (column of Row, heading); the other columns are in results.csv and results.parquet.
SHOWN = (
    ("variant", "variant"),
    ("batch", "batch"),
    ("q_heads", "q_heads"),
    ("kv_heads", "kv_heads"),
    ("q_len", "q_len"),
    ("kv_len", "kv_len"),
    ("head_dim", "head_dim"),
    ("v_dim", "v_dim"),
    ("dtype", "dtype"),
    ("mask", "mask"),
    ("direction", "direction"),
    ("outcome", "outcome"),
    ("time_median_us", "median µs"),
    ("time_p20_us", "p20 µs"),
    ("time_p80_us", "p80 µs"),
    ("speedup_vs_naive", "× naive"),
    ("tflop_per_s", "TFLOP/s"),
    ("peak_mib", "peak MiB"),
    ("useful_flops", "useful FLOPs"),
    ("compulsory_bytes", "compulsory bytes"),
    ("logical_bytes", "logical bytes"),
    ("max_abs_error", "max abs error"),
    ("verdict", "check"),
    ("backend", "backend"),
    ("device", "device"),
    ("cache", "cache"),
)


def table_data(made: Sequence[Row]) -> list[dict[str, Any]]:
    """Columns for the page's script: numbers as they are (null = n/a), text as indices into its distinct values."""
    columns = [_column(heading, [getattr(row, name) for row in made]) for name, heading in SHOWN]
    notes = _column("notes", [_note(row) for row in made])
    return [*columns, notes, _column("details", [_details(row) for row in made]) | {"hidden": True}]


def _note(row: Row) -> str | None:
    """What fits into a cell; the details open below it."""
    if row.outcome != "measured":
        return "why"
    return ", ".join(judgment.code for judgment in row.judgments) or None


def _details(row: Row) -> str | None:
    parts = (row.reason, judgment_text(row.judgments))
    return "; ".join(part for part in parts if part) or None


def _column(heading: str, values: list[Any]) -> dict[str, Any]:
    if any(isinstance(value, str) for value in values):
        texts = sorted({str(value) for value in values if value is not None})
        index = {text: i for i, text in enumerate(texts)}
        return {
            "name": heading,
            "texts": texts,
            "values": [None if v is None else index[str(v)] for v in values],
        }
    return {"name": heading, "values": [_short(value) for value in values]}


def _short(value: Any) -> Any:
    """Six digits of a float are more than the table shows."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
