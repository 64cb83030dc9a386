"""Run directories: run.jsonl (one record a line, appended at once) and manifest.json. The only room that opens them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

from attnprof.core.errors import StoreError
from attnprof.core.record import SCHEMA, Identity, Manifest, Record, Run

RUN_FILE = "run.jsonl"
MANIFEST_FILE = "manifest.json"


class RunWriter:
    """Appends records to a run directory; every line is flushed to the disk before `append` returns."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _drop_torn_line(directory / RUN_FILE)
            self._file = (directory / RUN_FILE).open("ab")
        except OSError as error:
            raise StoreError(
                f"output {str(directory)!r} cannot be written: {error.strerror}; choose another --out"
            ) from error

    def append(self, record: Record) -> None:
        """Write one record as one line."""
        self._file.write(msgspec.json.encode(record) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace manifest.json in one step."""
        scratch = self.directory / f".{MANIFEST_FILE}.part"
        scratch.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        scratch.replace(self.directory / MANIFEST_FILE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _drop_torn_line(path: Path) -> None:
    """A program that was killed may leave half a line: it is cut off, its case will be run again."""
    if not path.exists():
        return
    content = path.read_bytes()
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        os.truncate(path, complete)


def load_run(directory: Path | str) -> Run:
    """Read a run directory; what cannot be read is named in `damaged`.

    Raises: StoreError when there is no run at all.
    """
    directory = Path(directory)
    path = directory / RUN_FILE
    if not path.is_file():
        raise StoreError(
            f"{str(directory)!r} holds no {RUN_FILE}: give the --out directory of an `attnprof run`"
        )
    damaged: list[str] = []
    manifest = _read_manifest(directory / MANIFEST_FILE, damaged)
    records = tuple(_read_records(path, damaged))
    return Run(manifest=manifest, records=_last_of_each(records), damaged=tuple(damaged))


def _read_manifest(path: Path, damaged: list[str]) -> Manifest | None:
    try:
        content = path.read_bytes()
        schema = msgspec.json.decode(content).get("schema")
        if schema != SCHEMA:
            damaged.append(f"{path.name}: schema {schema}, this attnprof reads {SCHEMA}; update attnprof")
            return None
        return msgspec.json.decode(content, type=Manifest)
    except FileNotFoundError:
        damaged.append(f"{path.name}: missing, so the run's environment is unknown")
    except (msgspec.DecodeError, AttributeError) as error:
        damaged.append(f"{path.name}: {error}")
    return None


def _read_records(path: Path, damaged: list[str]) -> Iterator[Record]:
    decoder = msgspec.json.Decoder(Record)
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if line.strip():
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                damaged.append(f"{path.name} line {number}: {error}")


def _last_of_each(records: tuple[Record, ...]) -> tuple[Record, ...]:
    return tuple({record.key: record for record in records}.values())


def refuse_other_identity(stored: Identity, current: Identity) -> None:
    """A run is only continued where it was begun.

    Raises: StoreError naming every difference.
    """
    differences = identity_differences(stored, current)
    if differences:
        raise StoreError(
            f"this run was begun elsewhere ({'; '.join(differences)}): its rows would not be comparable; "
            "give a new --out directory"
        )


def identity_differences(one: Identity, other: Identity) -> tuple[str, ...]:
    """What differs between two identities, as `name: a -> b`."""
    a, b = (_flat(identity) for identity in (one, other))
    return tuple(f"{name}: {a.get(name, 'absent')} -> {b.get(name, 'absent')}" for name in sorted(a.keys() | b.keys())
                 if a.get(name) != b.get(name))  # fmt: skip


def _flat(identity: Identity) -> dict[str, object]:
    values = msgspec.structs.asdict(identity)
    versions: dict[str, str] = values.pop("versions")
    caches: dict[str, int] = values.pop("caches_bytes")
    values.pop(
        "memory_bytes"
    )  # what a container grants varies by a little and does not change a kernel's speed
    return (
        values
        | {f"{k} version": v for k, v in versions.items()}
        | {f"{k} cache": v for k, v in caches.items()}
    )
