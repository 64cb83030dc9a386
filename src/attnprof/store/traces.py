"""Traces kept beside a run: what `attnprof trace ... --curve --json > DIR/trace.json` printed."""

from __future__ import annotations

from pathlib import Path

import msgspec


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes across the boundary of a memory of one size."""

    capacity_bytes: int
    read_bytes: int
    write_bytes: int


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A real memory's name and size."""

    name: str
    capacity_bytes: int


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The capacity curve of one traced call."""

    points: tuple[CurvePoint, ...]
    marks: tuple[Mark, ...] = ()


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """The total of a model's traffic."""

    total_bytes: int


class StoredTrace(msgspec.Struct, frozen=True, kw_only=True):
    """One traced call, as far as a report draws it; `curve` is None when it was traced without --curve."""

    variant: str
    description: str
    policy: str
    compulsory_bytes: int
    logical: Total | None = None
    curve: Curve | None = None


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    traces: tuple[StoredTrace, ...]


def load_traces(directory: Path) -> tuple[tuple[StoredTrace, ...], tuple[str, ...]]:
    """The traces in `trace*.json` of a directory, by file name, and what could not be read."""
    found: list[StoredTrace] = []
    damaged: list[str] = []
    for path in sorted(directory.glob("trace*.json")):
        try:
            found += msgspec.json.decode(path.read_bytes(), type=_Document).traces
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            damaged.append(f"{path.name}: {error}")
    return tuple(found), tuple(damaged)
