"""Runs a sweep: one task a problem, in a worker process; every finished row goes to a sink at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from attnprof.bench.protocol import Alive, Row, Task
from attnprof.bench.supervisor import Worker, WorkerLost
from attnprof.bench.sweep import Conditions, Sweep
from attnprof.core.problem import Problem
from attnprof.core.record import Failed, Record, case_key
from attnprof.variants.catalog import find

Sink = Callable[[Record], None]


@dataclass(frozen=True, kw_only=True)
class Position:
    """Where a sweep stands: told before each step."""

    done: int
    total: int
    asked: Problem
    variant: str


def run_sweep(
    sweep: Sweep, worker: Worker, sink: Sink, *, finished: frozenset[str] = frozenset(),
    progress: Callable[[Position], None] = lambda _: None,
) -> None:  # fmt: skip
    """Measure every case whose key is not in `finished`, handing each record to `sink` when it is final."""
    conditions, problems = sweep.conditions, sweep.problems()
    for number, asked in enumerate(problems):
        keys = {name: case_key(name, asked, conditions.device, conditions.cache) for name in sweep.variants}
        missing = tuple(name for name, key in keys.items() if key not in finished)
        done = (number + 1) * len(sweep.variants) - len(missing)
        position = Position(done=done, total=len(problems) * len(sweep.variants), asked=asked, variant="")
        _Group(worker, conditions, asked, sink, progress, position).run(missing)


class _Group:
    """The cases of one problem: a lost worker fails the case that it was running, the others are run again."""

    def __init__(
        self, worker: Worker, conditions: Conditions, asked: Problem, sink: Sink,
        progress: Callable[[Position], None], position: Position,
    ) -> None:  # fmt: skip
        self.worker, self.conditions, self.asked = worker, conditions, asked
        self.sink, self.progress, self.position = sink, progress, position

    def run(self, names: tuple[str, ...]) -> None:
        """Run until every name has its record."""
        missing = list(names)
        while missing:
            current = missing[0]
            task = Task(asked=self.asked, variants=tuple(missing), conditions=self.conditions)
            try:
                for event in self.worker.events(task):
                    if isinstance(event, Alive):
                        current = event.variant
                        self.progress(replace(self.position, variant=current))
                    elif isinstance(event, Row):
                        self._keep(event.record, missing)
                return
            except WorkerLost as lost:
                self._keep(_failed(self.conditions, self.asked, current, lost.outcome), missing)

    def _keep(self, record: Record, missing: list[str]) -> None:
        if record.variant in missing:
            missing.remove(record.variant)
            self.position = replace(self.position, done=self.position.done + 1)
            self.sink(record)


def _failed(conditions: Conditions, asked: Problem, name: str, outcome: Failed) -> Record:
    return Record(
        variant=name, asked=asked, problem=find(name).problem_or_asked(asked), device=conditions.device,
        outcome=outcome, cache=conditions.cache, seed=conditions.seed,
    )  # fmt: skip
