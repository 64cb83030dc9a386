"""The range LRU against a slow, obvious line-by-line one."""

from collections import OrderedDict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from attnprof.trace.lru import DROP, READ, WRITE, LruMemory

LINES = 48


def slow_lru(rows, capacity):
    """Read misses, write misses, write-backs by (storage of the line when it left), operator of the last write."""
    held = OrderedDict()  # line -> [storage, writer or None], oldest first
    misses = {READ: 0, WRITE: 0}
    backs = []
    for code, op, storage, first, stop in rows:
        for line in range(first, stop):
            if code == DROP:
                held.pop(line, None)
                continue
            if line in held:
                entry = held.pop(line)
            else:
                misses[code] += 1
                entry = [storage, None]
                if len(held) == capacity:
                    _, (owner, writer) = held.popitem(last=False)
                    if writer is not None:
                        backs.append((owner, writer))
            entry[0] = storage
            if code == WRITE:
                entry[1] = op
            held[line] = entry
    backs += [(owner, writer) for owner, writer in held.values() if writer is not None]
    return misses[READ], misses[WRITE], backs


@st.composite
def streams(draw):
    rows = []
    for _ in range(draw(st.integers(1, 60))):
        first = draw(st.integers(0, LINES - 1))
        stop = draw(st.integers(first + 1, LINES))
        code = draw(st.sampled_from([READ, READ, WRITE, WRITE, DROP]))
        if code == DROP:  # whole storages die: three of 16 lines
            first = first // 16 * 16
            stop = first + 16
        else:
            stop = min(stop, (first // 16 + 1) * 16)  # a range lies in one storage
        rows.append((code, draw(st.integers(0, 3)), first // 16, first, stop))
    return rows


@settings(max_examples=300, deadline=None)
@given(rows=streams(), capacity=st.integers(1, LINES + 4))
def test_equals_line_by_line_lru(rows, capacity):
    memory = LruMemory(capacity)
    memory.reserve(LINES, 3, 4)
    memory.play(np.array(rows, np.int64))
    memory.flush()
    read, write, backs = slow_lru(rows, capacity)
    assert memory.totals == (read, write, len(backs))
    for storage in range(3):
        assert memory.by_storage[storage, 2] == sum(owner == storage for owner, _ in backs)
    for op in range(4):
        assert memory.by_operator[op, 2] == sum(writer == op for _, writer in backs)


def test_cyclic_scan_of_one_line_too_many_always_misses():
    memory = LruMemory(99)
    memory.reserve(100, 1, 1)
    memory.play(np.array([(READ, 0, 0, 0, 100)] * 3, np.int64))
    assert memory.totals == (300, 0, 0)


def test_long_ranges_cross_segment_limit():
    memory = LruMemory(5000)
    memory.reserve(10_000, 1, 1)
    memory.play(np.array([(WRITE, 0, 0, 0, 10_000), (READ, 0, 0, 4_000, 9_000)], np.int64))
    memory.flush()
    assert memory.totals == slow_totals([(WRITE, 0, 0, 0, 10_000), (READ, 0, 0, 4_000, 9_000)], 5000)


def slow_totals(rows, capacity):
    read, write, backs = slow_lru(rows, capacity)
    return read, write, len(backs)
