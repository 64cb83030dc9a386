"""triton_flash forward under the interpreter: output and LSE against float64 attention."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from tests.variants import reference

from attnprof.core.mask import Causal, Full, Lengths, Window
from attnprof.core.problem import Problem
from attnprof.core.variant import Setting
from attnprof.kernels.flash_config import Config
from attnprof.variants.triton_flash import TritonFlash, triton_flash

SIZES = {
    "square": {"q_len": 33, "head_dim": 16},
    "short_q": {"batch": 2, "q_len": 5, "kv_len": 35, "head_dim": 20},
    "long_q": {"q_len": 35, "kv_len": 9, "head_dim": 32},
    "gqa": {"q_heads": 4, "kv_heads": 2, "q_len": 18, "head_dim": 8},
    "mqa": {"q_heads": 3, "kv_heads": 1, "q_len": 16, "kv_len": 32, "head_dim": 16},
    "decode": {"batch": 2, "q_heads": 2, "kv_heads": 1, "q_len": 1, "kv_len": 50, "head_dim": 64},
    "dims": {"q_len": 19, "kv_len": 17, "qk_dim": 48, "v_dim": 80},
    "wide": {"q_len": 17, "head_dim": 256},
    "empty_keys": {"q_len": 17, "kv_len": 0, "head_dim": 16},
}
MASKS = {
    "full": Full(),
    "causal": Causal(),
    "bottom_right": Causal("bottom_right"),
    "window": Window(4, 0),
    "window_both": Window(3, 2, "bottom_right"),
    "window_future": Window(-1, 1),
}
DTYPES = ("float32", "float16", "bfloat16")
RAGGED = {"batch": 3, "q_heads": 2, "kv_heads": 1, "q_len": 20, "kv_len": 37, "head_dim": 16}
LENGTHS = {
    "plain": Lengths((20, 7, 0), (37, 1, 20)),
    "causal": Lengths((20, 7, 13), (20, 0, 37), Causal()),
    "bottom_right": Lengths((20, 7, 13), (5, 36, 13), Causal("bottom_right")),
}
PROBLEMS = {
    f"{size}-{mask}-{dtype}": Problem(**SIZES[size], mask=MASKS[mask], dtype=dtype)
    for size, mask, dtype in product(SIZES, MASKS, DTYPES)
} | {
    f"ragged-{name}-{dtype}": Problem(**RAGGED, mask=mask, dtype=dtype)
    for (name, mask), dtype in product(LENGTHS.items(), DTYPES)
}
TILES = Config(m=16, n=16, backward_m=16, backward_n=16)


def kernel_of(problem, config=TILES):
    prepared = triton_flash.prepare(problem, Setting())
    return TritonFlash(problem=problem, config=config, bands=prepared.bands)


def true_lse(problem, q, k):
    keep = reference.visible(problem)
    scores = q.double() @ k.double().repeat_interleave(problem.group, dim=1).mT * problem.effective_scale
    scores = scores.masked_fill(~keep, -math.inf)
    return scores.logsumexp(-1) if problem.kv_len else torch.full(scores.shape[:3], -math.inf).double()


@pytest.mark.parametrize("case", list(PROBLEMS))
def test_output_and_lse(case):
    problem = PROBLEMS[case]
    q, k, v = reference.inputs(problem, strided=len(case) % 2 == 1)
    output, lse = kernel_of(problem).with_lse(q, k, v)
    tolerance = 8 * problem.dtype.unit_roundoff * max(v.abs().max().item() if v.numel() else 0, 1)
    assert output.dtype == q.dtype
    assert torch.allclose(output.double(), reference.attention(problem, q, k, v), rtol=0, atol=tolerance)
    assert torch.allclose(lse.double(), true_lse(problem, q, k), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("tiles", [(16, 32), (32, 16), (64, 16), (16, 64)])
def test_result_does_not_depend_on_tiles(tiles):
    problem = Problem(q_heads=2, q_len=70, kv_len=90, head_dim=16, mask=Window(20, 7, "bottom_right"))
    q, k, v = reference.inputs(problem)
    output = kernel_of(problem, Config(m=tiles[0], n=tiles[1]))(q, k, v)
    assert torch.allclose(output.double(), reference.attention(problem, q, k, v), rtol=0, atol=1e-6)


def test_transposed_last_dim_is_taken():
    problem = Problem(q_len=18, head_dim=16)
    q, k, v = (x.mT.contiguous().mT for x in reference.inputs(problem))
    assert torch.allclose(
        kernel_of(problem)(q, k, v).double(), reference.attention(problem, q, k, v), atol=1e-6
    )
