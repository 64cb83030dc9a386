"""Time of the report on a run of 10,000 rows, and of its page in Chromium.

Run: python benchmarks/report_10k.py [ROWS] > docs/results/report_10k.md; needs Chromium and chromedriver for the
page's figures.
The rows are synthetic, with the shape of a real sweep; they say nothing about any kernel.
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from attnprof.core.mask import Causal, Full
from attnprof.core.problem import Problem
from attnprof.core.record import Accuracy, Measured, Memory, Record, Verdict
from attnprof.core.schedules.eager import naive_cost
from attnprof.store.runs import RunWriter

VARIANTS = ("naive", "sdpa_default", "sdpa_flash", "sdpa_math", "sdpa_memeff", "flex", "flash_tiled", "mine")
LENGTHS = tuple(2**i for i in range(6, 15))
BATCHES = (1, 2, 4, 8, 16, 32, 64)
HEADS = (8, 12, 16, 32, 64)
DTYPES = ("float32", "bfloat16")
MASKS = (Causal(), Full())


def record(variant: str, problem: Problem, chance: random.Random) -> Record:
    """One synthetic row of ten samples."""
    middle = 1e-6 + problem.useful_flops / 1e12 * (1 + VARIANTS.index(variant) / 3)
    samples = tuple(middle * (1 + 0.02 * chance.random()) for _ in range(10))
    done = Measured(
        samples_s=samples, rounds=tuple(range(10)), calls_per_sample=1, warmup_calls=1, first_call_s=middle,
        prepare_s=0.0, floor_s=1e-8, stopped="interval", backend=variant,
        memory=Memory(peak_bytes=problem.score_bytes, output_bytes=problem.o_bytes, method="synthetic"),
        accuracy=Accuracy(verdict=Verdict.PASS, max_abs_error=1e-7 * (1 + chance.random()), floor=3e-8),
    )  # fmt: skip
    return Record(
        variant=variant, asked=problem, problem=problem, device="cpu", outcome=done, cost=naive_cost(problem)
    )


def write_run(directory: Path, count: int) -> None:
    """A run directory of `count` rows."""
    chance = random.Random(0)
    axes = itertools.product(MASKS, DTYPES, HEADS, BATCHES, LENGTHS, VARIANTS)
    with RunWriter(directory) as writer:
        for mask, dtype, heads, batch, length, variant in itertools.islice(axes, count):
            problem = Problem(batch=batch, q_heads=heads, q_len=length, head_dim=64, dtype=dtype, mask=mask)
            writer.append(record(variant, problem, chance))


def report(directory: Path) -> tuple[float, float]:
    """Seconds of `attnprof report` in a fresh process: elapsed, and of processor time."""
    import subprocess

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    command = [sys.executable, "-m", "attnprof", "report", str(directory)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    elapsed = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def opening(page: Path) -> dict[str, float] | None:
    """Seconds until the page's table can be used, and until every chart is drawn; None without Chromium."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        return None
    from selenium import webdriver

    options: Any = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in ("--headless", "--no-sandbox", "--disable-gpu"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    try:
        begun = time.perf_counter()
        browser.get(page.as_uri())
        loaded = time.perf_counter() - begun
        while browser.execute_script("return document.body.dataset.ready") != "yes":
            time.sleep(0.02)
        return {"loaded_s": loaded, "charts_s": time.perf_counter() - begun}
    finally:
        browser.quit()


def main() -> None:
    """Print the figures as a table."""
    busy = os.getloadavg()[0]
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "run"
        write_run(directory, count)
        took, processor = report(directory)
        page = directory / "report.html"
        times = opening(page)
        print(
            "# The report on 10,000 rows\n\nMade by `python benchmarks/report_10k.py > docs/results/report_10k.md`."
        )
        print(
            f"One-minute load when it began: {busy:.1f} on {os.cpu_count()} cores.\n\n| figure | value |\n|---|---:|"
        )
        print(f"| rows | {count} |\n| report command (s) | {took:.1f} |")
        print(f"| report command, processor time (s) | {processor:.1f} |")
        print(f"| page (MB) | {page.stat().st_size / 1e6:.2f} |")
        for name, text in (
            ("loaded_s", "page loaded, table usable (s)"),
            ("charts_s", "all charts drawn (s)"),
        ):
            print(f"| {text} | {'n/a (no Chromium)' if times is None else f'{times[name]:.2f}'} |")


if __name__ == "__main__":
    main()
