"""An explanation as text of 80 columns, and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from attnprof.core.units import format_seconds

if TYPE_CHECKING:
    from attnprof.explain.backends import BackendReport
    from attnprof.explain.explanation import Explanation
    from attnprof.explain.reason import Rejection

WIDTH = 80
INDENT = " " * 4


def text(e: Explanation) -> str:
    """Plain text, no line above 80 columns."""
    lines = [*_wrap(f"call     {e.text}", 9), f"device   {e.device}", *_wrap(f"PyTorch  {_version(e)}", 9)]
    lines += _wrap(f"chosen   {_chosen(e)}", 9)
    for line in (*e.disagreements, *e.notes):
        lines += _wrap(f"!!       {line}", 9)
    for report in e.backends:
        lines += ["", *_wrap(f"{report.title}: {report.status}{_note(report)}", 2)]
        for rejection in report.rejections:
            lines += _reason(rejection)
    lines += [
        line for j in e.judgments for line in ("", *_wrap(f"{j.severity}: {j.message}", 2), *_fix(j.remedy))
    ]
    if e.not_installed:
        lines += ["", *_wrap(f"not installed: {', '.join(e.not_installed)}", 2)]
    return "\n".join(lines)


def _version(e: Explanation) -> str:
    return f"{e.torch_version or 'unknown'}; rules of {e.rules}"


def _chosen(e: Explanation) -> str:
    if e.chosen is None:
        return f"none. {e.error}"
    title = next(b.title for b in e.backends if b.name == e.chosen)
    if not e.observed:
        return f"{title} (by the rules; this device is not asked)"
    agreed = "agrees" if not e.disagreements else f"picks {e.observed}"
    return f"{title} (PyTorch's dispatcher here {agreed})"


def _note(report: BackendReport) -> str:
    time = f"predicted {format_seconds(report.predicted_s)}" if report.predicted_s is not None else ""
    parts = "; ".join(part for part in (time, report.note) if part)
    return f" ({parts})" if parts else ""


def _reason(rejection: Rejection) -> Iterator[str]:
    yield from _wrap(f"  - [{rejection.rule}] {rejection.reason}", 4)
    yield from _fix(rejection.fix)
    yield from _wrap(f"{INDENT}cost: {rejection.cost}", 10)
    yield from _wrap(f"{INDENT}rule: {rejection.source}", 10)


def _fix(remedy: str) -> list[str]:
    return _wrap(f"{INDENT}fix:  {remedy}", 10) if remedy else []


def _wrap(line: str, indent: int) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def markdown(e: Explanation) -> str:
    """A table with one line a reason, and the judgments as a list."""
    head = [
        f"**Chosen: {_chosen(e)}**", "",
        f"- call: `{e.text}`", f"- device: {e.device}", f"- PyTorch: {_version(e)}",
    ]  # fmt: skip
    head += [f"- **{line}**" for line in (*e.disagreements, *e.notes)]
    table = ["", "| backend | verdict | rule | why | fix | cost | source |", "|---|---|---|---|---|---|---|"]
    table += [row for report in e.backends for row in _rows(report)]
    judgments = [f"- {j.severity}: {j.message}; {j.remedy}" for j in e.judgments]
    return "\n".join([*head, *table, *(["", *judgments] if judgments else [])]) + "\n"


def _rows(report: BackendReport) -> Iterator[str]:
    if not report.rejections:
        yield _row(report.title, report.status, "", _note(report).strip(" ()"), "", "", "")
    for index, r in enumerate(report.rejections):
        name, status = (report.title, report.status) if index == 0 else ("", "")
        yield _row(name, status, r.rule, r.reason, r.fix, r.cost, r.source)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
