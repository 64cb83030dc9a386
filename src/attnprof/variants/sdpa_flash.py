"""PyTorch's scaled_dot_product_attention, forced to its flash kernel."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants._costs import cpu_flash_cost
from attnprof.variants._sdpa import CPU_FLASH, CUDA_FLASH, below_sm80, forced, sdpa_kernel_for


def _scope(setting: Setting) -> AbstractContextManager[object]:
    return nullcontext() if below_sm80(setting.device) else forced("FLASH_ATTENTION")(setting)


def _remark(device: str) -> str | None:
    return "FlashAttention needs sm80: PyTorch's default backend ran instead" if below_sm80(device) else None


@variant(
    name="sdpa_flash",
    title="SDPA: flash kernel, forced",
    cost=cpu_flash_cost,
    backend="FLASH_ATTENTION",
    scope=_scope,
    limits=CPU_FLASH,
    limits_on={"cuda": CUDA_FLASH},
    remark=_remark,
)
def sdpa_flash(problem: Problem, setting: Setting) -> Kernel:
    """Tiled and online; below sm80 it falls back to PyTorch's choice, which its row says."""
    return sdpa_kernel_for(problem, setting)
