"""Counting what a kernel asks of memory while Triton interprets it: active lanes of each load and store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from triton.runtime.interpreter import InterpreterBuilder


@dataclass(kw_only=True)
class Asked:
    """Bytes of the active lanes of all loads and all stores so far."""

    read_bytes: int = 0
    write_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Reads and writes."""
        return self.read_bytes + self.write_bytes


@contextmanager
def counting_memory() -> Iterator[Asked]:
    """Counts the bytes that interpreted kernels load and store inside the context.

    Triton's interpreter sends every load and store, masked or not, through two methods of its builder.
    """
    asked = Asked()
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store

    def counted_load(self: Any, ptrs: Any, mask: Any, *rest: Any) -> Any:
        asked.read_bytes += _bytes(ptrs, mask)
        return load(self, ptrs, mask, *rest)

    def counted_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        asked.write_bytes += _bytes(ptrs, mask)
        return store(self, ptrs, value, mask, *rest)

    InterpreterBuilder.create_masked_load = counted_load
    InterpreterBuilder.create_masked_store = counted_store
    try:
        yield asked
    finally:
        InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store = load, store


def _bytes(pointers: Any, mask: Any) -> int:
    return int(mask.data.sum()) * int(pointers.get_element_ty().primitive_bitwidth) // 8
