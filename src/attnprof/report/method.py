"""How the numbers of a report came to be, and on what machine."""

from __future__ import annotations

from attnprof.core.record import Manifest
from attnprof.core.units import format_bytes

METHOD = (
    "Time: median of the raw samples, which are kept; p20 and p80 beside it; the 95% interval of the median is "
    "distribution-free. Compile time, first call and backend selection are outside of it.",
    "Speed-up: median of the ratios of naive's and the variant's samples of the same round (same asked problem, device "
    "and cache state) with its 95% interval; where no round is shared, ratio of the medians without an interval. An "
    "interval that contains 1 shows no difference; fewer than six rounds allow no claim.",
    "useful FLOPs: 2 · batch · query heads · allowed pairs · (d + d_v); softmax is not in it. Executed FLOPs count "
    "whole tiles. A rate uses useful FLOPs unless it says otherwise.",
    "Bytes: compulsory (each storage once, any level), logical (what the variant's tiles ask of the level named), "
    "op_boundary (operands summed, no cache). Kinds are not comparable with each other.",
    "Peak memory: of one call, inputs excluded, in MiB (2**20 bytes).",
    "Correct: max abs error against float64 at most 2 · naive's error in the same dtype + the rounding floor. A wrong "
    "or NaN result and a kernel of another function are never called fastest.",
)


def environment(manifest: Manifest | None) -> tuple[tuple[str, str], ...]:
    """Facts about the run's machine and versions, as (name, value)."""
    if manifest is None:
        return (("environment", "n/a (no readable manifest.json in the run directory)"),)
    identity, weather = manifest.identity, manifest.weather
    facts = {
        "device": f"{identity.device_name} ({identity.device})",
        "threads": str(identity.threads),
        "memory": format_bytes(identity.memory_bytes) if identity.memory_bytes else "n/a",
        "compute capability": identity.compute_capability or "n/a",
        **{f"cache {name}": format_bytes(size) for name, size in identity.caches_bytes.items()},
        **{f"{name} version": version for name, version in identity.versions.items()},
        "attnprof version": manifest.attnprof_version,
        "command": " ".join(_quoted(word) for word in manifest.command),
        "seed": str(manifest.seed),
        "started": weather.started_at or "n/a",
        "finished": weather.finished_at or "n/a",
        "git commit": weather.git_commit or "n/a",
        "load (1 min)": "n/a" if weather.load_1min is None else f"{weather.load_1min:.2f}",
        "CPU governor": weather.governor or "n/a",
    }
    return tuple(facts.items())


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)
