"""Axes of a sweep and their grammar: the one way from texts (command line, TOML) to problems."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import msgspec

from attnprof.core.dtypes import parse_dtype
from attnprof.core.errors import AttnprofError, InvalidSweep
from attnprof.core.mask import Causal, parse_mask
from attnprof.core.problem import Problem, parse_direction

DEFAULT_SEQ_LENS = "64:2048:x2"
_MAX_POINTS = 10_000


def parse_ints(text: str, name: str = "range") -> tuple[int, ...]:
    """Whole numbers: `1,4,8`, `64:2048:x2` (doubling), `64:256:64` (step), or a mix joined by commas.

    Raises: InvalidSweep naming the axis and the grammar.

    >>> parse_ints("64:512:x2,1000")
    (64, 128, 256, 512, 1000)
    """
    values: list[int] = []
    for part in str(text).split(","):
        values.extend(_expand(part.strip(), name))
    if len(values) > _MAX_POINTS:
        raise InvalidSweep(f"{name} {text!r} has {len(values)} points: at most {_MAX_POINTS} are allowed")
    return tuple(dict.fromkeys(values))


def _expand(part: str, name: str) -> Iterator[int]:
    single = re.fullmatch(r"-?\d+", part)
    ranged = re.fullmatch(r"(\d+):(\d+):(x?)(\d+)", part)
    if single:
        yield int(part)
        return
    if ranged is None:
        raise InvalidSweep(
            f"{name} {part!r} cannot be read: write 1,4,8 or START:STOP:xFACTOR or START:STOP:STEP"
        )
    start, stop, factor, by = int(ranged[1]), int(ranged[2]), bool(ranged[3]), int(ranged[4])
    smallest_step = 2 if factor else 1
    if start > stop or by < smallest_step or (factor and start == 0):
        raise InvalidSweep(
            f"{name} {part!r} never ends or is empty: START must not be above STOP, a factor must be at least 2 "
            "(from a START above 0), a step at least 1"
        )
    points = 1 + (stop - start) // by
    if not factor and points > _MAX_POINTS:
        raise InvalidSweep(
            f"{name} {part!r} has {points} points: at most {_MAX_POINTS} are allowed; take a larger step"
        )
    value = start
    while value <= stop:
        yield value
        value = value * by if factor else value + by


def parse_names(text: str) -> tuple[str, ...]:
    """Names joined by commas.

    >>> parse_names("naive, flex")
    ('naive', 'flex')
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())


class Axes(msgspec.Struct, frozen=True, kw_only=True):
    """Values of every axis; a sweep is their product. Empty kv_heads, kv_lens, v_dims follow q's value."""

    q_lens: tuple[int, ...]
    kv_lens: tuple[int, ...] = ()
    batches: tuple[int, ...] = (1,)
    q_heads: tuple[int, ...] = (12,)
    kv_heads: tuple[int, ...] = ()
    head_dims: tuple[int, ...] = (64,)
    v_dims: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ("float32",)
    masks: tuple[str, ...] = ("causal",)
    directions: tuple[str, ...] = ("fwd",)
    scale: float | None = None
    dropout: float = 0.0

    def problems(self) -> tuple[Problem, ...]:
        """Every problem of the product, slowest axis first: direction, dtype, mask, head dim, heads, batch, length.

        Raises: InvalidProblem for a combination that is none; InvalidSweep for more than can be meant.
        """
        axes = (
            self.directions, self.dtypes, self.masks, self.head_dims, self.v_dims or (None,), self.q_heads,
            self.kv_heads or (None,), self.batches, self.q_lens, self.kv_lens or (None,),
        )  # fmt: skip
        points = math.prod(map(len, axes))
        if points > _MAX_POINTS:
            raise InvalidSweep(
                f"the axes span {points} problems: at most {_MAX_POINTS} are allowed; shorten an axis"
            )
        return tuple(self._problem(*values) for values in product(*axes))

    def _problem(
        self, direction: str, dtype: str, mask: str, dim: int, v_dim: int | None, q_heads: int,
        kv_heads: int | None, batch: int, q_len: int, kv_len: int | None,
    ) -> Problem:  # fmt: skip
        return Problem(
            batch=batch, q_heads=q_heads, kv_heads=q_heads if kv_heads is None else kv_heads, q_len=q_len,
            kv_len=q_len if kv_len is None else kv_len, qk_dim=dim, v_dim=dim if v_dim is None else v_dim,
            dtype=parse_dtype(dtype), mask=parse_mask(mask), direction=parse_direction(direction),
            scale=self.scale, dropout=self.dropout,
        )  # fmt: skip


class AxisTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The axes as a person writes them; None is "not given"."""

    seq_lens: str | None = None
    q_lens: str | None = None
    kv_lens: str | None = None
    batch: str | None = None
    heads: str | None = None
    kv_heads: str | None = None
    head_dim: str | None = None
    v_dim: str | None = None
    dtype: str | None = None
    mask: str | None = None
    direction: str | None = None
    scale: float | None = None
    dropout: float | None = None

    def axes(self, *, dtype: str = "float32", seq_lens: str = DEFAULT_SEQ_LENS) -> Axes:
        """The parsed axes; `dtype` and `seq_lens` are used when none is given.

        Raises: InvalidSweep naming the option.
        """
        if self.seq_lens is not None and (self.q_lens is not None or self.kv_lens is not None):
            raise InvalidSweep(
                "--seq-lens sets q and kv alike: give it, or --q-lens with --kv-lens, not both"
            )
        if self.kv_lens is not None and self.q_lens is None:
            raise InvalidSweep("--kv-lens without --q-lens: give both, or --seq-lens")
        given: dict[str, Any] = {"q_lens": parse_ints(self.q_lens or self.seq_lens or seq_lens, "--seq-lens")}
        for field, option, text in self._integer_axes():
            if text is not None:
                given[field] = parse_ints(text, option)
        names = {
            "dtypes": self.dtype or dtype,
            "masks": self.mask or str(Causal()),
            "directions": self.direction or "fwd",
        }
        given |= {field: _some(parse_names(text), field) for field, text in names.items()}
        return Axes(**given, scale=self.scale, dropout=self.dropout or 0.0)

    def problems(self, *, dtype: str = "float32", seq_lens: str = DEFAULT_SEQ_LENS) -> tuple[Problem, ...]:
        """The problems that the axes span."""
        return self.axes(dtype=dtype, seq_lens=seq_lens).problems()

    def _integer_axes(self) -> tuple[tuple[str, str, str | None], ...]:
        return (
            ("kv_lens", "--kv-lens", self.kv_lens),
            ("batches", "--batch", self.batch),
            ("q_heads", "--heads", self.heads),
            ("kv_heads", "--kv-heads", self.kv_heads),
            ("head_dims", "--head-dim", self.head_dim),
            ("v_dims", "--v-dim", self.v_dim),
        )


def _some(values: tuple[str, ...], name: str) -> tuple[str, ...]:
    if not values:
        raise InvalidSweep(f"{name} is empty: give at least one value")
    return values


def located(where: str, read: Callable[[], Any]) -> Any:
    """Run `read`; an attnprof error gets the place (file, key) before its message."""
    try:
        return read()
    except AttnprofError as error:
        raise type(error)(f"{where}: {error}") from error
