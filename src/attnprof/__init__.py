"""attnprof: predict and measure attention kernels in one row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnprof.core.mask import Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Problem

if TYPE_CHECKING:
    from attnprof.bench.api import profile
    from attnprof.predict.api import predict
    from attnprof.report.load import load
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

# Three functions are named like the subpackage that they live in. Python binds a subpackage's name here when it is
# first imported; that is done now and undone, so that the names are free for the functions.
for _name in ("predict", "trace", "variants"):
    import_module(f"attnprof.{_name}")
    del globals()[_name]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'attnprof' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
