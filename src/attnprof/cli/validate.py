"""`attnprof validate`: prediction against measurements that others published."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnprof.cli.options import JsonFlag, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from attnprof.predict.validation import Errors, Group, ModeReport, Validation


class Mode(StrEnum):
    """Which rows are hidden from the constants and from the calibration."""

    BOTH = "both"
    SHAPES = "shapes"
    SOURCE = "source"


def validate_command(
    file: Annotated[
        Path, typer.Argument(help="CSV of published measurements; docs/validate.md lists its columns.")
    ],
    mode: Annotated[Mode, typer.Option(help="Leave out the row's shape, its source, or each.")] = Mode.BOTH,
    json: JsonFlag = False,
) -> None:
    """Compare predictions with published measurements, row by row, beside two rooflines.

    Every row that can be predicted is; the others are named with the reason. No row is judged by constants that saw it.
    Exit code 1 when no row can be predicted.

    Example: attnprof validate published.csv --mode source
    """
    from attnprof.predict.published import read_text
    from attnprof.predict.validation import validate

    modes = ("shapes", "source") if mode is Mode.BOTH else (str(mode),)
    result = validate(read_text(file), modes)
    if json:
        print_json(result)
    elif result.predicted:
        _print(result)
    if not result.predicted:
        typer.echo(_nothing(result), err=True)
        raise typer.Exit(1)


def _nothing(result: Validation) -> str:
    """Why no row was predicted, row by row."""
    if not result.rows:
        return "nothing was predicted: the file has its columns and no row; docs/validate.md lists what a row holds"
    reasons = ", ".join(f"{count} {reason}" for reason, count in result.skipped.items())
    rows = (f"  row {note.row} ({note.source}): {note.reason}: {note.detail}" for note in result.skipped_rows)
    return "\n".join([f"nothing was predicted: none of {result.rows} rows can be used ({reasons})", *rows])


def _print(result: Validation) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{result.rows} rows, {result.predicted} predicted")
    for reason, count in result.skipped.items():
        console.print(f"  {count} left out: {reason}")
    in_fit = ", ".join(result.sources_in_fit) or "none"
    console.print(f"In the shipped fit, hence refitted without: {in_fit}")
    for report in result.modes.values():
        console.print(report.meaning)
    _print_summary(console, result)
    for report in result.modes.values():
        _print_groups(console, report)
    _print_notes(console, result)


def _print_summary(console: Console, result: Validation) -> None:
    from rich.table import Table

    table = Table(title="Absolute relative error of time", title_justify="left")
    for heading in ("prediction", "rows", "median", "90th percentile", "bias", "inside interval"):
        table.add_column(heading, justify="left" if heading == "prediction" else "right")
    for report in result.modes.values():
        table.add_row(_title(report), str(report.rows), *_figures(report), _share(report.interval_coverage))
    for name, errors in result.baselines.items():
        table.add_row(name.replace("_", " "), str(errors.rows), *_figures(errors), "n/a")
    console.print(table)


def _print_groups(console: Console, report: ModeReport) -> None:
    from rich.table import Table

    table = Table(title=f"By group, {_title(report)}", title_justify="left")
    for heading in ("by", "name", "rows", "median", "90th percentile", "bias"):
        table.add_column(heading, justify="left" if heading in {"by", "name"} else "right")
    for group in report.groups:
        table.add_row(group.by, group.name, str(group.rows), *_figures(group))
    console.print(table)


def _print_notes(console: Console, result: Validation) -> None:
    for title, notes in (("Rows above the chip's peak", result.above_peak), ("Largest errors", result.worst)):
        if notes:
            console.print(f"\n{title} ({len(notes)}):")
        for note in notes:
            console.print(f"  row {note.row} ({note.source}): {note.detail}", markup=False)
    if result.skipped_rows:
        console.print(f"\nRows left out ({len(result.skipped_rows)}):")
    for note in result.skipped_rows:
        console.print(f"  row {note.row} ({note.source}): {note.reason}: {note.detail}", markup=False)


def _title(report: ModeReport) -> str:
    return report.meaning.split(":")[0]


def _figures(errors: Group | ModeReport | Errors) -> tuple[str, str, str]:
    return (
        _share(errors.median_abs_rel_error),
        _share(errors.p90_abs_rel_error),
        _share(errors.bias, sign="+"),
    )


def _share(value: float | None, sign: str = "") -> str:
    return "n/a" if value is None else f"{value:{sign}.1%}"
