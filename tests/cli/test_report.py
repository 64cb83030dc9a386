"""`attnprof report`: exit codes, files, JSON, and what it says of damaged input."""

from __future__ import annotations

import json

import pytest
import typer
from tests.report.factory import manifest, sweep
from typer.testing import CliRunner

from attnprof.cli.report import report_command
from attnprof.core.errors import StoreError
from attnprof.store.runs import RunWriter

app = typer.Typer(add_completion=False, rich_markup_mode=None)
app.command("report")(report_command)


def call(*arguments):
    """Run the command."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def run_dir(tmp_path):
    """A run directory with a space in its path."""
    directory = tmp_path / "a run"
    with RunWriter(directory) as writer:
        for made in sweep((256, 512)):
            writer.append(made)
        writer.write_manifest(manifest())
    return directory


def test_files_go_beside_the_run_or_where_out_says(run_dir, tmp_path):
    done = call(run_dir)
    assert done.exit_code == 0
    assert "sdpa_flash, 1.67 times naive at best" in " ".join(done.stdout.split())
    assert "report.html" in done.stdout
    assert (run_dir / "report.html").is_file()
    assert call(run_dir, "--out", tmp_path / "elsewhere").exit_code == 0
    assert (tmp_path / "elsewhere" / "report.html").is_file()


def test_json_is_one_document(run_dir):
    value = json.loads(call(run_dir, "--json").stdout)
    assert {row["variant"] for row in value["rows"]} == {"naive", "sdpa_flash"}
    assert value["answer"][0]["heading"] == "Fastest correct kernel"
    assert value["damaged"] == []


def test_a_truncated_run_reports_what_could_be_read(run_dir):
    path = run_dir / "run.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    (run_dir / "manifest.json").unlink()
    done = call(run_dir)
    assert done.exit_code == 0
    assert "could not be read: run.jsonl line 4" in done.stderr
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert "Could not be read and is left out: run.jsonl line 4" in page
    assert "3 rows" in page


def test_a_run_of_a_newer_schema_is_named_and_fails(run_dir):
    (run_dir / "run.jsonl").write_text('{"schema": 99, "type": "unknown"}\n' * 9)
    (run_dir / "manifest.json").write_text('{"schema": 99}')
    done = call(run_dir)
    assert done.exit_code == 1
    assert "schema 99" in done.stderr
    assert "… and 4 more damaged lines." in (run_dir / "RESULTS.md").read_text(encoding="utf-8")


def test_a_directory_without_a_run_is_wrong_use(tmp_path):
    error = call(tmp_path).exception
    assert isinstance(error, StoreError)
    assert error.exit_code == 2


def test_help_has_an_example():
    assert "Example: attnprof report runs/first --out reports/first" in call("--help").stdout
