"""Kernel families: which physical class a kernel name belongs to, and how it was written."""

from __future__ import annotations

import re
from enum import StrEnum

from attnprof.core.errors import UnknownName, nearest


class Family(StrEnum):
    """Kernels that share constants: the same algorithm, written for the same kind of tensor core."""

    NAIVE = "naive"
    MATH = "math"
    FUSED_SOFTMAX = "fused_softmax"
    FA1 = "fa1"
    MEMEFF = "memeff"
    MEMEFF_WIDE = "memeff_wide"
    FA2 = "fa2"
    TRITON = "triton"
    TRITON_WIDE = "triton_wide"
    FA3 = "fa3"
    NATIVE = "native"
    WIDE = "wide"
    QUANTISED = "quantised"
    FP4 = "fp4"
    CDNA_ASM = "cdna_asm"
    CDNA_TILES = "cdna_tiles"
    DECODE = "decode"
    DECODE_PLAIN = "decode_plain"
    MLA = "mla"


EAGER = frozenset({Family.NAIVE, Family.MATH, Family.FUSED_SOFTMAX})
SPLIT_KV = frozenset({Family.DECODE, Family.DECODE_PLAIN, Family.MLA})
DECODE_ROWS = 16  # up to so many queries a sequence, keys are split over the chip or streamed once
WIDEST_USUAL_DIM = 256
FLASH_SINCE = 8.0

# Read from top to bottom; the first pattern found in the lower-case name decides.
_PATTERNS: tuple[tuple[str, Family], ...] = (
    (r"mla\b.*decode|flash.?mla|\bmla\b", Family.MLA),
    (r"(fa2|flash.?attention.?2|triton).*decode", Family.DECODE_PLAIN),
    (r"decode|split.?kv|flash.?decod|paged", Family.DECODE),
    (r"sage.?att\w*.?3", Family.FP4),
    (r"sage", Family.QUANTISED),
    (r"megatron|fused.?softmax", Family.FUSED_SOFTMAX),
    (r"math", Family.MATH),
    (r"naive|eager|vanilla|unfused|^standard|^pytorch$|^pytorch attention", Family.NAIVE),
    (r"ffpa.*triton", Family.TRITON_WIDE),
    (r"ffpa", Family.WIDE),
    (r"hip.?kittens|^hk$", Family.CDNA_TILES),
    (r"aiter|composable|\bck\b|rocm", Family.CDNA_ASM),
    (r"triton|flex|tilelang|gluon|helion|sliding_window_true", Family.TRITON),
    (r"mem.?eff|efficient|xformers|cutlass.?attention", Family.MEMEFF),
    (r"flash.?att\w*?.?v?1\b|\bfa1\b", Family.FA1),
    (r"flash.?att\w*?.?v?3\b|\bfa3\b|thunder.?kittens|\btk\b|colfax|pingpong", Family.FA3),
    (r"flash.?att\w*?.?v?4\b|\bfa4\b|trtllm|trt-llm|tensorrt|cudnn|cute.?dsl|cutlass", Family.NATIVE),
    (r"\bfa2\b|fmhav2|flash.?att|tri dao|flashinfer|sdpa.?flash|gqa_native", Family.FA2),
    (r"^sdpa.?default$|^sdpa$|gqa_4kv|scaled.dot", Family.FA2),
    (r"sliding_w128", Family.NAIVE),
)


def family_of(
    kernel: str,
    *,
    compute_capability: float | None,
    head_dim: int,
    q_len: int,
    vendor: str = "NVIDIA",
    sixteen_bit: bool = True,
) -> Family:
    """The family of a kernel by its published name, on a chip and for a shape.

    PyTorch's default takes the memory-efficient kernel below sm80, above head dim 256 and for 32-bit types. A native
    kernel on a Hopper chip belongs with FlashAttention-3. Few queries a sequence make any kernel a decode kernel.
    Raises: UnknownName with the nearest known families.
    """
    family = _by_name(kernel)
    if family in EAGER or family in SPLIT_KV:
        return family
    if q_len <= DECODE_ROWS:
        return Family.DECODE if family in {Family.NATIVE, Family.FA3} else Family.DECODE_PLAIN
    if family is Family.FA2 and not sixteen_bit:
        family = Family.MEMEFF
    return _on_chip(family, kernel.lower(), compute_capability, head_dim, vendor)


def widest_bits(kernel: str) -> int | None:
    """Bits of the widest element type that a kernel takes on a GPU; None where any type is taken.

    Raises: UnknownName with the nearest known families.
    """
    family = _by_name(kernel)
    if family in EAGER or family in {Family.TRITON, Family.TRITON_WIDE}:
        return None
    return 32 if family in {Family.MEMEFF, Family.MEMEFF_WIDE} else 16


def _on_chip(family: Family, name: str, capability: float | None, head_dim: int, vendor: str) -> Family:
    wide = head_dim > WIDEST_USUAL_DIM
    old = vendor == "NVIDIA" and capability is not None and capability < FLASH_SINCE
    by_default = re.search(r"default|^sdpa$|gqa_|flash", name) is not None
    if family is Family.MEMEFF or (family is Family.FA2 and by_default and (old or wide)):
        return Family.MEMEFF_WIDE if wide else Family.MEMEFF
    if family is Family.NATIVE and capability is not None and 9.0 <= capability < 10.0:
        return Family.FA3
    if vendor == "AMD" and family in {Family.FA2, Family.NATIVE}:
        return Family.CDNA_ASM
    return family


def _by_name(kernel: str) -> Family:
    name = kernel.lower().strip()
    for pattern, family in _PATTERNS:
        if re.search(pattern, name):
            return family
    raise UnknownName(
        f"kernel {kernel!r} belongs to no known family; {nearest(name, [str(f) for f in Family])}"
    )
