"""Calibration checked in processor time on one thread, which other load on the machine does not lengthen.

Fitted: lengths 64 to 1024, 4 heads of 64. Predicted: lengths 2048 and 4096, other head counts and head dims.
Run: python benchmarks/calibrate_processor_time.py > docs/results/calibration.md
"""

from __future__ import annotations

import time
from statistics import median, quantiles

import torch

from attnprof.bench.devices import open_device
from attnprof.core.mask import Causal
from attnprof.core.problem import Problem
from attnprof.core.record import Manifest, Measured, Record, Weather
from attnprof.core.variant import Setting
from attnprof.predict.local import LocalModel, calibrate_records
from attnprof.variants.catalog import find

VARIANTS = ("naive", "sdpa_default", "flash_tiled", "fa1_tiled")
FITTED = tuple((4, length, 64) for length in (64, 128, 256, 512, 1024))
OTHERS = (
    (4, 2048, 64), (4, 4096, 64), (2, 1024, 64), (12, 1024, 64), (12, 256, 64), (4, 512, 32), (4, 512, 128),
    (4, 1024, 128), (4, 1024, 32), (2, 256, 128),
)  # fmt: skip
SECONDS_A_CASE, LEAST_SAMPLES, MOST_SAMPLES, SAMPLE_S = 0.25, 3, 200, 2e-3


def main() -> None:
    """Measure, fit, predict, print."""
    torch.set_num_threads(1)
    records = [measured(shape, name) for shape in FITTED for name in VARIANTS]
    model = calibrate_records(records, manifest())
    print(
        f"# Calibration on {len(records)} rows, in processor time\n\n{model.device}, one thread, fp32, causal.\n"
    )
    print(
        "| variant | heads | length | head dim | measured us | predicted us | error |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    errors = [shown(model, measured(shape, name)) for shape in OTHERS for name in VARIANTS]
    p90 = quantiles(errors, n=10)[-1]
    print(f"\nMedian absolute error {median(errors):.1%}, 90th percentile {p90:.1%}, {len(errors)} rows.")


def manifest() -> Manifest:
    """This machine, for the size of its caches."""
    identity = open_device("cpu").identity()
    return Manifest(attnprof_version="", command=(), sweep={}, seed=0, identity=identity, weather=Weather())


def measured(shape: tuple[int, int, int], name: str) -> Record:
    """Best processor time of a call."""
    heads, length, dim = shape
    problem = Problem(q_heads=heads, q_len=length, head_dim=dim, mask=Causal())
    variant = find(name)
    kernel = variant.prepare(problem, Setting())
    q, k, v = (torch.randn(1, heads, length, dim) for _ in range(3))
    kernel(q, k, v)
    kernel(q, k, v)
    samples: list[float] = []
    began = time.monotonic()
    while len(samples) < LEAST_SAMPLES or (
        time.monotonic() - began < SECONDS_A_CASE and len(samples) < MOST_SAMPLES
    ):
        calls = max(1, int(SAMPLE_S / samples[0])) if samples else 1
        start = time.process_time()
        for _ in range(calls):
            kernel(q, k, v)
        samples.append((time.process_time() - start) / calls)
    outcome = Measured(
        samples_s=(min(samples),), rounds=(0,), calls_per_sample=1, warmup_calls=2, first_call_s=0.0, prepare_s=0.0,
        floor_s=0.0, stopped="budget",
    )  # fmt: skip
    cost = variant.cost(problem) if variant.cost else None
    return Record(variant=name, asked=problem, problem=problem, device="cpu", outcome=outcome, cost=cost)


def shown(model: LocalModel, record: Record) -> float:
    """Print a row; its absolute relative error."""
    predicted = model.predict(record.problem, [record.variant])[0].time_s or 0.0
    seconds = record.measured.samples_s[0] if record.measured else 0.0
    p, error = record.problem, predicted / seconds - 1
    print(f"| {record.variant} | {p.q_heads} | {p.q_len} | {p.qk_dim} | {seconds * 1e6:.0f} | {predicted * 1e6:.0f} "
          f"| {error:+.0%} |")  # fmt: skip
    return abs(error)


if __name__ == "__main__":
    main()
