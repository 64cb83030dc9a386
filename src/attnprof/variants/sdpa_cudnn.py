"""PyTorch's scaled_dot_product_attention, forced to cuDNN's kernel (CUDA only)."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.schedules import fa2_cost
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.variants._sdpa import HALF, below_sm80, forced, not_on_cpu, sdpa_kernel_for

_on_cpu = not_on_cpu("cuDNN")


def _cost(problem: Problem) -> Cost:
    return fa2_cost(problem, rows=128, cols=128)


def _needs(device: str) -> str | None:
    return _on_cpu(device) or ("cuDNN attention needs sm80 or newer" if below_sm80(device) else None)


@variant(
    name="sdpa_cudnn",
    title="SDPA: cuDNN kernel, forced",
    cost=_cost,
    backend="CUDNN_ATTENTION",
    scope=forced("CUDNN_ATTENTION"),
    limits=Limits(dtypes=HALF, max_head_dim=128),
    needs=_needs,
)
def sdpa_cudnn(problem: Problem, setting: Setting) -> Kernel:
    """cuDNN's fused graph, built at the first call."""
    return sdpa_kernel_for(problem, setting)
