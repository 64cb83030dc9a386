"""FlashAttention-2 as a prebuilt kernel of the Hugging Face Hub, through the package kernels."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._external import FLASH_ATTN, flash_attn_cost, flash_attn_kernel, needs

REPOSITORY = "kernels-community/flash-attn2"


@variant(
    name="hf_flash_attn2",
    title="FlashAttention-2 from the Hugging Face Hub (package kernels)",
    cost=flash_attn_cost(128, 64),
    limits=FLASH_ATTN,
    needs=needs("kernels"),
    install="pip install kernels",
)
def hf_flash_attn2(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the package follows the tensors
    """Preparing it downloads the build for this PyTorch and CUDA, once."""
    from kernels import get_kernel

    return flash_attn_kernel(get_kernel(REPOSITORY).flash_attn_func, problem)
