"""An attention problem: the mathematics and its sizes, never the method."""

from __future__ import annotations

import math
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import msgspec

from attnprof.core.dtypes import DType, parse_dtype
from attnprof.core.errors import InvalidProblem
from attnprof.core.mask import Dense, Full, Mask, MaskCount, count

BACKWARD_WITH_STORED_P = 2.0
BACKWARD_RECOMPUTING_P = 2.5


class Direction(StrEnum):
    """Which passes are run."""

    FWD = "fwd"
    BWD = "bwd"
    FWD_BWD = "fwd_bwd"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One attention call: O = softmax(scale * Q K^T + mask) V.

    Shapes: q (batch, q_heads, q_len, qk_dim), k (batch, kv_heads, kv_len, qk_dim),
    v (batch, kv_heads, kv_len, v_dim), o (batch, q_heads, q_len, v_dim). `head_dim` sets both dims.
    Raises: InvalidProblem naming the value and the rule.

    >>> p = Problem(batch=1, q_heads=12, q_len=64, kv_len=64, head_dim=64)
    >>> p.useful_flops, p.kv_heads
    (12582912, 12)
    """

    batch: int = 1
    q_heads: int = 1
    kv_heads: int = None  # type: ignore[assignment]  # None takes q_heads; an int once constructed
    q_len: int
    kv_len: int = None  # type: ignore[assignment]  # None takes q_len; an int once constructed
    head_dim: int = None  # type: ignore[assignment]  # None takes qk_dim; always equal to qk_dim once constructed
    qk_dim: int = None  # type: ignore[assignment]  # None takes head_dim; an int once constructed
    v_dim: int = None  # type: ignore[assignment]  # None takes qk_dim; an int once constructed
    dtype: DType = DType.FLOAT32
    mask: Mask = Full()
    direction: Direction = Direction.FWD
    scale: float | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        self._fill("kv_heads", self.q_heads)
        self._fill("kv_len", self.q_len)
        self._fill("qk_dim", 64 if self.head_dim is None else self.head_dim)
        self._fill("v_dim", self.qk_dim)
        if self.head_dim is not None and self.head_dim != self.qk_dim:
            raise InvalidProblem(
                f"head_dim={self.head_dim} and qk_dim={self.qk_dim} differ: give one of them"
            )
        self._set("head_dim", self.qk_dim)
        self._set("dtype", parse_dtype(self.dtype))
        self._set("direction", parse_direction(self.direction))
        self._validate_sizes()
        self._validate_numbers()
        _counted(
            self.mask, self.batch, self.q_heads, self.q_len, self.kv_len
        )  # raises if the mask does not fit

    def _set(self, name: str, value: object) -> None:
        msgspec.structs.force_setattr(self, name, value)

    def _fill(self, name: str, value: object) -> None:
        if getattr(self, name) is None:
            self._set(name, value)

    def _validate_sizes(self) -> None:
        for name in ("batch", "q_len", "kv_len"):
            _require_int(name, getattr(self, name), minimum=0)
        for name in ("q_heads", "kv_heads", "qk_dim", "v_dim"):
            _require_int(name, getattr(self, name), minimum=1)
        if self.q_heads % self.kv_heads:
            raise InvalidProblem(
                f"kv_heads={self.kv_heads} does not divide q_heads={self.q_heads}: each KV head must serve the "
                "same number of query heads"
            )

    def _validate_numbers(self) -> None:
        if not 0.0 <= self.dropout < 1.0:
            raise InvalidProblem(f"dropout={self.dropout}: it must be at least 0 and below 1")
        if self.scale is not None and not math.isfinite(self.scale):
            raise InvalidProblem(
                f"scale={self.scale}: it must be a finite number, or None for 1/sqrt(qk_dim)"
            )

    # --- what the mask lets through -------------------------------------------------------------------------

    @property
    def counted(self) -> MaskCount:
        """Pairs, empty rows and visible keys over all batch elements and query heads."""
        return _counted(self.mask, self.batch, self.q_heads, self.q_len, self.kv_len)

    @property
    def total_pairs(self) -> int:
        """Allowed (query, key) pairs over all batch elements and query heads."""
        return self.counted.pairs

    @property
    def pairs(self) -> int | Fraction:
        """Allowed pairs per head of one batch element: exact, and the exact mean where elements differ."""
        return _per(self.total_pairs, self.batch * self.q_heads)

    @property
    def empty_rows(self) -> int | Fraction:
        """Queries per head that see no key (exact mean where batch elements differ); their output is 0."""
        return _per(self.counted.empty_rows, self.batch * self.q_heads)

    @property
    def total_empty_rows(self) -> int:
        """Queries that see no key, over all batch elements and heads."""
        return self.counted.empty_rows

    # --- FLOPs ----------------------------------------------------------------------------------------------

    @property
    def forward_flops(self) -> int:
        """Matmul FLOPs of the forward: 2 * pairs * (qk_dim + v_dim) over batch and heads."""
        return 2 * self.total_pairs * (self.qk_dim + self.v_dim)

    def flops(self, backward_factor: float = BACKWARD_WITH_STORED_P) -> int:
        """Useful FLOPs of the problem's direction; the backward costs `backward_factor` forwards."""
        factor = {Direction.FWD: 1.0, Direction.BWD: backward_factor, Direction.FWD_BWD: 1 + backward_factor}
        return round(self.forward_flops * factor[self.direction])

    @property
    def useful_flops(self) -> int:
        """Useful FLOPs, multiply and add as two; a backward counts 2.0 forwards (P stored: the mathematics)."""
        return self.flops()

    @property
    def exp_ops(self) -> int:
        """Exponentials of the forward softmax, one per allowed pair."""
        return self.total_pairs

    # --- bytes ----------------------------------------------------------------------------------------------

    @property
    def q_bytes(self) -> int:
        """Storage of q."""
        return self.storage(self.batch, self.q_heads, self.q_len, self.qk_dim)

    @property
    def k_bytes(self) -> int:
        """Storage of k."""
        return self.storage(self.batch, self.kv_heads, self.kv_len, self.qk_dim)

    @property
    def v_bytes(self) -> int:
        """Storage of v."""
        return self.storage(self.batch, self.kv_heads, self.kv_len, self.v_dim)

    @property
    def o_bytes(self) -> int:
        """Storage of o."""
        return self.storage(self.batch, self.q_heads, self.q_len, self.v_dim)

    @property
    def score_bytes(self) -> int:
        """Storage of one materialised score matrix in the problem's dtype."""
        return self.storage(self.batch, self.q_heads, self.q_len, self.kv_len)

    @property
    def mask_bytes(self) -> int:
        """Storage of an explicit boolean mask (1 byte an element); 0 for masks given by a rule."""
        return math.prod(self.mask.shape) if isinstance(self.mask, Dense) else 0

    @property
    def visible_kv_bytes(self) -> int:
        """K and V rows that at least one query sees."""
        return self.storage(self.counted.visible_keys, self.kv_heads, self.qk_dim + self.v_dim)

    @property
    def compulsory_read_bytes(self) -> int:
        """Each distinct input read once (for a backward the output's gradient too); visible keys only."""
        gradient = 0 if self.direction is Direction.FWD else self.o_bytes
        return self.q_bytes + self.visible_kv_bytes + self.mask_bytes + gradient

    @property
    def compulsory_write_bytes(self) -> int:
        """Each result written once: o forward; the gradients of q, k and v backward."""
        forward = 0 if self.direction is Direction.BWD else self.o_bytes
        backward = 0 if self.direction is Direction.FWD else self.q_bytes + self.k_bytes + self.v_bytes
        return forward + backward

    @property
    def compulsory_bytes(self) -> int:
        """Lower bound of the traffic of any method at any level of memory.

        >>> Problem(q_heads=8, kv_heads=2, q_len=64, head_dim=64).compulsory_bytes
        327680
        """
        return self.compulsory_read_bytes + self.compulsory_write_bytes

    def storage(self, *sizes: int) -> int:
        """Bytes of an array of `sizes` elements in the problem's dtype, rounded up."""
        return -(-math.prod(sizes) * self.dtype.bits // 8)

    # --- names ----------------------------------------------------------------------------------------------

    @property
    def effective_scale(self) -> float:
        """The factor on QK^T: `scale`, or 1/sqrt(qk_dim)."""
        return self.qk_dim**-0.5 if self.scale is None else self.scale

    @property
    def group(self) -> int:
        """Query heads per KV head."""
        return self.q_heads // self.kv_heads

    def replace(self, **changes: object) -> Problem:
        """A copy with other values; `head_dim=` sets both dims."""
        if "head_dim" in changes:
            dim = changes["head_dim"]
            changes = {"v_dim": dim, **changes, "qk_dim": dim}
        elif "qk_dim" in changes:
            changes = {**changes, "head_dim": changes["qk_dim"]}
        return msgspec.structs.replace(self, **changes)

    def __str__(self) -> str:
        heads = f"{self.q_heads}" if self.kv_heads == self.q_heads else f"{self.q_heads}/{self.kv_heads}"
        length = f"{self.q_len}" if self.kv_len == self.q_len else f"{self.q_len}x{self.kv_len}"
        dim = f"{self.qk_dim}" if self.v_dim == self.qk_dim else f"{self.qk_dim}/{self.v_dim}"
        extra = "" if self.scale is None else f" scale={self.scale:g}"
        extra += f" dropout={self.dropout:g}" if self.dropout else ""
        return f"B{self.batch} H{heads} N{length} d{dim} {self.dtype} {self.mask} {self.direction}{extra}"


@lru_cache(maxsize=4096)
def _counted(mask: Mask, batch: int, q_heads: int, q_len: int, kv_len: int) -> MaskCount:
    return count(mask, batch=batch, q_heads=q_heads, q_len=q_len, kv_len=kv_len)


def _per(total: int, parts: int) -> int | Fraction:
    if parts == 0:
        return 0
    exact = Fraction(total, parts)
    return exact.numerator if exact.denominator == 1 else exact


def parse_direction(value: str) -> Direction:
    """A direction from its name. Raises: InvalidProblem with the known ones."""
    try:
        return Direction(value)
    except ValueError:
        raise InvalidProblem(f"direction {value!r} is unknown: use {', '.join(Direction)}") from None


def _require_int(name: str, value: object, minimum: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise InvalidProblem(f"{name}={value!r}: it must be a whole number of at least {minimum}")
