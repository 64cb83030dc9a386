"""The capacity curve: traffic against the size of the memory, and what sizes real memories have."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from attnprof.core.units import KIB, MIB
from attnprof.trace.points import TracePoint

UNBOUNDED = 1 << 40  # more than any trace here touches
LOWEST, HIGHEST = 4 * KIB, 64 * MIB


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A real memory on the capacity axis."""

    name: str
    capacity_bytes: int


def curve_capacities() -> tuple[int, ...]:
    """4 KiB to 64 MiB, two points an octave.

    >>> curve_capacities()[:4], len(curve_capacities())
    ((4096, 6144, 8192, 12288), 29)
    """
    sizes: list[int] = []
    size = LOWEST
    while size < HIGHEST:
        sizes += [size, size + size // 2]
        size *= 2
    return (*sizes, HIGHEST)


def working_set(points: Sequence[TracePoint], floor_bytes: int) -> tuple[int | None, int | None]:
    """(largest capacity still above the floor, smallest from which traffic is the floor); None where there is none."""
    ordered = sorted(points, key=lambda point: point.capacity_bytes)
    above = [point.capacity_bytes for point in ordered if point.total_bytes > floor_bytes]
    last = above[-1] if above else None
    enough = [p.capacity_bytes for p in ordered if last is None or p.capacity_bytes > last]
    return last, (enough[0] if enough else None)
