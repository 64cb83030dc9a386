"""The manifest of a run: how it came to be."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

import msgspec

from attnprof import __version__
from attnprof.bench.protocol import Ready
from attnprof.bench.sweep import Sweep
from attnprof.core.record import Manifest


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def begin(sweep: Sweep, ready: Ready, command: tuple[str, ...]) -> Manifest:
    """The manifest as a run starts."""
    weather = msgspec.structs.replace(ready.weather, git_commit=git_commit(), started_at=now())
    return Manifest(
        attnprof_version=__version__, command=command, sweep=msgspec.to_builtins(sweep), seed=sweep.conditions.seed,
        identity=ready.identity, weather=weather,
    )  # fmt: skip


def finish(manifest: Manifest) -> Manifest:
    """The manifest with the time at which the run ended."""
    return msgspec.structs.replace(
        manifest, weather=msgspec.structs.replace(manifest.weather, finished_at=now())
    )


def git_commit() -> str:
    """Commit of the working directory, `-dirty` when changed; empty outside a checkout."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
