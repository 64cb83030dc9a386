"""Calibrate a device on one run and compare its predictions with other runs of the same device.

Run: python benchmarks/calibrate_cpu.py RUN_TO_FIT OTHER_RUN [OTHER_RUN ...]
The rows to fit: attnprof run --variants V --seq-lens 64:1024:x2 --heads 4 --out fit
The others: attnprof run --variants V --seq-lens 2048,4096 --heads 4 --out long, and
attnprof run --variants V --seq-lens 256,1024 --heads 2,12 --head-dim 32,128 --out shapes,
with V = naive,sdpa_default,sdpa_math,flash_tiled.
"""

from __future__ import annotations

import sys
from statistics import median

from attnprof.predict.local import calibrate_directory
from attnprof.store.runs import load_run


def main(fitted: str, others: list[str]) -> None:
    """Print one row per measured case and the median error of each run."""
    model = calibrate_directory(fitted)
    print(f"{model.device}: {model.rows} rows fitted")
    for name, constants in model.constants().items():
        print(f"  {name}: " + ", ".join(f"{key}={value:.3g}" for key, value in constants.items()))
    for directory in [fitted, *others]:
        errors = []
        print(
            f"\n{directory}\n| variant | problem | measured us | predicted us | error |\n|---|---|--:|--:|--:|"
        )
        for record in load_run(directory).records:
            predicted = model.predict(record.asked, [record.variant])[0].time_s
            if record.measured is None or predicted is None:
                continue
            seconds = median(record.measured.samples_s)
            errors.append(abs(predicted / seconds - 1))
            print(f"| {record.variant} | {record.problem} | {seconds * 1e6:.0f} | {predicted * 1e6:.0f} | "
                  f"{predicted / seconds - 1:+.0%} |")  # fmt: skip
        print(f"median absolute error {median(errors):.1%} over {len(errors)} rows")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
