"""Whether a kernel runs a problem on a chip, and which kernel a PyTorch call becomes there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attnprof.core.mask import Align, Causal, Full
from attnprof.core.problem import Problem
from attnprof.predict.chips import ChipModel
from attnprof.predict.kernels import widest_bits
from attnprof.variants.catalog import variants

if TYPE_CHECKING:
    from attnprof.explain.choice import Choice

_PYTORCH = ("sdpa_", "gqa_")
_PYTORCH_PICKS = frozenset({"sdpa_default", "gqa_native", "gqa_4kv"})
_NO_8_BIT = re.compile(r"flash.?att\w*?.?v?[12]\b|\bfa[12]\b")
# NVIDIA compute capability that a kernel is written for, by a pattern of its name.
_NEEDS = (
    (r"flash.?att\w*?.?3|fa3\b|thunderkittens", 9.0),
    (r"flash.?att\w*?.?4|fa4\b|trtllm", 10.0),
    (r"sdpa_flash|sdpa_cudnn|cudnn|flash.?att\w*?.?2|sage|triton", 8.0),
)


def masked_by_tensor(name: str, problem: Problem) -> bool:
    """PyTorch passes every mask but its own causal one as a tensor; no kernel of it then skips tiles."""
    mask = problem.mask
    square = problem.q_len == problem.kv_len
    own = isinstance(mask, Causal) and (mask.align is Align.TOP_LEFT or square)
    return name.startswith(_PYTORCH) and not isinstance(mask, Full) and not own


def picked(name: str, problem: Problem, chip: ChipModel | str) -> Choice | None:
    """What PyTorch picks on the chip, by the rules of `attnprof explain`; None for a kernel that is asked for by name.

    K and V of gqa_4kv are expanded before PyTorch sees them.
    """
    if name not in _PYTORCH_PICKS or isinstance(chip, str):
        return None
    # explain shows predicted times, hence imports predict: this way round only inside the function.
    from attnprof.explain.choice import sdpa_choice

    return sdpa_choice(problem.replace(kv_heads=problem.q_heads) if name == "gqa_4kv" else problem, chip.name)


def refusal(name: str, problem: Problem, chip: ChipModel) -> str:
    """Why the kernel cannot run there; empty where it can."""
    needs = next((least for pattern, least in _NEEDS if re.search(pattern, name.lower())), 0.0)
    if chip.capability is not None and chip.capability < needs:
        return f"{name} needs sm{needs * 10:.0f}, {chip.name} is sm{chip.capability * 10:.0f}"
    if name == "sdpa_flash" and masked_by_tensor(name, problem):
        return "sdpa_flash takes no mask tensor on a GPU, only is_causal; use sdpa_memeff"
    known = variants().get(name)
    wrong_type = _wrong_type(name, problem) if known is None or name in {"sdpa_flash", "sdpa_cudnn"} else ""
    return wrong_type or ((known.limits.refuse(problem) or "") if known else "")


def _wrong_type(name: str, problem: Problem) -> str:
    bits, widest = problem.dtype.bits, widest_bits(name)
    if _NO_8_BIT.search(name.lower()) and bits < 16:
        return f"{name} computes 16-bit types, not {problem.dtype}"
    if widest is None or bits <= widest:
        return ""
    types = "16-bit types on a GPU" if widest == 16 else f"types of at most {widest} bits"
    return f"{name} computes {types}, not {problem.dtype}; use a type it takes, or an unfused kernel (naive)"
