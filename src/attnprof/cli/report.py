"""`attnprof report`: a run as one page, images, tables and text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from attnprof.cli.options import JsonFlag, print_json


def report_command(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Run directory written by `attnprof run`.")
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Where the files go (DIR itself).")] = None,
    json_output: JsonFlag = False,
) -> None:
    """Write report.html (one offline file), PNG and SVG charts, results.csv, results.parquet and RESULTS.md.

    Example: attnprof report runs/first --out reports/first
    """
    from rich.console import Console

    from attnprof.report.build import build, write_report
    from attnprof.report.export import results_json
    from attnprof.report.load import load
    from attnprof.report.terminal import print_story

    results = load(directory)
    for text in results.damaged:
        sys.stderr.write(f"could not be read: {text}\n")
    made = build(results, f"Attention kernels: {directory.resolve().name}")
    files = write_report(results, made, out or directory)
    if json_output:
        told = msgspec.to_builtins(made.story)
        rows = results_json(results.rows)
        print_json(
            {"files": [str(path) for path in files], "answer": told, "rows": rows, "damaged": results.damaged}
        )
    else:
        print_story(made.story, Console())
        names = [str(path.relative_to(out or directory)) for path in files]
        sys.stdout.write(
            f"written to {out or directory}: {', '.join(names[:5])} and {len(names) - 5} charts\n"
        )
    if not results.records:
        raise typer.Exit(1)
