"""One problem, all its variants: prepare each (untimed), check it, then sample them in interleaved rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from attnprof.bench.check import Reference, judge, make_reference
from attnprof.bench.compiling import graphs_compiled
from attnprof.bench.devices.base import Device
from attnprof.bench.direction import as_results, directed
from attnprof.bench.inputs import Guard, Inputs, input_bytes, make_inputs
from attnprof.bench.sweep import Conditions
from attnprof.bench.timing import Series, calls_per_sample, measure_floor, sample_rounds, warm_up
from attnprof.core.problem import Problem
from attnprof.core.record import (
    Accuracy,
    Failed,
    FailureKind,
    Judgment,
    Measured,
    Memory,
    Outcome,
    Record,
    Skipped,
    Unsupported,
)  # fmt: skip
from attnprof.core.traffic import Cost
from attnprof.core.units import format_bytes
from attnprof.core.variant import Setting, Variant
from attnprof.explain.gate import gate_problem
from attnprof.explain.observed import backend_judgments, observe_backend

Emit = Callable[[Record], None]
Alive = Callable[[str], None]
MAX_MESSAGE = 500
TELEMETRY_S = 0.2  # how long power and clocks are watched, where the device has sensors


@dataclass(kw_only=True)
class Prepared:
    """What was learnt of a case before sampling."""

    series: Series
    prepare_s: float
    first_call_s: float
    memory: Memory
    accuracy: Accuracy
    backend: str
    compile_s: float | None
    recompiles: int | None
    counted: dict[str, float]
    judgments: tuple[Judgment, ...]
    choice: str  # of an autotuned kernel, and the cost of what it chose
    cost: Cost | None


class Group:
    """All variants of one asked problem on one device; results leave through `emit` as they are final."""

    def __init__(
        self, asked: Problem, variants: Iterable[Variant], conditions: Conditions, device: Device
    ) -> None:
        self.asked = asked
        self.variants = {v.name: v for v in variants}
        self.conditions = conditions
        self.device = device
        self.floor_s = measure_floor(device)
        self._inputs: dict[Problem, Inputs] = {}
        self._references: dict[Problem, Reference] = {}
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")

    def measure(self, emit: Emit, alive: Alive) -> None:
        """Run every case; `alive(variant)` is called before each step that may hang."""
        prepared: dict[str, Prepared] = {}
        for name, variant in self.variants.items():
            outcome = self._refusal(variant)
            if outcome is None:
                alive(name)
                outcome = self._try_prepare(variant, prepared)
            if outcome is not None:
                emit(self._record(variant, outcome))
        sample_rounds(
            self.device, prepared, {name: p.series for name, p in prepared.items()}, self.conditions, before=alive,
            failed=lambda name, error: emit(self._record(self.variants[name], failure(error))),
            done=lambda name: emit(self._finished(self.variants[name], prepared[name])),
        )  # fmt: skip

    def _refusal(self, variant: Variant) -> Outcome | None:
        reason = variant.unavailable(self.device.name) or variant.refuse(self.asked, self.device.name)
        if reason:
            return Unsupported(reason=reason)
        reason = too_large(
            variant.problem_for(self.asked), _cost(variant, self.asked), self.device.available_bytes()
        )
        return Skipped(reason=reason) if reason else None

    def _try_prepare(self, variant: Variant, prepared: dict[str, Prepared]) -> Outcome | None:
        try:
            prepared[variant.name] = self._prepare(variant)
        except (Exception, SystemExit) as error:  # any kernel may raise anything; the sweep goes on
            return failure(error)
        return None

    def _prepare(self, variant: Variant) -> Prepared:
        problem = variant.problem_for(self.asked)
        inputs = self._inputs_of(problem)
        reference = self._reference_of(problem, inputs)
        setting = Setting(device=self.device.name)

        def scope() -> AbstractContextManager[Any]:
            return variant.scope(setting) if variant.scope else nullcontext()

        graphs_before = graphs_compiled()
        with scope(), Guard(inputs):
            begun = time.perf_counter()
            kernel = variant.prepare(problem, setting)
            call = directed(kernel, inputs, problem.direction)
            prepare_s = time.perf_counter() - begun
            first_call_s = self.device.time_calls(call, 1)
            results, memory = self.device.peak_bytes(call)
            accuracy = judge(problem, as_results(results, problem.direction), reference)
            del results
            backend = observe_backend(call)
            warmup_calls, call_s = warm_up(self.device, call)
            counted = self.device.telemetry(call, TELEMETRY_S)
        graphs = graphs_compiled() - graphs_before
        calls = calls_per_sample(call_s, self.floor_s, self.conditions.cache)
        return Prepared(
            series=Series(call=call, scope=scope, calls_per_sample=calls, warmup_calls=warmup_calls),
            prepare_s=prepare_s, first_call_s=first_call_s, memory=memory, accuracy=accuracy, backend=backend,
            compile_s=max(0.0, first_call_s - call_s) if graphs else None, recompiles=graphs - 1 if graphs else None,
            counted=counted, choice=getattr(kernel, "choice", ""), cost=getattr(kernel, "cost", None),
            judgments=(
                *_remarks(variant, self.device.name),
                *gate_problem(problem, self.device.name, backend=variant.backend or ""),
                *backend_judgments(variant.backend, backend),
            ),
        )  # fmt: skip

    def _inputs_of(self, problem: Problem) -> Inputs:
        if problem not in self._inputs:
            self._inputs[problem] = make_inputs(problem, self.device.name, self.conditions.seed)
        return self._inputs[problem]

    def _reference_of(self, problem: Problem, inputs: Inputs) -> Reference | None:
        if not self.conditions.check or problem.dropout:
            return None
        if problem not in self._references:
            self._references[problem] = make_reference(problem, inputs)
        return self._references[problem]

    def _finished(self, variant: Variant, prepared: Prepared) -> Record:
        series = prepared.series
        measured = Measured(
            samples_s=tuple(series.samples_s), rounds=tuple(series.rounds), calls_per_sample=series.calls_per_sample,
            warmup_calls=series.warmup_calls, first_call_s=prepared.first_call_s, prepare_s=prepared.prepare_s,
            floor_s=self.floor_s, stopped=series.stopped, memory=prepared.memory, accuracy=prepared.accuracy,
            backend=prepared.backend, compile_s=prepared.compile_s, recompiles=prepared.recompiles,
            counted=prepared.counted, choice=prepared.choice,
        )  # fmt: skip
        return self._record(variant, measured, prepared.judgments, prepared.cost)

    def _record(
        self,
        variant: Variant,
        outcome: Outcome,
        judgments: tuple[Judgment, ...] = (),
        cost: Cost | None = None,
    ) -> Record:
        if cost is None and not isinstance(outcome, Unsupported):
            cost = _cost(variant, self.asked)
        return Record(
            variant=variant.name, asked=self.asked, problem=variant.problem_or_asked(self.asked),
            device=self.conditions.device, outcome=outcome, cost=cost,
            judgments=judgments, started_at=self._started_at, cache=self.conditions.cache, seed=self.conditions.seed,
        )  # fmt: skip


def _remarks(variant: Variant, device: str) -> tuple[Judgment, ...]:
    """What a variant must say of itself on a device, such as that another kernel took its place."""
    text = variant.remark(device) if variant.remark else None
    return (Judgment(code="remark", message=text),) if text else ()


def _cost(variant: Variant, asked: Problem) -> Cost | None:
    return variant.cost(variant.problem_for(asked)) if variant.cost else None


def too_large(problem: Problem, cost: Cost | None, available_bytes: int) -> str | None:
    """Why a case will not be tried: its predicted memory against what is available; None when it fits."""
    needed = input_bytes(problem) + (cost.peak_bytes if cost else problem.o_bytes)
    if needed <= available_bytes:
        return None
    score = problem.score_bytes
    copies = round(cost.workspace_bytes / score) if cost and score else 0
    scores = f" ({format_bytes(score)} x{copies} of scores)" if copies >= 1 else ""
    return f"predicted {format_bytes(needed)}{scores} > available {format_bytes(available_bytes)}"


def failure(error: BaseException) -> Failed:
    """A failed outcome from what a kernel raised."""
    text = f"{type(error).__name__}: {error}".strip()
    lowered = text.lower()
    memory = (
        isinstance(error, MemoryError) or "out of memory" in lowered or "can't allocate memory" in lowered
    )
    kind = FailureKind.OUT_OF_MEMORY if memory else FailureKind.EXCEPTION
    return Failed(kind=kind, message=text[:MAX_MESSAGE])
