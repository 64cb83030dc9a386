"""The SDPA family: which backend is forced where, and what is refused on which device."""

from __future__ import annotations

import pytest
import torch
from tests.variants import reference

from attnprof.core.errors import InvalidProblem
from attnprof.core.mask import Causal, Dense, Window
from attnprof.core.problem import Problem
from attnprof.core.variant import Setting
from attnprof.variants.catalog import find

SQUARE = Problem(q_heads=4, q_len=8, head_dim=16)


def test_forced_math_runs_the_math_path():
    variant = find("sdpa_math")
    q, k, v = reference.inputs(SQUARE)
    kernel = variant.prepare(SQUARE, Setting())
    with variant.entered(Setting()), torch.profiler.profile() as profile:
        kernel(q, k, v)
    ran = {event.key for event in profile.key_averages()}
    assert "aten::_scaled_dot_product_attention_math" in ran
    assert not any("flash" in name for name in ran)


def test_forced_flash_runs_the_flash_kernel():
    variant = find("sdpa_flash")
    kernel = variant.prepare(SQUARE, Setting())
    with variant.entered(Setting()), torch.profiler.profile() as profile:
        kernel(*reference.inputs(SQUARE))
    assert "aten::_scaled_dot_product_flash_attention_for_cpu" in {e.key for e in profile.key_averages()}


@pytest.mark.parametrize("name", ["sdpa_memeff", "sdpa_cudnn"])
def test_kernels_without_a_cpu_version_say_so(name):
    assert "no" in find(name).unavailable("cpu")
    assert "kernel for the CPU" in find(name).unavailable("cpu")


def test_flash_on_cuda_takes_half_precision_and_square_causal_only():
    flash = find("sdpa_flash")
    half = SQUARE.replace(dtype="float16")
    assert flash.refuse(half, "cuda:0") is None
    assert flash.refuse(SQUARE, "cuda") == "dtype float32 is not one of bfloat16, float16"
    assert "equal lengths only, not 8 x 9" in flash.refuse(half.replace(kv_len=9, mask=Causal()), "cuda")
    assert flash.refuse(SQUARE.replace(kv_len=9, mask=Causal()), "cpu") is None


@pytest.mark.parametrize(("capability", "says"), [((7, 5), "default backend ran instead"), ((8, 0), None)])
def test_flash_below_sm80_falls_back_and_its_row_says_so(monkeypatch, capability, says):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    remark = find("sdpa_flash").remark("cuda:0")
    assert remark is None if says is None else says in remark
    with find("sdpa_flash").entered(Setting(device="cuda:0")):
        assert torch.backends.cuda.math_sdp_enabled() is (says is not None)


def test_window_preset_replaces_bands_and_keeps_the_alignment():
    preset = find("sliding_w128").problem_for
    assert preset(SQUARE.replace(mask=Causal("bottom_right"))).mask == Window(127, 0, "bottom_right")
    assert preset(SQUARE).mask == Window(127, 0)
    with pytest.raises(InvalidProblem, match="not dense"):
        preset(Problem(q_len=2, mask=Dense([[1, 0], [1, 1]])))


def test_gqa_presets_make_groups_of_four_and_keep_those_that_are():
    for name in ("gqa_4kv", "gqa_native"):
        preset = find(name).problem_for
        assert preset(Problem(q_heads=12, q_len=4)).kv_heads == 3
        assert preset(Problem(q_heads=32, kv_heads=4, q_len=4)).kv_heads == 4
        assert "q_heads=6" in find(name).refuse(Problem(q_heads=6, q_len=4))


def test_expansion_is_in_the_bytes_of_gqa_4kv_only():
    problem = Problem(q_heads=32, kv_heads=8, q_len=1, kv_len=8192, head_dim=128)
    expanded, native = (find(name).cost(problem).logical.total_bytes for name in ("gqa_4kv", "gqa_native"))
    copies = 8192 * 128 * 4 * 2 * (8 + 32)
    assert expanded - native == copies
