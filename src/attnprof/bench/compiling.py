"""How many graphs torch.compile has made in this process."""

from __future__ import annotations

import sys


def graphs_compiled() -> int:
    """Graphs compiled so far; 0 while nothing has imported the compiler (importing it takes a second)."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo else 0
