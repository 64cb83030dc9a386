"""Simulated (callgrind) beside traced (write-allocate) last-level traffic; writes docs/results/callgrind.md.

Run: python benchmarks/callgrind_table.py [LENGTHS, such as 512,1024,2048]
Needs valgrind and a C compiler; about 20 s a call at 512 and 90 s at 2048.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from attnprof.core.axes import parse_ints
from attnprof.core.problem import Problem
from attnprof.core.units import MIB, format_bytes
from attnprof.trace.api import trace
from attnprof.trace.callgrind import LIKE_A_CPU, simulate
from attnprof.trace.curve import UNBOUNDED, curve_capacities, working_set
from attnprof.variants.catalog import find

OUT = Path(__file__).parent.parent / "docs" / "results" / "callgrind.md"
VARIANTS = ("naive", "flash_tiled", "sdpa_flash")
CAPACITIES = (MIB, 32 * MIB)
HEAD = """# Simulated beside traced bytes

Kind: simulated (callgrind, 16-way last level, 64 B lines, cold data, warm code) against traced (LRU, write-allocate,
addresses reused as an allocator does, nothing flushed at the end). One head, d = 64, float32, no mask, forward.
Made by `python benchmarks/callgrind_table.py`. The bar is 15% of the fills wherever the working set (the memory from
which the traced fills no longer fall) is not within a factor 2 of the last level; such rows are marked "near".

| variant | N | last level | fills simulated | traced | error | write-backs simulated | traced | working set | verdict |
|---|---|---|---|---|---|---|---|---|---|
"""


def rows(lengths: tuple[int, ...]) -> Iterator[str]:
    """One row a call."""
    for n in lengths:
        problem = Problem(q_len=n, head_dim=64)
        for name in VARIANTS:
            variant = find(name)
            points = trace(variant, problem, [*curve_capacities(), UNBOUNDED], policy=LIKE_A_CPU)
            floor = points[-1].total_bytes
            _, needed = working_set(points[:-1], floor)
            for capacity in CAPACITIES:
                done = simulate(variant, problem, capacity)
                near = needed is not None and capacity / 2 <= needed <= capacity * 2
                verdict = (
                    "near" if near else "within 15%" if abs(done.relative_error) <= 0.15 else "ABOVE 15%"
                )
                yield (
                    f"| {name} | {n} | {format_bytes(capacity)} | {done.fill_bytes:,} | {done.traced_fill_bytes:,} "
                    f"| {done.relative_error:+.1%} | {done.write_back_bytes:,} | {done.traced_write_back_bytes:,} "
                    f"| {format_bytes(needed) if needed else 'above 64 MiB'} | {verdict} |"
                )


def main() -> None:
    """Simulate every call and write the table."""
    lengths = parse_ints(sys.argv[1] if len(sys.argv) > 1 else "512,1024,2048", "lengths")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with OUT.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        for row in rows(lengths):  # each takes a while: written at once
            file.write(row + "\n")
            file.flush()


if __name__ == "__main__":
    main()
