"""Share of a sweep's wall time that is spent outside the kernels that it measures.

    python benchmarks/sweep_overhead.py RUN_DIR

Kernel time is every call of a measured kernel: samples, warm-up, the first call, the call whose memory is read.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from statistics import median

from attnprof.store.runs import load_run

RESULT = Path(__file__).parent.parent / "docs" / "results" / "sweep_overhead.md"


def main(directory: str) -> None:
    run = load_run(directory)
    begun, ended = (
        datetime.fromisoformat(t) for t in (run.manifest.weather.started_at, run.manifest.weather.finished_at)
    )
    wall_s = (ended - begun).total_seconds()
    kernel_s = 0.0
    for record in run.records:
        if (m := record.measured) is not None:
            kernel_s += (
                sum(m.samples_s) * m.calls_per_sample
                + m.first_call_s
                + (m.warmup_calls + 2) * median(m.samples_s)
            )
    text = f"{wall_s:.0f} s of wall time, {kernel_s:.0f} s in kernels: {1 - kernel_s / wall_s:.0%} outside."
    print(text)
    RESULT.write_text(f"# Time of a sweep outside its kernels\n\n`attnprof run --out DIR`, then "
                      f"`python benchmarks/{Path(__file__).name} DIR`:\n\n{text}\n")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
