"""What is wrong with a sweep before anything runs: unknown variants, problems that are none."""

from __future__ import annotations

import os

from attnprof.bench.sweep import Sweep
from attnprof.core.errors import InvalidSweep
from attnprof.variants.catalog import find


def refuse_unknown(sweep: Sweep) -> None:
    """Refuse what cannot be meant.

    Raises: InvalidSweep for more threads than cores; UnknownName or InvalidProblem for the first variant or problem
    that does not exist.
    """
    cores = os.cpu_count() or 1
    if sweep.conditions.threads > cores:
        raise InvalidSweep(
            f"threads={sweep.conditions.threads}: this machine has {cores} cores; give 1 to {cores}"
        )
    for name in sweep.variants:
        find(name)
    sweep.problems()
