"""Entries for continuous-benchmark actions."""

from __future__ import annotations

import msgspec
from tests.report import factory

from attnprof.core.record import Run, Unsupported
from attnprof.report.benchmark_json import benchmark_entries, write_benchmark_json


def entries(*records):
    return benchmark_entries(Run(manifest=None, records=records))


def test_a_measured_row_gives_time_and_memory_with_units():
    time, memory = entries(factory.record("naive", outcome=factory.measured(100.0)))
    assert (time["unit"], round(time["value"], 3)) == ("us", 100.0)
    assert (memory["unit"], memory["value"]) == ("MiB", 12.0)
    assert time["name"].startswith("naive | B1 H12 N1024")
    assert time["range"].startswith("± ")
    assert "result: pass" in time["extra"]


def test_a_row_without_a_number_has_no_entry():
    assert entries(factory.record("x", outcome=Unsupported(reason="no kernel"))) == []
    assert entries(factory.record("x", outcome=factory.measured(samples_s=(), rounds=()))) == []


def test_names_are_unique_and_hostile_ones_are_plain_strings():
    made = entries(factory.record(factory.HOSTILE), factory.record("naive"), factory.record("naive", 64))
    assert len({entry["name"] for entry in made}) == len(made) == 6
    decoded = msgspec.json.decode(msgspec.json.encode(made))
    assert decoded[0]["name"].startswith(factory.HOSTILE)


def test_the_file_holds_the_entries(tmp_path):
    run = Run(manifest=None, records=(factory.record("naive"),))
    write_benchmark_json(run, tmp_path / "benchmark.json")
    assert msgspec.json.decode((tmp_path / "benchmark.json").read_bytes()) == benchmark_entries(run)


def test_a_row_without_memory_or_check_says_so():
    (time,) = entries(factory.record(outcome=factory.measured(memory=None, accuracy=None, backend="")))
    assert "result: not checked" in time["extra"]
    assert "backend: unknown" in time["extra"]
