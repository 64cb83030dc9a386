"""Why a backend does not take a call: the reason, its rule and source, the fix and the fix's cost."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from attnprof.core.units import format_bytes, format_seconds
from attnprof.explain.call import Call
from attnprof.explain.rules.ruleset import RuleSet
from attnprof.explain.switches import Switches
from attnprof.explain.target import Target


class Rule(StrEnum):
    """The kind of rule that a call meets or breaks."""

    DEVICE = "device"
    CAPABILITY = "compute capability"
    DTYPE = "dtype"
    HEAD_DIM = "head dim"
    STRIDE = "stride"
    SHAPE = "shape"
    MASK = "mask"
    CAUSAL = "causal"
    DROPOUT = "dropout"
    GRAD = "grad"
    GQA = "GQA"
    SWITCH = "global switch"
    ENVIRONMENT = "environment variable"
    VERSION = "version"
    INSTALL = "installation"
    DETERMINISM = "determinism"


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """One reason. `cost` says in words what the fix costs; `cost_bytes` is its traffic and `cost_s` its time."""

    rule: Rule
    reason: str
    source: str
    fix: str
    cost: str = ""
    cost_bytes: int | None = None
    cost_s: float | None = None


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What a check may look at."""

    call: Call
    target: Target
    switches: Switches
    rules: RuleSet

    def reject(
        self, rule: Rule, cite: str, reason: str, fix: str, *, cost: str = "", cost_bytes: int | None = None
    ) -> Rejection:
        """A rejection with its source, and with the time of the fix where the device's bandwidth is known."""
        rate = self.target.bandwidth_bytes_per_s
        cost_s = cost_bytes / rate if cost_bytes is not None and rate else None
        if cost_bytes is not None:
            time = f", {format_seconds(cost_s)} at the data sheet's bandwidth" if cost_s else ""
            cost = (
                f"{cost or 'moves'} {format_bytes(cost_bytes)}{time}"
                if cost_bytes
                else "costs nothing (a view)"
            )
        return Rejection(
            rule=rule,
            reason=reason,
            source=self.rules.cite(cite),
            fix=fix,
            cost=cost or "no cost known",
            cost_bytes=cost_bytes,
            cost_s=cost_s,
        )
