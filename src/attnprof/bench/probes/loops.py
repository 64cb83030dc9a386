"""Streaming loops in machine code, one pass over whole arrays each; they run without Python's lock.

Bytes are counted as STREAM does: what the loop names (read 1, write 1, copy 2, triad 3 elements), without the
lines that a cache fetches before a write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

ELEMENT_BYTES = 4


@njit(nogil=True, fastmath=True)
def read(a: Any, passes: int) -> Any:
    """Sum of the array; the largest of all passes, so that no pass can be left out."""
    largest = np.float32(0)
    for _ in range(passes):
        total = np.float32(0)
        for i in range(a.size):
            total += a[i]
        largest = max(largest, total)
    return largest


@njit(nogil=True, fastmath=True)
def write(a: Any, passes: int) -> None:
    """The number of the pass into every element."""
    for number in range(passes):
        value = np.float32(number)
        for i in range(a.size):
            a[i] = value


@njit(nogil=True, fastmath=True)
def copy(a: Any, b: Any, passes: int) -> None:
    """b into a."""
    for _ in range(passes):
        for i in range(a.size):
            a[i] = b[i]


@njit(nogil=True, fastmath=True)
def triad(a: Any, b: Any, c: Any, passes: int) -> None:
    """b + 0.5 c into a."""
    factor = np.float32(0.5)
    for _ in range(passes):
        for i in range(a.size):
            a[i] = b[i] + factor * c[i]


ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}
LOOPS: dict[str, Callable[..., object]] = {"read": read, "write": write, "copy": copy, "triad": triad}
