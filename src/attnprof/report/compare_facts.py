"""What differs between two runs apart from time: environment, versions, weather, memory, error, backend."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from attnprof.core.record import Manifest, Measured, Record, Verdict
from attnprof.store.runs import identity_differences

MIN_MEMORY_CHANGE_BYTES = 2**20


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something else than time that changed; `regression` trips the gate."""

    what: str
    text: str
    regression: bool = False


def environment_differences(
    a: Manifest | None, b: Manifest | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Differences of machine and threads, and differences of versions (which are often what is compared)."""
    if a is None or b is None:
        sides = [side for side, manifest in (("A", a), ("B", b)) if manifest is None]
        return tuple(f"environment of {side}: unknown, its manifest cannot be read" for side in sides), ()
    found = identity_differences(a.identity, b.identity)
    versions = [text for text in found if text.split(":")[0].endswith(" version")]
    if a.attnprof_version != b.attnprof_version:
        versions.insert(0, f"attnprof version: {a.attnprof_version} -> {b.attnprof_version}")
    return tuple(text for text in found if text not in versions), tuple(versions)


def weather_differences(a: Manifest | None, b: Manifest | None) -> tuple[str, ...]:
    """Differences that two runs of one machine may have: load, clocks, commit."""
    if a is None or b is None:
        return ()
    one, other = (msgspec.structs.asdict(manifest.weather) for manifest in (a, b))
    times = ("started_at", "finished_at", "clock_resolution_s")
    names = [name for name in one if name not in times and one[name] != other[name]]
    return tuple(f"{name}: {_known(one[name])} -> {_known(other[name])}" for name in names)


def _known(value: object) -> str:
    return "unknown" if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)


def changes(a: Record, b: Record, threshold: float) -> Iterator[Change]:
    """Outcome, peak memory (beyond `threshold` and 1 MiB), backend and error verdict, where they changed."""
    if a.outcome.__struct_config__.tag != b.outcome.__struct_config__.tag:
        failed = a.measured is not None and b.outcome.__struct_config__.tag == "failed"
        yield Change(what="outcome", text=f"{outcome_text(a)} -> {outcome_text(b)}", regression=failed)
    if a.measured and b.measured:
        yield from _measured_changes(a.measured, b.measured, threshold)


def _measured_changes(a: Measured, b: Measured, threshold: float) -> Iterator[Change]:
    if a.memory and b.memory:
        grown = b.memory.peak_bytes - a.memory.peak_bytes
        if abs(grown) >= max(MIN_MEMORY_CHANGE_BYTES, threshold * a.memory.peak_bytes):
            mib = [f"{memory.peak_bytes / 2**20:.2f} MiB" for memory in (a.memory, b.memory)]
            yield Change(what="peak memory", text=" -> ".join(mib), regression=grown > 0)
    if a.backend != b.backend:
        yield Change(what="backend", text=f"{a.backend or 'unknown'} -> {b.backend or 'unknown'}")
    if a.accuracy and b.accuracy and a.accuracy.verdict is not b.accuracy.verdict:
        worse = b.accuracy.verdict in (Verdict.WRONG, Verdict.NAN)
        yield Change(
            what="error verdict", text=f"{a.accuracy.verdict} -> {b.accuracy.verdict}", regression=worse
        )


def outcome_text(record: Record) -> str:
    """An outcome in words, such as `unsupported: dtype int8 is not ...`."""
    outcome = record.outcome
    tag = str(outcome.__struct_config__.tag)
    return f"{tag}: {getattr(outcome, 'reason', '') or getattr(outcome, 'message', '')}".rstrip(": ")
