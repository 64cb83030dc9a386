"""Predicted beside measured time on this device: calibrated on one run, or by its ceilings alone.

Run: python benchmarks/calibrate_cpu.py RUN_TO_FIT OTHER_RUN [OTHER_RUN ...]
     python benchmarks/calibrate_cpu.py --ceilings RUN [RUN ...]        (after `attnprof ceilings`)
The rows to fit: attnprof run --variants V --seq-lens 64:1024:x2 --heads 4 --out fit
The others: attnprof run --variants V --seq-lens 2048,4096 --heads 4 --out long, and
attnprof run --variants V --seq-lens 256,1024 --heads 2,12 --head-dim 32,128 --out shapes,
with V = naive,sdpa_default,sdpa_math,flash_tiled.
"""

from __future__ import annotations

import sys
from statistics import median

from attnprof.bench.devices import open_device
from attnprof.core.problem import Problem
from attnprof.predict.api import Prediction
from attnprof.predict.local import LocalModel, calibrate_directory, model_of_ceilings
from attnprof.store.ceilings import ceilings_for
from attnprof.store.runs import load_run

CEILINGS = "--ceilings"


def main(arguments: list[str]) -> None:
    """Print one row per measured case and the median error of each run."""
    model = None if arguments[0] == CEILINGS else calibrate_directory(arguments[0])
    if model is not None:
        print(f"{model.device}: {model.basis}")
        for name, constants in model.constants().items():
            print(f"  {name}: " + ", ".join(f"{key}={value:.3g}" for key, value in constants.items()))
    for directory in arguments if model is not None else arguments[1:]:
        show(directory, model)


def show(directory: str, model: LocalModel | None) -> None:
    """One run's table."""
    errors = []
    print(f"\n{directory}\n")
    print("| variant | problem | measured us | predicted us | error | inside the interval |")
    print("|---|---|--:|--:|--:|---|")
    for record in load_run(directory).records:
        row = predict(model, record.asked, record.variant)
        if record.measured is None or row.time_s is None:
            continue
        seconds = median(record.measured.samples_s)
        error, inside = row.time_s / seconds - 1, row.low_s <= seconds <= row.high_s
        errors.append(abs(error))
        print(f"| {row.variant} | {row.problem} | {seconds * 1e6:.0f} | {row.time_s * 1e6:.0f} | {error:+.0%} | "
              f"{'yes' if inside else 'no'} |")  # fmt: skip
    print(
        f"\nmedian absolute error {median(errors):.1%} over {len(errors)} rows"
        if errors
        else "\nno measured row"
    )


def predict(model: LocalModel | None, problem: Problem, variant: str) -> Prediction:
    """By the calibrated model, or by this device's ceilings."""
    if model is None:
        ceilings = ceilings_for(open_device("cpu").identity())
        model = model_of_ceilings(ceilings, problem.dtype, [variant])
    return model.predict(problem, [variant])[0]


if __name__ == "__main__":
    main(sys.argv[1:])
