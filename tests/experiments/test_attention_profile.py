"""The study: its rows, its arithmetic, and all five scripts from end to end on tiny problems."""

from __future__ import annotations

import csv
import importlib
import json
import sys
from pathlib import Path

import pytest

from attnprof.report.row import COLUMNS

STUDY = Path(__file__).parents[2] / "experiments" / "attention-profile"
NAMES = (
    "study", "analyze_attention", "oddities", "design_doc", "generate_docs", "plot_attention",
    "profile_attention", "profile_attention_v2",
)  # fmt: skip


@pytest.fixture
def scripts(monkeypatch):
    """The scripts as modules, fresh for each test."""
    monkeypatch.syspath_prepend(str(STUDY))
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    loaded = {name: importlib.import_module(name) for name in NAMES}
    yield loaded
    for name in NAMES:
        sys.modules.pop(name, None)


def read(name):
    with (STUDY / "results" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("name", "rows", "variants", "batches"),
    [("attention_profile.csv", 60, 7, {"1", "4"}), ("attention_profile_v2.csv", 108, 6, {"1", "2", "4"})],
)
def test_the_stored_results_are_complete(name, rows, variants, batches):
    table = read(name)
    assert len(table) == rows
    assert list(table[0]) == list(COLUMNS)
    assert len({row["variant"] for row in table}) == variants
    assert {row["batch"] for row in table} == batches
    assert {row["q_len"] for row in table} == {"64", "128", "256", "512", "1024", "2048"}
    for row in table:
        has_time = row["time_median_us"] != "n/a"
        assert has_time == (row["outcome"] == "measured")
        assert has_time or row["reason"] != "n/a"
        assert row["verdict"] in (("pass",) if has_time else ("n/a",))


def test_presets_carry_their_own_problem():
    table = {row["variant"]: row for row in read("attention_profile.csv")}
    assert table["sliding_w128"]["mask"] == "window:127:0"
    assert (table["gqa_4kv"]["q_heads"], table["gqa_4kv"]["kv_heads"]) == ("12", "3")
    assert "function differs" in table["gqa_4kv"]["note"]


def test_the_stored_documents_are_those_of_the_stored_results(scripts):
    docs, study = scripts["generate_docs"], scripts["study"]
    v1, v2 = study.results("v1"), study.results("v2")
    assert (STUDY / "README.md").read_text(encoding="utf-8") == docs.readme(v1, v2)
    assert (STUDY / "DESIGN.md").read_text(encoding="utf-8") == docs.design(v1, v2)


def test_published_speedups_follow_from_published_times(scripts):
    found = scripts["analyze_attention"].analyze_published()
    printed = scripts["study"].published_table("speedup_vs_naive")
    for name, by_length in printed.items():
        if name != "sdpa_flash":  # no time is printed for it
            assert found["speedup_vs_naive"][name][2048] == pytest.approx(by_length[2048], abs=0.01)
    assert found["peak_mb"]["naive"]["ratio"] == pytest.approx(217 / 8.7)


def test_oddities_come_with_their_arithmetic(scripts):
    told = "\n".join(scripts["oddities"].oddities())
    assert "512: 2.14" in told  # memory-efficient over default, one kernel
    assert "257 us at N = 512 and 228 us at N = 1024" in told
    assert "so 705 us" in told
    assert "workspace are 217 MB; printed: 217" in told


def test_growth_is_the_power_law(scripts):
    growth = scripts["analyze_attention"].growth({64: 1.0, 128: 4.0, 256: 16.0})
    assert (growth["from_length"], growth["to_length"], growth["ratio"]) == (64, 256, 16.0)
    assert growth["exponent"] == pytest.approx(2.0)


@pytest.mark.slow
def test_the_scripts_run_from_end_to_end(scripts, tmp_path, monkeypatch, capsys):
    tiny = {
        "LENGTHS": (16, 32),
        "HEADS": 4,
        "HEAD_DIM": 16,
        "V2_BATCHES": (1, 2),
        "RESULTS": tmp_path / "results",
        "PLOTS": tmp_path / "plots",
    }
    tiny |= {"HERE": tmp_path, "SAMPLING": ("--min-rounds", "2", "--max-rounds", "2", "--budget-s", "0.01")}
    for module in scripts.values():
        for name, value in tiny.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sys, "argv", ["script"])
    for name in (
        "profile_attention",
        "profile_attention_v2",
        "plot_attention",
        "analyze_attention",
        "generate_docs",
    ):
        scripts[name].main()
    said = capsys.readouterr().out
    assert "20 rows in results/attention_profile.csv" in said
    assert "24 rows in results/attention_profile_v2.csv" in said
    assert {"v1_time_b1.png", "v2_memory_b2.png", "rtx2070_time_us.png"} <= {
        p.name for p in (tmp_path / "plots").iterdir()
    }
    analysis = json.loads((tmp_path / "results" / "analysis.json").read_text())
    assert "no memory-efficient kernel" in analysis["v1"]["without_numbers"]["sdpa_memeff"]
    assert analysis["v1"]["batches"]["1"]["speedup_vs_naive"]["naive"] == {"16": 1.0, "32": 1.0}
    text = (tmp_path / "README.md").read_text()
    assert "Fastest correct kernel by length: 16:" in text
    assert "nan" not in text.lower().replace("nan row", "")
    assert "**v2, 24 rows.**" in (tmp_path / "DESIGN.md").read_text()
