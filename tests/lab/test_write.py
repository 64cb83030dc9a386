"""The six files: written from one run, complete, labelled, in both languages, and the committed copy is current."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from attnprof.core.ceilings import Ceilings, Rate
from attnprof.core.errors import StoreError, UnknownName
from attnprof.core.record import Weather
from attnprof.lab import collect, plots, write
from attnprof.lab.words import PLOTS

EXPERIMENT = Path(__file__).parents[2] / "experiments" / write.FOLDER


def rate(best: float) -> Rate:
    return Rate(best=best, median=best, spread=0.0, samples=5, conditions="made up")


@pytest.fixture(scope="module")
def data():
    """A real run up to N = 2048, with ceilings and times made up (they need an idle machine)."""
    patch = pytest.MonkeyPatch()

    def ceilings(_device, identity):
        bandwidth = {"L2": {"read": rate(4e11)}, "L3": {"read": rate(2e11)}, "DRAM": {"read": rate(3e10)}}
        sizes = {"L1": 49152, "L2": 2**20, "L3": 2**25}
        made = Ceilings(
            identity=identity, weather=Weather(), measured_at="2026-01-01", flops={"float32": rate(1e11)},
            exp={"float32": rate(1e9)}, bandwidth=bandwidth, capacities_bytes=sizes, floor_s=rate(1e-6),
        )  # fmt: skip
        return made, "measured in this run"

    def timings():
        return [
            collect.Timing(name="naive", time_s=0.03, flops_per_s=3.6e10),
            collect.Timing(name="sdpa_flash", time_s=0.01, flops_per_s=1.07e11),
        ]

    patch.setattr(collect, "_ceilings", ceilings)
    patch.setattr(collect, "_timings", timings)
    patch.setattr(collect, "SCANNED", (96, 128, 160))
    yield collect.collect(
        lambda _: None, lengths=(64, 256, 2048), started_at="2026-01-01T00:00:00", commit="c0ffee"
    )
    patch.undo()


def test_every_measurement_is_within_a_thousandth_of_theory(data):
    assert data.worst_deviation <= 0.001
    assert data.at("flash", 2048).total_bytes == 34_603_008
    assert data.at("naive", 2048).total_bytes == 69_206_016
    assert data.wins_from == 160


@pytest.mark.parametrize("lang", ["en", "es"])
def test_six_files_with_the_run_s_numbers(data, lang, tmp_path):
    write.write_files(data, tmp_path, lang)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(write.FILES)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    for number in (
        "34,603,008",
        "69,206,016",
        "543,162,368",
        "541,065,216",
        "1.0039",
        "8,388,608",
        "3.57x",
        "33x",
    ):
        assert number in text
    assert not re.search(r"\b(None|nan|Undefined)\b|{{|{%", text)
    assert "bytes_vs_n.png" in text
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["lang"] == lang
    assert len(manifest["measured"]) == 6
    for name in ("bytes_vs_n.png", "intensity_ratio.png"):
        png = (tmp_path / name).read_bytes()
        assert png.startswith(b"\x89PNG")
        assert len(png) > 20_000
    for name in write.SCRIPTS:
        assert (tmp_path / name).read_bytes() == files("attnprof.lab").joinpath(name).read_bytes()


@pytest.mark.parametrize("lang", ["en", "es"])
def test_plots_are_labelled_and_marked_where_measured(data, lang):
    spec = plots.bytes_chart(data, PLOTS[lang]).to_dict()
    lines, points = spec["layer"][0], spec["layer"][1]
    drawn, marked = (spec["datasets"][layer["data"]["name"]] for layer in (lines, points))
    assert lines["encoding"]["x"]["scale"]["type"] == lines["encoding"]["y"]["scale"]["type"] == "log"
    assert lines["encoding"]["x"]["title"] == PLOTS[lang]["x"]
    assert lines["encoding"]["y"]["title"] == PLOTS[lang]["y_bytes"]
    assert [row["N"] for row in drawn][:3] == [256] * 3
    assert max(row["N"] for row in drawn) == 16384
    predicted = {(r["N"], r["line"]): r["bytes"] for r in drawn}
    for row in marked:
        assert row["bytes"] == pytest.approx(predicted[row["N"], row["line"]], rel=1e-3)
    assert spec["title"]["text"] == PLOTS[lang]["bytes_title"]
    ratio = plots.ratio_chart(data, PLOTS[lang]).to_dict()
    assert [part["title"]["text"] for part in ratio["hconcat"]] == [
        PLOTS[lang]["ratio_panel"],
        PLOTS[lang]["roofline_panel"],
    ]


def test_deviations_are_named_by_term(data):
    row = data.at("flash", 2048)
    assert write.term_deviations(row) == []
    assert write.term_deviations(data.at("naive", 64)) == []
    off = msgspec.structs.replace(
        row, terms=row.terms | {"K": (row.terms["K"][0] + 640, 0), "temporaries": (0, 64)}
    )
    assert write.term_deviations(off) == [
        "flash, N = 2048: K read +640",
        "flash, N = 2048: temporaries written +64",
    ]


def test_both_languages_have_the_same_words():
    assert set(PLOTS["en"]) == set(PLOTS["es"])


def test_prediction_on_this_machine_follows_from_its_ceilings(data):
    found = write.cpu_prediction(data)
    assert found["matmul_s"] == pytest.approx(4 * 2048 * 2048 * 64 / 1e11)
    assert found["naive_bytes_s"] == pytest.approx(69_206_016 / 3e10)
    assert found["flash_bytes_s"] == pytest.approx(34_603_008 / 2e11)  # 2 MiB: above this L2, inside L3


def test_unknown_language_and_a_file_as_folder_are_refused(tmp_path):
    with pytest.raises(UnknownName, match="language 'fr': use en or es"):
        write.run_lab(tmp_path, "fr")
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with pytest.raises(StoreError, match="cannot be made a folder"):
        write.run_lab(taken)


def test_the_committed_copy_is_complete_and_its_scripts_are_current():
    assert sorted(p.name for p in EXPERIMENT.iterdir() if p.is_file()) == sorted(write.FILES)
    for name in write.SCRIPTS:
        assert (EXPERIMENT / name).read_bytes() == files("attnprof.lab").joinpath(name).read_bytes()
    manifest = json.loads((EXPERIMENT / "manifest.json").read_text())
    measured = {(row["method"], row["N"]) for row in manifest["measured"]}
    assert {("naive", 2048), ("flash", 2048)} <= measured


def test_the_command_prints_one_document(run_cli, data, monkeypatch, tmp_path):
    monkeypatch.setattr(write, "run_lab", lambda *_args, **_options: data)
    ran = run_cli("lab", "--out", str(tmp_path), "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document["worst_deviation"] <= 0.001
    assert document["files"] == list(write.FILES)
    assert run_cli("lab", "--out", str(tmp_path)).out.startswith("6 files in ")
