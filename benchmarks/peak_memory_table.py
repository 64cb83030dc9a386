"""Predicted against measured peak memory of one call, CPU: writes docs/results/peak_memory.md.

Run it from the checkout: python benchmarks/peak_memory_table.py
"""

from __future__ import annotations

import itertools
from pathlib import Path

from attnprof import Causal, Full, Problem, Window
from attnprof.bench.devices import open_device
from attnprof.bench.direction import directed
from attnprof.bench.inputs import make_inputs
from attnprof.core.units import MIB
from attnprof.core.variant import Setting
from attnprof.variants.catalog import find

OUT = Path(__file__).parent.parent / "docs" / "results" / "peak_memory.md"
VARIANTS = ("naive", "sdpa_math", "sdpa_flash", "gqa_4kv", "gqa_native")
AXES = (("float32", "bfloat16"), (Full(), Causal(), Window(63, 0)), ("fwd", "bwd", "fwd_bwd"))


def measured_bytes(name: str, problem: Problem) -> int:
    """Allocator peak of one warm call above its inputs."""
    variant, setting = find(name), Setting(device="cpu")
    inputs = make_inputs(problem, "cpu", 0)
    with variant.entered(setting):
        call = directed(variant.prepare(problem, setting), inputs, problem.direction)
        call()
        _, memory = open_device("cpu").peak_bytes(call)
    return int(memory.peak_bytes)


def row(name: str, asked: Problem) -> tuple[str, float]:
    """One line of the table, and its relative error."""
    variant = find(name)
    problem = variant.problem_for(asked)
    assert variant.cost is not None
    predicted, measured = variant.cost(problem).peak_bytes, measured_bytes(name, problem)
    error = predicted / measured - 1
    cells = (
        name,
        problem.dtype,
        problem.mask,
        problem.direction,
        f"{measured / MIB:.3f}",
        f"{predicted / MIB:.3f}",
    )
    return "| " + " | ".join(map(str, cells)) + f" | {error:+.2%} |", error


def main() -> None:
    """Measure all and write the table."""
    lines, errors = [], []
    for name, (dtype, mask, direction) in itertools.product(VARIANTS, itertools.product(*AXES)):
        problem = Problem(q_heads=8, q_len=512, head_dim=64, dtype=dtype, mask=mask, direction=direction)
        line, error = row(name, problem)
        lines.append(line)
        errors.append(abs(error))
    within = sum(error < 0.001 for error in errors)
    head = [
        "# Peak memory: predicted and measured",
        "",
        "8 heads (2 KV heads for gqa), N = 512, d = 64, CPU, MiB above the inputs.",
        "Made by `python benchmarks/peak_memory_table.py`.",
        f"{within} of {len(errors)} within 0.1%, worst {max(errors):.1%}: scratch of the 16-bit matmul library, which",
        "depends on the CPU, is not in the model.",
        "",
        "| variant | dtype | mask | direction | measured | predicted | error |",
        "|---|---|---|---|---:|---:|---:|",
    ]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    print("\n".join(head[2:6]))


if __name__ == "__main__":
    main()
