"""How fast the LRU plays, and how long whole traces take; writes docs/results/lru_speed.md.

Run: python benchmarks/lru_speed.py

The bar: at least 50 million line accesses a second for the LRU; naive and flash_tiled at N = 4096 (d = 64, float32)
traced in under 30 s and 2 GiB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from attnprof.core.problem import Problem
from attnprof.core.units import GIB, KIB, MIB, format_bytes
from attnprof.trace.api import trace
from attnprof.trace.lru import READ, WRITE, Ints, LruMemory

OUT = Path(__file__).parent.parent / "docs" / "results" / "lru_speed.md"
GRAIN = 256  # lines of one step of operands in lock-step, as the recorder sends them


def eager_rows(lines: int) -> Ints:
    """A pass that writes S, then one that reads S and writes P in step: what naive attention's stream looks like."""
    starts = np.arange(0, lines, GRAIN)
    writes = np.stack([np.full_like(starts, WRITE), 0 * starts, 0 * starts, starts, starts + GRAIN], axis=1)
    reads, other = writes.copy(), writes.copy()
    reads[:, 0] = READ
    other[:, 2], other[:, 3:] = 1, other[:, 3:] + lines
    return np.concatenate([writes, np.stack([reads, other], axis=1).reshape(-1, 5)]).astype(np.int64)


def accesses_per_s(capacity_bytes: int) -> float:
    """Line accesses a second of processor time, best of five."""
    lines = 64 * MIB // 64
    rows = eager_rows(lines)
    best = float("inf")
    for _ in range(5):
        memory = LruMemory(capacity_bytes // 64)
        memory.reserve(2 * lines, 2, 1)
        begin = time.process_time()
        memory.play(rows)
        best = min(best, time.process_time() - begin)
    return 3 * lines / best


def whole(name: str) -> str:
    """One row: a whole trace in a process of its own, compilation included."""
    code = f"from benchmarks.lru_speed import timed; timed({name!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    return done.stdout.strip()


def timed(name: str) -> None:
    """Trace N = 4096 at four capacities and print the row."""
    begin, busy = time.perf_counter(), time.process_time()
    traced = trace(name, Problem(q_len=4096, head_dim=64), [32 * KIB, 160 * KIB, MIB, 32 * MIB])
    wall, cpu = time.perf_counter() - begin, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"| {name} | {traced.line_accesses:,} | {wall:.1f} | {cpu:.1f} | {peak / GIB:.2f} |")


def main() -> None:
    """Measure and write the table."""
    speeds = [
        f"| {format_bytes(size)} | {accesses_per_s(size) / 1e6:,.0f} |" for size in (32 * KIB, MIB, 32 * MIB)
    ]
    traces = [whole(name) for name in ("naive", "flash_tiled")]
    text = [
        "# Speed of the trace",
        "",
        "Made by `python benchmarks/lru_speed.py`. Playing eager attention's stream (S written, S read and P written",
        "in step, 64 MiB each, 64 B lines), one core, processor time:",
        "",
        "| memory | million line accesses/s |",
        "|---|---|",
        *speeds,
        "",
        "Whole traces at N = 4096, d = 64, float32, four capacities in one run, start and compilation included:",
        "",
        "| variant | line accesses | wall s | processor s | peak GiB of the process |",
        "|---|---|---|---|---|",
        *traces,
    ]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
