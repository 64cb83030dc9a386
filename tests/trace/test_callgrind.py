"""Simulated bytes: parsing, refusals, and one smoke call beside the trace."""

import shutil

import pytest

from attnprof.core.errors import InvalidInput, KernelError
from attnprof.core.problem import Problem
from attnprof.trace import callgrind
from attnprof.trace.callgrind import Simulated, parse_counts, refuse, simulate
from attnprof.variants.catalog import as_variant, find

MIB = 1024**2


def test_totals_are_read_by_event_name():
    text = "version: 1\nevents: Ir Dr DLmr DLmw\nfn=x\n1 2 3 4\nsummary: 1 1 1 1\ntotals: 9 8 7\n"
    assert parse_counts(text) == {"Ir": 9, "Dr": 8, "DLmr": 7, "DLmw": 0}


def test_a_call_that_was_not_counted_is_an_error():
    with pytest.raises(KernelError, match="the call was not counted"):
        parse_counts("version: 1\n")


def test_small_last_level_is_refused():
    with pytest.raises(InvalidInput, match="below 1 MiB they fill it"):
        simulate(find("naive"), Problem(q_len=8), 160 * 1024)


def test_unknown_to_the_child_process_is_refused():
    own = as_variant(lambda q, k, v: q + k + v)
    assert "not in the catalogue" in refuse(own, Problem(q_len=8), MIB)


def test_backward_is_refused():
    assert refuse(find("naive"), Problem(q_len=8, direction="bwd"), MIB) == "only the forward is simulated"


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "valgrind is not installed" in callgrind.unavailable()
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/valgrind" if name == "valgrind" else None)
    assert "no C compiler" in callgrind.unavailable()


def test_relative_error_is_of_the_fills():
    done = Simulated(
        capacity_bytes=MIB,
        fill_bytes=110,
        write_back_bytes=0,
        traced_fill_bytes=100,
        traced_write_back_bytes=0,
    )
    assert done.relative_error == pytest.approx(0.1)


@pytest.mark.valgrind
@pytest.mark.slow
def test_simulated_fills_are_the_traced_ones():
    if reason := callgrind.unavailable():
        pytest.skip(reason)
    done = simulate(find("sdpa_flash"), Problem(q_len=512, head_dim=64), 32 * MIB)
    assert abs(done.relative_error) < 0.15
    assert (
        done.traced_fill_bytes > Problem(q_len=512, head_dim=64).compulsory_bytes
    )  # the kernel's scratch is in it
