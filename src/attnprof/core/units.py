"""Units as they are read and printed; inside attnprof everything is SI base units and plain bytes."""

from __future__ import annotations

import re

from attnprof.core.errors import InvalidInput

KIB = 1024
MIB = 1024**2
GIB = 1024**3

_BYTE_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": KIB, "mib": MIB, "gib": GIB}


def parse_bytes(text: str) -> int:
    """A capacity such as `160KiB`, `1MiB`, `65536` or `2.5 GB`, in bytes.

    Raises: InvalidInput when it cannot be read, or is not above zero.

    >>> parse_bytes("160KiB")
    163840
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Z]*)\s*", text)
    unit = _BYTE_UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise InvalidInput(
            f"capacity {text!r} cannot be read: write a number and B, KiB, MiB, GiB, such as 160KiB"
        )
    value = int(float(match.group(1)) * unit)
    if value <= 0:
        raise InvalidInput(f"capacity {text!r} is {value} bytes: a memory must hold at least 1 byte")
    return value


def parse_share(text: str) -> float:
    """A share written as `5%` or `0.05`; the value is between 0 and 1.

    >>> parse_share("5%")
    0.05
    """
    try:
        value = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise InvalidInput(f"share {text!r} is not between 0 and 1: write it as 5% or 0.05")
    return value


def format_bytes(value: float, digits: int = 4) -> str:
    """Bytes with a binary prefix.

    >>> format_bytes(163840)
    '160 KiB'
    """
    for size, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(value) >= size:
            return (
                f"{value / size:.{digits}g} {unit}" if value < 1000 * size else f"{value / size:.0f} {unit}"
            )
    return f"{value:.0f} B"


_SI = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "u"),
    (1e-9, "n"),
)


def format_si(value: float, unit: str, digits: int = 4) -> str:
    """A value with an SI prefix.

    >>> format_si(989.4e12, "FLOP/s")
    '989.4 TFLOP/s'
    """
    for size, prefix in _SI:
        if abs(value) >= size:
            return f"{value / size:.{digits}g} {prefix}{unit}"
    return f"{value:.{digits}g} {unit}"


def format_seconds(value: float) -> str:
    """A duration with an SI prefix, three digits.

    >>> format_seconds(5.013e-6)
    '5.01 us'
    """
    return format_si(value, "s", digits=3)
