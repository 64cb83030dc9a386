"""Our count for FlashAttention's figure 2 (left): A100, fp16, batch 64, 16 heads, length 1024, d 64, both passes.

Run: python benchmarks/figure2.py
"""

from __future__ import annotations

from attnprof.core.dtypes import DType
from attnprof.core.mask import Full, Lengths
from attnprof.core.problem import Direction, Problem
from attnprof.core.schedules.eager import naive_cost
from attnprof.core.schedules.flash import fa1_cost

BATCH, LENGTH = 64, 1024
FIGURE = Problem(batch=BATCH, q_heads=16, q_len=LENGTH, head_dim=64, dtype=DType.FLOAT16, mask=Full(),
                 direction=Direction.FWD_BWD)  # fmt: skip


def counts() -> list[tuple[str, float, float]]:
    """Method, GB between the chip and DRAM, GFLOP."""
    padded = FIGURE.replace(mask=Lengths(q_lens=(LENGTH,) * BATCH, kv_lens=(LENGTH,) * BATCH))
    costs = [
        ("standard, scale inside the matmul (Algorithms 0 and 3)", naive_cost(FIGURE, scale_pass=False)),
        ("standard, scale as an operator", naive_cost(FIGURE)),
        ("standard, scale and key-padding mask as operators", naive_cost(padded)),
    ]
    for cols in (128, 256, 384, 512):
        costs.append((f"FlashAttention-1, {cols} keys a tile", fa1_cost(FIGURE, rows=64, cols=cols)))
    return [(name, cost.logical.total_bytes / 1e9, cost.useful_flops / 1e9) for name, cost in costs]


if __name__ == "__main__":
    print("| method | GB | GFLOP |\n|---|--:|--:|")
    for name, gigabytes, gflop in counts():
        print(f"| {name} | {gigabytes:.1f} | {gflop:.1f} |")
