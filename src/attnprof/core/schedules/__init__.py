"""Closed forms of what each method does: a `Cost` with its term tables, from a problem and tile sizes."""

from attnprof.core.schedules.blocks import chunked_cost, flex_cost
from attnprof.core.schedules.eager import math_cost, naive_cost
from attnprof.core.schedules.flash import decode_cost, fa1_cost, fa2_cost, split_kv_cost, true_window_cost
from attnprof.core.schedules.torch_cpu import torch_cpu_flash_cost

__all__ = [
    "chunked_cost", "decode_cost", "fa1_cost", "fa2_cost", "flex_cost", "math_cost", "naive_cost",
    "split_kv_cost", "torch_cpu_flash_cost", "true_window_cost",
]  # fmt: skip
