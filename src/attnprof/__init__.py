"""attnprof: predict and measure attention kernels in one row."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from attnprof.core.mask import Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Problem

if TYPE_CHECKING:
    from attnprof.bench.api import profile
    from attnprof.predict.api import predict
    from attnprof.store.runs import load
    from attnprof.trace.api import trace
    from attnprof.variants.catalog import variants

__version__ = "0.1.0"
__all__ = [
    "Causal", "Dense", "Full", "Lengths", "Problem", "Window",
    "load", "predict", "profile", "trace", "variants",
]  # fmt: skip

# Loaded on first use, so that `import attnprof` and the commands that need no kernel start fast.
_LAZY = {
    "load": "attnprof.report.load",
    "predict": "attnprof.predict.api",
    "profile": "attnprof.bench.api",
    "trace": "attnprof.trace.api",
    "variants": "attnprof.variants.catalog",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'attnprof' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
