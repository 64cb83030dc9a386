"""`attnprof predict` as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from attnprof.cli.predict import predict_command
from attnprof.core.errors import StoreError

app = typer.Typer()
app.command("predict")(predict_command)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def flat(text: str) -> str:
    """Without the line breaks that a terminal's width puts in."""
    return " ".join(text.split())


def test_one_json_document_with_every_row():
    asked = ("--seq-lens", "512,1024", "--dtype", "float16", "--variants", "naive,sdpa_flash")
    document = json.loads(run(*asked, "--json"))
    rows = document["predictions"]
    assert [(row["variant"], row["problem"]["q_len"]) for row in rows] == [
        ("naive", 512), ("sdpa_flash", 512), ("naive", 1024), ("sdpa_flash", 1024),
    ]  # fmt: skip
    assert all(row["low_s"] < row["time_s"] < row["high_s"] for row in rows)


def test_explain_prints_every_resource_and_the_exp_share():
    text = run("--seq-lens", "4096", "--heads", "16", "--head-dim", "128", "--dtype", "bfloat16", "--explain",
               "--variants", "FlashAttention-3")  # fmt: skip
    for word in ("matmul", "softmax", "shared_memory", "l2", "dram", "launch", "ridge"):
        assert word in text
    assert "exp takes 50% of the matmul time" in flat(text)


def test_a_table_fits_80_columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = run("--seq-lens", "64,16384", "--dtype", "float16", "--device", "H100 SXM")
    assert max(map(len, text.splitlines())) <= 80


def test_a_variant_of_no_published_kind_has_no_time():
    text = run("--seq-lens", "64", "--dtype", "float16", "--variants", "flash_tiled,sliding_window_true")
    assert "flash_tiled: no GPU measurement of its kind is published" in flat(text)


def test_an_unknown_device_prints_no_number_for_time():
    text = run("--seq-lens", "512", "--dtype", "float16", "--device", "H1000", "--variants", "sdpa_flash")
    assert "n/a" in text
    assert "H100 SXM" in flat(text)
    assert not re.search(r"\d (n|u|m)s", text)


def test_an_unknown_device_is_one_line_on_stderr():
    asked = ["--seq-lens", "512,1024", "--dtype", "float16", "--device", "Banana 9000", "--json"]
    result = CliRunner().invoke(app, asked, catch_exceptions=False)
    (line,) = result.stderr.splitlines()
    assert "'Banana 9000' is not in the hardware catalogue; nearest:" in line
    assert all(row["time_s"] is None for row in json.loads(result.stdout)["predictions"])


def test_the_backend_that_was_assumed_is_printed():
    asked = ("--seq-lens", "512", "--dtype", "bfloat16", "--variants", "sdpa_default")
    assert "sdpa_default: PyTorch picks cuDNN here" in flat(run(*asked, "--device", "H100 SXM"))
    assert "sdpa_default: PyTorch picks math here" in flat(run(*asked, "--device", "T4"))


def test_calibrating_on_nothing_is_refused(tmp_path: Path):
    with pytest.raises(StoreError, match=r"run\.jsonl"):
        CliRunner().invoke(app, ["--calibrate", str(tmp_path)], catch_exceptions=False)
