"""Textbook attention under torch.compile: what Inductor makes of it, which may be SDPA."""

from __future__ import annotations

from attnprof.core.problem import Problem
from attnprof.core.schedules.eager import naive_cost
from attnprof.core.variant import Kernel, Setting, variant
from attnprof.variants.naive import naive


def _no_compiler(device: str) -> str | None:
    """Inductor needs a C++ compiler for the CPU and Triton for a GPU."""
    import shutil
    from importlib.util import find_spec

    if device.startswith("cpu"):
        compiler = any(shutil.which(name) for name in ("g++", "clang++", "c++"))
        return None if compiler else "torch.compile needs a C++ compiler for the CPU: install g++ or clang++"
    return None if find_spec("triton") else "torch.compile needs Triton for a GPU: pip install triton"


@variant(
    name="naive_compiled",
    title="Naive under torch.compile (Inductor may rewrite it to SDPA)",
    cost=naive_cost,
    compiles=True,
    needs=_no_compiler,
    install="a C++ compiler (CPU) or triton (GPU)",
)
def naive_compiled(problem: Problem, setting: Setting) -> Kernel:
    """Compiled without caches, so that the first call holds the whole compilation; the row says what ran."""
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # loading Inductor uses torch.jit
        kernel: Kernel = torch.compile(naive.prepare(problem, setting), options={"fx_graph_cache": False})
    return kernel
