"""Calibration on a device's own small run: about 20 measured rows give its constants, then other shapes are predicted.

time = overhead + executed FLOPs / matmul rate + pairs * softmax cost + requested bytes / bandwidth. The bandwidth goes
from the last-level cache's to main memory's as the call's working set outgrows the cache. Every variant has its own
overhead, matmul rate and softmax cost, held near values that all variants share (partial pooling).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from attnprof.core.ceilings import Ceilings
from attnprof.core.dtypes import DType
from attnprof.core.errors import InvalidInput
from attnprof.core.problem import Problem
from attnprof.core.record import Manifest, Record
from attnprof.core.schedules.dram import USABLE_SHARE
from attnprof.core.traffic import Cost
from attnprof.predict.api import Prediction
from attnprof.predict.cases import Floats
from attnprof.predict.memory import input_bytes

Shared = dict[str, tuple[float, float]]  # name -> value and spread of its logarithm

LEAST_ROWS, LEAST_LEVELS = 6, 2
_SHARPNESS = 5.0  # how abruptly a working set beyond the usable share of the cache goes to memory
CEILING_VARIANTS = ("naive", "sdpa_default", "sdpa_math", "sdpa_flash")
_USUAL_LLC_BYTES = 32 * 2**20
# Logarithms of shared values: prior per thread, and how wrong the prior may be.
_SHARED: Shared = {
    "overhead_s": (20e-6, 1.5),
    "flops_per_s": (6e10, 0.7),
    "pair_s": (1e-9, 1.0),
    "cache_bytes_per_s": (1.5e10, 0.7),
    "memory_bytes_per_s": (6e9, 0.7),
}
_OWN = {"overhead_s": 1.0, "flops_per_s": 0.15, "pair_s": 1.5}  # spread of a variant around the shared value
_RATES = frozenset({"flops_per_s", "cache_bytes_per_s", "memory_bytes_per_s"})
_CEILING_SPREAD, _MATMUL_SHARE, _OPERATIONS_PER_PAIR, _UNFITTED_NOISE = 0.3, 0.8, 4.0, 0.2
_STEPS, _NUDGE, _LONGEST_STEP, _LEAST_NOISE, _MOST_NOISE, _TAIL = 40, 1e-4, 0.5, 0.06, 0.3, 2.5
_NORMAL_80 = 1.2816


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What one call does, from its cost table."""

    variant: str
    flops: float
    pairs: float
    bytes: float
    live_bytes: float


class LocalModel:
    """A device whose constants come from its own rows, or from its measured ceilings alone."""

    def __init__(
        self, device: str, llc_bytes: float, variants: Sequence[str], shared: Shared, basis: str
    ) -> None:
        self.device, self.llc_bytes, self.basis = device, llc_bytes, basis
        self.variants = sorted(set(variants))
        self._start, self._precision = _prior(self.variants, shared)
        self._point = self._start.copy()
        self._noise: float = _UNFITTED_NOISE
        self._covariance: Floats = np.diag(1 / self._precision)

    def constants(self) -> dict[str, dict[str, float]]:
        """The fitted constants by variant. Units: in their names."""
        values = [
            dict(zip(_SHARED, np.exp(self._values(self._point, name)), strict=True)) for name in self.variants
        ]
        return {
            name: {k: float(v) for k, v in row.items()}
            for name, row in zip(self.variants, values, strict=True)
        }

    def predict(self, problem: Problem, variants: Sequence[str] | None = None) -> list[Prediction]:
        """Predicted time and memory of a problem, for the variants that the run measured unless others are named."""
        return [self._predict(problem, name) for name in variants or self.variants]

    def _predict(self, asked: Problem, name: str) -> Prediction:
        from attnprof.variants.catalog import find

        variant = find(name)
        problem = variant.problem_for(asked)
        bare = Prediction(variant=name, device=self.device, problem=problem, useful_flops=problem.useful_flops,
                          compulsory_bytes=problem.compulsory_bytes, input_bytes=input_bytes(problem))  # fmt: skip
        refusal = variant.refuse(asked)
        if refusal or variant.cost is None:
            return msgspec.structs.replace(bare, reason=refusal or f"variant {name!r} states no cost")
        cost = variant.cost(problem)
        bare = msgspec.structs.replace(
            bare, useful_flops=cost.useful_flops, executed_flops=cost.executed_flops, exp_ops=cost.exp_ops,
            logical_bytes=cost.logical.total_bytes, output_bytes=cost.output_bytes,
            workspace_bytes=cost.workspace_bytes, library_workspace_bytes=0,
            peak_bytes=input_bytes(problem) + cost.peak_bytes,
        )  # fmt: skip
        if name not in self.variants:
            return msgspec.structs.replace(
                bare, reason=f"the run has no row of {name}: measure it there first"
            )
        return self._timed(bare, _work(name, problem, cost))

    def _timed(self, bare: Prediction, work: _Work) -> Prediction:
        parts = self._parts(self._point, work)
        seconds = sum(parts.values())
        slope = self._slopes([work])[0]
        spread = float(np.exp(_NORMAL_80 * np.sqrt(self._noise**2 + slope @ self._covariance @ slope)))
        return msgspec.structs.replace(
            bare, time_s=seconds, low_s=seconds / spread, high_s=seconds * spread, resources_s=parts,
            binding=max(parts, key=lambda key: parts[key]), assumptions=(self.basis,),
        )  # fmt: skip

    def _values(self, point: Floats, variant: str) -> Floats:
        """Logarithms of the shared names' values for one variant."""
        own = len(_SHARED) + len(_OWN) * self.variants.index(variant)
        values = point[: len(_SHARED)].copy()
        for offset, name in enumerate(_OWN):
            values[list(_SHARED).index(name)] += point[own + offset]
        return values

    def _parts(self, point: Floats, work: _Work) -> dict[str, float]:
        value = dict(zip(_SHARED, np.exp(self._values(point, work.variant)), strict=True))
        beyond = (work.live_bytes / (USABLE_SHARE * self.llc_bytes)) ** _SHARPNESS
        outside = beyond / (1 + beyond)
        per_byte = outside / value["memory_bytes_per_s"] + (1 - outside) / value["cache_bytes_per_s"]
        parts = {"matmul": work.flops / value["flops_per_s"], "softmax": work.pairs * value["pair_s"],
                 "memory": work.bytes * per_byte, "overhead": value["overhead_s"]}  # fmt: skip
        return {name: float(seconds) for name, seconds in parts.items()}

    def _log_s(self, point: Floats, works: Sequence[_Work]) -> Floats:
        return np.log([sum(self._parts(point, work).values()) for work in works])

    def _slopes(self, works: Sequence[_Work]) -> Floats:
        base = self._log_s(self._point, works)
        moved = [self._log_s(self._point + _NUDGE * unit, works) for unit in np.eye(len(self._point))]
        return np.array([(other - base) / _NUDGE for other in moved]).T

    def fit(self, works: Sequence[_Work], log_s: Floats) -> None:
        """Move the constants towards measured rows. Units: log of seconds."""
        noise = _LEAST_NOISE
        for _ in range(_STEPS):
            residual = log_s - self._log_s(self._point, works)
            noise = float(np.clip(1.48 * np.median(np.abs(residual)), _LEAST_NOISE, _MOST_NOISE))
            weights = np.minimum(1, _TAIL * noise / np.maximum(np.abs(residual), 1e-9)) / noise**2
            slopes = self._slopes(works)
            normal = slopes.T @ (slopes * weights[:, None]) + np.diag(self._precision)
            pull = slopes.T @ (weights * residual) - self._precision * (self._point - self._start)
            self._point = self._point + np.clip(np.linalg.solve(normal, pull), -_LONGEST_STEP, _LONGEST_STEP)
        self._noise, self._covariance = noise, np.asarray(np.linalg.inv(normal), dtype=np.float64)


def calibrate_directory(directory: Path | str) -> LocalModel:
    """Fit a device's constants from a run directory.

    Raises: StoreError without a run; InvalidInput when fewer than six rows of known cost were measured.
    """
    from attnprof.store.runs import load_run

    run = load_run(directory)
    return calibrate_records(run.records, run.manifest)


def calibrate_records(records: Sequence[Record], manifest: Manifest | None) -> LocalModel:
    """Fit a device's constants from measured rows. Raises: InvalidInput when there are too few."""
    known = [(record, _work(record.variant, record.problem, record.cost)) for record in records
             if record.measured and record.cost and record.problem.total_pairs]  # fmt: skip
    if len(known) < LEAST_ROWS:
        raise InvalidInput(
            f"{len(known)} measured rows with a known cost are too few to calibrate: measure at least {LEAST_ROWS}, "
            "better 20, such as `attnprof run --variants naive,sdpa_default,sdpa_math --seq-lens 64:1024:x2`"
        )
    seconds = np.array([median(record.measured.samples_s) for record, _ in known if record.measured])
    works = [work for _, work in known]
    identity = manifest.identity if manifest else None
    llc = max(identity.caches_bytes.values(), default=0) if identity else 0
    model = LocalModel(
        identity.device_name if identity else "the run's device",
        llc or _USUAL_LLC_BYTES,
        [work.variant for work in works],
        _usual(identity.threads if identity else 1),
        f"calibrated on {len(works)} rows",
    )
    model.fit(works, np.log(seconds))
    return model


def model_of_ceilings(ceilings: Ceilings, dtype: DType, variants: Sequence[str] | None = None) -> LocalModel:
    """This device by its measured ceilings, for one element type, with no kernel measured.

    Raises: InvalidInput when the ceilings lack the type's matmul or exponential rate, or the bandwidths.
    """
    flops, exp = ceilings.flops.get(dtype), ceilings.exp.get(dtype)
    levels = [max(rate.best for rate in kernels.values()) for kernels in ceilings.bandwidth.values()]
    if flops is None or exp is None or len(levels) < LEAST_LEVELS:
        lacks = "matmul rate" if flops is None else "exponential rate" if exp is None else "bandwidths"
        raise InvalidInput(f"the ceilings of {ceilings.identity.device_name} have no {lacks} for {dtype}")
    shared = {
        "overhead_s": (_usual(1)["overhead_s"][0], 1.0),
        "flops_per_s": (flops.best * _MATMUL_SHARE, _CEILING_SPREAD),
        "pair_s": (_OPERATIONS_PER_PAIR / exp.best, 2 * _CEILING_SPREAD),
        "cache_bytes_per_s": (levels[-2], _CEILING_SPREAD),
        "memory_bytes_per_s": (levels[-1], _CEILING_SPREAD),
    }
    llc = max(ceilings.capacities_bytes.values(), default=_USUAL_LLC_BYTES)
    names = variants or CEILING_VARIANTS
    return LocalModel(ceilings.identity.device_name, llc, names, shared, "from this device's ceilings alone")


def _work(name: str, problem: Problem, cost: Cost) -> _Work:
    live = input_bytes(problem) + cost.peak_bytes
    return _Work(variant=name, flops=float(cost.executed_flops), pairs=float(cost.exp_ops),
                 bytes=float(cost.logical.total_bytes), live_bytes=float(live))  # fmt: skip


def _usual(threads: int) -> Shared:
    """What a core gives, before anything is measured."""
    speed = {name: threads if name in _RATES else 1 / threads for name in _SHARED} | {"overhead_s": 1.0}
    return {name: (value * speed[name], spread) for name, (value, spread) in _SHARED.items()}


def _prior(variants: Sequence[str], shared: Shared) -> tuple[Floats, Floats]:
    """Start and precision of all logarithms: the shared values, then each variant's own deviations."""
    start = [float(np.log(shared[name][0])) for name in _SHARED]
    spreads = [shared[name][1] for name in _SHARED] + list(_OWN.values()) * len(variants)
    return np.array(start + [0.0] * len(_OWN) * len(variants)), 1 / np.array(spreads) ** 2
