"""Element types: their storage size and rounding unit."""

from __future__ import annotations

from enum import StrEnum

from attnprof.core.errors import UnknownName, nearest


class DType(StrEnum):
    """An element type, named as PyTorch names it."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8 = "float8_e4m3fn"
    INT8 = "int8"
    FLOAT4 = "float4_e2m1fn"

    @property
    def bits(self) -> int:
        """Storage of one element, in bits."""
        return _BITS[self]

    @property
    def bytes(self) -> float:
        """Storage of one element, in bytes (0.5 for 4-bit types)."""
        return self.bits / 8

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next number, relative (0 for integers)."""
        return _ROUNDOFF.get(self, 0.0)


_BITS = {
    DType.FLOAT64: 64,
    DType.FLOAT32: 32,
    DType.FLOAT16: 16,
    DType.BFLOAT16: 16,
    DType.FLOAT8: 8,
    DType.INT8: 8,
    DType.FLOAT4: 4,
}
_ROUNDOFF = {
    DType.FLOAT64: 2.0**-53,
    DType.FLOAT32: 2.0**-24,
    DType.FLOAT16: 2.0**-11,
    DType.BFLOAT16: 2.0**-8,
    DType.FLOAT8: 2.0**-4,
}
_ALIASES = {
    "fp64": DType.FLOAT64,
    "double": DType.FLOAT64,
    "fp32": DType.FLOAT32,
    "float": DType.FLOAT32,
    "fp16": DType.FLOAT16,
    "half": DType.FLOAT16,
    "bf16": DType.BFLOAT16,
    "fp8": DType.FLOAT8,
    "fp8_e4m3": DType.FLOAT8,
    "mxfp8": DType.FLOAT8,
    "fp4": DType.FLOAT4,
}


def parse_dtype(name: str) -> DType:
    """An element type from PyTorch's name or a usual short one.

    Raises: UnknownName with the nearest known names.

    >>> parse_dtype("bf16").bytes
    2.0
    """
    key = str(name).removeprefix("torch.").lower()
    if key in _ALIASES:
        return _ALIASES[key]
    try:
        return DType(key)
    except ValueError:
        raise UnknownName(f"dtype {name!r} is unknown; {nearest(key, [*DType, *_ALIASES])}") from None
