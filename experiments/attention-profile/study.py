"""What the study's scripts share: its sweeps, where its files are, and how they are read."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

from attnprof.core.stats import growth_exponent
from attnprof.report.load import Results, load

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PLOTS = HERE / "plots"
PUBLISHED = HERE / "data" / "rtx2070.csv"
CSV_FILES = {"v1": "attention_profile.csv", "v2": "attention_profile_v2.csv"}

V1_VARIANTS = (
    "naive", "sdpa_default", "sdpa_flash", "sdpa_math", "sdpa_memeff", "sliding_w128", "gqa_4kv",
)  # fmt: skip
V1_BATCH4_VARIANTS = ("naive", "sdpa_default", "gqa_4kv")
V2_VARIANTS = ("naive", "sdpa_default", "sdpa_math", "sdpa_memeff", "sliding_w128", "gqa_4kv")
LENGTHS = (64, 128, 256, 512, 1024, 2048)
V2_BATCHES = (1, 2, 4)
HEADS, KV_GROUP, HEAD_DIM = 12, 4, 64

# Enough rounds for an interval of the median; the budget keeps the whole study under six minutes on two cores.
SAMPLING = ("--min-rounds", "6", "--max-rounds", "60", "--budget-s", "1.0", "--precision", "0.03")


def run(name: str, variants: tuple[str, ...], batches: tuple[int, ...], *, first: bool, device: str) -> None:
    """Measure variants x lengths x batches into results/run-NAME; `first` begins it anew, else it is added to."""
    out = RESULTS / f"run-{name}"
    if first:
        shutil.rmtree(out, ignore_errors=True)
    options = {
        "--variants": variants, "--seq-lens": LENGTHS, "--batch": batches, "--heads": (HEADS,),
        "--head-dim": (HEAD_DIM,), "--device": (device,), "--out": (out.relative_to(HERE),),
    }  # fmt: skip
    words = [word for option, values in options.items() for word in (option, ",".join(map(str, values)))]
    command = [sys.executable, "-m", "attnprof", "run", *words, *SAMPLING, "--resume"]
    done = subprocess.run(
        command, check=False, cwd=HERE, stdout=subprocess.DEVNULL
    )  # progress goes to stderr
    if done.returncode not in (0, 1):  # 1: a case failed; its row says why
        raise SystemExit(done.returncode)


def results(name: str) -> Results:
    """The run behind results/attention_profile*.csv."""
    return load(RESULTS / f"run-{name}")


def write_csv(name: str) -> int:
    """Write a run as tidy CSV with attnprof's columns, one row a case; the number of rows."""
    from attnprof.report.export import write_results_csv

    records = results(name).records
    write_results_csv(records, RESULTS / CSV_FILES[name])
    return len(records)


def published() -> list[dict[str, str]]:
    """The RTX 2070 figures: variant, seq_len, metric (time_us, peak_mb, speedup_vs_naive), value, source, note."""
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def published_table(metric: str) -> dict[str, dict[int, float]]:
    """Published values of one metric by variant and length."""
    table: dict[str, dict[int, float]] = {}
    for row in published():
        if row["metric"] == metric:
            table.setdefault(row["variant"], {})[int(row["seq_len"])] = float(row["value"])
    return table


def exponent(points: dict[int, float]) -> float | None:
    """Exponent a of value ~ N^a over all lengths."""
    return growth_exponent(list(points), list(points.values()))
