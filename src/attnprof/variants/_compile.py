"""What the variants under torch.compile share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def no_compiler(device: str) -> str | None:
    """Inductor needs a C++ compiler for the CPU and Triton for a GPU."""
    import shutil
    from importlib.util import find_spec

    if device.startswith("cpu"):
        compiler = any(shutil.which(name) for name in ("g++", "clang++", "c++"))
        return None if compiler else "torch.compile needs a C++ compiler for the CPU: install g++ or clang++"
    return None if find_spec("triton") else "torch.compile needs Triton for a GPU: pip install triton"


def compiled(function: Callable[..., Any], *, dynamic: bool | None = None) -> Callable[..., Any]:
    """`function` under torch.compile without caches, so that the first call holds the whole compilation."""
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # loading Inductor uses torch.jit
        result: Callable[..., Any] = torch.compile(
            function, dynamic=dynamic, options={"fx_graph_cache": False}
        )
    return result
