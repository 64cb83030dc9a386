"""`attnprof.load`: a run in Python."""

from __future__ import annotations

import sys

import pytest
from tests.report.factory import manifest, sweep

import attnprof
from attnprof.core.errors import StoreError, UsageError
from attnprof.store.runs import RunWriter


@pytest.fixture
def run_dir(tmp_path):
    """A run directory as `attnprof run` leaves it."""
    with RunWriter(tmp_path / "run") as writer:
        for made in sweep():
            writer.append(made)
        writer.write_manifest(manifest())
    return tmp_path / "run"


def test_load_gives_records_rows_and_a_frame(run_dir):
    loaded = attnprof.load(run_dir)
    assert loaded.records == sweep()
    assert loaded.manifest == manifest()
    assert loaded.damaged == ()
    table = loaded.to_pandas()
    assert list(table["variant"]) == ["naive", "sdpa_flash"] * 4
    assert [answer.best.variant for answer in loaded.answers] == ["naive", *["sdpa_flash"] * 3]


def test_without_polars_the_way_out_is_named(run_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="to_pandas"):
        attnprof.load(run_dir).to_polars()


def test_with_polars_its_frame_is_returned(run_dir, monkeypatch):
    class Fake:
        """Stands for polars, which is optional."""

        @staticmethod
        def from_pandas(table):
            return ("polars", len(table))

    monkeypatch.setitem(sys.modules, "polars", Fake)
    assert attnprof.load(run_dir).to_polars() == ("polars", 8)


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"holds no run\.jsonl"):
        attnprof.load(tmp_path)
