"""Storages seen by a recorder: their addresses (in lines), what they hold, and when they die."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnprof.trace.policy import Freed

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(kw_only=True, eq=False)
class Storage:
    """One allocation. `label` says what it holds (Q, S, P, ...); `index` is its row in the counters."""

    index: int
    base_line: int
    lines: int
    label: str


class Storages:
    """Gives every storage an address range; freed ranges of one size are used again, last freed first.

    The addresses are ours, not the allocator's: a trace is the same in every run.
    """

    def __init__(self, line_bytes: int, freed: Freed, on_death: Callable[[Storage], None]) -> None:
        self.line_bytes = line_bytes
        self.end_line = 0
        self.all: list[Storage] = []
        self._freed = freed
        self._on_death = on_death
        self._live: dict[int, Storage] = {}
        self._watch: dict[int, weakref.ref[object]] = {}
        self._pool: dict[int, list[int]] = {}

    def of(self, tensor: Tensor, label: str | None = None) -> Storage:
        """The storage of `tensor`, entered on first sight; it is watched until it dies."""
        handle = tensor.untyped_storage()
        key = handle._cdata
        known = self._live.get(key)
        if known is None:
            known = self.allocate(handle.nbytes(), label or _captured(tensor))
            self._live[key] = known
            self._watch[key] = weakref.ref(handle, lambda _: self._died(key))
        return known

    def seen(self, tensor: Tensor) -> Storage | None:
        """The storage of `tensor` when it has been seen before."""
        return self._live.get(tensor.untyped_storage()._cdata)

    def allocate(self, nbytes: int, label: str) -> Storage:
        """A new address range, from the freed ones of its size first."""
        lines = max(1, -(-nbytes // self.line_bytes))
        free = self._pool.get(lines)
        base = free.pop() if free else self.end_line
        self.end_line = max(self.end_line, base + lines)
        storage = Storage(index=len(self.all), base_line=base, lines=lines, label=label)
        self.all.append(storage)
        return storage

    def release(self, storage: Storage) -> None:
        """The end of a storage's life."""
        self._on_death(storage)
        if self._freed is not Freed.NEVER:
            self._pool.setdefault(storage.lines, []).append(storage.base_line)

    def _died(self, key: int) -> None:
        self._watch.pop(key, None)
        storage = self._live.pop(key, None)
        if storage is not None:
            self.release(storage)

    def close(self) -> None:
        """Stop watching; storages that live on are left alone."""
        self._watch.clear()
        self._live.clear()


def _captured(tensor: Tensor) -> str:
    """Label of what a function brings along: neither an argument nor made inside."""
    return "mask" if str(tensor.dtype) == "torch.bool" else "captured"
