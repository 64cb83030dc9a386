"""Masks: the only place where (query, key) pairs are counted.

A mask is a value. Banded masks (`Full`, `Causal`, `Window`) let query i see one interval of keys, so every
count has a closed form; `Lengths` has one interval per batch element; `Dense` is an explicit boolean array.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from attnprof.core.errors import InvalidProblem

UNLIMITED = -1


class Align(StrEnum):
    """Which corner of the score matrix the causal diagonal starts from."""

    TOP_LEFT = "top_left"
    BOTTOM_RIGHT = "bottom_right"

    def offset(self, q_len: int, kv_len: int) -> int:
        """Shift of the diagonal: 0, or kv_len - q_len."""
        return kv_len - q_len if self is Align.BOTTOM_RIGHT else 0


def _align(value: str) -> Align:
    try:
        return Align(value)
    except ValueError:
        raise InvalidProblem(
            f"mask alignment {value!r} is unknown: use top_left (PyTorch's is_causal) or bottom_right (flash-attn)"
        ) from None


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """Query i of a (q_len, kv_len) matrix sees keys [i + low, i + high], cut to [0, kv_len); None = no limit."""

    q_len: int
    kv_len: int
    low: int | None = None
    high: int | None = None

    def span(self, row: int) -> tuple[int, int]:
        """Half-open interval of keys that query `row` sees (start == stop when it sees none)."""
        start = 0 if self.low is None else min(max(row + self.low, 0), self.kv_len)
        stop = self.kv_len if self.high is None else min(max(row + self.high + 1, 0), self.kv_len)
        return start, max(start, stop)

    @property
    def pairs(self) -> int:
        """Allowed pairs, in closed form."""
        stop = self._clamped_sum(None if self.high is None else self.high + 1, self.kv_len)
        return stop - self._clamped_sum(self.low, 0)

    def _clamped_sum(self, shift: int | None, if_none: int) -> int:
        """Sum over rows i of clamp(i + shift, 0, kv_len)."""
        if shift is None:
            return if_none * self.q_len
        first = min(max(-shift, 0), self.q_len)  # rows before it clamp to 0
        last = min(max(self.kv_len - shift, first), self.q_len)  # rows from it on clamp to kv_len
        rising = (last - first) * shift + (last * (last - 1) - first * (first - 1)) // 2
        return rising + (self.q_len - last) * self.kv_len

    @property
    def empty_rows(self) -> int:
        """Queries that see no key."""
        if self.kv_len == 0:
            return self.q_len
        before = 0 if self.high is None else min(max(-self.high, 0), self.q_len)
        after = self.q_len if self.low is None else min(max(self.kv_len - self.low, 0), self.q_len)
        return before + self.q_len - max(after, before)

    @property
    def visible_keys(self) -> int:
        """Keys that at least one query sees."""
        if self.q_len == 0 or self.kv_len == 0:
            return 0
        start = 0 if self.low is None else min(max(self.low, 0), self.kv_len)
        stop = self.kv_len if self.high is None else min(max(self.q_len + self.high, 0), self.kv_len)
        return max(0, stop - start)


class Full(msgspec.Struct, frozen=True, tag="full"):
    """Every query sees every key."""

    def bands(self, batch: int, q_len: int, kv_len: int) -> tuple[tuple[int, Band], ...]:
        """(how many batch elements, their band)."""
        return ((batch, Band(q_len=q_len, kv_len=kv_len)),)

    def __str__(self) -> str:
        return "full"


class Causal(msgspec.Struct, frozen=True, tag="causal"):
    """Key j is visible to query i when j <= i (top_left) or j <= i + kv_len - q_len (bottom_right)."""

    align: Align = Align.TOP_LEFT

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "align", _align(self.align))

    def bands(self, batch: int, q_len: int, kv_len: int) -> tuple[tuple[int, Band], ...]:
        """(how many batch elements, their band)."""
        return ((batch, Band(q_len=q_len, kv_len=kv_len, high=self.align.offset(q_len, kv_len))),)

    def __str__(self) -> str:
        return "causal" if self.align is Align.TOP_LEFT else f"causal:{self.align}"


class Window(msgspec.Struct, frozen=True, tag="window"):
    """Query i sees keys j in [i - left, i + right] after alignment; -1 is unlimited.

    "A window of W tokens with itself" is left = W - 1, right = 0.
    """

    left: int
    right: int
    align: Align = Align.TOP_LEFT

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "align", _align(self.align))
        for name, value in (("left", self.left), ("right", self.right)):
            if not isinstance(value, int) or value < UNLIMITED:
                raise InvalidProblem(f"window {name}={value}: it must be 0 or more, or -1 for unlimited")

    def bands(self, batch: int, q_len: int, kv_len: int) -> tuple[tuple[int, Band], ...]:
        """(how many batch elements, their band)."""
        shift = self.align.offset(q_len, kv_len)
        low = None if self.left == UNLIMITED else shift - self.left
        high = None if self.right == UNLIMITED else shift + self.right
        return ((batch, Band(q_len=q_len, kv_len=kv_len, low=low, high=high)),)

    def __str__(self) -> str:
        suffix = "" if self.align is Align.TOP_LEFT else f":{self.align}"
        return f"window:{self.left}:{self.right}{suffix}"


class Lengths(msgspec.Struct, frozen=True, tag="lengths"):
    """Padded batch: element b has q_lens[b] real queries and kv_lens[b] real keys, causal inside if asked.

    Padding queries see no key (they are empty rows).
    """

    q_lens: tuple[int, ...]
    kv_lens: tuple[int, ...]
    causal: Causal | None = None

    def __post_init__(self) -> None:
        for name in ("q_lens", "kv_lens"):
            msgspec.structs.force_setattr(self, name, tuple(getattr(self, name)))
        if isinstance(self.causal, bool):
            msgspec.structs.force_setattr(self, "causal", Causal() if self.causal else None)
        if len(self.q_lens) != len(self.kv_lens) or any(n < 0 for n in self.q_lens + self.kv_lens):
            raise InvalidProblem(
                f"lengths q_lens={self.q_lens} kv_lens={self.kv_lens}: give one length >= 0 per batch element in both"
            )

    def bands(self, batch: int, q_len: int, kv_len: int) -> tuple[tuple[int, Band], ...]:
        """(1, band) per batch element; the band is of the element's own lengths."""
        if (
            len(self.q_lens) != batch
            or max(self.q_lens, default=0) > q_len
            or max(self.kv_lens, default=0) > kv_len
        ):
            raise InvalidProblem(
                f"lengths q_lens={self.q_lens} kv_lens={self.kv_lens} do not fit batch={batch}, q_len={q_len}, "
                f"kv_len={kv_len}: one length per batch element, none above the padded length"
            )
        inner = self.causal or Full()
        pairs = zip(self.q_lens, self.kv_lens, strict=True)
        return tuple((1, inner.bands(1, q, k)[0][1]) for q, k in pairs)

    def __str__(self) -> str:
        causal = f":{self.causal}" if self.causal else ""
        q, k = (",".join(map(str, lens)) for lens in (self.q_lens, self.kv_lens))
        return f"lengths:{q}:{k}{causal}"


class Dense(msgspec.Struct, frozen=True, tag="dense"):
    """An explicit boolean array, True = visible, broadcastable to (B, H_q, N_q, N_k).

    `Dense(array)` takes anything with `.shape` and `.tolist()` (NumPy, PyTorch) or nested lists;
    it is stored flat so that the value can be hashed and written to JSON.
    """

    array: Any
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.array, str):
            return
        nested = self.array.tolist() if hasattr(self.array, "tolist") else self.array
        shape, flat = _flatten(nested)
        if len(shape) not in (2, 4):
            raise InvalidProblem(f"mask array of shape {shape}: it must be (N_q, N_k) or (B, H, N_q, N_k)")
        msgspec.structs.force_setattr(self, "array", "".join("1" if x else "0" for x in flat))
        msgspec.structs.force_setattr(self, "shape", shape)

    def rows(self) -> Iterator[str]:
        """Each stored row as a string of 0 and 1, in row-major order."""
        width = self.shape[-1]
        count = len(self.array) // width if width else 0
        return (self.array[i * width : (i + 1) * width] for i in range(count))

    def intersect(self, other: Mask, q_len: int, kv_len: int) -> Dense:
        """This mask AND a banded one: what a boolean mask together with is_causal means.

        >>> Dense([[1, 1], [1, 1]]).intersect(Causal(), 2, 2).array
        '1011'
        """
        (_, band), *_ = other.bands(1, q_len, kv_len)  # type: ignore[union-attr]  # Dense AND Dense is not offered
        parts = []
        for index, row in enumerate(self.rows()):
            start, stop = band.span(index % q_len)
            parts.append("0" * start + row[start:stop] + "0" * (kv_len - stop))
        return Dense("".join(parts), self.shape)

    def __str__(self) -> str:
        import hashlib

        digest = hashlib.sha256(self.array.encode()).hexdigest()[:8]
        return f"dense:{'x'.join(map(str, self.shape))}:{digest}"


Mask = Full | Causal | Window | Lengths | Dense


def _flatten(nested: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Shape and row-major values of nested lists."""
    shape: list[int] = []
    level = [nested]
    while level and isinstance(level[0], list | tuple):
        shape.append(len(level[0]))
        if any(len(x) != shape[-1] for x in level):
            raise InvalidProblem("mask array is ragged: all rows must have one length")
        level = [value for part in level for value in part]
    return tuple(shape), level


class MaskCount(msgspec.Struct, frozen=True, kw_only=True):
    """What a mask lets through, summed over batch and query heads."""

    pairs: int
    empty_rows: int
    visible_keys: int  # summed over batch, one KV head


def count(mask: Mask, *, batch: int, q_heads: int, q_len: int, kv_len: int) -> MaskCount:
    """Exact counts of `mask` on a problem's sizes, over all batch elements and query heads."""
    if isinstance(mask, Dense):
        return _count_dense(mask, batch, q_heads, q_len, kv_len)
    bands = mask.bands(batch, q_len, kv_len)
    padding = sum(n * (q_len - band.q_len) for n, band in bands)
    return MaskCount(
        pairs=q_heads * sum(n * band.pairs for n, band in bands),
        empty_rows=q_heads * (padding + sum(n * band.empty_rows for n, band in bands)),
        visible_keys=sum(n * band.visible_keys for n, band in bands),
    )


def _count_dense(mask: Dense, batch: int, q_heads: int, q_len: int, kv_len: int) -> MaskCount:
    b, h, rows, cols = (1, 1, *mask.shape) if len(mask.shape) == 2 else mask.shape
    if b not in (1, batch) or h not in (1, q_heads) or rows not in (1, q_len) or cols != kv_len:
        raise InvalidProblem(
            f"mask array of shape {mask.shape} does not broadcast to (batch={batch}, q_heads={q_heads}, "
            f"q_len={q_len}, kv_len={kv_len})"
        )
    stored = max(b * h * rows, 1)
    repeat = batch * q_heads * q_len // stored
    empty = sum("1" not in row for row in mask.rows()) if cols else stored
    return MaskCount(
        pairs=mask.array.count("1") * repeat,
        empty_rows=empty * repeat,
        visible_keys=_dense_visible_keys(mask, b, h * rows) * (batch // max(b, 1)),
    )


def _dense_visible_keys(mask: Dense, batch: int, rows_per_element: int) -> int:
    rows = list(mask.rows())
    total = 0
    for b in range(batch):
        union = 0
        for row in rows[b * rows_per_element : (b + 1) * rows_per_element]:
            union |= int(row, 2) if row else 0
        total += union.bit_count()
    return total


def parse_mask(text: str) -> Mask:
    """A mask from the command line: full, causal, causal:bottom_right, window:LEFT:RIGHT[:bottom_right].

    Raises: InvalidProblem naming the grammar.

    >>> str(parse_mask("window:127:0"))
    'window:127:0'
    """
    kind, *rest = text.strip().split(":")
    try:
        if kind == "full" and not rest:
            return Full()
        if kind == "causal" and len(rest) <= 1:
            return Causal(*map(_align, rest))
        if kind == "window" and len(rest) in (2, 3):
            return Window(int(rest[0]), int(rest[1]), *map(_align, rest[2:]))
    except ValueError:
        pass
    raise InvalidProblem(
        f"mask {text!r} cannot be read: use full, causal, causal:bottom_right, window:LEFT:RIGHT or "
        "window:LEFT:RIGHT:bottom_right (integers; -1 is unlimited)"
    )
