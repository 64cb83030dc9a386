"""Our own flash attention in Triton, forward and backward."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnprof.core.dtypes import DType
from attnprof.core.mask import Causal, Full, Lengths, Window
from attnprof.core.problem import Problem
from attnprof.core.traffic import Cost
from attnprof.core.variant import Kernel, Limits, Setting, variant
from attnprof.kernels.flash_config import Config, band_rows, default_config
from attnprof.kernels.flash_cost import triton_flash_cost
from attnprof.variants._packages import missing

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class TritonFlash:
    """The prepared kernel: f(q, k, v) -> o, its configuration, and the LSE for those who need it."""

    problem: Problem
    config: Config
    bands: Tensor

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.with_lse(q, k, v)[0]

    def with_lse(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Output and the log-sum-exp of each row (float32; -inf where a row sees no key)."""
        from attnprof.kernels.flash_op import triton_flash as operator

        scale = self.problem.effective_scale
        output, lse = operator(q, k, v, self.bands, scale, self.config.as_list())
        return output, lse

    @property
    def choice(self) -> str:
        """The configuration that runs."""
        return str(self.config)

    @property
    def cost(self) -> Cost:
        """Bytes and FLOPs with the tiles that run."""
        return triton_flash_cost(self.problem, self.config)


def _needs(device: str) -> str | None:
    if reason := missing("triton"):
        return reason
    if device.startswith("cpu") and os.environ.get("TRITON_INTERPRET") != "1":
        return "Triton compiles for GPUs: set TRITON_INTERPRET=1 before the start to interpret it on the CPU (slow)"
    return None


def _remark(device: str) -> str | None:
    return (
        "interpreted on the CPU: its time says nothing about the kernel" if device.startswith("cpu") else None
    )


@variant(
    name="triton_flash",
    title="Flash attention in Triton, written here",
    cost=triton_flash_cost,
    limits=Limits(
        dtypes=frozenset({DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16}),
        masks=(Full, Causal, Window, Lengths),
        max_head_dim=256,
    ),
    needs=_needs,
    remark=_remark,
    install="pip install triton",
    compiles=True,
)
def triton_flash(problem: Problem, setting: Setting) -> Kernel:
    """Tiles of queries with keys streamed past them; KV heads are shared, masked tiles are not computed."""
    import torch

    bands = torch.tensor(band_rows(problem), dtype=torch.int32, device=setting.device).reshape(-1, 4)
    return TritonFlash(problem=problem, config=_config(problem, setting), bands=bands)


def _config(problem: Problem, setting: Setting) -> Config:
    if setting.device.startswith("cpu"):
        return default_config(problem)
    from attnprof.kernels.flash_tune import tuned

    return tuned(problem, setting.device)
