"""The CPU rules of `attnprof explain` against PyTorch's dispatcher on many random calls, and the time of an answer.

python -m benchmarks.explain_agreement [--calls 5000] [--seed 1] [--write docs/results/explain_agreement.md]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from statistics import median

import torch
from tests.explain.random_calls import random_calls

from attnprof.core.mask import Causal, Window
from attnprof.core.problem import Problem
from attnprof.explain import Explanation, explain

DEVICES = ("T4", "V100", "A100", "H100", "RTX 2070", "MI300X")
CASES = {
    "float16": {},
    "bfloat16": {"dtype": "bfloat16"},
    "float32": {"dtype": "float32"},
    "head dim 96": {"head_dim": 96},
    "head dim 256": {"head_dim": 256},
    "head dim 512": {"head_dim": 512},
    "mask tensor (window)": {"mask": Window(left=127, right=0)},
    "GQA 8/2": {"kv_heads": 2},
    "dropout 0.1": {"dropout": 0.1},
    "forward and backward": {"direction": "fwd_bwd"},
    "causal, q_len 1 of 1024": {"q_len": 1, "kv_len": 1024, "mask": Causal()},
}


def agreement(calls: int, seed: int) -> list[str]:
    """Counts of picks and of disagreements, and the rules that were met."""
    picks: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    wrong: list[str] = []
    for call in random_calls(calls, seed):
        e = explain(call)
        picks[f"{e.dispatched} picked" + ("" if e.chosen else ", then raises or is refused")] += 1
        rules.update({str(r.rule) for r in e.backend("flash").rejections})
        wrong += [f"{e.text}: {line}" for line in e.disagreements]
    lines = [
        f"{calls:,} random calls (seed {seed}), PyTorch {torch.__version__}: {len(wrong)} disagreements.",
        "",
    ]
    lines += ["| outcome | calls |", "|---|---|", *(f"| {name} | {n:,} |" for name, n in picks.most_common())]
    lines += ["", "| rule that rejects flash | calls |", "|---|---|"]
    lines += [f"| {name} | {n:,} |" for name, n in rules.most_common()]
    return lines + [f"- {line}" for line in wrong]


def answer_times() -> str:
    """Median and worst time of one answer after torch is imported."""
    problem = Problem(q_heads=8, q_len=1024, dtype="float16", mask=Causal())
    samples = []
    for device in ("cpu", *DEVICES):
        for _ in range(5):
            begun = time.perf_counter()
            str(explain(problem, device))
            samples.append(time.perf_counter() - begun)
    return (
        f"One answer: median {median(samples) * 1e3:.1f} ms, first and slowest {max(samples) * 1e3:.0f} ms."
    )


def device_table() -> list[str]:
    """Chosen backend first, then the others that take the call."""
    lines = [f"| call | {' | '.join(DEVICES)} |", f"|---|{'---|' * len(DEVICES)}"]
    for name, changes in CASES.items():
        problem = Problem(**{"q_heads": 8, "q_len": 1024, "dtype": "float16", **changes})
        cells = [_cell(explain(problem, device)) for device in DEVICES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _cell(e: Explanation) -> str:
    others = [name for name in e.runnable if name != e.chosen]
    return f"**{e.chosen}**" + (f", {', '.join(others)}" if others else "")


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    text = "\n".join(
        [
            "# Explain: rules against the dispatcher", "",
            f"Made by `python -m benchmarks.explain_agreement --calls {args.calls} --seed {args.seed}`.", "",
            "## On the CPU", "", *agreement(args.calls, args.seed), "", answer_times(), "",
            "## By device, from the rules", "",
            "(B, H, N, d) = (1, 8, 1024, 64) in float16 unless said; the chosen backend in bold.", "", *device_table(),
        ]
    )  # fmt: skip
    if args.write:
        args.write.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
