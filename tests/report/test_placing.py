"""Rows under the ceilings of their device: bound, shares, alarms, the roofline and its words."""

from __future__ import annotations

import json

import pytest
from tests.report.factory import ceilings, manifest, measured, problem, record, sweep

from attnprof.core.mask import Full
from attnprof.core.record import Run, Severity, Skipped
from attnprof.report.answers import answers
from attnprof.report.build import build
from attnprof.report.charts_data import series_data, styles
from attnprof.report.charts_roof import roofline_chart
from attnprof.report.load import Results
from attnprof.report.metrics import rows
from attnprof.report.placing import stored_ceilings
from attnprof.report.row import why_missing
from attnprof.report.words import story
from attnprof.store.ceilings import save_ceilings


def chart(records, roofs, reason=""):
    """The roofline of the first series."""
    made = rows(records, roofs)
    found = answers(records, made)
    return roofline_chart(series_data(found, styles([row.variant for row in made]))[0], roofs, reason)


def test_a_row_is_placed_under_its_bound():
    row = rows([record(outcome=measured(1000))], ceilings())[0]
    p = problem()
    assert row.matmul_share == pytest.approx(p.useful_flops / 1e-3 / 100e12)
    assert row.memory_level == "L2"
    assert row.memory_share == pytest.approx(p.compulsory_bytes / 1e-3 / 5e12)
    assert row.exp_share == pytest.approx(record().cost.exp_ops / 1e-3 / 1e12)
    assert row.binding in {"matmul", "exp"}
    assert row.times_bound == pytest.approx(1000 / row.bound_us)
    assert row.ceilings_basis == "measured"


def test_a_row_above_a_ceiling_raises_an_alarm():
    row = rows([record(outcome=measured(1))], ceilings())[0]
    alarms = [j for j in row.judgments if j.code == "above_ceiling"]
    assert {alarm.severity for alarm in alarms} == {Severity.ALARM}
    assert alarms[0].remedy


def test_a_stored_alarm_is_not_said_twice():
    first = rows([record(outcome=measured(1))], ceilings())[0]
    again = rows([record(outcome=measured(1), judgments=first.judgments)], ceilings())[0]
    assert again.judgments == first.judgments


def test_without_ceilings_or_cost_the_reason_is_given():
    for row in (rows([record()])[0], rows([record(cost=None)], ceilings())[0]):
        assert row.bound_us is None
        assert why_missing(row, "bound_us") == "no ceilings known; run `attnprof ceilings`"
    other_dtype = rows([record(asked=problem().replace(dtype="float16"))], ceilings())[0]
    assert other_dtype.matmul_share is None


def test_a_skipped_row_still_has_a_bound():
    row = rows([record(outcome=Skipped(reason="x"))], ceilings())[0]
    assert row.bound_us > 0
    assert row.times_bound is None


def test_ceilings_of_the_runs_device_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNPROF_CEILINGS", str(save_ceilings(ceilings(), tmp_path / "c.json")))
    found, reason = stored_ceilings(manifest().identity)
    assert (found, reason) == (ceilings(), "")
    monkeypatch.setenv("ATTNPROF_CEILINGS", str(tmp_path / "none.json"))
    assert stored_ceilings(manifest().identity)[0] is None
    assert "attnprof ceilings" in stored_ceilings(manifest().identity)[1]
    assert stored_ceilings(None) == (None, "the run's device is unknown")


def test_the_roofline_holds_every_row_and_every_ceiling():
    drawn = json.dumps(chart(sweep(), ceilings()).spec)
    assert "L2 5,000 GB/s" in drawn
    assert "DRAM 1,000 GB/s" in drawn
    assert "matmul 100 TFLOP/s" in drawn
    assert '"sdpa_flash"' in drawn


def test_rows_without_cost_are_drawn_at_their_compulsory_bytes_only():
    tables = chart([record(cost=None)], ceilings()).spec["datasets"]
    assert len(tables["rows"]) == 1
    assert tables["logical"] == []


@pytest.mark.parametrize(
    ("made", "roofs", "reason"),
    [
        (record(), None, "none stored"),
        (record(outcome=Skipped(reason="x")), ceilings(), "no row has work and a time"),
        (record(), ceilings(dtype="float16"), 'no ceiling of Zen "4" <b> is known for float32'),
    ],
)
def test_a_roofline_that_cannot_be_drawn_says_why(made, roofs, reason):
    assert chart([made], roofs, "none stored").reason == reason


def test_the_words_say_how_far_and_what_binds(tmp_path, monkeypatch):
    made = rows(sweep(), ceilings())
    parts = {part.heading: part.sentences for part in story(answers(sweep(), made), made)}
    (sentence,) = parts["Distance to the ceiling"]
    assert "sdpa_flash at N = 2048 takes" in sentence
    assert "binds" in sentence
    assert "of its measured ceiling reached" in sentence
    monkeypatch.setenv("ATTNPROF_CEILINGS", str(tmp_path / "none.json"))
    parts = {
        part.heading: part.sentences
        for part in build(Results(run=Run(manifest=manifest(), records=sweep())), "t").story
    }
    assert parts["Distance to the ceiling"][0].startswith("n/a: no ceilings in")


def test_memory_bound_words_name_the_level():
    decode = record(asked=problem().replace(q_len=1, mask=Full()), outcome=measured(1000))
    made = rows([decode], ceilings(peak_flops_per_s=1e18))
    (part,) = [part for part in story(answers([decode], made), made) if part.heading.startswith("Distance")]
    assert "L2 bytes binds, 0% of its measured ceiling reached" in part.sentences[0]
