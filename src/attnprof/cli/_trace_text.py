"""The tables of `attnprof trace`, readable at 80 columns."""

from __future__ import annotations

import textwrap
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnprof.core.units import format_bytes

_NAMES_SHOWN = 12
_WIDTH = 80


def show(entry: dict[str, Any]) -> None:
    """Print one trace: capacities beside the model, then the split by tensor and by operator of each."""
    console = Console(highlight=False)
    _note(f"{entry['variant']}  {entry['description']}")
    _note(f"traced bytes; {entry['policy']}; lines of {entry['line_bytes']} B")
    _print(console, _capacities(entry))
    _note(_models(entry))
    for point in entry["points"]:
        size = format_bytes(point["capacity_bytes"])
        _print(console, _split(f"By tensor, memory of {size}", "tensor", point["terms"]))
        _print(console, _split(f"By operator, memory of {size}", "operator", point["by_operator"]))
    if "curve" in entry:
        _show_curve(console, entry)
    for simulated in entry.get("simulated", ()):
        _note(_simulated(simulated))
    for flag in entry["flags"]:
        _note(f"note: {flag}")
    for judgment in entry["judgments"]:
        _note(f"{judgment.severity}: {judgment.message}; {judgment.remedy}")


def _note(line: str) -> None:
    """A sentence in lines of 80 columns."""
    typer.echo(textwrap.fill(line, _WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def _print(console: Console, table: Table) -> None:
    title, table.title = str(table.title), None  # a title inside a narrow table would be broken
    console.print()
    console.print(escape(title))
    console.print(table)


def _table(title: str, first: str, *numbers: str) -> Table:
    table = Table(title=title, box=None, pad_edge=False)
    table.add_column(first, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def _capacities(entry: dict[str, Any]) -> Table:
    table = _table("Bytes across the memory's boundary", "memory", "read", "written", "total", "vs logical")
    for point in entry["points"]:
        error = point["relative_error"]
        table.add_row(
            format_bytes(point["capacity_bytes"]),
            *(f"{point[key]:,}" for key in ("read_bytes", "write_bytes", "total_bytes")),
            "n/a" if error is None else f"{error:+.3%}",
        )
    return table


def _models(entry: dict[str, Any]) -> str:
    logical = entry["logical"]
    known = (
        f"{logical['total_bytes']:,} ({logical['policy']})" if logical else f"n/a: {entry['logical_reason']}"
    )
    return (
        f"logical {known}; compulsory {entry['compulsory_bytes']:,}; "
        f"no memory at all (op boundary) {entry['op_boundary']['total_bytes']:,}"
    )


def _split(title: str, first: str, terms: list[dict[str, Any]]) -> Table:
    table = _table(title, first, "read", "written")
    for term in terms[:_NAMES_SHOWN]:
        table.add_row(escape(term["name"]), f"{term['read_bytes']:,}", f"{term['write_bytes']:,}")
    rest = terms[_NAMES_SHOWN:]
    if rest:
        table.add_row(
            f"{len(rest)} more", *(f"{sum(t[key] for t in rest):,}" for key in ("read_bytes", "write_bytes"))
        )
    return table


def _show_curve(console: Console, entry: dict[str, Any]) -> None:
    curve = entry["curve"]
    table = _table("Capacity curve", "memory", "read", "written", "total")
    for point in curve["points"]:
        read, write = point["read_bytes"], point["write_bytes"]
        table.add_row(format_bytes(point["capacity_bytes"]), f"{read:,}", f"{write:,}", f"{read + write:,}")
    _print(console, table)
    floor, above, enough = (
        entry["floor_bytes"],
        curve["largest_above_floor_bytes"],
        curve["falls_to_floor_from_bytes"],
    )
    where = f"from {format_bytes(enough)}" if enough else "above the curve's end"
    still = f"; still above at {format_bytes(above)}" if above and enough else ""
    _note(f"working set: traffic is at its floor of {floor:,} bytes {where}{still}")
    marks = "; ".join(f"{mark['name']} {format_bytes(mark['capacity_bytes'])}" for mark in curve["marks"])
    _note(f"memories: {marks}")
    for path in entry.get("files", ()):
        console.print(escape(path), soft_wrap=True)


def _simulated(simulated: dict[str, Any]) -> str:
    size = format_bytes(simulated["capacity_bytes"])
    if simulated.get("reason"):
        return f"simulated (callgrind), last level {size}: n/a: {simulated['reason']}"
    return (
        f"simulated (callgrind), last level {size}: {simulated['fill_bytes']:,} filled, "
        f"{simulated['write_back_bytes']:,} written back; traced with write-allocate "
        f"{simulated['traced_fill_bytes']:,} and {simulated['traced_write_back_bytes']:,}; "
        f"fills {simulated['relative_error']:+.1%}"
    )
