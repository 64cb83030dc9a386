"""Tile sizes of `triton_flash`: the default for a problem, and the candidates that tuning tries."""

from __future__ import annotations

from dataclasses import dataclass

from attnprof.core.dtypes import DType
from attnprof.core.mask import Band
from attnprof.core.problem import Problem

UNBOUNDED = 2**30  # a band limit that no key reaches


@dataclass(frozen=True, kw_only=True)
class Config:
    """Tile rows and columns, warps and pipeline stages of the forward (`m`, `n`) and of the backward."""

    m: int
    n: int
    warps: int = 4
    stages: int = 2
    backward_m: int = 32
    backward_n: int = 32
    backward_warps: int = 4
    backward_stages: int = 1

    def as_list(self) -> list[int]:
        """The values in the order in which the operator takes them."""
        forward = [self.m, self.n, self.warps, self.stages]
        return [*forward, self.backward_m, self.backward_n, self.backward_warps, self.backward_stages]

    def __str__(self) -> str:
        forward = f"forward {self.m}x{self.n} warps={self.warps} stages={self.stages}"
        backward = (
            f"{self.backward_m}x{self.backward_n} warps={self.backward_warps} stages={self.backward_stages}"
        )
        return f"{forward}; backward {backward}"


def default_config(problem: Problem) -> Config:
    """A configuration that fits on chip for the problem's dims and dtype, no wider than its lengths."""
    dim = max(padded_dim(problem.qk_dim), padded_dim(problem.v_dim))
    m, n, warps = (128, 64, 4) if dim <= 64 else (128, 64, 8) if dim <= 128 else (64, 32, 4)
    side = 64 if dim <= 128 else 32
    if problem.dtype is DType.FLOAT32:  # no tensor cores: smaller tiles compile and run faster
        m, n, warps, side = m // 2, 32, 4, 32
    return Config(
        m=min(m, _tile(problem.q_len)),
        n=min(n, _tile(problem.kv_len)),
        warps=warps,
        backward_m=min(side, _tile(problem.q_len)),
        backward_n=min(side, _tile(problem.kv_len)),
    )


def candidates(problem: Problem) -> tuple[Config, ...]:
    """The default and its neighbours; those that do not fit on the chip are dropped when they are tried."""
    first = default_config(problem)
    rows, keys = _tile(problem.q_len), _tile(problem.kv_len)
    forward = (
        (128, 128, 8, 2),
        (128, 64, 4, 3),
        (128, 64, 8, 3),
        (128, 32, 4, 4),
        (64, 64, 4, 3),
        (64, 32, 4, 2),
    )
    backward = (
        (64, 64, 4, 1),
        (64, 32, 4, 2),
        (32, 64, 4, 2),
        (128, 64, 8, 1),
        (32, 32, 4, 1),
        (64, 64, 8, 2),
    )
    pairs = zip(forward, backward, strict=True)
    tried = (
        Config(
            m=min(m, rows), n=min(n, keys), warps=warps, stages=stages,
            backward_m=min(b_m, rows), backward_n=min(b_n, keys), backward_warps=b_warps, backward_stages=b_stages,
        )
        for (m, n, warps, stages), (b_m, b_n, b_warps, b_stages) in pairs
    )  # fmt: skip
    return tuple(dict.fromkeys((first, *tried)))


def padded_dim(dim: int) -> int:
    """The power of two, 16 or more, in which a head dim is computed.

    >>> padded_dim(80), padded_dim(8)
    (128, 16)
    """
    return max(16, 1 << (dim - 1).bit_length())


def band_rows(problem: Problem) -> tuple[tuple[int, int, int, int], ...]:
    """q_len, kv_len, low and high of each batch element, as the kernels read them."""
    bands = problem.mask.bands(problem.batch, problem.q_len, problem.kv_len)  # type: ignore[union-attr]  # not Dense
    return tuple(_row(band) for count, band in bands for _ in range(count))


def _row(band: Band) -> tuple[int, int, int, int]:
    low = -UNBOUNDED if band.low is None else max(band.low, -UNBOUNDED)
    high = UNBOUNDED if band.high is None else min(band.high, UNBOUNDED)
    return band.q_len, band.kv_len, low, high


def _tile(length: int) -> int:
    return padded_dim(max(length, 1))
