"""Line runs of tensors against the set of bytes that their elements occupy."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnprof.trace.ranges import line_runs


def slow_lines(tensor, line_bytes):
    size = tensor.element_size()
    offsets = torch.zeros(1, dtype=torch.long)
    for n, step in zip(tensor.shape, tensor.stride(), strict=True):
        offsets = (offsets[:, None] + torch.arange(n) * step).flatten()
    starts = (offsets + tensor.storage_offset()) * size
    return {byte // line_bytes for start in starts.tolist() for byte in range(start, start + size)}


def lines(tensor, line_bytes):
    runs = line_runs(tensor, line_bytes).tolist()
    listed = [line for first, stop in runs for line in range(first, stop)]
    if all(step for n, step in zip(tensor.shape, tensor.stride(), strict=True) if n > 1):
        assert listed == sorted(set(listed)), "each line once, ascending"
    return set(listed)


VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.transpose(-1, -2),
    "outer_expanded": lambda x: x[:1].expand(7, -1, -1),
    "rows": lambda x: x[:, 1:3],
    "columns": lambda x: x[..., 2:5],
    "every_second": lambda x: x[..., ::2],
    "one": lambda x: x[1, 2, 3],
    "heads_inside": lambda x: x.permute(1, 0, 2)[:, 1:],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bool])
def test_views(name, dtype):
    view = VIEWS[name](torch.zeros(4, 6, 9, dtype=dtype))
    assert lines(view, 16) == slow_lines(view, 16)


@settings(max_examples=100, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    steps=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    offset=st.integers(0, 20),
)
def test_any_strides(shape, steps, offset):
    base = torch.zeros(offset + 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=False)))
    view = base.as_strided(shape, steps[: len(shape)], offset)
    assert lines(view, 8) == slow_lines(view, 8)


def test_outer_broadcast_is_passed_over_again():
    mask = torch.zeros(4, 16).expand(3, 4, 16)
    assert line_runs(mask, 64).tolist() == [[0, 4]] * 3
    per_batch = torch.zeros(2, 1, 4, 16).expand(2, 3, 4, 16)
    assert line_runs(per_batch, 64).tolist() == [[0, 4]] * 3 + [[4, 8]] * 3


def test_inner_broadcast_adds_nothing():
    sums = torch.zeros(64, 1).expand(64, 128)
    assert line_runs(sums, 64).tolist() == [[0, 4]]
    assert line_runs(torch.zeros(()).expand(64, 64), 64).tolist() == [[0, 1]]
