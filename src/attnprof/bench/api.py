"""`attnprof.profile`: measure one variant or callable in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnprof.bench.devices import open_device
from attnprof.bench.group import Group
from attnprof.bench.sweep import Conditions
from attnprof.core.problem import Problem
from attnprof.core.record import Record
from attnprof.core.variant import Variant
from attnprof.variants.catalog import as_variant, find


def profile(
    kernel: str | Variant | Callable[..., Any], problem: Problem, *, conditions: Conditions | None = None
) -> Record:
    """Measure a variant (by name or value) or any callable f(q, k, v) -> o on `problem`.

    Runs in this process: a crash of the kernel is a crash of the caller; `attnprof run` isolates it.
    What the gate says of the problem is in the record's judgments.
    Raises: UnknownName for a variant that does not exist.

    >>> from attnprof import Problem, profile
    >>> profile("naive", Problem(q_heads=2, q_len=16, head_dim=16)).outcome.accuracy.verdict.value
    'pass'
    """
    chosen = find(kernel) if isinstance(kernel, str) else as_variant(kernel)
    conditions = conditions or Conditions()
    records: list[Record] = []
    group = Group(problem, (chosen,), conditions, open_device(conditions.device))
    group.measure(emit=records.append, alive=lambda _: None)
    return records[0]
