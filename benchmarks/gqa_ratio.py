"""Grouped heads without expansion against expanded K and V: time and peak memory, decoding and prefill.

python -m benchmarks.gqa_ratio [THREADS]
"""

from __future__ import annotations

import sys

from benchmarks._measured import measured, peak_mib, time_s, use_threads, write

from attnprof.bench.sweep import Conditions
from attnprof.core.mask import Causal
from attnprof.core.problem import Problem

HEADS = {"q_heads": 32, "kv_heads": 8, "head_dim": 128}
DECODE = {"q_len": 1, "kv_len": 8192}
CASES = {
    "decode, float32": Problem(**HEADS, **DECODE),
    "decode, bfloat16": Problem(**HEADS, **DECODE, dtype="bfloat16"),
    "decode, batch 4, bfloat16": Problem(**HEADS, **DECODE, batch=4, dtype="bfloat16"),
    "decode, 32 on 4, float32": Problem(**{**HEADS, "kv_heads": 4}, **DECODE),
    "prefill 1024, float32": Problem(**HEADS, q_len=1024, mask=Causal()),
}
EXPANDED, NATIVE, SPLIT, NAIVE = "gqa_4kv", "gqa_native", "split_kv", "naive"


def main(arguments: list[str]) -> None:
    use_threads(arguments)
    conditions = Conditions(min_rounds=7, max_rounds=60, budget_s=3.0)
    lines = [
        f"32 query heads on 8 KV heads unless said, head dim 128, kv 8192 when decoding. Expanded: `{EXPANDED}` "
        f"(repeat_interleave inside the call, then SDPA); native: `{NATIVE}` (enable_gqa); split: `{SPLIT}`; "
        "naive expands too.",
        "",
        "| case | expanded ms | native ms | split ms | naive ms | expanded / native | expanded / split "
        "| expanded MiB | native MiB | split MiB | memory expanded / native |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case, problem in CASES.items():
        names = (EXPANDED, NATIVE, NAIVE, *((SPLIT,) if problem.q_len == 1 else ()))
        rows = measured(problem, names, conditions)
        times = {name: time_s(row) for name, row in rows.items()}
        peaks = {name: peak_mib(row) for name, row in rows.items()}

        def cell(values, name, scale=1.0):
            return f"{values[name] * scale:.3g}" if name in values else "n/a (few queries only)"

        split_ratio = f"{times[EXPANDED] / times[SPLIT]:.2f}" if SPLIT in times else "n/a"
        cells = [
            case, *(cell(times, name, 1e3) for name in (EXPANDED, NATIVE, SPLIT, NAIVE)),
            f"{times[EXPANDED] / times[NATIVE]:.2f}", split_ratio,
            *(cell(peaks, name) for name in (EXPANDED, NATIVE, SPLIT)), f"{peaks[EXPANDED] / peaks[NATIVE]:.1f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    write("gqa_ratio", "GQA without expansion against expanded K and V", lines)


if __name__ == "__main__":
    main(sys.argv[1:])
