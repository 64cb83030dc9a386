"""Tables as values: printed cells and footnotes; terminal, Markdown and HTML draw the same ones."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from attnprof.report.answers import Answer
from attnprof.report.export import NOT_AVAILABLE
from attnprof.report.row import Row, why_missing

HEADER = ("variant", "time us", "± %", "vs naive", "TFLOP/s", "peak MiB", "check", "backend")


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A footnote: what is to be known about some rows, and the remedy."""

    variants: tuple[str, ...]
    text: str
    remedy: str = ""
    severity: str = "note"


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A problem's rows ranked by median time."""

    title: str
    header: tuple[str, ...]
    body: tuple[tuple[str, ...], ...]
    best: int | None = None  # index of the fastest correct row, where its samples allow a claim
    notes: tuple[Note, ...] = ()


def number(value: float | None, digits: int = 4) -> str:
    """A number with `digits` significant digits, never more decimals than they give; None is `n/a`.

    >>> number(4947.23), number(0.012345), number(12.0), number(1.5e-9), number(None)
    ('4,947', '0.01235', '12.00', '1.5e-09', 'n/a')
    """
    if value is None:
        return NOT_AVAILABLE
    size = abs(float(f"{value:.{digits - 1}e}"))  # as printed: 99.999 has three digits before the point
    if size and not 1e-3 <= size < 1e9:
        return f"{value:.{digits - 1}g}"
    whole = len(str(int(size))) if size >= 1 else -_leading_zeros(size)
    return f"{value:,.{max(digits - whole, 0)}f}"


def _leading_zeros(size: float) -> int:
    zeros = 0
    while 0 < size < 0.1:
        size *= 10
        zeros += 1
    return zeros


def percent_width(row: Row) -> str:
    """Half the 95% interval of the median, in percent of it."""
    if row.time_median_us is None or row.time_ci_low_us is None or row.time_ci_high_us is None:
        return NOT_AVAILABLE
    half = (row.time_ci_high_us - row.time_ci_low_us) / 2
    return f"{half / row.time_median_us:.1%}".rstrip("%") if row.time_median_us else NOT_AVAILABLE


def cells(row: Row) -> tuple[str, ...]:
    """A row's cells under `HEADER`."""
    return (
        row.variant,
        number(row.time_median_us),
        percent_width(row),
        number(row.speedup_vs_naive, 3),
        number(row.tflop_per_s, 3),
        number(row.peak_mib),
        row.verdict or NOT_AVAILABLE,
        row.backend or NOT_AVAILABLE,
    )


def problem_table(answer: Answer) -> Table:
    """The table of one answer; what a cell leaves out is in the notes."""
    best = next((i for i, row in enumerate(answer.ranked) if row is answer.best and not answer.few), None)
    return Table(
        title=answer.ranked[0].asked,
        header=HEADER,
        body=tuple(cells(row) for row in answer.ranked),
        best=best,
        notes=_notes(answer.ranked),
    )


def _notes(ranked: Sequence[Row]) -> tuple[Note, ...]:
    """Reasons of missing rows and judgments; equal texts are said once for all their variants."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in ranked:
        if row.outcome != "measured":
            text = f"{row.outcome}: {row.reason}"
            severity = "alarm" if row.outcome == "failed" else "note"
            found.setdefault((severity, text, ""), []).append(row.variant)
        elif row.speedup_vs_naive is None and row.time_median_us is not None:
            text = f"speed-up n/a: {why_missing(row, 'speedup_vs_naive')}"
            found.setdefault(("note", text, ""), []).append(row.variant)
        elif row.speedup_vs_naive is not None and row.speedup_paired is None:
            text = f"speed-up is a ratio of medians: {why_missing(row, 'speedup_paired')}"
            found.setdefault(("note", text, ""), []).append(row.variant)
        if row.empty_rows and row.outcome == "measured":
            text = f"{counted(row.empty_rows, 'empty row')} (queries that see no key; their output is 0)"
            found.setdefault(("note", text, ""), []).append(row.variant)
        for judgment in row.judgments:
            key = (str(judgment.severity), judgment.message, judgment.remedy)
            found.setdefault(key, []).append(row.variant)
    return tuple(
        Note(variants=tuple(dict.fromkeys(names)), text=text, remedy=remedy, severity=severity)
        for (severity, text, remedy), names in found.items()
    )


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    """Text whose control and direction-changing characters are shown as escapes: a terminal obeys none.

    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
