"""Variants of optional packages, against stand-ins that follow each package's own conventions."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import types

import pytest
import torch
from tests.variants import reference

from attnprof.core.mask import Causal, Full, Window
from attnprof.core.problem import Problem
from attnprof.core.variant import Setting
from attnprof.variants import _packages
from attnprof.variants.catalog import find

PACKAGES = {
    "flash_attn2": "flash-attn",
    "flash_attn3": "flash-attn-3",
    "flash_attn4": "flash-attn-4",
    "hf_flash_attn2": "kernels",
    "xformers_memeff": "xformers",
    "flashinfer": "flashinfer-python",
    "sage_attention": "sageattention",
    "torchao_fp8": "torchao",
}


def band(q, k, v, scale, low=None, high=None):
    """(B, H, N, D) attention where query i sees keys [i + low, i + high] counted from the bottom right."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    shift = k.shape[2] - q.shape[2]
    distance = torch.arange(k.shape[2]) - torch.arange(q.shape[2])[:, None] - shift
    keep = torch.ones_like(distance, dtype=torch.bool)
    keep &= (distance >= low) if low is not None else keep
    keep &= (distance <= high) if high is not None else keep
    scores = (q.float() @ k.float().mT * scale).masked_fill(~keep, float("-inf"))
    return (scores.softmax(-1).nan_to_num(0.0) @ v.float()).to(q.dtype)


def flash_attn_func(none, as_tuple):
    def function(q, k, v, softmax_scale=None, causal=False, window_size=(none, none)):
        left, right = (None if x == none else x for x in window_size)
        high = 0 if causal else right
        out = band(
            *(x.transpose(1, 2) for x in (q, k, v)), softmax_scale, None if left is None else -left, high
        )
        out = out.transpose(1, 2)
        return (out, None) if as_tuple else out

    return function


def prefill(q, k, v, causal=False, kv_layout="NHD", sm_scale=None, window_left=-1):
    assert kv_layout == "HND"
    low = None if window_left == -1 else -window_left
    out = band(q.transpose(0, 1)[None], k[None], v[None], sm_scale, low, 0 if causal else None)
    return out[0].transpose(0, 1)


def sageattn(q, k, v, tensor_layout="NHD", is_causal=False, sm_scale=None):
    assert tensor_layout == "HND"
    return band(q, k, v, sm_scale, high=0 if is_causal else None)


def fp8_fa3_sdpa(q, k, v, is_causal=False, scale=None, enable_gqa=False):
    assert enable_gqa == (q.shape[1] != k.shape[1])
    return band(q, k, v, scale, high=0 if is_causal else None)


def memory_efficient_attention(q, k, v, attn_bias=None, scale=None):
    if q.dim() == 5:
        q, k, v = (x.flatten(2, 3) for x in (q, k, v))
    shift = {None: None, "top_left": q.shape[1] - k.shape[1], "bottom_right": 0}[attn_bias]
    out = band(*(x.transpose(1, 2) for x in (q, k, v)), scale, high=shift).transpose(1, 2)
    return out.unflatten(2, (2, -1)) if out.shape[2] == 4 else out


MODULES = {
    "flash_attn": {"flash_attn_func": flash_attn_func(-1, as_tuple=False)},
    "flash_attn.cute": {"flash_attn_func": flash_attn_func(None, as_tuple=True)},
    "flash_attn_interface": {"flash_attn_func": flash_attn_func(-1, as_tuple=True)},
    "kernels": {
        "get_kernel": lambda _: types.SimpleNamespace(flash_attn_func=flash_attn_func(-1, as_tuple=False))
    },
    "flashinfer": {"single_prefill_with_kv_cache": prefill},
    "sageattention": {"sageattn": sageattn},
    "torchao.prototype.attention.fp8_fa3.attention": {"fp8_fa3_sdpa": fp8_fa3_sdpa},
    "xformers.ops": {
        "memory_efficient_attention": memory_efficient_attention,
        "LowerTriangularMask": lambda: "top_left",
        "fmha": types.SimpleNamespace(
            attn_bias=types.SimpleNamespace(LowerTriangularFromBottomRightMask=lambda: "bottom_right")
        ),
    },
}
SIZES = {"q_heads": 4, "kv_heads": 2, "q_len": 9, "head_dim": 64, "dtype": "float16"}
PROBLEMS = {
    "full": Problem(**SIZES, mask=Full()),
    "causal": Problem(**SIZES, mask=Causal()),
    "top_left": Problem(**SIZES, kv_len=15, mask=Causal()),
    "bottom_right": Problem(**SIZES, kv_len=15, mask=Causal("bottom_right")),
    "window": Problem(**SIZES, mask=Window(3, 0)),
    "window_both": Problem(**SIZES, kv_len=15, mask=Window(4, 2, "bottom_right")),
    "window_left": Problem(**SIZES, mask=Window(3, -1)),
    "batch": Problem(**SIZES, batch=2),
}


@pytest.fixture
def stand_ins(monkeypatch):
    for name, contents in MODULES.items():
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            path = ".".join(parts[:depth])
            if path not in MODULES or depth == len(parts):
                module = types.ModuleType(path)
                vars(module).update(contents if depth == len(parts) else {})
                if path not in sys.modules or depth == len(parts):
                    monkeypatch.setitem(sys.modules, path, module)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("name", list(PACKAGES))
@pytest.mark.parametrize("case", list(PROBLEMS))
def test_calls_the_package_so_that_it_computes_the_problem(name, case):
    variant, problem = find(name), PROBLEMS[case]
    if reason := variant.refuse(problem, "cuda"):
        pytest.skip(reason)
    q, k, v = reference.inputs(problem)
    output = variant.prepare(problem, Setting())(q, k, v)
    assert output.shape == q.shape
    assert torch.allclose(output.double(), reference.attention(problem, q, k, v), atol=2e-3)


@pytest.mark.parametrize("name", list(PACKAGES))
def test_absent_packages_are_listed_with_their_install_line(name, monkeypatch):
    def absent(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(_packages, "version", absent)
    variant = find(name)
    assert variant.unavailable("cuda") == f"package {PACKAGES[name]} is not installed"
    assert variant.install.startswith("pip install")


def test_gpus_that_are_too_old_are_named(monkeypatch):
    monkeypatch.setattr(_packages, "version", lambda _: "1.0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (8, 6))
    assert find("flash_attn3").unavailable("cuda:0") == "flash-attn-3 needs sm90, cuda:0 is sm86"
    assert find("flash_attn2").unavailable("cuda:0") is None


@pytest.mark.parametrize("name", ["flash_attn2", "flash_attn3", "flash_attn4", "flashinfer"])
def test_top_left_on_unequal_lengths_is_refused(name):
    assert "is top-left and this kernel's is bottom-right" in find(name).refuse(PROBLEMS["top_left"], "cuda")


def test_batches_and_right_limits_are_refused_by_flashinfer():
    assert "batch 2" in find("flashinfer").refuse(PROBLEMS["batch"], "cuda")
    assert "right must be 0" in find("flashinfer").refuse(PROBLEMS["window_both"], "cuda")


def test_quantisation_is_in_the_bytes():
    problem = Problem(q_heads=8, q_len=1024, head_dim=64, dtype="float16")
    terms = {t.tensor: t for t in find("sage_attention").cost(problem).logical.terms}
    assert terms["Q quantised"].read_bytes == problem.q_bytes
    assert terms["Q quantised"].write_bytes == problem.q_bytes // 2


def test_listing_imports_no_optional_package():
    code = (
        "import sys; from attnprof.variants.catalog import variants; "
        "[(v.unavailable('cpu'), v.install) for v in variants().values()]; "
        f"print([m for m in {sorted({m.split('.')[0] for m in MODULES})!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
