"""Which bytes of its storage a tensor covers: runs of consecutive bytes, whatever its strides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Ints = NDArray[np.int64]


def line_runs(tensor: Tensor, line_bytes: int) -> Ints:
    """Runs of lines (first, line after the last) that `tensor` covers, counted from its storage's start.

    Each line appears once and in address order: an expanded dimension (stride 0) adds nothing, a transposed view
    covers what its base covers, a strided view only its own rows.
    """
    size = tensor.element_size()
    start = tensor.storage_offset() * size
    if tensor.is_contiguous():
        nbytes = tensor.numel() * size
        return np.array([[start // line_bytes, -(-(start + nbytes) // line_bytes)]], np.int64)
    starts, length = _byte_runs(tensor.shape, tensor.stride(), size)
    first = (starts + start) // line_bytes
    stop = -(-(starts + start + length) // line_bytes)
    return _joined(first, stop)


def _byte_runs(shape: tuple[int, ...], stride: tuple[int, ...], size: int) -> tuple[Ints, int]:
    """Byte offsets of the runs, ascending, and the length of each."""
    dims = sorted((step * size, n) for step, n in zip(stride, shape, strict=True) if n > 1 and step > 0)
    length = size
    while dims and dims[0][0] <= length:  # the next dimension continues the run (or overlaps it)
        step, n = dims.pop(0)
        length += step * (n - 1)
    starts = np.zeros(1, np.int64)
    for step, n in reversed(dims):
        starts = (starts[:, None] + np.arange(n, dtype=np.int64) * step).ravel()
    return np.sort(starts), length


def _joined(first: Ints, stop: Ints) -> Ints:
    """Runs that touch or overlap made one."""
    reach = np.maximum.accumulate(stop)
    opens = np.concatenate([[True], first[1:] > reach[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return np.stack([first[opens], reach[closes]], axis=1)
