"""Operands in step: every line of every operand once per pass, in order, and no operand far ahead."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnprof.core.errors import InvalidInput
from attnprof.trace.lru import READ, WRITE
from attnprof.trace.policy import Freed, Order, Policy
from attnprof.trace.storages import Storage, Storages
from attnprof.trace.stream import Operand, Stream

LINE = 64


class Log:
    """A memory that only writes down what it is played."""

    def __init__(self):
        self.rows = []

    def reserve(self, lines, storages, operators):
        self.room = (lines, storages, operators)

    def play(self, rows):
        self.rows += rows.tolist()

    def flush(self):
        self.rows.append("flush")


def played(operands, **policy):
    log = Log()
    stream = Stream([log], Policy(**policy), LINE)
    stream.operator(0, operands)
    stream.finish()
    assert log.rows[-1] == "flush"
    assert stream.line_accesses == sum(x.lines for x in operands)
    return log.rows[:-1]


def operand(index, runs, write=False, first=False):
    storage = Storage(index=index, base_line=0, lines=10_000, label="x")
    return Operand(storage=storage, runs=np.array(runs, np.int64), write=write, first=first)


run_lists = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 400)), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None)
@given(several=st.lists(run_lists, min_size=1, max_size=4), grain=st.integers(1, 40))
def test_lockstep_gives_each_operand_whole_and_in_order(several, grain):
    operands = [operand(i, [(a, a + n) for a, n in runs]) for i, runs in enumerate(several)]
    rows = played(operands, grain_bytes=grain * LINE)
    for i, one in enumerate(operands):
        got = [line for row in rows if row[2] == i for line in range(row[3], row[4])]
        assert got == [line for first, stop in one.runs.tolist() for line in range(first, stop)]


def test_operands_advance_together():
    big, small = operand(0, [(0, 1000)]), operand(1, [(0, 100)], write=True)
    done = [0, 0]
    for code, _, storage, first, stop in played([big, small], grain_bytes=100 * LINE):
        assert code == (WRITE if storage else READ)
        done[storage] += stop - first
        assert abs(done[0] / 1000 - done[1] / 100) <= 0.1 + 1e-9


def test_second_operand_of_a_product_is_read_first():
    rows = played([operand(0, [(0, 600)]), operand(1, [(0, 600)], first=True)], grain_bytes=100 * LINE)
    storages = [row[2] for row in rows]
    assert storages == sorted(storages, reverse=True)


def test_sequential_order_reads_all_before_it_writes():
    operands = [operand(0, [(0, 600)]), operand(1, [(0, 600)]), operand(2, [(0, 600)], write=True)]
    storages = [row[2] for row in played(operands, order=Order.SEQUENTIAL, grain_bytes=100 * LINE)]
    assert storages == sorted(storages)


def test_no_flush_when_the_policy_says_so():
    log = Log()
    Stream([log], Policy(flush=False), LINE).finish()
    assert "flush" not in log.rows


@pytest.mark.parametrize(("freed", "again"), [(Freed.DROP, True), (Freed.REUSE, True), (Freed.NEVER, False)])
def test_addresses_of_freed_storage(freed, again):
    deaths = []
    storages = Storages(LINE, freed, deaths.append)
    first = storages.allocate(640, "a")
    storages.release(first)
    second = storages.allocate(640, "b")
    assert deaths == [first]
    assert (second.base_line == first.base_line) is again
    assert storages.allocate(64, "c").base_line == (10 if again else 20)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"freed": "melt"}, "freed='melt' is unknown: use drop, reuse, never"),
        ({"grain_bytes": 0}, "grain_bytes=0"),
    ],
)
def test_bad_policy_is_refused(choice, message):
    with pytest.raises(InvalidInput, match=message):
        Policy(**choice)
