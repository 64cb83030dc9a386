"""CSV, JSON and Parquet: one table, safe to open, no number invented."""

from __future__ import annotations

import csv
import json

import pandas as pd
import pytest
from tests.report.factory import HOSTILE, measured, problem, record, sweep

from attnprof.core.mask import Lengths
from attnprof.core.record import Skipped
from attnprof.report.export import (
    frame,
    results_csv,
    safe_cell,
    write_results_csv,
    write_results_json,
    write_results_parquet,
)
from attnprof.report.metrics import rows
from attnprof.report.row import COLUMNS


def read(text):
    """The lines of a CSV as dictionaries."""
    return list(csv.DictReader(text.splitlines()))


def test_csv_has_a_line_a_record_and_the_contract_columns(tmp_path):
    path = tmp_path / "a path" / "résultats.csv"
    path.parent.mkdir()
    write_results_csv(sweep(), path)
    lines = read(path.read_text(encoding="utf-8"))
    assert len(lines) == 8
    assert tuple(lines[0]) == COLUMNS
    assert float(lines[0]["time_median_us"]) == pytest.approx(100)


def test_missing_numbers_are_na_in_csv_and_null_elsewhere(tmp_path):
    made = rows([record(outcome=Skipped(reason="too big"))])
    (line,) = read(results_csv(made))
    assert (line["time_median_us"], line["peak_mib"], line["reason"]) == ("n/a", "n/a", "too big")
    assert pd.isna(frame(made)["time_median_us"][0])
    write_results_json(made, tmp_path / "results.json")
    (value,) = json.loads((tmp_path / "results.json").read_text())
    assert value["time_median_us"] is None
    assert value["judgments"] == []


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_text_that_starts_like_a_formula_is_quoted(text):
    (line,) = read(results_csv(rows([record(variant=text)])))
    assert line["variant"].startswith("'")


def test_numbers_stay_numbers_and_other_text_stays_as_it_is():
    assert safe_cell(-1.5) == -1.5
    assert safe_cell(True) is True
    assert safe_cell(HOSTILE) == HOSTILE
    assert safe_cell("a\nb\0") == "a b"


def test_judgments_are_one_cell_with_their_remedies():
    (line,) = read(results_csv(rows([record(outcome=measured(samples_s=(1e-4,), rounds=(0,)))])))
    assert line["judgments"].startswith("too_few_samples: 1 sample")
    assert "allow more time" in line["judgments"]


def test_parquet_keeps_types_and_hostile_names(tmp_path):
    made = rows([*sweep(), record(HOSTILE, outcome=Skipped(reason='"quotes" | ünï'))])
    write_results_parquet(made, tmp_path / "results.parquet")
    back = pd.read_parquet(tmp_path / "results.parquet")
    assert list(back.columns) == list(COLUMNS)
    assert back["variant"].iloc[-1] == HOSTILE
    assert str(back["useful_flops"].dtype) == "Int64"
    assert back["time_median_us"].dtype == "float64"
    assert back["useful_flops"].iloc[0] == problem(256).useful_flops


def test_an_empty_run_has_a_header_only(tmp_path):
    assert results_csv(()) == ",".join(COLUMNS) + "\n"
    write_results_parquet((), tmp_path / "results.parquet")
    assert len(pd.read_parquet(tmp_path / "results.parquet")) == 0


def test_a_mask_with_commas_is_one_cell():
    padded = problem().replace(batch=2, mask=Lengths(q_lens=(8, 9), kv_lens=(8, 9)))
    (line,) = read(results_csv(rows([record(asked=padded)])))
    assert line["mask"] == "lengths:8,9:8,9"
