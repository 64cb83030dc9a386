"""Fit of the family constants: Gauss-Newton on log time, every constant held by a prior (partial pooling).

A family without rows keeps its prior; a family on a generation of chips that was never seen keeps the family's mean.
The priors are physical: ideal costs with the losses that kernel papers report. What the constants leave over is
described by adjustments, group means of log time that shrink to zero (see `GROUPS`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec
import numpy as np

from attnprof.predict.cases import Case, Columns, Floats
from attnprof.predict.kernels import Family
from attnprof.predict.model import CONSTANT_NAMES, Constants, Resources, evaluate

_PRIOR_SPREAD = {
    "matmul_cost": 0.15, "matmul_cost_bwd": 0.2, "softmax_cycles": 0.4, "softmax_cycles_bwd": 0.4,
    "prologue_tiles": 0.4, "prologue_tiles_bwd": 0.4, "matmul_ceiling": 0.25, "dram_cost": 0.25, "launch_s": 0.6,
}  # fmt: skip
_US = 1e-6
PRIORS: dict[Family, Constants] = {
    Family.NAIVE: Constants(dram_cost=1.2, launch_s=150 * _US),
    Family.MATH: Constants(dram_cost=2.0, launch_s=200 * _US),
    Family.FUSED_SOFTMAX: Constants(dram_cost=0.8, launch_s=100 * _US),
    Family.FA1: Constants(matmul_ceiling=1800, softmax_cycles=0.15),
    Family.MEMEFF: Constants(matmul_ceiling=1300, softmax_cycles=0.15, softmax_cycles_bwd=0.4),
    Family.MEMEFF_WIDE: Constants(matmul_ceiling=1000, matmul_cost=1.8, matmul_cost_bwd=4.0, softmax_cycles=0.3,
                                  softmax_cycles_bwd=1.0),
    Family.FA2: Constants(matmul_ceiling=2600, softmax_cycles=0.1),
    Family.TRITON: Constants(matmul_ceiling=3500, softmax_cycles=0.12),
    Family.TRITON_WIDE: Constants(matmul_ceiling=3000, matmul_cost=1.3, matmul_cost_bwd=2.0),
    Family.FA3: Constants(softmax_cycles=0.06),
    Family.NATIVE: Constants(softmax_cycles=0.05),
    Family.WIDE: Constants(matmul_cost=1.5, matmul_cost_bwd=2.5),
    Family.QUANTISED: Constants(matmul_ceiling=5000, softmax_cycles=0.1),
    Family.DECODE: Constants(launch_s=5 * _US),
    Family.DECODE_PLAIN: Constants(launch_s=10 * _US, dram_cost=1.6),
    Family.MLA: Constants(launch_s=8 * _US, dram_cost=1.3),
}  # fmt: skip
# Groups of cases that share an adjustment, and the spread (in log time) that an adjustment may have.
GROUPS: tuple[tuple[tuple[str, ...], float], ...] = (
    (("family",), 0.15),
    (("generation",), 0.1),
    (("chip",), 0.08),
    (("family", "generation"), 0.2),
    (("family", "generation", "pass"), 0.2),
    (("family", "precision"), 0.15),
    (("family", "precision", "pass"), 0.15),
    (("family", "dim_class", "pass"), 0.15),
    (("family", "causal", "pass"), 0.1),
    (("family", "pass", "deterministic"), 0.2),
    (("family", "precision", "pass", "windowed"), 0.3),
)
_NOISE, _ROBUST, _STEPS, _LONGEST_STEP, _NUDGE = 0.2, 0.35, 7, 0.5, 1e-3


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Half-widths (log time) of the 80% interval of a kernel whose source was never seen."""

    known: float
    family_new_on_generation: float
    decode_or_eager: float


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a prediction takes from data."""

    sources: tuple[str, ...]
    rows: int
    constants: dict[str, dict[str, float]]
    adjustments: dict[str, dict[str, float]]
    spread: Spread


DEFAULT_SPREAD = Spread(known=0.4, family_new_on_generation=0.6, decode_or_eager=0.6)


@cache
def shipped() -> Fit:
    """The constants of the package."""
    return msgspec.json.decode(files("attnprof.predict").joinpath("data", "fit.json").read_bytes(), type=Fit)


def constants_of(family: Family, fit: Fit) -> Constants:
    """A family's fitted constants, or its prior where nothing was fitted."""
    return Constants(**fit.constants[family]) if family in fit.constants else prior(family)


def prior(family: Family) -> Constants:
    """A family's constants before any data."""
    return PRIORS.get(family, Constants())


def resources(columns: Columns, fit: Fit) -> Resources:
    """Resources of every case with the fit's constants and without its adjustments."""
    per_family = {family: constants_of(family, fit) for family in {case.family for case in columns.cases}}
    chosen = [per_family[family] for family in columns.families]
    return evaluate(columns, {name: np.array([getattr(c, name) for c in chosen]) for name in CONSTANT_NAMES})


def adjustment(columns: Columns, fit: Fit) -> Floats:
    """Sum of the adjustments of every case's groups; unseen groups add nothing. Units: log time."""
    total = np.zeros(len(columns))
    for names, _ in GROUPS:
        known = fit.adjustments.get("*".join(names), {})
        total += np.array([known.get(label, 0.0) for label in columns.labels(*names)])
    return total


def predicted_s(columns: Columns, fit: Fit) -> Floats:
    """Predicted time of every case. Units: seconds."""
    return np.asarray(resources(columns, fit).total_s * np.exp(adjustment(columns, fit)))


def half_width(columns: Columns, fit: Fit) -> Floats:
    """Half-width of the 80% interval in log time."""
    seen = fit.adjustments.get("family*generation", {})
    known = np.array([label in seen for label in columns.labels("family", "generation")])
    loose = columns.decode | columns.eager
    usual = np.where(known, fit.spread.known, fit.spread.family_new_on_generation)
    return np.where(loose, fit.spread.decode_or_eager, usual)


def fit_constants(
    cases: Sequence[Case],
    seconds: Floats,
    weights: Floats,
    sources: Sequence[str],
    spread: Spread = DEFAULT_SPREAD,
) -> Fit:
    """Constants and adjustments from measured times; `weights` keeps large sources from drowning small ones."""
    problem = _Problem(Columns(cases), np.log(seconds), weights)
    for _ in range(_STEPS):
        problem.step()
    return problem.result(tuple(sorted(set(sources))), spread)


class _Problem:
    """The penalised least-squares problem and its current point."""

    def __init__(self, columns: Columns, log_s: Floats, weights: Floats) -> None:
        self.columns, self.log_s, self.weights = columns, log_s, weights / weights.mean()
        self.families = sorted({case.family for case in columns.cases})
        self.index = np.array([self.families.index(case.family) for case in columns.cases])
        self.start = np.log([[getattr(prior(f), n) for n in CONSTANT_NAMES] for f in self.families])
        self.point = self.start.copy()
        self.design, self.keys, spreads = _design(columns)
        self.adjustments = np.zeros(len(self.keys))
        constant_spreads = np.tile([_PRIOR_SPREAD[n] for n in CONSTANT_NAMES], len(self.families))
        self.precision = 1 / np.concatenate([constant_spreads, spreads]) ** 2

    def model(self, point: Floats) -> Floats:
        values = np.exp(point)[self.index]
        total = evaluate(self.columns, {n: values[:, i] for i, n in enumerate(CONSTANT_NAMES)}).total_s
        return np.log(total)

    def step(self) -> None:
        base = self.model(self.point)
        residual = self.log_s - base - self.design @ self.adjustments
        jacobian = np.hstack([self._jacobian(base), self.design])
        weights = self.weights * np.minimum(1, _ROBUST / np.maximum(np.abs(residual), 1e-9)) / _NOISE**2
        deviation = np.concatenate([(self.point - self.start).ravel(), self.adjustments])
        normal = jacobian.T @ (jacobian * weights[:, None]) + np.diag(self.precision)
        move = np.linalg.solve(normal, jacobian.T @ (weights * residual) - self.precision * deviation)
        move = np.clip(move, -_LONGEST_STEP, _LONGEST_STEP)
        self.point = self.point + move[: self.point.size].reshape(self.point.shape)
        self.adjustments = self.adjustments + move[self.point.size :]

    def _jacobian(self, base: Floats) -> Floats:
        """Derivatives by every family's constants; a family's rows depend on its own constants only."""
        jacobian = np.zeros((len(base), self.point.size))
        rows = np.arange(len(base))
        for i in range(len(CONSTANT_NAMES)):
            nudged = self.point.copy()
            nudged[:, i] += _NUDGE
            jacobian[rows, self.index * len(CONSTANT_NAMES) + i] = (self.model(nudged) - base) / _NUDGE
        return jacobian

    def result(self, sources: tuple[str, ...], spread: Spread) -> Fit:
        constants = {str(f): {n: float(v) for n, v in zip(CONSTANT_NAMES, np.exp(row), strict=True)}
                     for f, row in zip(self.families, self.point, strict=True)}  # fmt: skip
        adjustments: dict[str, dict[str, float]] = {}
        for (group, label), value in zip(self.keys, self.adjustments, strict=True):
            adjustments.setdefault(group, {})[label] = float(value)
        return Fit(
            sources=sources, rows=len(self.log_s), constants=constants, adjustments=adjustments, spread=spread
        )


def _design(columns: Columns) -> tuple[Floats, list[tuple[str, str]], Floats]:
    """One 0/1 column per group label, its key, and its prior spread."""
    parts, keys, spreads = [], [], []
    for names, spread in GROUPS:
        labels = np.array(columns.labels(*names))
        for label in sorted(set(labels.tolist())):
            parts.append((labels == label).astype(np.float64))
            keys.append(("*".join(names), label))
            spreads.append(spread)
    return np.array(parts).T, keys, np.array(spreads)
