"""Tables on the terminal: one per problem, ranked by median, warnings with their remedy below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnprof.core.ceilings import Ceilings
from attnprof.core.record import Record
from attnprof.report.answers import Answer, answers
from attnprof.report.metrics import rows
from attnprof.report.table import Note, Table, printable, problem_table
from attnprof.report.words import Paragraph, best_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

_MARKS = {"note": "note", "warning": "warning", "alarm": "ALARM"}
_STYLES = {"note": "dim", "warning": "yellow", "alarm": "bold red"}


def print_run(
    records: Sequence[Record], console: Console, limit: int | None = None, ceilings: Ceilings | None = None
) -> None:
    """Print a table per asked problem; `limit` keeps the first tables and says how many are left out.

    Alarms above a ceiling are told where the device's `ceilings` are known.
    """
    found = answers(records, rows(records, ceilings))
    if not found:
        console.print("no rows", highlight=False)
    for answer in found[:limit]:
        _print_answer(answer, console)
    if limit is not None and len(found) > limit:
        console.print(f"{len(found) - limit} more problems are in results.csv", highlight=False)


def print_story(paragraphs: Sequence[Paragraph], console: Console) -> None:
    """Print the answer in words, a heading and its sentences at a time."""
    from rich.padding import Padding
    from rich.text import Text

    for paragraph in paragraphs:
        console.print(paragraph.heading, style="bold", markup=False, highlight=False)
        for sentence in paragraph.sentences:
            console.print(Padding(Text(printable(sentence)), (0, 0, 0, 2), expand=False), highlight=False)


def _print_answer(answer: Answer, console: Console) -> None:
    table = problem_table(answer)
    console.print(rich_table(table, plain=not console.is_terminal))
    console.print(
        _best_line(answer), style="green" if answer.best else "yellow", markup=False, highlight=False
    )
    for note in table.notes:
        _print_note(note, console)
    console.print()


def _best_line(answer: Answer) -> str:
    return f"fastest correct kernel: {printable(best_text(answer))}"


def _print_note(note: Note, console: Console) -> None:
    names = ", ".join(printable(name) for name in note.variants)
    remedy = f"\n  remedy: {printable(note.remedy)}" if note.remedy else ""
    text = f"{_MARKS[note.severity]}: {names}: {printable(note.text)}{remedy}"
    console.print(text, style=_STYLES[note.severity], markup=False, highlight=False, soft_wrap=False)


def rich_table(table: Table, *, plain: bool) -> RichTable:
    """A rich table that fits 80 columns; every cell is text, never markup."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=Text(printable(table.title)),
        title_justify="left",
        box=box.MARKDOWN if plain else box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for index, name in enumerate(table.header):
        text_column = name in ("variant", "check", "backend")
        drawn.add_column(
            name, justify="left" if text_column else "right", overflow="fold", no_wrap=index == 1
        )
    for index, line in enumerate(table.body):
        style = "bold green" if index == table.best and not plain else ""
        drawn.add_row(*(Text(printable(cell)) for cell in line), style=style)
    return drawn
