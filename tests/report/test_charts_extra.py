"""Prediction against measurement, and the capacity curve of traces kept beside a run."""

from __future__ import annotations

import json

import pytest
from tests.report.factory import HOSTILE, manifest, measured, problem, record

from attnprof.core.record import Run
from attnprof.core.schedules.eager import naive_cost
from attnprof.report.build import build, write_report
from attnprof.report.charts_capacity import capacity_chart
from attnprof.report.charts_data import styles
from attnprof.report.charts_prediction import prediction_chart
from attnprof.report.load import Results
from attnprof.store.traces import load_traces

ALL = styles(["naive", "sdpa_flash", HOSTILE])
CURVE = {
    "variant": "flash_tiled",
    "description": "B1 H1 N1024",
    "policy": "LRU",
    "compulsory_bytes": 1_048_576,
    "logical": {"total_bytes": 8_912_896, "kind": "logical"},
    "curve": {
        "points": [
            {"capacity_bytes": 4096 * 4**step, "read_bytes": 10**7 >> step, "write_bytes": 10**6}
            for step in range(4)
        ],
        "marks": [{"name": "L1", "capacity_bytes": 32768}, {"name": "HBM", "capacity_bytes": 2**36}],
    },
}


def ideal(length, variant="naive", factor=1.0):
    """A row of a machine that does 10 GFLOP/s and takes 20 us a call."""
    cost = naive_cost(problem(length))
    return record(variant, length, measured(factor * (20 + cost.executed_flops / 1e10 * 1e6)))


def test_shorter_lengths_predict_those_that_were_left_out():
    records = [ideal(length) for length in (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)]
    chart = prediction_chart(records, manifest(), ALL)
    points = chart.spec["datasets"]["points"]
    assert len(points) == 5
    for point in points:
        assert point["predicted_us"] == pytest.approx(point["measured_us"], rel=0.5)
    assert "Calibrated on 6 rows of every second length" in chart.caption
    assert "over 5 rows" in chart.caption


def test_too_few_rows_give_no_prediction():
    chart = prediction_chart([ideal(64), ideal(128)], manifest(), ALL)
    assert chart.spec is None
    assert "too few to calibrate" in chart.reason


def test_kernels_that_no_catalogue_knows_are_left_out():
    records = [ideal(length, HOSTILE) for length in (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)]
    chart = prediction_chart(records, None, ALL)
    assert chart.reason == "no measured row is of a kernel and a size that can be predicted"


def on(device_name):
    """The manifest of a run on a GPU."""
    import msgspec

    identity = msgspec.structs.replace(manifest().identity, device="cuda", device_name=device_name)
    return manifest(identity=identity)


def test_a_known_chip_is_predicted_without_the_run():
    asked = problem(2048, dtype="float16")
    chart = prediction_chart(
        [record("sdpa_flash", asked=asked, outcome=measured(300))], on("NVIDIA H100 80GB HBM3"), ALL
    )
    assert "from published measurements, not from this run" in chart.caption
    (point,) = chart.spec["datasets"]["points"]
    assert point["low_us"] < point["predicted_us"] < point["high_us"]


def test_an_unknown_chip_is_not_guessed():
    chart = prediction_chart([record("sdpa_flash")], on("Nobody's GPU 9000"), ALL)
    assert chart.spec is None
    assert "Nobody's GPU 9000" in chart.reason


def test_traces_beside_the_run_are_drawn_and_broken_ones_named(tmp_path):
    bare = {**CURVE, "curve": None, "logical": None}
    (tmp_path / "trace.json").write_text(json.dumps({"variant": "x", "traces": [CURVE, bare, CURVE]}))
    (tmp_path / "trace-2.json").write_text('{"traces": [')
    traces, damaged = load_traces(tmp_path)
    assert [trace.curve is None for trace in traces] == [False, True, False]
    assert len(damaged) == 1
    assert damaged[0].startswith("trace-2.json: ")
    results = Results(run=Run(manifest=None, records=()), traces=traces, damaged_traces=damaged)
    made = build(results, "t")
    drawn = [chart for chart in made.fixed if chart.spec and chart.name.startswith("capacity")]
    assert [chart.name for chart in drawn] == ["capacity", "capacity-2"]
    assert any("trace-2.json" in sentence for part in made.story for sentence in part.sentences)
    files = write_report(results, made, tmp_path / "out")
    assert tmp_path / "out" / "charts" / "capacity-2.svg" in files


def test_without_a_trace_the_command_is_named():
    made = build(Results(run=Run(manifest=None, records=())), "t")
    (chart,) = [chart for chart in made.fixed if chart.name == "capacity"]
    assert "attnprof trace VARIANT --curve --json > DIR/trace.json" in chart.reason


def test_a_curve_marks_only_memories_in_its_range():
    curve = [(4096, 100, 10), (65536, 50, 10)]
    marked = capacity_chart("t", curve, {"compulsory": 40}, [("L1", 32768), ("HBM", 2**36)], "LRU")
    assert [mark["name"] for mark in marked.spec["datasets"]["marks"]] == ["L1 32 KiB"]
    bare = capacity_chart("t", curve, {}, [("HBM", 2**36)], "LRU")
    assert "marks" not in bare.spec["datasets"]
