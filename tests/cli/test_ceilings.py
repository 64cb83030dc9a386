"""`attnprof ceilings` with probes that a scripted device runs."""

from __future__ import annotations

import json

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from attnprof.bench.devices.fake import FakeDevice
from attnprof.bench.probes.sampling import Probe
from attnprof.cli.ceilings import ceilings_command, warnings
from attnprof.core.ceilings import Ceilings
from attnprof.core.record import Weather
from attnprof.store.ceilings import load_ceilings

APP = typer.Typer()
APP.command()(ceilings_command)


@pytest.fixture
def scripted(monkeypatch):
    device = FakeDevice()
    rates = {
        ("floor_s",): 1e-6,
        ("flops", "float32"): 0.01,
        ("flops", "float16"): 1.0,
        ("bandwidth", "DRAM", "read"): 0.02,
    }
    probes = [
        Probe(path=path, work=1e9, make=lambda s=seconds: lambda: device.advance(s), conditions="scripted")
        for path, seconds in rates.items()
    ]
    monkeypatch.setattr("attnprof.bench.devices.open_device", lambda _name: device)
    monkeypatch.setattr("attnprof.bench.probes.measure.probes_of", lambda _device: probes)
    return device


@pytest.mark.usefixtures("scripted")
def test_json_is_one_document_and_the_file_is_written(tmp_path):
    done = CliRunner().invoke(APP, ["--json", "--out", str(tmp_path / "c.json")])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["file"] == str(tmp_path / "c.json")
    assert document["flops"]["float32"]["best"] == pytest.approx(1e11)
    assert load_ceilings(tmp_path / "c.json").bandwidth["DRAM"]["read"].best == pytest.approx(5e10)


@pytest.mark.usefixtures("scripted")
def test_the_table_shows_rates_bandwidth_and_warnings(tmp_path):
    done = CliRunner().invoke(APP, ["--out", str(tmp_path / "c.json")], env={"COLUMNS": "160"})
    assert done.exit_code == 0
    for text in ("100 GFLOP/s", "DRAM", "50 (0%)", "float16 matmuls are emulated", "c.json"):
        assert text in done.stdout


@pytest.mark.usefixtures("scripted")
def test_threads_are_set_before_anything_is_measured(tmp_path, monkeypatch):
    chosen = []
    monkeypatch.setattr("torch.set_num_threads", chosen.append)
    CliRunner().invoke(APP, ["--threads", "1", "--out", str(tmp_path / "c.json")])
    assert chosen == [1]


@pytest.mark.usefixtures("scripted")
def test_load_of_others_is_told(tmp_path):
    CliRunner().invoke(APP, ["--out", str(tmp_path / "c.json")])
    ceilings: Ceilings = load_ceilings(tmp_path / "c.json")
    busy = msgspec.structs.replace(ceilings, weather=Weather(load_1min=7.0))
    assert any("load 7.0 on 1 threads" in line for line in warnings(busy))
    assert not any("load" in line for line in warnings(ceilings))
