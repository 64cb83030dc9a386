"""What is wrong with a sweep before anything runs: unknown variants, problems that are none."""

from __future__ import annotations

from attnprof.bench.sweep import Sweep
from attnprof.variants.catalog import find


def refuse_unknown(sweep: Sweep) -> None:
    """Raises: UnknownName or InvalidProblem for the first variant or problem that does not exist."""
    for name in sweep.variants:
        find(name)
    sweep.problems()
