"""RESULTS.md: the answer in words, a table per problem, method and environment, for people who read text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from attnprof.core.record import Manifest
from attnprof.report.answers import Answer
from attnprof.report.charts_base import Chart
from attnprof.report.method import METHOD, environment
from attnprof.report.table import Note, Table, printable, problem_table
from attnprof.report.words import Paragraph

MAX_TABLES = 60
# Everywhere special; an underscore inside a word, and a sign that does not begin the text, are plain text.
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^[#+-]")


def escaped(text: str) -> str:
    """Text that Markdown and HTML both show as it is.

    >>> print(escaped("<b>|x_"), escaped("sdpa_math"), escaped("# x"))
    &lt;b&gt;\\|x\\_ sdpa_math \\# x
    """
    return html.escape(_SPECIAL.sub(r"\\\g<0>", printable(text)), quote=False)


def results_md(
    story: Sequence[Paragraph],
    found: Sequence[Answer],
    charts: Sequence[tuple[Chart, str]],
    manifest: Manifest | None,
) -> str:
    """The whole document; `charts` come with the path of their image."""
    parts = ["# Attention kernels: results\n"]
    parts += [_paragraph(part) for part in story]
    parts += [f"![{escaped(chart.title)}](<{path}>)\n\n{escaped(chart.caption)}\n" for chart, path in charts]
    parts += [_table(problem_table(answer)) for answer in found[:MAX_TABLES]]
    if len(found) > MAX_TABLES:
        parts.append(f"{len(found) - MAX_TABLES} more problems are in results.csv.\n")
    parts.append("## Method\n\n" + "\n".join(f"- {line}" for line in METHOD) + "\n")
    facts = "\n".join(f"| {escaped(name)} | {escaped(value)} |" for name, value in environment(manifest))
    parts.append(f"## Environment\n\n| fact | value |\n|---|---|\n{facts}\n")
    return "\n".join(parts)


def _paragraph(part: Paragraph) -> str:
    return (
        f"## {escaped(part.heading)}\n\n" + "\n".join(f"- {escaped(line)}" for line in part.sentences) + "\n"
    )


def _table(table: Table) -> str:
    header = "| " + " | ".join(table.header) + " |"
    rule = "|" + "|".join("---:" if 1 <= i <= 5 else "---" for i in range(len(table.header))) + "|"
    lines = [_line(cells, bold=index == table.best) for index, cells in enumerate(table.body)]
    notes = "".join(f"- {_note(note)}\n" for note in table.notes)
    return f"### {escaped(table.title)}\n\n" + "\n".join([header, rule, *lines]) + f"\n\n{notes}"


def _line(cells: Sequence[str], *, bold: bool) -> str:
    shown = [escaped(cell) for cell in cells]
    if bold:
        shown[0] = f"**{shown[0]}**"
    return "| " + " | ".join(shown) + " |"


def _note(note: Note) -> str:
    remedy = f" Remedy: {escaped(note.remedy)}." if note.remedy else ""
    return f"{note.severity}: {escaped(', '.join(note.variants))}: {escaped(note.text)}.{remedy}"
