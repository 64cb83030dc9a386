"""Model bytes and FLOPs of triton_flash, and that its kernels compile for NVIDIA targets; no interpreter needed."""

from __future__ import annotations

import pytest

from attnprof.core.mask import Causal, Window
from attnprof.core.problem import Problem
from attnprof.kernels.flash_config import Config, band_rows, candidates, default_config
from attnprof.kernels.flash_cost import triton_flash_cost

CAUSAL = Problem(q_len=1024, head_dim=64, mask=Causal(), dtype="float16")


def test_executed_flops_count_whole_blocks():
    cost = triton_flash_cost(CAUSAL, Config(m=128, n=128))
    assert cost.executed_flops == 36 * 128 * 128 * 4 * 64
    assert cost.useful_flops == 524_800 * 4 * 64


def test_forward_bytes_are_fa2s_with_its_statistics():
    cost = triton_flash_cost(CAUSAL, Config(m=128, n=128))
    rows = 1024 * 64 * 2
    assert cost.logical.total_bytes == 2 * rows + 36 * 128 * 128 * 2 + 4 * 1024 + 16 * 8


def test_backward_executes_seven_matmuls():
    problem = Problem(q_len=256, head_dim=64, direction="bwd")
    cost = triton_flash_cost(problem, Config(m=64, n=64, backward_m=64, backward_n=64))
    assert cost.executed_flops == 7 * 2 * 256 * 256 * 64
    assert cost.backward_factor == 2.5


def test_window_bytes_grow_with_the_length_not_its_square():
    short, long = (
        triton_flash_cost(Problem(q_len=n, head_dim=64, mask=Window(127, 0))).logical.total_bytes
        for n in (4096, 8192)
    )
    assert long / short < 2.05


def test_no_workspace_of_the_size_of_the_scores():
    cost = triton_flash_cost(Problem(q_len=8192, head_dim=64, direction="fwd_bwd"))
    assert cost.workspace_bytes == 2 * 4 * 8192


def test_tiles_are_no_wider_than_the_problem():
    config = default_config(Problem(q_len=1, kv_len=20, head_dim=64, dtype="float16"))
    assert (config.m, config.n) == (16, 32)


@pytest.mark.parametrize("head_dim", [16, 80, 128, 256])
def test_candidates_differ(head_dim):
    tried = candidates(Problem(q_len=4096, head_dim=head_dim, dtype="bfloat16"))
    assert len(set(tried)) == len(tried) >= 6


def test_bands_carry_limits_as_integers():
    problem = Problem(batch=2, q_len=5, kv_len=9, mask=Window(3, -1, "bottom_right"))
    assert band_rows(problem) == ((5, 9, 1, 2**30),) * 2


def test_an_interpreted_row_says_so(monkeypatch):
    from attnprof.variants.triton_flash import triton_flash

    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert "set TRITON_INTERPRET=1" in triton_flash.unavailable("cpu")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert triton_flash.unavailable("cpu") is None
    assert "says nothing about the kernel" in triton_flash.remark("cpu")
    assert triton_flash.remark("cuda:0") is None


def _compiled(kernel, constants, capability):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler import compile as compile_kernel

    special = {
        "bands_ptr": "*i32",
        "lse_ptr": "*fp32",
        "delta_ptr": "*fp32",
        "grad_lse_ptr": "*fp32",
        "scale": "fp32",
    }

    def kind(name):
        return (
            "constexpr"
            if name in constants
            else special.get(name, "*fp16" if name.endswith("_ptr") else "i32")
        )

    names = kernel.arg_names
    source = ASTSource(
        fn=kernel,
        signature={name: kind(name) for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
    )
    return compile_kernel(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4})


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize(
    "name", ["forward_kernel", "delta_kernel", "key_gradient_kernel", "query_gradient_kernel"]
)
def test_kernels_compile_for_nvidia(name, capability, monkeypatch, tmp_path):
    from attnprof.kernels import flash_backward, flash_forward

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = getattr(flash_backward, name, None) or getattr(flash_forward, name)
    constants = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_QK": 64, "BLOCK_V": 64, "WIDEN": False}
    compiled = _compiled(kernel, {k: v for k, v in constants.items() if k in kernel.arg_names}, capability)
    assert "cubin" in compiled.asm
    assert compiled.metadata.shared <= 99 * 1024
