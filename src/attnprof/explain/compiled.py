"""What torch.compile makes of an attention function: rewritten or not, graphs, compile time apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from attnprof.explain.observed import REWRITTEN, observe

# A cache hit would hide both the compile time and the rewrite.
NO_CACHE: dict[str, str | int | bool | Callable[..., Any]] = {"fx_graph_cache": False}


class CompileReport(msgspec.Struct, frozen=True, kw_only=True):
    """Compilation of one function over one or several argument sets.

    `compile_s` is the sum of the first calls less a second call of each; `graphs` counts compilations, so
    `recompiles` is one less; `label` is what a row of results must be named.
    """

    label: str
    rewrites: int
    graphs: int
    compile_s: float
    run_s: tuple[float, ...]
    backend: str

    @property
    def recompiles(self) -> int:
        """Compilations after the first."""
        return max(self.graphs - 1, 0)


def compile_report(function: Callable[..., Any], *argument_sets: tuple[Any, ...]) -> CompileReport:
    """Compile `function` with Inductor, call it with each argument set twice, and tell what came out.

    Units: seconds. The run time of a set is that of its second call.
    """
    import torch
    from torch._dynamo.utils import counters

    compiled = torch.compile(function, options=NO_CACHE)
    rewrites, graphs = counters["inductor"]["fuse_attention"], counters["stats"]["unique_graphs"]
    first = [_seconds(compiled, arguments) for arguments in argument_sets]
    rewrites = counters["inductor"]["fuse_attention"] - rewrites
    graphs = counters["stats"]["unique_graphs"] - graphs
    second = tuple(_seconds(compiled, arguments) for arguments in argument_sets)
    backend = observe(lambda: compiled(*argument_sets[-1])).backend
    return CompileReport(
        label=REWRITTEN if rewrites else "compiled",
        rewrites=rewrites,
        graphs=graphs,
        compile_s=sum(first) - sum(second),
        run_s=second,
        backend=backend,
    )


def _seconds(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    begun = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begun
