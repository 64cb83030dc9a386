"""The textbook's byte counts of attention, one head: naive with whole score matrices, and flash in tiles.

    naive = (12*N*d + 16*N**2) * e/4      Q, K, V read; S written and read; P written and read. O is left out.
    flash = 8*N*d*(1 + N/B_r) * e/4       Q read, O written; K and V read once per tile of B_r queries.

Flash counts O and naive does not; the `like for like` numbers have it on both sides. The two also belong to different
levels of memory, naive's to DRAM and flash's to on-chip memory fed from L2: see `compare`.
"""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec

from attnprof.core.errors import InvalidInput
from attnprof.core.schedules.formula import exact_value

Bytes = int | float
TEXTBOOK_NAIVE = "(12*N*d + 16*N**2) * e/4"
TEXTBOOK_FLASH = "8*N*d*(1 + N/B_r) * e/4"


def bytes_naive(N: int, d: int, dtype_bytes: float = 2) -> Bytes:
    """Bytes of textbook naive attention, O not counted.

    >>> bytes_naive(8192, 128, 4)
    1086324736
    """
    _check(N=N, d=d, dtype_bytes=dtype_bytes)
    return _evaluated(TEXTBOOK_NAIVE, N=N, d=d, e=dtype_bytes)


def bytes_flash(N: int, d: int, B_r: int, B_c: int, dtype_bytes: float = 2) -> Bytes:
    """Bytes of textbook flash attention, O counted; B_c does not enter (outer loop over queries).

    >>> bytes_flash(8192, 128, 64, 64, 4)
    1082130432
    """
    _check(N=N, d=d, B_r=B_r, B_c=B_c, dtype_bytes=dtype_bytes)
    return _evaluated(TEXTBOOK_FLASH, N=N, d=d, B_r=B_r, e=dtype_bytes)


def bytes_o(N: int, d: int, dtype_bytes: float = 2) -> Bytes:
    """Bytes of the output: what flash counts and naive does not."""
    _check(N=N, d=d, dtype_bytes=dtype_bytes)
    return _exact(N * d * Fraction(dtype_bytes))


def flops(N: int, d: int) -> int:
    """Matmul FLOPs of one head, no mask: 4*N*N*d."""
    _check(N=N, d=d)
    return 4 * N * N * d


def ratio_limit(d: int, B_r: int) -> float:
    """What naive/flash tends to as N grows: 2*B_r/d.

    >>> ratio_limit(64, 64), ratio_limit(128, 64)
    (2.0, 1.0)
    """
    _check(d=d, B_r=B_r)
    return 2 * B_r / d


def crossover(d: int, B_r: int, *, like_for_like: bool = False) -> float | None:
    """The N above which naive moves fewer bytes than flash by the textbook's forms; None where flash always does.

    >>> crossover(64, 64) is None, crossover(128, 32)
    (True, 32.0)
    """
    _check(d=d, B_r=B_r)
    slope = Fraction(2 * d, B_r) - 4  # of flash minus naive, per N * N
    if slope <= 0:
        return None
    return float((2 * d if like_for_like else d) / slope)


def score_fits(memory_bytes: int, dtype_bytes: float = 2) -> int:
    """The largest N whose N x N score matrix fits a memory: up to there naive pays nothing for it.

    >>> score_fits(32 * 1024, 4)
    90
    """
    _check(memory_bytes=memory_bytes, dtype_bytes=dtype_bytes)
    return math.isqrt(math.floor(memory_bytes / Fraction(dtype_bytes)))


def io_lower_bound(N: int, d: int, memory_bytes: int, dtype_bytes: float = 2) -> float:
    """Order of the fewest bytes that any exact method moves, no constant: N^2 d^2/M, or N^2 d/sqrt(M) for M < d^2.

    Units: bytes; M is counted in elements. Never below the compulsory 4*N*d.
    Source: Dao et al. 2022 (arXiv 2205.14135, Theorem 2, Proposition 3); Saha and Ye 2024 (2402.07443).
    """
    _check(N=N, d=d, memory_bytes=memory_bytes, dtype_bytes=dtype_bytes)
    elements = memory_bytes / dtype_bytes
    least = N**2 * d**2 / elements if elements >= d**2 else N**2 * d / math.sqrt(elements)
    return max(least, 4 * N * d) * dtype_bytes


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Naive beside flash for one head. The `dram` figures hold where K and V of a head stay in the last-level cache."""

    N: int
    d: int
    B_r: int
    B_c: int
    dtype_bytes: float
    flops: int
    naive_bytes: Bytes
    flash_bytes: Bytes
    o_bytes: Bytes
    ratio_limit: float

    @property
    def ratio(self) -> float:
        """naive/flash as the textbook counts them."""
        return self.naive_bytes / self.flash_bytes

    @property
    def naive_with_o_bytes(self) -> Bytes:
        """Naive with O written."""
        return self.naive_bytes + self.o_bytes

    @property
    def flash_without_o_bytes(self) -> Bytes:
        """Flash without O."""
        return self.flash_bytes - self.o_bytes

    @property
    def ratio_with_o(self) -> float:
        """naive/flash, O on both sides."""
        return self.naive_with_o_bytes / self.flash_bytes

    @property
    def ratio_without_o(self) -> float:
        """naive/flash, O on neither side."""
        return self.naive_bytes / self.flash_without_o_bytes

    @property
    def naive_intensity(self) -> float:
        """FLOP per byte of naive."""
        return self.flops / self.naive_bytes

    @property
    def flash_intensity(self) -> float:
        """FLOP per byte of flash at the same level."""
        return self.flops / self.flash_bytes

    @property
    def flash_dram_bytes(self) -> Bytes:
        """Q, K, V read and O written once: flash's traffic where K and V stay in the last-level cache."""
        return 4 * self.o_bytes

    @property
    def dram_ratio(self) -> float:
        """naive/flash in DRAM traffic, O on both sides."""
        return self.naive_with_o_bytes / self.flash_dram_bytes


def compare(N: int, d: int, B_r: int = 64, B_c: int = 64, dtype_bytes: float = 2) -> Comparison:
    """Both forms for one head.

    >>> c = compare(8192, 128)
    >>> round(c.ratio, 4), round(c.ratio_with_o, 4), round(c.dram_ratio)
    (1.0039, 1.0078, 65)
    """
    return Comparison(
        N=N, d=d, B_r=B_r, B_c=B_c, dtype_bytes=dtype_bytes, flops=flops(N, d),
        naive_bytes=bytes_naive(N, d, dtype_bytes), flash_bytes=bytes_flash(N, d, B_r, B_c, dtype_bytes),
        o_bytes=bytes_o(N, d, dtype_bytes), ratio_limit=ratio_limit(d, B_r),
    )  # fmt: skip


def _evaluated(form: str, **symbols: float) -> Bytes:
    """A form's exact value; the forms printed and those computed are one text."""
    return _exact(exact_value(form, {name: Fraction(value) for name, value in symbols.items()}))


def _exact(value: int | Fraction) -> Bytes:
    return value.numerator if value.denominator == 1 else float(value)


def _check(**values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not value > 0:
            raise InvalidInput(f"{name}={value}: it must be a number above 0")
        if name != "dtype_bytes" and not isinstance(value, int):
            raise InvalidInput(f"{name}={value}: it must be a whole number")
