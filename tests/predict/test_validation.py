"""The error figures are computed here anew, from the packaged rows, and held to bounds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from attnprof.predict.leaving_out import packaged_rows
from attnprof.predict.published import packaged_text, parse_rows
from attnprof.predict.validation import Validation, baselines, roofline_s, validate


@cache
def published() -> Validation:
    return validate(packaged_text())


def test_shapes_left_out():
    report = published().modes["shapes"]
    assert report.median_abs_rel_error < 0.04
    assert report.p90_abs_rel_error < 0.15
    assert 0.72 <= report.interval_coverage <= 0.88


def test_sources_left_out_beat_both_baselines_twice():
    result = published()
    report = result.modes["source"]
    assert report.median_abs_rel_error < 0.20
    assert 0.72 <= report.interval_coverage <= 0.88
    for errors in result.baselines.values():
        assert errors.median_abs_rel_error > 2 * report.median_abs_rel_error


def test_nearly_every_row_is_predicted_and_counted():
    result = published()
    assert result.predicted + sum(result.skipped.values()) == result.rows
    assert result.predicted > 0.95 * result.rows
    assert result.mode == "shapes"
    assert result.median_abs_rel_error == result.modes["shapes"].median_abs_rel_error


def test_rows_above_the_peak_are_listed():
    result = published()
    stated = {row.number: row for row in packaged_rows()}
    assert result.above_peak
    for note in result.above_peak:
        row = stated[note.row]
        assert row.seconds is not None
        assert roofline_s(row) > row.seconds
        assert "%" in note.detail


def test_groups_cover_every_row_once_per_grouping():
    result = published()
    for by in ("kernel", "gpu", "source", "pass"):
        assert sum(g.rows for g in result.groups if g.by == by) == len(packaged_rows())


def test_memory_rows_are_within_five_percent_where_tensors_dominate():
    memory = next(g for g in published().groups if g.name == "peak_mem")
    assert memory.rows == 27
    assert memory.median_abs_rel_error < 0.01


def test_a_foreign_source_is_predicted_by_the_shipped_constants():
    header, *lines = packaged_text().splitlines()
    mine = [line.replace("torchbench", "elsewhere", 1) for line in lines if line.startswith("torchbench")]
    result = validate("\n".join([header, *mine]), ("source",))
    assert result.sources_in_fit == ()
    assert result.predicted == len(mine)
    assert result.median_abs_rel_error < 0.25


def test_a_lone_row_has_the_broad_interval_of_an_unseen_source():
    header, *lines = packaged_text().splitlines()
    line = next(line for line in lines if line.startswith("torchbench")).replace("torchbench", "lonely", 1)
    result = validate("\n".join([header, line]))
    shapes, source = result.modes["shapes"], result.modes["source"]
    assert shapes.median_abs_rel_error == pytest.approx(source.median_abs_rel_error)


def test_baselines_are_rooflines():
    rows = packaged_rows()
    expected = np.median([abs(roofline_s(row) / row.seconds - 1) for row in rows if row.seconds])
    assert baselines(rows)["datasheet_roofline"].median_abs_rel_error == pytest.approx(expected)


def test_an_empty_table_has_no_figures():
    result = validate(packaged_text().splitlines()[0])
    assert (result.rows, result.predicted, result.median_abs_rel_error) == (0, 0, None)
    assert parse_rows(packaged_text().splitlines()[0]) == ([], [])


def test_a_rate_far_above_the_peak_is_not_compared():
    header, *lines = packaged_text().splitlines()
    line = next(line for line in lines if line.startswith("fa2_paper") and "FlashAttention-2" in line)
    result = validate("\n".join([header, line.replace(",TFLOP/s,", "000,TFLOP/s,")]))
    assert (result.predicted, result.skipped) == (0, {"value is nonsense": 1})
    assert len(result.above_peak) == 1


def note_above_peak(**cells: str) -> str:
    """What is said of one row that claims too much."""
    base = {
        "source_id": "s", "gpu": "H100 SXM", "kernel": "flash decode", "dtype": "fp16", "batch": "1", "heads_q": "32",
        "heads_kv": "8", "seqlen_q": "1", "seqlen_k": "4096", "head_dim": "128", "causal": "0", "pass": "fwd",
        "metric": "time", "value": "5", "unit": "us",
    } | cells  # fmt: skip
    text = "\n".join(",".join(line) for line in (base.keys(), base.values()))
    notes = validate(text, ("source",)).above_peak
    return notes[0].detail if notes else ""


def test_a_decode_above_the_bandwidth_is_flagged():
    assert "100.3%" in note_above_peak()
    assert note_above_peak(value="6") == ""


def test_a_causal_rate_counted_twice_is_flagged():
    shape = {
        "seqlen_q": "8192",
        "seqlen_k": "8192",
        "heads_kv": "32",
        "causal": "1",
        "kernel": "FlashAttention-2",
    }
    rate = {"gpu": "A100 SXM 80GB", "metric": "tflops", "unit": "TFLOP/s"}
    assert "121" in note_above_peak(**shape, **rate, value="378")
    assert note_above_peak(**shape, **rate, value="189") == ""
