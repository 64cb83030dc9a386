"""Where a row stands under the ceilings of its device: bound, binding resource, shares, alarms."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from attnprof.core.ceilings import Ceilings
from attnprof.core.errors import StoreError
from attnprof.core.record import Identity, Record
from attnprof.core.roofline import Placement, Resource, place

MICRO = 1e6


def stored_ceilings(identity: Identity | None, directory: Path | None = None) -> tuple[Ceilings | None, str]:
    """The ceilings of a run's device: those kept in the run directory, else this machine's; or None and the reason."""
    from attnprof.store.ceilings import RUN_CEILINGS, ceilings_for

    if identity is None:
        return None, "the run's device is unknown"
    try:
        kept = directory / RUN_CEILINGS if directory else None
        return ceilings_for(identity, kept if kept and kept.is_file() else None), ""
    except StoreError as error:
        return None, str(error)


def placement(record: Record, ceilings: Ceilings | None) -> Placement | None:
    """A record under its device's roof; None without ceilings, cost, or a ceiling for the element type."""
    if ceilings is None or record.cost is None:
        return None
    done = record.measured
    seconds = median(done.samples_s) if done and done.samples_s else None
    placed = place(record.cost, seconds, ceilings.roof(record.problem.dtype), cache=record.cache)
    return placed if placed.shares else None


def placed_columns(placed: Placement | None) -> dict[str, Any]:
    """The row's columns that follow from a placement."""
    if placed is None:
        return {}
    matmul, memory, exp = (placed.share(kind) for kind in (Resource.MATMUL, Resource.MEMORY, Resource.EXP))
    return {
        "bound_us": None if placed.bound_s is None else placed.bound_s * MICRO,
        "binding": placed.binding,
        "times_bound": placed.times_bound,
        "matmul_share": matmul.share if matmul else None,
        "exp_share": exp.share if exp else None,
        "memory_share": memory.share if memory else None,
        "memory_level": memory.level or None if memory else None,
        "ceilings_basis": placed.basis or None,
    }
