"""FLOPs that tools count for one attention call, over the pairs that are really allowed: docs/accounting.md.

    python benchmarks/accounting_table.py [--write docs/accounting.md]

The other tools' figures are restated from their counting rules; attnprof's row and the exact pairs are computed here.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

from attnprof.core.mask import Causal, Window
from attnprof.core.problem import Problem

BR = "bottom_right"
PROBLEMS = {
    "4096² causal": Problem(q_len=4096, kv_len=4096, head_dim=128, mask=Causal(BR)),
    "1024 × 8192 causal": Problem(q_len=1024, kv_len=8192, head_dim=128, mask=Causal(BR)),
    "8192² causal, window 1024": Problem(q_len=8192, kv_len=8192, head_dim=128, mask=Window(1023, 0, BR)),
    "8192 × 1024 causal": Problem(q_len=8192, kv_len=1024, head_dim=128, mask=Causal(BR)),
}
# Counted pairs over exact pairs, as read from each tool's own counting code; None where it has no such case.
OTHERS: dict[str, tuple[float | None, ...]] = {
    "torch FlopCounterMode": (2.00, 1.07, 8.53, 15.98),
    "tritonbench": (1.00, 0.53, None, 7.99),
    "flash-attn bench_utils": (1.00, 1.00, 4.27, 7.99),
    "attention-gym, SDPA rows": (1.00, 0.54, 8.57, 8.02),
    "cudnn-frontend, bottom right": (1.00, 0.07, 1.00, 14.99),
    "xformers profiler": (1.00, 3.80, None, 1.00),
}
MARKS = ("<!-- table: begin -->", "<!-- table: end -->")


def dense_pairs(problem: Problem) -> int:
    """Pairs that a count without a mask takes (the rule of torch's counter)."""
    return problem.q_len * problem.kv_len


def counted_pairs(problem: Problem) -> Fraction:
    """Pairs that attnprof's useful FLOPs stand for."""
    return Fraction(
        problem.useful_flops, 2 * problem.batch * problem.q_heads * (problem.qk_dim + problem.v_dim)
    )


def brute_force_pairs(problem: Problem) -> int:
    """Allowed pairs counted row by row from the mask's definition, with no closed form."""
    shift = problem.kv_len - problem.q_len
    left = problem.mask.left if isinstance(problem.mask, Window) else problem.kv_len + problem.q_len
    total = 0
    for i in range(problem.q_len):
        first, last = max(0, i + shift - left), min(problem.kv_len - 1, i + shift)
        total += max(0, last - first + 1)
    return total


def rows() -> list[tuple[str, tuple[float | None, ...]]]:
    """Every tool's counted over exact pairs, attnprof last, computed."""
    exact = [brute_force_pairs(problem) for problem in PROBLEMS.values()]
    ours = (counted_pairs(problem) / pairs for problem, pairs in zip(PROBLEMS.values(), exact, strict=True))
    return [*OTHERS.items(), ("attnprof", tuple(float(ratio) for ratio in ours))]


def table() -> str:
    """Markdown: counted over exact, then the pairs themselves."""
    heads = list(PROBLEMS)
    lines = [f"| tool | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for name, values in rows():
        cells = " | ".join("n/a" if value is None else f"{value:.2f}" for value in values)
        lines.append(f"| {name} | {cells} |")
    exact = " | ".join(f"{problem.pairs:,}" for problem in PROBLEMS.values())
    dense = " | ".join(f"{dense_pairs(problem):,}" for problem in PROBLEMS.values())
    empty = " | ".join(f"{problem.empty_rows:,}" for problem in PROBLEMS.values())
    lines += [f"| *exact pairs per head* | {exact} |", f"| *all pairs per head* | {dense} |"]
    return "\n".join([*lines, f"| *empty rows per head* | {empty} |"])


def page_with_table(page: str) -> str:
    """The page with its table between the marks replaced."""
    before, rest = page.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    return f"{before}{MARKS[0]}\n{table()}\n{MARKS[1]}{after}"


def main() -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    page = parser.parse_args().write
    if page is None:
        print(table())
    else:
        page.write_text(page_with_table(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
