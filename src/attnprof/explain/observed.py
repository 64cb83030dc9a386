"""Which attention kernel really ran, from the operators and device kernels that one call executed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from attnprof.core.record import Judgment, Severity

OPERATORS = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": "flash",
    "aten::_scaled_dot_product_flash_attention": "flash",
    "aten::_scaled_dot_product_efficient_attention": "mem_efficient",
    "aten::_scaled_dot_product_cudnn_attention": "cudnn",
    "aten::_scaled_dot_product_fused_attention_overrideable": "overrideable",
    "aten::_scaled_dot_product_attention_math": "math",
    "aten::_scaled_dot_product_attention_math_for_mps": "math",
    "aten::_native_multi_head_attention": "native_mha",
    "aten::_flash_attention_forward": "flash",
    "aten::_efficient_attention_forward": "mem_efficient",
}
# Fragments of CUDA and HIP kernel names, in the order in which they are tried.
KERNELS = (
    ("cudnn_generated_fort_native_sdpa", "cudnn"),
    ("cudnn_generated_oss_sdpa", "cudnn"),
    ("fmha_cutlass", "mem_efficient"),
    ("flash_fwd", "flash"),
    ("flash_bwd", "flash"),
    ("flash::", "flash"),
    ("triton_tem_fused_flex_attention", "flex"),
)
SOFTMAX = ("aten::softmax", "aten::_softmax", "aten::_safe_softmax")
PRODUCTS = ("aten::bmm", "aten::matmul", "aten::baddbmm", "aten::mm", "aten::einsum")
COMPILED = "Torch-Compiled Region"
REWRITTEN = "compiled: rewritten to SDPA"
SDPA_NAMES = {
    "FLASH_ATTENTION": "flash",
    "EFFICIENT_ATTENTION": "mem_efficient",
    "CUDNN_ATTENTION": "cudnn",
    "MATH": "math",
    "OVERRIDEABLE": "overrideable",
}


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one call executed: the backend's label, and the operator or kernel names that it was read from."""

    backend: str
    evidence: tuple[str, ...]


def backend_name(name: str) -> str:
    """attnprof's name of a backend, from PyTorch's or its own.

    >>> backend_name("EFFICIENT_ATTENTION")
    'mem_efficient'
    """
    return SDPA_NAMES.get(name, name)


def observe_backend(call: Callable[[], object]) -> str:
    """Label of the attention kernel that `call` runs: flash, mem_efficient, cudnn, math, native_mha, flex.

    `unfused` means products and a softmax of their own; a compiled region is named with what it became.
    """
    return observe(call).backend


def observe(call: Callable[[], object]) -> Observation:
    """Run `call` once under a profiler and classify what it executed."""
    return classify(event_names(call), fused=_fused_by_inductor())


def classify(names: Iterable[str], *, fused: bool = False) -> Observation:
    """The backend that operator and kernel names tell of; `fused` when Inductor has rewritten attention.

    >>> classify(["aten::linear", "aten::_scaled_dot_product_flash_attention_for_cpu"]).backend
    'flash'
    """
    seen = sorted(set(names))
    compiled = any(name.startswith(COMPILED) for name in seen)
    known = {OPERATORS[name]: name for name in seen if name in OPERATORS}
    known = known or {label: name for name in seen for label in _kernel_label(name)}
    if known:
        label = "+".join(sorted(known))
        prefix = f"{REWRITTEN} ({label})" if fused else f"compiled: {label}"
        return Observation(backend=prefix if compiled else label, evidence=tuple(sorted(known.values())))
    if compiled:
        return Observation(backend="compiled", evidence=(COMPILED,))
    if any("flex_attention" in name for name in seen):
        return Observation(backend="flex", evidence=tuple(name for name in seen if "flex_attention" in name))
    softmax = [name for name in seen if name in SOFTMAX]
    products = [name for name in seen if name in PRODUCTS]
    if softmax and products:
        return Observation(backend="unfused", evidence=(*products, *softmax))
    return Observation(backend="unknown", evidence=tuple(seen[:5]))


def _kernel_label(name: str) -> list[str]:
    return [label for fragment, label in KERNELS if fragment in name][:1]


def event_names(call: Callable[[], object]) -> list[str]:
    """Names of the operators that one call executes, and of the device kernels where a GPU is in use."""
    import torch

    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return _device_event_names(call)
    # The Kineto profiler of a CPU build writes lines to stderr; the recorder of operators alone does not.
    from torch.autograd.profiler_legacy import profile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile() as recorded:  # type: ignore[no-untyped-call]
            call()
    return [event.name for event in recorded.function_events]


def _device_event_names(call: Callable[[], object]) -> list[str]:
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        call()
        torch.cuda.synchronize()
    return [event.name for event in recorded.events()]


def _fused_by_inductor() -> bool:
    """Whether Inductor has replaced products and a softmax by SDPA in this process."""
    import sys

    utils: Any = sys.modules.get("torch._dynamo.utils")
    return bool(utils and utils.counters["inductor"]["fuse_attention"])


def backend_judgments(asked: str | None, observed: str) -> tuple[Judgment, ...]:
    """An alarm when another kernel ran than asked for, a warning when a compiled naive is SDPA in truth."""
    if asked and backend_name(asked) != observed:
        return (
            Judgment(
                code="backend-differs",
                message=f"{backend_name(asked)} was asked for, {observed} ran",
                remedy="this row is not the asked kernel's; `attnprof explain` says why it was not taken",
                severity=Severity.ALARM,
            ),
        )
    if observed.startswith(REWRITTEN):
        return (
            Judgment(
                code="compiled-rewritten",
                message=f"{observed}: Inductor recognised attention, so this is not a naive kernel's time",
                remedy="read it as SDPA; compare with eager naive for the cost of materialising the scores",
            ),
        )
    return ()
