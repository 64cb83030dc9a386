"""The stream of accesses: operands of an operator become rows, rows are played at once by every memory."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attnprof.trace.lru import DROP, READ, ROW, WRITE, LruMemory
from attnprof.trace.policy import Freed, Order, Policy
from attnprof.trace.storages import Storage

Ints = NDArray[np.int64]
_BATCH_ROWS = 32768


@dataclass(kw_only=True, slots=True, eq=False)
class Operand:
    """Lines of one storage that an operator reads or writes; `runs` are absolute (first, line after the last)."""

    storage: Storage
    runs: Ints
    write: bool
    first: bool = False  # read whole before the others start

    @property
    def lines(self) -> int:
        """Lines touched."""
        return int((self.runs[:, 1] - self.runs[:, 0]).sum())


@njit(cache=True)
def _lockstep(runs, lines, grain):  # type: ignore[no-untyped-def]
    """Rows of operands that advance together; `runs` are rows with the operand's number in a sixth column."""
    operands = lines.shape[0]
    steps = max(1, -(-lines.max() // grain))
    out = np.empty((runs.shape[0] + operands * steps, runs.shape[1] - 1), np.int64)
    at = np.zeros(operands, np.int64)  # current run of each operand
    for i in range(runs.shape[0] - 1, -1, -1):
        at[runs[i, 5]] = i
    done = np.zeros(operands, np.int64)  # lines of that operand already given out
    used = np.zeros(operands, np.int64)  # lines of the current run already given out
    n = 0
    for step in range(1, steps + 1):
        for k in range(operands):
            target = lines[k] * step // steps
            while done[k] < target:
                row = at[k]
                start = runs[row, 3] + used[k]
                take = min(runs[row, 4] - start, target - done[k])
                out[n, :3] = runs[row, :3]
                out[n, 3], out[n, 4] = start, start + take
                n += 1
                done[k] += take
                used[k] += take
                if start + take == runs[row, 4]:
                    at[k] += 1
                    used[k] = 0
    return out[:n]


class Stream:
    """Plays accesses into one memory per capacity, in batches; holds no list of all accesses."""

    def __init__(self, memories: Sequence[LruMemory], policy: Policy, line_bytes: int) -> None:
        self.memories = tuple(memories)
        self.line_accesses = 0
        self.end_line = 1
        self._policy = policy
        self._grain = max(1, policy.grain_bytes // line_bytes)
        self._rows = array("q")
        self._storages = 1
        self._operators = 1

    def operator(self, op: int, operands: Sequence[Operand]) -> None:
        """One operator's accesses."""
        self._operators = max(self._operators, op + 1)
        whole = [x for x in operands if x.first and self._policy.order is Order.LOCKSTEP]
        for operand in whole:
            self._together(op, [operand])
        rest = [x for x in operands if x not in whole] if whole else operands
        if self._policy.order is Order.SEQUENTIAL:
            for operand in rest:
                self._together(op, [operand])
        elif rest:
            self._together(op, rest)

    def death(self, storage: Storage) -> None:
        """A storage was freed."""
        if self._policy.freed is Freed.DROP:
            end = storage.base_line + storage.lines
            self._append((DROP, 0, storage.index, storage.base_line, end), storage)

    def finish(self) -> None:
        """Play what is left, then write dirty lines back if the policy says so."""
        self._play(np.frombuffer(self._rows, np.int64).reshape(-1, ROW))
        self._rows = array("q")
        if self._policy.flush:
            for memory in self.memories:
                memory.flush()

    def _together(self, op: int, operands: Sequence[Operand]) -> None:
        lines = [operand.lines for operand in operands]
        self.line_accesses += sum(lines)
        if max(lines) <= self._grain:
            for operand in operands:
                code = WRITE if operand.write else READ
                for first, stop in operand.runs.tolist():
                    self._append((code, op, operand.storage.index, first, stop), operand.storage)
            return
        for operand in operands:
            self._know(operand.storage)
        parts = [_numbered(op, number, operand) for number, operand in enumerate(operands)]
        self._flush()
        self._play(_lockstep(np.concatenate(parts), np.array(lines, np.int64), self._grain))

    def _append(self, row: tuple[int, int, int, int, int], storage: Storage) -> None:
        self._know(storage)
        self._rows.extend(row)
        if len(self._rows) >= _BATCH_ROWS * ROW:
            self._flush()

    def _know(self, storage: Storage) -> None:
        self._storages = max(self._storages, storage.index + 1)
        self.end_line = max(self.end_line, storage.base_line + storage.lines)

    def _flush(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, array("q")
            self._play(np.frombuffer(rows, np.int64).reshape(-1, ROW))

    def _play(self, rows: Ints) -> None:
        for memory in self.memories:
            memory.reserve(self.end_line, self._storages, self._operators)
            memory.play(rows)


def _numbered(op: int, number: int, operand: Operand) -> Ints:
    rows = np.empty((len(operand.runs), ROW + 1), np.int64)
    rows[:, 0] = WRITE if operand.write else READ
    rows[:, 1], rows[:, 2], rows[:, 5] = op, operand.storage.index, number
    rows[:, 3:5] = operand.runs
    return rows
