"""Conventions of published tables: units, dtypes, passes, and how sources count FLOPs and bytes."""

from __future__ import annotations

import re

from attnprof.core.problem import Direction
from attnprof.predict.cases import Case

PASSES = {
    "fwd": Direction.FWD, "forward": Direction.FWD, "bwd": Direction.BWD, "backward": Direction.BWD,
    "fwd+bwd": Direction.FWD_BWD, "fwd_bwd": Direction.FWD_BWD, "fwdbwd": Direction.FWD_BWD,
}  # fmt: skip
UNITS = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "tflops": {
        "TFLOP/s": 1e12,
        "TOP/s": 1e12,
        "TFLOPS": 1e12,
        "TFLOPs/s": 1e12,
        "GFLOP/s": 1e9,
        "PFLOP/s": 1e15,
    },
    "hbm_bw": {"TB/s": 1e12, "GB/s": 1e9},
    "peak_mem": {"MB": 1e6, "MiB": 2.0**20, "GB": 1e9, "GiB": 2.0**30},
}
# Stored precision of Q K^T, of P V, bytes of q and of k and v.
DTYPES: dict[str, tuple[str, str, float, float]] = {
    "fp16": ("fp16", "fp16", 2, 2), "bf16": ("fp16", "fp16", 2, 2), "fp16/bf16": ("fp16", "fp16", 2, 2),
    "fp32": ("fp32", "fp32", 4, 4), "fp8": ("fp8", "fp8", 1, 1), "fp8_e4m3": ("fp8", "fp8", 1, 1),
    "mxfp8": ("mxfp8", "mxfp8", 1, 1), "int8/fp16": ("int8", "fp16acc", 1, 1.5), "int8/fp8": ("int8", "fp8", 1, 1),
    "int4/fp8": ("int4", "fp8", 1, 1), "fp4": ("fp4", "fp4", 1, 0.5), "bf16 q, fp8 kv": ("fp16", "fp16", 2, 1),
    "half": ("fp16", "fp16", 2, 2), "float16": ("fp16", "fp16", 2, 2), "float8_e4m3fn": ("fp8", "fp8", 1, 1),
    "bfloat16": ("fp16", "fp16", 2, 2), "float32": ("fp32", "fp32", 4, 4),
}  # fmt: skip


def conventional_flops(case: Case) -> float:
    """FLOPs as sources count them: a square causal mask is exactly half, the backward 5 of the forward's 2 matmuls."""
    square = case.causal and not case.windowed and case.q_len == case.kv_len
    pairs = case.q_len * case.kv_len / 2 if square else case.pairs
    forward = case.qk_dim + case.v_dim
    backward = 3 * case.qk_dim + 2 * case.v_dim
    terms = {Direction.FWD: forward, Direction.BWD: backward, Direction.FWD_BWD: forward + backward}
    return 2.0 * case.batch * case.q_heads * pairs * terms[case.direction]


def stored_bytes(case: Case) -> float:
    """q, k, v and o in 16 bits or the stated storage, each once: what published bandwidths divide by."""
    dims = case.qk_dim + case.v_dim
    q_and_o = case.batch * case.q_heads * case.q_len * dims * case.q_element_bytes
    heads_and_dims = case.qk_dim if case.latent else case.kv_heads * dims
    return float(q_and_o + case.batch * case.kv_len * heads_and_dims * case.kv_element_bytes)


def variation(note: str) -> str:
    """What a note says about the kernel rather than the shape."""
    kept = re.sub(r"model=[^;]*;?|head_dim_v=\d+;?|bar label.*?defaults;?|batch=.*?script|\s+", " ", note)
    return re.sub(r"\s+", " ", kept).strip(" ;")
