"""Results of a trace: one point per capacity, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import msgspec

from attnprof.core.problem import Problem
from attnprof.core.traffic import ByteKind, Term, Traffic
from attnprof.core.units import format_bytes
from attnprof.trace.lru import READ_MISS, WRITE_BACK, WRITE_MISS, Ints
from attnprof.trace.policy import Policy, WriteMiss
from attnprof.trace.recorder import OperatorCount
from attnprof.trace.storages import Storage


class TracePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that cross the boundary of a memory of `capacity_bytes`, by tensor and by operator.

    A write-back belongs to the tensor that the line holds and to the operator that wrote it last.
    """

    capacity_bytes: int
    by_tensor: tuple[Term, ...]
    by_operator: tuple[Term, ...]
    policy: Policy

    @property
    def read_bytes(self) -> int:
        """Bytes fetched."""
        return sum(term.read_bytes for term in self.by_tensor)

    @property
    def write_bytes(self) -> int:
        """Bytes written back."""
        return sum(term.write_bytes for term in self.by_tensor)

    @property
    def total_bytes(self) -> int:
        """Reads and write-backs."""
        return self.read_bytes + self.write_bytes

    @property
    def traffic(self) -> Traffic:
        """The same as a labelled term table."""
        level = f"memory of {format_bytes(self.capacity_bytes)}"
        return Traffic(kind=ByteKind.TRACED, level=level, policy=str(self.policy), terms=self.by_tensor)

    def tensor_bytes(self, tensor: str) -> int:
        """Reads and writes of one tensor (0 when it caused none)."""
        return sum(term.read_bytes + term.write_bytes for term in self.by_tensor if term.tensor == tensor)


class Trace(Sequence[TracePoint]):
    """The points of one traced call, in the order of the capacities asked for."""

    def __init__(
        self,
        points: Iterable[TracePoint],
        *,
        name: str,
        problem: Problem | None,
        line_bytes: int,
        line_accesses: int,
        operators: Sequence[OperatorCount],
        flags: Sequence[str],
    ) -> None:
        self._points = tuple(points)
        self.name = name
        self.problem = problem
        self.line_bytes = line_bytes
        self.line_accesses = line_accesses
        self.operators = tuple(operators)
        self.flags = tuple(flags)

    @overload
    def __getitem__(self, index: int) -> TracePoint: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TracePoint]: ...
    def __getitem__(self, index: int | slice) -> TracePoint | Sequence[TracePoint]:
        return self._points[index]

    def __len__(self) -> int:
        return len(self._points)

    def __iter__(self) -> Iterator[TracePoint]:
        return iter(self._points)

    def __repr__(self) -> str:
        points = ", ".join(f"{format_bytes(p.capacity_bytes)}: {p.total_bytes:,} B" for p in self)
        return f"<Trace of {self.name}{f', {self.problem}' if self.problem else ''}; {points}>"

    def at(self, capacity_bytes: int) -> TracePoint:
        """The point of one capacity."""
        return next(point for point in self if point.capacity_bytes == capacity_bytes)

    @property
    def op_boundary(self) -> Traffic:
        """Operands summed over the operators that ran: no memory at all."""
        terms = tuple(
            Term(
                tensor=op.name, read_bytes=op.read_bytes, write_bytes=op.write_bytes, note=f"{op.calls} calls"
            )
            for op in self.operators
        )
        return Traffic(
            kind=ByteKind.OP_BOUNDARY, level="any", policy="every operand of every operator", terms=terms
        )


def tensor_terms(
    storages: Sequence[Storage], counters: Ints, line_bytes: int, policy: Policy
) -> tuple[Term, ...]:
    """Counters of storages summed by what they hold, largest first."""
    rows = zip((storage.label for storage in storages), counters.tolist(), strict=False)
    return _terms(rows, line_bytes, policy)


def operator_terms(
    operators: Sequence[OperatorCount], counters: Ints, line_bytes: int, policy: Policy
) -> tuple[Term, ...]:
    """Counters by operator, largest first."""
    return _terms(zip((op.name for op in operators), counters.tolist(), strict=False), line_bytes, policy)


def _terms(rows: Iterable[tuple[str, list[int]]], line_bytes: int, policy: Policy) -> tuple[Term, ...]:
    sums: dict[str, list[int]] = {}
    for label, row in rows:
        fetched = row[READ_MISS] + (row[WRITE_MISS] if policy.write_miss is WriteMiss.ALLOCATE else 0)
        total = sums.setdefault(label, [0, 0])
        total[0] += fetched * line_bytes
        total[1] += row[WRITE_BACK] * line_bytes
    terms = [Term(tensor=label, read_bytes=read, write_bytes=write) for label, (read, write) in sums.items()]
    return tuple(
        sorted(
            (t for t in terms if t.read_bytes or t.write_bytes), key=lambda t: -(t.read_bytes + t.write_bytes)
        )
    )
