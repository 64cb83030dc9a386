"""`attnprof validate` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from attnprof.cli.validate import validate_command
from attnprof.core.errors import InvalidInput
from attnprof.predict.published import packaged_text

app = typer.Typer()
app.command("validate")(validate_command)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    header, *lines = packaged_text().splitlines()
    lines = [line.replace("torchbench", "elsewhere", 1) for line in lines if line.startswith("torchbench")]
    broken = lines[0].replace("H100 SXM", "H1000")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([header, *lines, broken]))
    return path


def test_json_has_the_promised_keys(small: Path):
    result = CliRunner().invoke(app, [str(small), "--json"], catch_exceptions=False)
    document = json.loads(result.stdout)
    promised = {
        "rows",
        "predicted",
        "skipped",
        "median_abs_rel_error",
        "p90_abs_rel_error",
        "baselines",
        "groups",
    }
    assert promised <= set(document)
    assert document["rows"] == document["predicted"] + sum(document["skipped"].values())
    assert document["skipped"] == {"unknown GPU": 1}
    assert set(document["modes"]) == {"shapes", "source"}


def test_tables_name_the_row_that_was_left_out(small: Path):
    result = CliRunner().invoke(app, [str(small), "--mode", "source"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "134" in result.stdout  # the line of the broken row
    assert "H1000" in result.stdout
    assert "datasheet" in result.stdout


def test_missing_columns_are_wrong_use(tmp_path: Path):
    path = tmp_path / "bad.csv"
    path.write_text("gpu,kernel\nA100,FA2\n")
    with pytest.raises(InvalidInput, match="source_id") as caught:
        CliRunner().invoke(app, [str(path)], catch_exceptions=False)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("flag", [(), ("--json",)])
def test_without_a_usable_row_nothing_was_predicted(tmp_path: Path, flag: tuple[str, ...]):
    header, row, *_ = packaged_text().splitlines()
    path = tmp_path / "none.csv"
    path.write_text("\n".join([header, row.replace(row.split(",")[2], "H1000")]))
    result = CliRunner().invoke(app, [str(path), *flag], catch_exceptions=False)
    assert result.exit_code == 1
    assert "nothing was predicted: none of 1 rows can be used (1 unknown GPU)" in result.stderr
    assert "row 2" in result.stderr
    assert "median" not in result.stdout or json.loads(result.stdout)["median_abs_rel_error"] is None


def test_a_file_without_rows_says_so(tmp_path: Path):
    path = tmp_path / "empty.csv"
    path.write_text(packaged_text().splitlines()[0] + "\n")
    result = CliRunner().invoke(app, [str(path)], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no row" in result.stderr
