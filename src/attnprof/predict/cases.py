"""What the time model reads: one attention call on one chip, and many of them as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from attnprof.core.mask import Full, Window
from attnprof.core.problem import Direction, Problem
from attnprof.predict.chips import ChipModel
from attnprof.predict.kernels import EAGER, SPLIT_KV, Family

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One attention call as the model sees it.

    `pairs` counts allowed (query, key) pairs of one head; `qk` and `pv` name the precision of the two products;
    `latent` marks multi-head latent attention, where K and V are one stored tensor shared by all heads.
    """

    family: Family
    chip: ChipModel
    batch: int
    q_heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    qk_dim: int
    v_dim: int
    pairs: float
    causal: bool = False
    windowed: bool = False
    direction: Direction = Direction.FWD
    qk: str = "fp16"
    pv: str = "fp16"
    q_element_bytes: float = 2.0
    kv_element_bytes: float = 2.0
    latent: bool = False
    explicit_mask: bool = False
    dropout: bool = False
    deterministic: bool = False

    @property
    def precision(self) -> str:
        """The precision class that constants are kept for."""
        return self.qk

    @property
    def dim_class(self) -> str:
        """Head dims with their own tile shapes: 64, 128, 256 or wide."""
        return next(
            (name for top, name in ((64, "64"), (128, "128"), (256, "256")) if self.qk_dim <= top), "wide"
        )


def case_of(problem: Problem, family: Family, chip: ChipModel, deterministic: bool = False) -> Case:
    """The case of a problem computed by a kernel of `family` on `chip`."""
    precision = {32: "fp32", 64: "fp64", 16: "fp16", 8: "fp8", 4: "fp4"}[problem.dtype.bits]
    heads = max(problem.batch * problem.q_heads, 1)
    return Case(
        family=family, chip=chip, batch=problem.batch, q_heads=problem.q_heads, kv_heads=problem.kv_heads,
        q_len=problem.q_len, kv_len=problem.kv_len, qk_dim=problem.qk_dim, v_dim=problem.v_dim,
        pairs=problem.total_pairs / heads, causal=not isinstance(problem.mask, Full),
        windowed=isinstance(problem.mask, Window), direction=problem.direction, qk=precision, pv=precision,
        q_element_bytes=problem.dtype.bytes, kv_element_bytes=problem.dtype.bytes, dropout=problem.dropout > 0,
        deterministic=deterministic,
    )  # fmt: skip


class Columns:
    """Cases as columns; every name is an array with one value a case."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = tuple(cases)
        self._kept: dict[str, Floats] = {}

    def __len__(self) -> int:
        return len(self.cases)

    def _numbers(self, name: str) -> Floats:
        return np.array([float(getattr(case, name)) for case in self.cases])

    def chip(self, name: str) -> Floats:
        """A number of each case's chip."""
        if name not in self._kept:
            self._kept[name] = np.array([float(getattr(case.chip, name)) for case in self.cases])
        return self._kept[name]

    def _flags(self, values: Sequence[bool]) -> Bools:
        return np.array(values, dtype=np.bool_)

    @cached_property
    def numbers(self) -> dict[str, Floats]:
        """Every numeric field of the cases."""
        names = [f.name for f in fields(Case) if f.type in {"int", "float", "bool"}]
        return {name: self._numbers(name) for name in names}

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The family of every case."""
        return tuple(case.family for case in self.cases)

    @cached_property
    def eager(self) -> Bools:
        """Unfused kernels."""
        return self._flags([case.family in EAGER for case in self.cases])

    @cached_property
    def decode(self) -> Bools:
        """Kernels that stream the keys for a few queries."""
        return self._flags([case.family in SPLIT_KV for case in self.cases])

    @cached_property
    def backward(self) -> Bools:
        """Cases with a backward pass."""
        return self._flags([case.direction is not Direction.FWD for case in self.cases])

    @cached_property
    def both(self) -> Bools:
        """Cases with a forward and a backward pass."""
        return self._flags([case.direction is Direction.FWD_BWD for case in self.cases])

    def matmul_rate(self, product: str) -> Floats:
        """Sustained FLOP/cycle of one SM in the precision of `product`: qk, pv, or qk_base for 16 bits."""
        key = f"{product} FLOP/cycle"
        if key not in self._kept:
            names = ["fp16" if product == "qk_base" else getattr(case, product) for case in self.cases]
            rates = [case.chip.flops_per_cycle(name) for case, name in zip(self.cases, names, strict=True)]
            self._kept[key] = np.array(rates)
        return self._kept[key]

    def labels(self, *names: str) -> list[str]:
        """One label a case, from fields of the case: the groups that adjustments are kept for."""
        return ["|".join(_label(case, name) for name in names) for case in self.cases]


def _label(case: Case, name: str) -> str:
    if name == "pass":
        return "fwd" if case.direction is Direction.FWD else "bwd"
    if name in {"chip", "generation"}:
        return case.chip.name if name == "chip" else case.chip.generation
    value = getattr(case, name)
    return f"{name}={value}" if isinstance(value, bool) else str(value)
