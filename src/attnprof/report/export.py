"""Rows as files for other tools: CSV, JSON, Parquet. A missing number is `n/a` in CSV and null elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from attnprof.core.ceilings import Ceilings
from attnprof.core.record import Judgment, Record
from attnprof.report.metrics import rows
from attnprof.report.row import COLUMNS, Row

if TYPE_CHECKING:
    import pandas as pd

NOT_AVAILABLE = "n/a"
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def judgment_text(judgments: Sequence[Judgment]) -> str | None:
    """Judgments in one cell: `code: message (remedy)` joined by semicolons; None when there are none."""
    return (
        "; ".join(f"{j.code}: {j.message}{f' ({j.remedy})' if j.remedy else ''}" for j in judgments) or None
    )


def as_dict(row: Row) -> dict[str, Any]:
    """A row as column -> value, with its judgments as text; missing numbers are None."""
    values = {column: getattr(row, column) for column in COLUMNS}
    return values | {"judgments": judgment_text(row.judgments)}


def safe_cell(value: Any) -> Any:
    """A CSV cell that no spreadsheet takes for a formula: text that starts like one gets a leading quote.

    >>> safe_cell("=1+1"), safe_cell(-1.5), safe_cell(None)
    ("'=1+1", -1.5, 'n/a')
    """
    if value is None:
        return NOT_AVAILABLE
    if isinstance(value, str):
        text = value.replace("\r", " ").replace("\n", " ").replace("\0", "")
        return f"'{text}" if value.startswith(_FORMULA_STARTS) or text.startswith(_FORMULA_STARTS) else text
    return value


def results_csv(made: Sequence[Row]) -> str:
    """results.csv as text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in made:
        writer.writerow([safe_cell(value) for value in as_dict(row).values()])
    return out.getvalue()


def write_results_csv(records: Sequence[Record], path: Path, ceilings: Ceilings | None = None) -> None:
    """Write results.csv of a run's records, placed under their device's ceilings where those are known."""
    path.write_text(results_csv(rows(records, ceilings)), encoding="utf-8")


def results_json(made: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as JSON values; judgments keep their parts."""
    return [as_dict(row) | {"judgments": msgspec.to_builtins(row.judgments)} for row in made]


def write_results_json(made: Sequence[Row], path: Path) -> None:
    """Write results.json: one array of rows."""
    path.write_bytes(msgspec.json.encode(results_json(made)))


def frame(made: Sequence[Row]) -> pd.DataFrame:
    """Rows as a pandas frame in tidy form: one row a case, units in the column names."""
    import pandas as pd

    table = pd.DataFrame([as_dict(row) for row in made], columns=list(COLUMNS))
    numbers = [name for name, kind in _number_types().items() if kind is int]
    floats = [name for name, kind in _number_types().items() if kind is float]
    return table.astype(dict.fromkeys(numbers, "Int64") | dict.fromkeys(floats, "float64"))


def write_results_parquet(made: Sequence[Row], path: Path) -> None:
    """Write results.parquet with the columns of results.csv."""
    frame(made).to_parquet(path, index=False)


def _number_types() -> dict[str, type]:
    """Columns that hold numbers, with int or float."""
    kinds: dict[str, type] = {}
    for field in msgspec.structs.fields(Row):
        text = str(field.type)
        for kind in (int, float):
            if field.type is kind or text.startswith(f"{kind.__name__} |"):
                kinds[field.name] = kind
    return kinds
