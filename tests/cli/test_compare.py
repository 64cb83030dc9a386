"""`attnprof compare` as a gate: exit codes, one JSON document, Markdown, damaged input."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.report import factory

from attnprof.core.record import Failed, FailureKind
from attnprof.store.runs import RunWriter


def write(directory, *records, **manifest):
    with RunWriter(directory) as writer:
        writer.write_manifest(factory.manifest(**manifest))
        for record in records:
            writer.append(record)
    return directory


@pytest.fixture
def runs(tmp_path):
    names = ("naive", "sdpa_default", "sdpa_flash", "sdpa_math", "gqa_4kv")

    def make(where, slow=1.0):
        made = [
            factory.record(name, outcome=factory.measured(100.0 * (slow if name == "sdpa_flash" else 1.0)))
            for name in names
        ]
        return write(tmp_path / where, *made)

    return make


def test_no_difference_is_exit_0(run_cli, runs):
    ran = run_cli("compare", runs("a dir"), runs("b"))
    assert ran.code == 0
    assert "no regression in 5 judged cases (5 no difference); threshold 5%" in ran.out


def test_a_regression_is_exit_1_and_named_first(run_cli, runs):
    ran = run_cli("compare", runs("a"), runs("b", 1.10))
    assert ran.code == 1
    lines = [line for line in ran.out.splitlines() if "slower" in line]
    assert len(lines) == 2  # the row and the headline
    assert "1 regression in 5 judged cases" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 160


def test_an_improvement_is_exit_0(run_cli, runs):
    ran = run_cli("compare", runs("a", 1.2), runs("b"))
    assert ran.code == 0
    assert "faster" in ran.out


def test_the_threshold_is_an_option(run_cli, runs):
    assert run_cli("compare", runs("a"), runs("b", 1.10), "--threshold", "20%").code == 0


def test_json_is_one_document(run_cli, runs):
    ran = run_cli("compare", runs("a"), runs("b", 1.10), "--json")
    document = json.loads(ran.out)
    assert ran.code == 1
    (key,) = document["regressions"]
    assert key.startswith("sdpa_flash")
    case = next(case for case in document["cases"] if case["key"] == key)
    assert case["verdict"] == "slower"
    assert case["ratio"] == pytest.approx(1.10)
    assert case["ratio_low"] < 1.10 < case["ratio_high"]


def test_markdown_goes_to_stdout(run_cli, runs):
    ran = run_cli("compare", runs("a"), runs("b", 1.10), "--markdown")
    assert ran.code == 1
    assert ran.out.startswith("### attnprof compare: 1 regression")
    assert "<details>" in ran.out


def test_another_thread_count_comes_before_the_cases(run_cli, runs, tmp_path):
    identity = msgspec.structs.replace(factory.manifest().identity, threads=1)
    other = write(
        tmp_path / "one", factory.record("naive", outcome=factory.measured(190.0)), identity=identity
    )
    ran = run_cli("compare", runs("two"), other)
    assert ran.code == 2
    assert "none of the 1 case in common could be judged" in ran.err
    assert "first reason: threads: 2 -> 1" in ran.err
    assert "no case was judged (1 in common, all not comparable)" in ran.out
    assert "no regression" not in ran.out
    assert ran.out.index("threads: 2 -> 1") < ran.out.index("variant")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--threshold", "5 apples"), "not between 0 and 1"),
        (("--threshold", "-1%"), "not between 0 and 1"),
        (("--json", "--markdown"), "give one of them"),
    ],
)
def test_wrong_use_is_exit_2(run_cli, runs, arguments, message):
    ran = run_cli("compare", runs("a"), runs("b"), *arguments)
    assert (ran.code, message in ran.err) == (2, True)


def test_a_directory_without_a_run_is_exit_2(run_cli, runs, tmp_path):
    ran = run_cli("compare", runs("a"), tmp_path)
    assert ran.code == 2
    assert "holds no run.jsonl" in ran.err


def test_runs_without_a_common_case_are_wrong_use(run_cli, runs, tmp_path):
    ran = run_cli("compare", runs("a"), write(tmp_path / "other", factory.record("naive", 77)))
    assert ran.code == 2
    assert "no case in common" in ran.err
    assert "only in B: naive" in ran.out


def test_damaged_lines_are_named_and_the_rest_compared(run_cli, runs):
    a, b = runs("a"), runs("b")
    path = b / "run.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"{not json}\n", *lines[3:], lines[2][:40]]))
    ran = run_cli("compare", a, b, "--json")
    document = json.loads(ran.out)
    assert ran.code == 0
    assert len(document["cases"]) == 4
    assert [text.split(":")[1].strip() for text in document["damaged"]] == [
        "run.jsonl line 3",
        "run.jsonl line 6",
    ]
    assert len(document["only_in_a"]) == 1
    assert "4 judged cases (4 no difference)" in document["headline"]
    assert "input DAMAGED: 2 parts of B could not be read" in document["headline"]


def test_only_judged_cases_are_counted(run_cli, tmp_path):
    few = factory.measured(samples_s=(1e-4,) * 3, rounds=(0, 1, 2))
    a, b = (
        write(tmp_path / side, factory.record("naive"), factory.record("x", outcome=few)) for side in "ab"
    )
    ran = run_cli("compare", a, b)
    assert ran.code == 0
    assert "no regression in 1 judged case (1 no difference); threshold 5%; 1 case not comparable" in ran.out
    assert "1 case judged as timed (fewer than three other variants" in ran.out
    assert "the machine's drift is NOT taken out" in ran.out


def test_a_regression_without_a_judged_time_is_exit_1(run_cli, tmp_path):
    few = factory.measured(samples_s=(1e-4,) * 3, rounds=(0, 1, 2))
    failed = Failed(kind=FailureKind.TIMEOUT, message="30 s")
    a = write(tmp_path / "a", factory.record("x", outcome=few))
    b = write(tmp_path / "b", factory.record("x", outcome=failed))
    ran = run_cli("compare", a, b)
    assert ran.code == 1
    assert "1 regression, and no case was judged" in ran.out


def test_wild_times_stay_inside_80_columns(run_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    wild = factory.measured(samples_s=tuple(10.0**i for i in range(-9, 9)), rounds=tuple(range(18)))
    a, b = (write(tmp_path / side, factory.record(outcome=wild)) for side in "ab")
    ran = run_cli("compare", a, b)
    table = [line for line in ran.out.splitlines() if " .. " in line]
    assert len(table) == 1
    assert "e+" in table[0]
    assert len(table[0].rstrip()) <= 80
    assert "needs more than 1,000%" in ran.out


def test_a_run_of_a_newer_schema_is_named(run_cli, runs):
    a, b = runs("a"), runs("b")
    manifest = json.loads((b / "manifest.json").read_text())
    (b / "manifest.json").write_text(json.dumps(manifest | {"schema": 99}))
    ran = run_cli("compare", a, b)
    assert ran.code == 2
    assert "schema 99" in ran.out
    assert "environment of B: unknown" in ran.out


def test_hostile_names_do_not_reach_the_terminal_as_code(run_cli, tmp_path):
    name = "[red]\x1b[31m<script>"
    a, b = (write(tmp_path / side, factory.record(name)) for side in "ab")
    ran = run_cli("compare", a, b)
    assert ran.code == 0
    assert "\x1b[31m" not in ran.out
    assert "[red]" in ran.out
