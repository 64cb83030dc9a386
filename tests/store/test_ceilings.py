"""The file of ceilings: round trip, default place, and refusal when it no longer fits the device."""

from __future__ import annotations

import msgspec
import pytest

from attnprof.core.ceilings import Ceilings, Rate
from attnprof.core.errors import StoreError
from attnprof.core.record import Identity, Weather
from attnprof.report.placing import stored_ceilings
from attnprof.store.ceilings import (
    ceilings_for,
    default_path,
    differences,
    keep_with_run,
    load_ceilings,
    save_ceilings,
)

IDENTITY = Identity(
    device="cpu",
    device_name="AMD EPYC (family 26, model 2), 2 cores",
    threads=2,
    versions={"torch": "2.13.0", "mkl": "2024.2"},
    caches_bytes={"L2": 1048576},
)
RATE = Rate(best=1e9, median=9e8, spread=0.1, samples=5, conditions="test")
CEILINGS = Ceilings(
    identity=IDENTITY,
    weather=Weather(load_1min=0.1),
    measured_at="2026-11-29T10:00:00+00:00",
    flops={"float32": RATE},
    exp={"float32": RATE},
    bandwidth={"DRAM": {"read": RATE}},
    capacities_bytes={"L2": 1048576},
    floor_s=RATE,
)


def changed(**values):
    return msgspec.structs.replace(IDENTITY, **values)


def test_round_trip(tmp_path):
    path = save_ceilings(CEILINGS, tmp_path / "deep" / "c.json")
    assert load_ceilings(path) == ceilings_for(IDENTITY, path) == CEILINGS
    assert [file.name for file in path.parent.iterdir()] == ["c.json"]


def test_the_default_place_is_one_file_per_device_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTNPROF_CEILINGS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    path = default_path(IDENTITY)
    assert path == tmp_path / "attnprof/ceilings/cpu-amd-epyc-family-26-model-2-2-cores.json"
    assert save_ceilings(CEILINGS) == path
    assert ceilings_for(IDENTITY) == CEILINGS


def test_the_environment_names_another_file(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNPROF_CEILINGS", str(tmp_path / "mine.json"))
    assert save_ceilings(CEILINGS) == tmp_path / "mine.json"


def test_none_measured_says_what_to_run(tmp_path):
    with pytest.raises(StoreError, match=r"no ceilings in .*absent\.json.*run `attnprof ceilings`"):
        ceilings_for(IDENTITY, tmp_path / "absent.json")


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"schema": 1, "identity":')
    with pytest.raises(StoreError, match="cannot be read"):
        load_ceilings(path)


@pytest.mark.parametrize(
    ("current", "difference"),
    [
        (changed(threads=1), "threads: 2, now 1"),
        (
            changed(device_name="Other CPU"),
            "device_name: AMD EPYC (family 26, model 2), 2 cores, now Other CPU",
        ),
        (changed(versions={"torch": "2.14.0", "mkl": "2024.2"}), "torch: 2.13.0, now 2.14.0"),
        (changed(versions={"torch": "2.13.0"}), "mkl: 2024.2, now absent"),
        (changed(caches_bytes={"L2": 2097152}), "L2: 1048576, now 2097152"),
    ],
)
def test_a_stale_file_is_refused_with_the_difference(tmp_path, current, difference):
    path = save_ceilings(CEILINGS, tmp_path / "c.json")
    assert differences(IDENTITY, current) == (difference,)
    with pytest.raises(StoreError) as refused:
        ceilings_for(current, path)
    assert difference in str(refused.value)
    assert "run `attnprof ceilings` again" in str(refused.value)


def test_a_run_keeps_the_ceilings_of_its_device(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNPROF_CEILINGS", str(tmp_path / "mine.json"))
    assert "no ceilings" in keep_with_run(IDENTITY, tmp_path)
    save_ceilings(CEILINGS)
    assert keep_with_run(IDENTITY, tmp_path / "run") == ""
    assert load_ceilings(tmp_path / "run" / "ceilings.json") == CEILINGS
    assert "threads: 2, now 1" in keep_with_run(changed(threads=1), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_reader_takes_the_ceilings_kept_with_the_run_first(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNPROF_CEILINGS", str(tmp_path / "absent.json"))
    assert stored_ceilings(IDENTITY, tmp_path)[0] is None
    save_ceilings(CEILINGS, tmp_path / "ceilings.json")
    assert stored_ceilings(IDENTITY, tmp_path) == (CEILINGS, "")


def test_memory_size_and_load_do_not_matter():
    assert differences(IDENTITY, changed(memory_bytes=7)) == ()


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        save_ceilings(CEILINGS, tmp_path / "file" / "c.json")
