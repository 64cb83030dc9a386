"""Predicted times of the backends on a named device, where the catalogue knows it."""

from __future__ import annotations

import msgspec

from attnprof.core.mask import Causal, Full
from attnprof.core.problem import Problem
from attnprof.explain.backends import BackendReport
from attnprof.explain.call import Call
from attnprof.explain.choice import VARIANTS
from attnprof.explain.target import Target


def with_times(
    reports: tuple[BackendReport, ...], subject: Call | Problem, target: Target
) -> tuple[BackendReport, ...]:
    """The reports of backends that take the call, with their predicted time."""
    problem = subject if isinstance(subject, Problem) else problem_of(subject)
    names = [r.name for r in reports if r.status != "rejected" and r.name in VARIANTS]
    if problem is None or target.here or target.bandwidth_bytes_per_s is None or not names:
        return reports
    from attnprof.predict.api import predict

    found = predict(problem, target.name, [VARIANTS[name] for name in names])
    times = {name: prediction.time_s for name, prediction in zip(names, found, strict=True)}
    return tuple(msgspec.structs.replace(r, predicted_s=times.get(r.name)) for r in reports)


def problem_of(call: Call) -> Problem | None:
    """The forward problem of a call without a mask tensor; None for another call."""
    sizes = call.sizes
    if sizes is None or call.attn_mask is not None:
        return None
    return sizes.replace(mask=Causal() if call.is_causal else Full(), scale=call.scale)
