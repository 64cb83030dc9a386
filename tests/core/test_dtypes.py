"""Element types: names, sizes, rounding."""

from __future__ import annotations

import pytest

from attnprof.core.dtypes import DType, parse_dtype
from attnprof.core.errors import UnknownName
from attnprof.core.problem import Problem


@pytest.mark.parametrize(
    ("name", "dtype", "size"),
    [
        ("float32", DType.FLOAT32, 4), ("fp32", DType.FLOAT32, 4), ("torch.bfloat16", DType.BFLOAT16, 2),
        ("BF16", DType.BFLOAT16, 2), ("half", DType.FLOAT16, 2), ("double", DType.FLOAT64, 8), ("fp8", DType.FLOAT8, 1),
        ("int8", DType.INT8, 1), ("fp4", DType.FLOAT4, 0.5),
    ],
)  # fmt: skip
def test_usual_names_and_sizes(name, dtype, size):
    assert parse_dtype(name) is dtype
    assert dtype.bytes == size


def test_a_torch_dtype_is_read():
    torch = pytest.importorskip("torch")
    for dtype in (DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16):
        assert parse_dtype(getattr(torch, dtype)) is dtype
        assert dtype.unit_roundoff == torch.finfo(getattr(torch, dtype)).eps / 2


def test_an_integer_does_not_round():
    assert DType.INT8.unit_roundoff == 0.0


@pytest.mark.parametrize("name", ["float33", "", "f", "complex64"])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(UnknownName, match=r"Known: .*float32"):
        parse_dtype(name)


def test_halves_of_bytes_are_rounded_up_in_storage():
    assert Problem(q_len=3, head_dim=1, dtype="fp4").q_bytes == 2
