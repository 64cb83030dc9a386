"""PyTorch's global switches: what a user, a context manager or an environment variable has turned off."""

from __future__ import annotations

import os
from typing import Any

import msgspec

ENVIRONMENT = (
    "TORCH_CUDNN_SDPA_DEPRIORITIZED",
    "TORCH_CUDNN_SDPA_PREFERRED",
    "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL",
)


class Switches(msgspec.Struct, frozen=True, kw_only=True):
    """Which backends are enabled, and what else changes the choice; the defaults are PyTorch's."""

    flash: bool = True
    mem_efficient: bool = True
    cudnn: bool = True
    math: bool = True
    deterministic: bool = False
    priority: tuple[str, ...] = ()
    environment: dict[str, str] = {}

    def enabled(self, backend: str) -> bool:
        """Whether a backend is switched on."""
        return bool(getattr(self, backend, True))

    def only(self, backend: str) -> Switches:
        """The switches inside `sdpa_kernel(backend)`."""
        on = {name: name == backend for name in ("flash", "mem_efficient", "cudnn", "math")}
        return msgspec.structs.replace(self, **on)

    def has(self, setting: str) -> bool:
        """Whether the environment holds `NAME=value`."""
        name, _, value = setting.partition("=")
        return self.environment.get(name) == value


def switches_now() -> Switches:
    """The switches of this process."""
    import torch

    cuda: Any = torch.backends.cuda
    strict = torch.are_deterministic_algorithms_enabled()
    return Switches(
        flash=cuda.flash_sdp_enabled(),
        mem_efficient=cuda.mem_efficient_sdp_enabled(),
        cudnn=cuda.cudnn_sdp_enabled(),
        math=cuda.math_sdp_enabled(),
        deterministic=strict and not torch.is_deterministic_algorithms_warn_only_enabled(),
        environment=environment_now(),
    )


def environment_now() -> dict[str, str]:
    """The environment variables that the dispatcher reads."""
    return {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
