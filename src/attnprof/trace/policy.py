"""How a trace is played: what happens to freed storage, to written lines, and in which order operands go."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from attnprof.core.errors import InvalidInput


class Freed(StrEnum):
    """What becomes of a freed storage's lines."""

    DROP = "drop"  # they leave the memory without being written back: a temporary that stays on chip is free
    REUSE = (
        "reuse"  # they stay, and the next storage of that size gets the same addresses (a CPU's allocator)
    )
    NEVER = "never"  # they stay and their addresses are never used again (the worst case)


class WriteMiss(StrEnum):
    """What a write to a line that is not held costs."""

    NO_FETCH = "no-fetch"  # nothing is read (a GPU writes whole sectors)
    ALLOCATE = "write-allocate"  # the line is read first (a CPU's cache)


class Order(StrEnum):
    """In which order the operands of one operator are touched."""

    LOCKSTEP = (
        "lock-step"  # in step, grain by grain, as kernels do; a matmul's second operand before the rest
    )
    SEQUENTIAL = "sequential"  # all reads, then all writes


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Choices that a traced figure depends on; printed with every such figure.

    Raises: InvalidInput when `grain_bytes` is not above 0.
    """

    freed: Freed = Freed.DROP
    write_miss: WriteMiss = WriteMiss.NO_FETCH
    order: Order = Order.LOCKSTEP
    grain_bytes: int = 16 * 1024
    flush: bool = True  # lines still dirty at the end are written back

    def __post_init__(self) -> None:
        for name, kind in (("freed", Freed), ("write_miss", WriteMiss), ("order", Order)):
            msgspec.structs.force_setattr(self, name, _choice(name, kind, getattr(self, name)))
        if self.grain_bytes <= 0:
            raise InvalidInput(
                f"grain_bytes={self.grain_bytes}: operands advance by at least 1 byte (16384 is the default)"
            )

    def __str__(self) -> str:
        return f"LRU, {self.write_miss}, freed storage: {self.freed}, operands {self.order}"


def _choice(name: str, kind: type[StrEnum], value: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise InvalidInput(f"trace policy {name}={value!r} is unknown: use {', '.join(kind)}") from None
