"""The file of measured ceilings: where it lies, and whether it still belongs to the device at hand."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec

from attnprof.core.ceilings import Ceilings
from attnprof.core.errors import StoreError
from attnprof.core.record import Identity

PATH_VARIABLE = "ATTNPROF_CEILINGS"
RUN_CEILINGS = "ceilings.json"
AGAIN = "run `attnprof ceilings` again"


def default_path(identity: Identity) -> Path:
    """The file named by ATTNPROF_CEILINGS, else one per device in the user's cache directory."""
    if chosen := os.environ.get(PATH_VARIABLE):
        return Path(chosen)
    name = re.sub(r"[^a-z0-9]+", "-", f"{identity.device} {identity.device_name}".lower()).strip("-")
    return _cache_directory() / "attnprof" / "ceilings" / f"{name}.json"


def _cache_directory() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    return Path(os.environ.get(variable) or Path.home() / ".cache")


def save_ceilings(ceilings: Ceilings, path: Path | None = None) -> Path:
    """Write the ceilings in one step; returns the file. Raises: StoreError when it cannot be written."""
    target = path or default_path(ceilings.identity)
    scratch = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_bytes(msgspec.json.format(msgspec.json.encode(ceilings), indent=2) + b"\n")
        scratch.replace(target)
    except OSError as error:
        raise StoreError(
            f"ceilings cannot be written to {str(target)!r}: {error.strerror}; choose --out"
        ) from error
    return target


def load_ceilings(path: Path) -> Ceilings:
    """Read a file of ceilings, whatever device it is of. Raises: StoreError with the cause."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ceilings)
    except OSError as error:
        raise StoreError(
            f"no ceilings in {str(path)!r}: {error.strerror}; run `attnprof ceilings`"
        ) from error
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise StoreError(f"ceilings in {str(path)!r} cannot be read ({error}); {AGAIN}") from error


def ceilings_for(identity: Identity, path: Path | None = None) -> Ceilings:
    """The ceilings of the device at hand. Raises: StoreError when there are none or they are stale, and why."""
    source = path or default_path(identity)
    ceilings = load_ceilings(source)
    changes = differences(ceilings.identity, identity)
    if changes:
        raise StoreError(
            f"ceilings in {str(source)!r} are of another device or state: {'; '.join(changes)}; {AGAIN}"
        )
    return ceilings


def keep_with_run(identity: Identity, directory: Path) -> str:
    """Copy the device's ceilings into a run directory, so that it can be read anywhere; returns why not, if not."""
    try:
        save_ceilings(ceilings_for(identity), directory / RUN_CEILINGS)
    except StoreError as error:
        return str(error)
    return ""


def differences(stored: Identity, current: Identity) -> tuple[str, ...]:
    """What differs between two identities, each as `name: stored, now current`."""
    pairs = {
        name: (getattr(stored, name), getattr(current, name))
        for name in ("device", "device_name", "threads", "compute_capability")
    }
    for group in ("versions", "caches_bytes"):
        old, new = getattr(stored, group), getattr(current, group)
        pairs |= {
            name: (old.get(name, "absent"), new.get(name, "absent"))
            for name in sorted(old.keys() | new.keys())
        }
    return tuple(f"{name}: {old}, now {new}" for name, (old, new) in pairs.items() if old != new)
