"""A true window against the same window as a full masked matrix: time, peak memory, growth with the length.

    python -m benchmarks.window_ratio [THREADS]

Bars: W = 128, time ratio at least 8 at N = 4096 and 30 at N = 16384, time of the true window growing with an
exponent of at most 1.15. Exit code 1 when one is missed.
"""

from __future__ import annotations

import sys
from math import log

from benchmarks._measured import measured, peak_mib, time_s, use_threads, write

from attnprof.bench.sweep import Conditions
from attnprof.core.mask import Window
from attnprof.core.problem import Problem
from attnprof.core.record import Measured

LENGTHS = (2048, 4096, 8192, 16384)
WINDOW = 128
BARS = {4096: 8.0, 16384: 30.0}
MOST_GROWTH = 1.15
MASKED, TRUE, FLEX = "naive", "sliding_window_true", "flex"


def exponent(values: dict[int, float]) -> float:
    """Slope of a least-squares line through the points in logarithms."""
    points = [(log(n), log(value)) for n, value in values.items()]
    mean_x, mean_y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def main(arguments: list[str]) -> int:
    use_threads(arguments)
    conditions = Conditions(min_rounds=5, max_rounds=50, budget_s=3.0)
    rows: dict[int, dict[str, Measured]] = {}
    for n in LENGTHS:
        problem = Problem(q_len=n, head_dim=64, mask=Window(WINDOW - 1, 0))
        rows[n] = measured(problem, (MASKED, TRUE, FLEX), conditions)
    lines = [
        f"One head, head dim 64, float32, window of {WINDOW} tokens. Masked: `{MASKED}`, the full matrix of scores; "
        f"true: `{TRUE}`; flex: `{FLEX}`, its compilation apart.",
        "",
        "| N | masked ms | true ms | flex ms | masked / true | masked / flex | masked MiB | true MiB | flex MiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for n, row in rows.items():
        times = [time_s(row[name]) for name in (MASKED, TRUE, FLEX)]
        memory = " | ".join(f"{peak_mib(row[name]):.2f}" for name in (MASKED, TRUE, FLEX))
        cells = " | ".join(f"{t * 1e3:.3g}" for t in times)
        lines.append(f"| {n} | {cells} | {times[0] / times[1]:.1f} | {times[0] / times[2]:.1f} | {memory} |")
    verdicts = list(_verdicts(rows))
    write(
        "window_ratio",
        "True window against masked full matrix",
        [*lines, "", *(text for _, text in verdicts)],
    )
    return 0 if all(held for held, _ in verdicts) else 1


def _verdicts(rows: dict[int, dict[str, Measured]]):
    for n, least in BARS.items():
        ratio = time_s(rows[n][MASKED]) / time_s(rows[n][TRUE])
        yield (
            ratio >= least,
            f"* N = {n}: time ratio {ratio:.1f}, at least {least:g}: {_word(ratio >= least)}",
        )
    for name in (TRUE, FLEX):
        growth = exponent({n: time_s(row[name]) for n, row in rows.items()})
        held = growth <= MOST_GROWTH or name == FLEX
        bar = f", at most {MOST_GROWTH}: {_word(held)}" if name == TRUE else ""
        yield held, f"* time of {name} grows as N^{growth:.2f}{bar}"
    memory = {n: peak_mib(row[TRUE]) for n, row in rows.items()}
    growth = exponent(memory)
    yield (
        growth <= MOST_GROWTH,
        f"* peak memory of {TRUE} grows as N^{growth:.2f}: {_word(growth <= MOST_GROWTH)}",
    )


def _word(held: bool) -> str:
    return "held" if held else "MISSED"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
