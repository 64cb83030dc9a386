"""Messages between the sweep and its worker process: one JSON line each."""

from __future__ import annotations

import msgspec

from attnprof.bench.sweep import Conditions
from attnprof.core.problem import Problem
from attnprof.core.record import Identity, Record, Weather


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Measure these variants of one problem."""

    asked: Problem
    variants: tuple[str, ...]
    conditions: Conditions


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The worker has its device open."""

    identity: Identity
    weather: Weather


class Alive(msgspec.Struct, frozen=True, kw_only=True, tag="alive"):
    """The worker is about to run this variant."""

    variant: str


class Row(msgspec.Struct, frozen=True, kw_only=True, tag="row"):
    """A finished case."""

    record: Record


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The task is finished."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The worker cannot work at all (no such device)."""

    message: str


Event = Ready | Alive | Row | Done | Refused
