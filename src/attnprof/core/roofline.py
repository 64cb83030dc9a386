"""Roofline of one row: the share of each ceiling that a measured time reaches, and which resource binds."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from attnprof.core.ceilings import Level, Roof
from attnprof.core.record import Judgment, Severity
from attnprof.core.traffic import Cost, Traffic
from attnprof.core.units import format_bytes, format_si

ABOVE_CEILING = "above_ceiling"
NEARLY_HELD = 2.0  # up to so many times its capacity a level still serves part of a working set


class Resource(StrEnum):
    """What a kernel can be held up by. `FLOOR` is the cost of an empty call."""

    MATMUL = "matmul"
    EXP = "exp"
    MEMORY = "memory"
    FLOOR = "floor"


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One resource: the work asked of it, its ceiling, the least time that follows, and the share reached.

    Units: `work` in FLOP, exponentials or bytes; `ceiling_per_s` the same per second; `share` 0-1 (above 1
    only beside an alarm). None where ceiling or measured time do not exist; `reason` then says why.
    """

    resource: Resource
    level: str = ""
    work: int
    ceiling_per_s: float | None = None
    least_s: float | None = None
    rate_per_s: float | None = None
    share: float | None = None
    reason: str = ""

    @property
    def name(self) -> str:
        """The resource, with the level of memory where it has one."""
        return f"{self.level} bytes" if self.level else str(self.resource)


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where a row stands under a roof.

    `bound_s` is the largest least time of its resources, `binding` the resource that sets it, `times_bound`
    the measured time over it. All None, with a `reason`, where no ceiling is known.
    """

    device: str = ""
    basis: str = ""
    shares: tuple[Share, ...] = ()
    binding: str | None = None
    bound_s: float | None = None
    times_bound: float | None = None
    ridge_flops_per_byte: float | None = None
    intensity_flops_per_byte: float | None = None
    judgments: tuple[Judgment, ...] = ()
    reason: str = ""

    def share(self, resource: Resource) -> Share | None:
        """The share of one resource; None when it was not placed."""
        return next((share for share in self.shares if share.resource is resource), None)


def unplaced(reason: str) -> Placement:
    """The placement of a row whose device has no known ceilings: every figure is n/a, for this reason."""
    return Placement(reason=reason)


def place(
    cost: Cost,
    seconds: float | None,
    roof: Roof,
    *,
    traffic: Traffic | None = None,
    cache: str = "cold",
) -> Placement:
    """Shares of each ceiling for a cost and a measured time (None places the bound alone).

    Bytes are the compulsory ones, a lower bound for any method, unless the kernel's own `traffic` with main
    memory is given. With a warm cache they are held against the nearest level that holds the working set,
    where its bandwidth is known; else against main memory.
    """
    level = _level(cost, roof, cache)
    moved = (traffic or cost.compulsory).total_bytes
    shares = tuple(
        share
        for share in (
            _share(
                Resource.MATMUL, cost.useful_flops, roof.flops_per_s, seconds, what=f"{roof.dtype} matmul"
            ),
            _share(Resource.EXP, cost.exp_ops, roof.exp_per_s, seconds, what="exp"),
            _share(
                Resource.MEMORY,
                moved,
                level.bytes_per_s,
                seconds,
                what=f"{level.name} bandwidth",
                level=level.name,
            ),
            _floor(roof.floor_s, seconds),
        )
        if share is not None
    )
    known = [(share.least_s, share.name) for share in shares if share.least_s is not None]
    if not any(share.least_s is not None for share in shares if share.resource is not Resource.FLOOR):
        return unplaced(f"no ceiling of {roof.device} is known for {roof.dtype}")
    bound_s, binding = max(known)
    return Placement(
        device=roof.device,
        basis=roof.basis,
        shares=shares,
        binding=binding if bound_s else None,
        bound_s=bound_s,
        times_bound=seconds / bound_s if seconds is not None and bound_s else None,
        ridge_flops_per_byte=roof.ridge_flops_per_byte,
        intensity_flops_per_byte=cost.useful_flops / moved if moved else None,
        judgments=tuple(_alarm(share, cost, roof) for share in shares if share.share and share.share > 1),
    )


def _level(cost: Cost, roof: Roof, cache: str) -> Level:
    if cache == "cold":
        return roof.main_memory
    holding = roof.holding(cost.compulsory.total_bytes)
    return holding if holding.bytes_per_s else roof.main_memory


def _share(
    resource: Resource, work: int, ceiling: float | None, seconds: float | None, *, what: str, level: str = ""
) -> Share:
    if ceiling is None:
        return Share(resource=resource, level=level, work=work, reason=f"no {what} figure for this device")
    rate = work / seconds if seconds else None
    return Share(
        resource=resource,
        level=level,
        work=work,
        ceiling_per_s=ceiling,
        least_s=work / ceiling,
        rate_per_s=rate,
        share=None if rate is None else rate / ceiling,
        reason="" if seconds else "no measured time",
    )


def _floor(floor_s: float | None, seconds: float | None) -> Share | None:
    """The empty call as a resource: one call, so many calls a second at most."""
    return _share(Resource.FLOOR, 1, 1 / floor_s, seconds, what="floor") if floor_s else None


def _alarm(share: Share, cost: Cost, roof: Roof) -> Judgment:
    """A rate above its ceiling: one of the two is wrong, or the bytes never came from that level."""
    unit = {
        Resource.MATMUL: "FLOP/s",
        Resource.EXP: "exp/s",
        Resource.MEMORY: "B/s",
        Resource.FLOOR: "calls/s",
    }
    assert share.share is not None
    assert share.rate_per_s is not None
    assert share.ceiling_per_s is not None
    rate, ceiling = (
        format_si(value, unit[share.resource]) for value in (share.rate_per_s, share.ceiling_per_s)
    )
    message = f"{share.name}: {rate} is {share.share:.2%} of the {roof.basis} ceiling {ceiling}"
    return Judgment(
        code=ABOVE_CEILING, message=message, remedy=_remedy(share, cost, roof), severity=Severity.ALARM
    )


def _remedy(share: Share, cost: Cost, roof: Roof) -> str:
    if share.resource is not Resource.MEMORY:
        return (
            "the ceiling is too low (boost clock, other chip) or the work is overcounted (causal): check both"
        )
    near = roof.holding(cost.compulsory.total_bytes, share=NEARLY_HELD)
    if near.name != share.level:
        size = format_bytes(cost.compulsory.total_bytes)
        return (
            f"the {size} may stay in {near.name}: measure with a cold cache, or check ceiling and byte count"
        )
    return "the ceiling is too low or the bytes are overcounted: check both"
