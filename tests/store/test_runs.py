"""Run directories: torn lines, foreign schemas, identities."""

from __future__ import annotations

import msgspec
import pytest

from attnprof import Problem
from attnprof.core.errors import StoreError
from attnprof.core.record import Identity, Manifest, Record, Unsupported, Weather
from attnprof.store.runs import RunWriter, identity_differences, load_run, refuse_other_identity

IDENTITY = Identity(
    device="cpu", device_name="a CPU", threads=2, versions={"torch": "2.13.0"}, caches_bytes={"L2": 1}
)


def record(variant="naive", scale=None):
    p = Problem(q_len=8, scale=scale)
    return Record(variant=variant, asked=p, problem=p, device="cpu", outcome=Unsupported(reason="no"))


def manifest(**changes):
    values = {
        "attnprof_version": "0",
        "command": (),
        "sweep": {},
        "seed": 0,
        "identity": IDENTITY,
        "weather": Weather(),
    }
    return Manifest(**values | changes)


def written(tmp_path, *records):
    with RunWriter(tmp_path) as writer:
        for one in records:
            writer.append(one)
        writer.write_manifest(manifest())
    return tmp_path


def test_round_trip(tmp_path):
    run = load_run(written(tmp_path, record(), record("other")))
    assert [r.variant for r in run.records] == ["naive", "other"]
    assert (run.manifest, run.damaged) == (manifest(), ())


def test_a_torn_last_line_is_named_then_cut_off_and_replaced(tmp_path):
    path = written(tmp_path, record(), record("other")) / "run.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    run = load_run(tmp_path)
    assert [r.variant for r in run.records] == ["naive"]
    assert run.damaged[0].startswith("run.jsonl line 2:")
    assert [r.variant for r in load_run(written(tmp_path, record("other"))).records] == ["naive", "other"]
    assert load_run(tmp_path).damaged == ()


def test_a_line_of_another_kind_is_named_and_the_rest_read(tmp_path):
    path = written(tmp_path, record()) / "run.jsonl"
    path.write_bytes(b'{"variant": 3}\n\xff\xfe\n' + path.read_bytes())
    run = load_run(tmp_path)
    assert len(run.records) == 1
    assert [text.split(":")[0] for text in run.damaged] == ["run.jsonl line 1", "run.jsonl line 2"]


def test_newer_schema_missing_and_broken_manifest(tmp_path):
    directory = written(tmp_path, record())
    (directory / "manifest.json").write_bytes(msgspec.json.encode(manifest(schema=99)))
    assert "schema 99" in load_run(directory).damaged[0]
    (directory / "manifest.json").write_text("{")
    assert load_run(directory).manifest is None
    (directory / "manifest.json").unlink()
    assert "missing" in load_run(directory).damaged[0]
    assert len(load_run(directory).records) == 1


def test_no_run_and_no_place_for_one(tmp_path):
    with pytest.raises(StoreError, match=r"holds no run.jsonl"):
        load_run(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        RunWriter(tmp_path / "file" / "below")


def test_the_last_record_of_a_case_counts(tmp_path):
    assert len(load_run(written(tmp_path, record(), record())).records) == 1


def test_scale_is_part_of_the_key():
    assert record().key != record(scale=1.0).key


def test_differences_are_named():
    other = msgspec.structs.replace(IDENTITY, threads=1, versions={"torch": "2.14.0", "triton": "3"})
    assert identity_differences(IDENTITY, other) == (
        "threads: 2 -> 1", "torch version: 2.13.0 -> 2.14.0", "triton version: absent -> 3",
    )  # fmt: skip
    refuse_other_identity(IDENTITY, IDENTITY)
    with pytest.raises(StoreError, match="threads: 2 -> 1; torch version"):
        refuse_other_identity(IDENTITY, other)
