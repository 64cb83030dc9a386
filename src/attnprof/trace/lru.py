"""An exact LRU memory with write-back that plays ranges of lines instead of single lines.

The recency list holds segments: runs of lines that were touched in ascending order one after the other, so their
order inside the list is their address order and one node stands for all of them. A range splits the segments at
its ends, hits move to the front, misses enter there and push lines out at the back, one by one in list order.
Misses and write-backs are those of a line-by-line LRU (the tests hold it against one).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

READ, WRITE, DROP = 0, 1, 2  # codes of a row (code, operator, storage, first line, line after the last)
ROW = 5
READ_MISS, WRITE_MISS, WRITE_BACK = 0, 1, 2  # columns of the counters
COUNTERS = 3

_START, _END, _OLDER, _NEWER, _STORAGE, _WRITER = 0, 1, 2, 3, 4, 5  # columns of a segment; writer 0 = clean
_HEAD, _TAIL, _USED, _FREE, _NEXT = 0, 1, 2, 3, 4  # newest, oldest, lines held, free list, next unused node
_LONGEST = 256  # lines of one segment, so that the segment around a line is found within as many steps


@njit(cache=True)
def _new(seg, meta, start, end, storage, writer):  # type: ignore[no-untyped-def]
    node = meta[_FREE]
    if node:
        meta[_FREE] = seg[node, _NEWER]
    else:
        node = meta[_NEXT]
        meta[_NEXT] += 1
    seg[node, _START] = start
    seg[node, _END] = end
    seg[node, _STORAGE] = storage
    seg[node, _WRITER] = writer
    return node


@njit(cache=True)
def _unlink(seg, meta, node):  # type: ignore[no-untyped-def]
    older, newer = seg[node, _OLDER], seg[node, _NEWER]
    if older:
        seg[older, _NEWER] = newer
    else:
        meta[_TAIL] = newer
    if newer:
        seg[newer, _OLDER] = older
    else:
        meta[_HEAD] = older


@njit(cache=True)
def _forget(seg, at, meta, node):  # type: ignore[no-untyped-def]
    _unlink(seg, meta, node)
    at[seg[node, _START]] = 0
    meta[_USED] -= seg[node, _END] - seg[node, _START]
    seg[node, _NEWER] = meta[_FREE]
    meta[_FREE] = node


@njit(cache=True)
def _split(seg, at, meta, node, line):  # type: ignore[no-untyped-def]
    """Cut a segment before `line`; the upper part was touched later, so it lies on the newer side."""
    upper = _new(seg, meta, line, seg[node, _END], seg[node, _STORAGE], seg[node, _WRITER])
    seg[node, _END] = line
    newer = seg[node, _NEWER]
    seg[upper, _OLDER], seg[upper, _NEWER] = node, newer
    seg[node, _NEWER] = upper
    if newer:
        seg[newer, _OLDER] = upper
    else:
        meta[_HEAD] = upper
    at[line] = upper
    return upper


@njit(cache=True)
def _push(seg, at, meta, node):  # type: ignore[no-untyped-def]
    """Make a segment the newest, as part of the newest one where it continues it."""
    head, start, end = meta[_HEAD], seg[node, _START], seg[node, _END]
    if (
        head
        and seg[head, _END] == start
        and seg[head, _STORAGE] == seg[node, _STORAGE]
        and seg[head, _WRITER] == seg[node, _WRITER]
        and end - seg[head, _START] <= _LONGEST
    ):
        seg[head, _END] = end
        at[start] = 0
        seg[node, _NEWER] = meta[_FREE]
        meta[_FREE] = node
        return
    seg[node, _OLDER], seg[node, _NEWER] = head, 0
    if head:
        seg[head, _NEWER] = node
    else:
        meta[_TAIL] = node
    meta[_HEAD] = node
    at[start] = node


@njit(cache=True)
def _evict(seg, at, meta, lines, by_storage, by_op):  # type: ignore[no-untyped-def]
    """Push the `lines` oldest lines out, writing the dirty ones back."""
    while lines > 0:
        node = meta[_TAIL]
        start, size = seg[node, _START], seg[node, _END] - seg[node, _START]
        gone = min(lines, size)
        writer = seg[node, _WRITER]
        if writer:
            by_storage[seg[node, _STORAGE], WRITE_BACK] += gone
            by_op[writer - 1, WRITE_BACK] += gone
        if gone == size:
            _forget(seg, at, meta, node)
        else:
            at[start] = 0
            seg[node, _START] = start + gone
            at[start + gone] = node
            meta[_USED] -= gone
        lines -= gone


@njit(cache=True)
def _around(seg, at, line):  # type: ignore[no-untyped-def]
    """The segment that holds `line`, 0 when none does."""
    for back in range(min(_LONGEST, line + 1)):
        node = at[line - back]
        if node:
            return node if seg[node, _END] > line else 0
    return 0


@njit(cache=True)
def _touch(seg, at, meta, capacity, code, op, storage, first, stop, by_storage, by_op):  # type: ignore[no-untyped-def]
    node = _around(seg, at, first)
    if node and seg[node, _START] < first:
        _split(seg, at, meta, node, first)
    line = first
    while line < stop:
        node = at[line]
        if node:
            if seg[node, _END] > stop:
                _split(seg, at, meta, node, stop)
            line = seg[node, _END]
            _unlink(seg, meta, node)
            if code == WRITE:
                seg[node, _WRITER] = op + 1
            seg[node, _STORAGE] = storage
        else:
            end = line + 1
            limit = min(stop, line + min(_LONGEST, capacity))
            while end < limit and at[end] == 0:
                end += 1
            missed = end - line
            by_storage[storage, code] += missed
            by_op[op, code] += missed
            _evict(seg, at, meta, max(0, meta[_USED] + missed - capacity), by_storage, by_op)
            node = _new(seg, meta, line, end, storage, op + 1 if code == WRITE else 0)
            meta[_USED] += missed
            line = end
        _push(seg, at, meta, node)


@njit(cache=True)
def _drop(seg, at, meta, first, stop):  # type: ignore[no-untyped-def]
    line = first
    while line < stop:
        node = at[line]
        if node:
            line = seg[node, _END]
            _forget(seg, at, meta, node)
        else:
            line += 1


@njit(cache=True)
def _play(rows, seg, at, meta, capacity, by_storage, by_op):  # type: ignore[no-untyped-def]
    for i in range(rows.shape[0]):
        code, op, storage, first, stop = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3], rows[i, 4]
        if code == DROP:
            _drop(seg, at, meta, first, stop)
        else:
            _touch(seg, at, meta, capacity, code, op, storage, first, stop, by_storage, by_op)


class LruMemory:
    """A fully associative memory of `capacity_lines` lines, least recently used out first, with write-back."""

    def __init__(self, capacity_lines: int) -> None:
        self.capacity_lines = capacity_lines
        self.by_storage: Ints = np.zeros((1, COUNTERS), np.int64)
        self.by_operator: Ints = np.zeros((1, COUNTERS), np.int64)
        self._seg: Ints = np.zeros((1, 6), np.int64)
        self._at = np.zeros(1, np.int32)
        self._meta: Ints = np.array([0, 0, 0, 0, 1], np.int64)

    def reserve(self, lines: int, storages: int, operators: int) -> None:
        """Make room for addresses below `lines` and for so many storages and operators."""
        if lines > len(self._at):
            self._at = _grown(self._at, lines)
        nodes = (
            min(self.capacity_lines, len(self._at)) + 4
        )  # every segment holds a line; 2 splits, node 0 unused
        if nodes > len(self._seg):
            self._seg = _grown(self._seg, nodes)
        if storages > len(self.by_storage):
            self.by_storage = _grown(self.by_storage, storages)
        if operators > len(self.by_operator):
            self.by_operator = _grown(self.by_operator, operators)

    def play(self, rows: Ints) -> None:
        """Touch and drop ranges in order; rows are (code, operator, storage, first line, line after the last)."""
        _play(rows, self._seg, self._at, self._meta, self.capacity_lines, self.by_storage, self.by_operator)

    def flush(self) -> None:
        """Write everything that is still dirty back and empty the memory."""
        _evict(self._seg, self._at, self._meta, self._meta[_USED], self.by_storage, self.by_operator)

    @property
    def totals(self) -> tuple[int, int, int]:
        """(read misses, write misses, write-backs) in lines."""
        read, write, back = (int(value) for value in self.by_operator.sum(axis=0))
        return read, write, back


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
