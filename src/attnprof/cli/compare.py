"""`attnprof compare`: two runs, case by case; the gate of a kernel's author."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from attnprof.cli.options import JsonFlag, print_json
from attnprof.core.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from attnprof.report.compare import Case, Comparison

_STYLES = {"SLOWER": "red", "FASTER": "green", "NOT_COMPARABLE": "yellow", "SAME": "dim"}


def compare_command(
    dir_a: Annotated[Path, typer.Argument(metavar="DIR_A", help="Run directory before.")],
    dir_b: Annotated[Path, typer.Argument(metavar="DIR_B", help="Run directory after.")],
    *,
    threshold: Annotated[str, typer.Option("--threshold", help="Smallest change that matters.")] = "5%",
    absolute: Annotated[
        bool, typer.Option("--absolute", help="Judge times as they are, even if everything moved alike.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown for a pull request.")] = False,
    json_output: JsonFlag = False,
) -> None:
    """Compare two runs: faster, slower, no difference or not comparable.

    Exit code 1 on a regression, 2 when no case could be judged.

    Example: attnprof compare runs/before runs/after --threshold 5%
    """
    from attnprof.core.units import parse_share
    from attnprof.report.compare import compare
    from attnprof.report.compare_ratios import MIN_ROUNDS
    from attnprof.report.compare_text import markdown as as_markdown
    from attnprof.report.table import counted, printable
    from attnprof.store.runs import load_run

    if markdown and json_output:
        raise UsageError("--markdown and --json both write to stdout: give one of them")
    result = compare(load_run(dir_a), load_run(dir_b), threshold=parse_share(threshold), absolute=absolute)
    if json_output:
        print_json(_document(result))
    elif markdown:
        sys.stdout.write(as_markdown(result))
    else:
        _print(result)
    if not result.cases:
        raise StoreError("the runs have no case in common: give two runs of one sweep on one kind of device")
    if result.regressions:
        raise typer.Exit(1)
    if not result.judged:
        raise StoreError(
            f"none of the {counted(len(result.cases), 'case')} in common could be judged, so nothing was gated; "
            f"first reason: {printable(result.cases[0].reason)}; give two runs of one machine with at least "
            f"{MIN_ROUNDS} rounds each"
        )


def _document(result: Comparison) -> dict[str, Any]:
    from attnprof.report.compare_text import headline

    lead = {"headline": headline(result), "regressions": [case.key for case in result.regressions]}
    return lead | msgspec.structs.asdict(result)


def _print(result: Comparison) -> None:
    from rich.console import Console
    from rich.text import Text

    from attnprof.report.compare_text import by_question, change_lines, headline, only_lines, preamble
    from attnprof.report.table import printable

    console = Console(highlight=False)
    for heading, lines in preamble(result):
        _section(console, heading, lines)
    for question, cases in by_question(result).items():
        console.print(_table(question, cases))
    _section(console, "also changed", change_lines(result))
    _section(console, "in one run only", only_lines(result))
    doubtful = result.damaged or not result.judged
    style = "bold red" if result.regressions else "bold yellow" if doubtful else "bold green"
    console.print(Text(printable(headline(result)), style=style), soft_wrap=True)


def _section(console: Console, heading: str, lines: Sequence[str]) -> None:
    from rich.text import Text

    from attnprof.report.table import printable

    if lines:
        console.print(Text(f"{heading}:", style="bold yellow"))
        for line in lines:
            console.print(Text(f"  {printable(line)}"), soft_wrap=True)


def _table(question: str, cases: Sequence[Case]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from attnprof.report.compare_text import HEADER, cells
    from attnprof.report.table import printable

    title = Text(printable(question))
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for name in ("variant", *HEADER[1:]):
        is_text = name in ("variant", "verdict")
        justify: Literal["left", "right"] = "left" if is_text else "right"
        table.add_column(name, overflow="fold", justify=justify, no_wrap=not is_text)
    for case in cases:
        texts = (case.variant, *cells(case)[1:])
        table.add_row(*(Text(printable(text)) for text in texts), style=_STYLES[case.verdict.name])
    return table
