"""attnprof's sampling beside torch.utils.benchmark's blocked_autorange, on the same calls in one process.

    python benchmarks/against_blocked_autorange.py

Prints medians, intervals and the wall time that each needs until the interval of the median is within 2%.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import torch
from torch.utils.benchmark import Timer

from attnprof import Causal, Problem, variants
from attnprof.bench.devices import open_device
from attnprof.bench.direction import directed
from attnprof.bench.inputs import make_inputs
from attnprof.bench.sweep import Conditions
from attnprof.bench.timing import Series, calls_per_sample, measure_floor, sample_rounds, warm_up
from attnprof.core.stats import Interval, median_interval
from attnprof.core.variant import Setting

PRECISION = 0.02
RESULT = Path(__file__).parent.parent / "docs" / "results" / "against_blocked_autorange.md"
CASES = [("naive", 128), ("naive", 512), ("sdpa_default", 128), ("sdpa_default", 512), ("sdpa_default", 1024)]


def by_attnprof(call) -> tuple[Interval, float]:
    """Median with interval, and wall seconds from the first warm-up call on."""
    device = open_device("cpu")
    begun = time.perf_counter()
    warmed, call_s = warm_up(device, call)
    calls = calls_per_sample(call_s, measure_floor(device), "warm")
    series = {"it": Series(call=call, scope=nullcontext, calls_per_sample=calls, warmup_calls=warmed)}
    sample_rounds(device, series, series, Conditions(precision=PRECISION, max_rounds=20_000),
                  before=lambda _: None, failed=lambda *_: None, done=lambda _: None)  # fmt: skip
    return median_interval(series["it"].samples_s), time.perf_counter() - begun


def by_torch(call) -> tuple[Interval, float]:
    """The same until 2%: blocked_autorange's blocks are pooled until their median's interval is as narrow."""
    begun = time.perf_counter()
    timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    times: list[float] = []
    while time.perf_counter() - begun < 20.0:
        times += timer.blocked_autorange(min_run_time=0.2).times
        if len(times) >= 10 and median_interval(times).relative_width <= PRECISION:
            break
    return median_interval(times), time.perf_counter() - begun


def main() -> None:
    rows = ["| call | attnprof us | blocked_autorange us | intervals meet | attnprof s | blocked_autorange s |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    for name, length in CASES:
        problem = Problem(q_heads=12, q_len=length, head_dim=64, mask=Causal())
        kernel = variants()[name].prepare(problem, Setting())
        call = directed(kernel, make_inputs(problem, "cpu", 0), problem.direction)
        (ours, ours_s), (theirs, theirs_s) = by_attnprof(call), by_torch(call)
        meet = ours.low <= theirs.high and theirs.low <= ours.high
        cells = (
            f"{name} N={length}",
            _us(ours),
            _us(theirs),
            "yes" if meet else "no",
            f"{ours_s:.2f}",
            f"{theirs_s:.2f}",
        )
        rows.append("| " + " | ".join(cells) + " |")
    text = "\n".join(rows)
    print(text)
    RESULT.write_text(f"# Sampling beside `blocked_autorange`\n\n`python benchmarks/{Path(__file__).name}`; median "
                      f"[95% interval], wall seconds until the interval is within 2%.\n\n{text}\n")  # fmt: skip


def _us(interval: Interval) -> str:
    return f"{interval.value * 1e6:.1f} [{interval.low * 1e6:.1f}, {interval.high * 1e6:.1f}]"


if __name__ == "__main__":
    main()
