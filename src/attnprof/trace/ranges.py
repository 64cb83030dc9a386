"""Which bytes of its storage a tensor covers: runs of consecutive bytes, whatever its strides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Ints = NDArray[np.int64]


def line_runs(tensor: Tensor, line_bytes: int) -> Ints:
    """Runs of lines (first, line after the last) of one pass over `tensor`, counted from its storage's start.

    A transposed view covers what its base covers, in address order; a strided view only its own rows. An expanded
    dimension (stride 0) is passed over again where it lies outside others (a mask broadcast over heads) and adds
    nothing inside (a row's sum broadcast over keys).
    """
    size = tensor.element_size()
    if tensor.is_contiguous():
        start = tensor.storage_offset() * size
        nbytes = tensor.numel() * size
        return np.array([[start // line_bytes, -(-(start + nbytes) // line_bytes)]], np.int64)
    dims = tuple((int(n), int(step)) for n, step in zip(tensor.shape, tensor.stride(), strict=True) if n != 1)
    return _pass(dims, int(tensor.storage_offset()), size, line_bytes)


def _pass(dims: tuple[tuple[int, int], ...], offset: int, size: int, line_bytes: int) -> Ints:
    """Runs of a pass over (size, stride) dimensions, outermost first; units of strides and offset: elements."""
    while dims and dims[-1][1] == 0:
        dims = dims[:-1]  # innermost: the same element again
    if all(step for _, step in dims):
        starts, length = _byte_runs(dims, size)
        starts += offset * size
        return _joined(starts // line_bytes, -(-(starts + length) // line_bytes))
    (n, step), inner = dims[0], dims[1:]
    if step:
        return np.concatenate([_pass(inner, offset + i * step, size, line_bytes) for i in range(n)])
    runs = _pass(inner, offset, size, line_bytes)
    return runs if len(runs) == 1 and runs[0, 1] - runs[0, 0] == 1 else np.tile(runs, (n, 1))


def _byte_runs(dims: tuple[tuple[int, int], ...], size: int) -> tuple[Ints, int]:
    """Byte offsets of the runs, ascending, and the length of each."""
    inward = sorted((step * size, n) for n, step in dims)
    length = size
    while inward and inward[0][0] <= length:  # the next dimension continues the run (or overlaps it)
        step, n = inward.pop(0)
        length += step * (n - 1)
    starts = np.zeros(1, np.int64)
    for step, n in reversed(inward):
        starts = (starts[:, None] + np.arange(n, dtype=np.int64) * step).ravel()
    return np.sort(starts), length


def _joined(first: Ints, stop: Ints) -> Ints:
    """Runs that touch or overlap made one."""
    reach = np.maximum.accumulate(stop)
    opens = np.concatenate([[True], first[1:] > reach[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return np.stack([first[opens], reach[closes]], axis=1)
