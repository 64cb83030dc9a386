"""Predicted DRAM traffic: what of a schedule's requests the last-level cache does not answer.

Rule (wavefront): `resident` tiles run in lock-step and stream the same K and V. If the heads in flight fit the usable
share of the cache, re-reads are free and the traffic is compulsory; otherwise each wave streams K and V once. The claim
is always inside [compulsory, logical], and within a factor of two of the capacity only that bracket is claimed.

Source: data of the GB10 study (arXiv 2601.16032): misses start at 20 of 24 MiB, hit rate 1 - 1/48 beyond.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from attnprof.core.errors import InvalidInput
from attnprof.core.problem import Problem
from attnprof.core.schedules.formula import cdiv
from attnprof.core.traffic import Cost, Tiles

USABLE_SHARE = 0.8  # of the nominal last-level cache
MARGIN = 2.0
_STREAMED = ("K", "V")


class Regime(StrEnum):
    """Where the working set stands to the cache."""

    FITS = "fits"
    NEAR = "near the capacity"
    EXCEEDS = "exceeds"


class DramPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """Predicted DRAM bytes with their bracket; `claimed` is False where only the bracket is claimed."""

    value_bytes: int
    low_bytes: int
    high_bytes: int
    active_bytes: int
    llc_bytes: int
    waves: int
    regime: Regime
    why: str

    @property
    def claimed(self) -> bool:
        """Whether the value is claimed, not only the bracket."""
        return self.regime is not Regime.NEAR


def predict_dram(problem: Problem, cost: Cost, *, llc_bytes: int, resident: int = 1) -> DramPrediction:
    """DRAM bytes of one call on a device whose last-level cache holds `llc_bytes`, `resident` tiles at a time.

    Units: bytes; `resident` is SMs times thread blocks per SM (threads on a CPU).
    Raises: InvalidInput for a cache or a number of tiles below 1.
    """
    if llc_bytes < 1 or resident < 1:
        raise InvalidInput(f"llc_bytes={llc_bytes}, resident={resident}: both must be above 0")
    low = cost.compulsory.total_bytes
    high = max(cost.logical.total_bytes, low)
    if cost.tiles is None:
        active, waves, beyond = _eager_working_set(problem, cost), 1, high
    else:
        active, waves = _in_flight(problem, cost.tiles, resident)
        beyond = _streamed_by_waves(problem, cost, waves)
    regime = _regime(active, USABLE_SHARE * llc_bytes)
    value = low if active <= USABLE_SHARE * llc_bytes else min(max(beyond, low), high)
    return DramPrediction(
        value_bytes=value, low_bytes=low, high_bytes=high, active_bytes=active, llc_bytes=llc_bytes, waves=waves,
        regime=regime, why=_why(cost.tiles, active, llc_bytes, waves, regime),
    )  # fmt: skip


def _regime(active: int, usable: float) -> Regime:
    if usable / MARGIN < active < usable * MARGIN:
        return Regime.NEAR
    return Regime.FITS if active <= usable else Regime.EXCEEDS


def _eager_working_set(problem: Problem, cost: Cost) -> int:
    """Inputs and everything alive at the peak: operators touch all of it again and again."""
    return problem.compulsory_read_bytes + cost.peak_bytes


def _in_flight(problem: Problem, tiles: Tiles, resident: int) -> tuple[int, int]:
    """Bytes of K and V of the heads in flight with their Q and O tiles, and the waves that one head takes."""
    per_head = max(cdiv(problem.q_len, tiles.rows), 1)
    heads = min(cdiv(resident, per_head * problem.group), max(problem.batch, 1) * problem.kv_heads)
    row = problem.qk_dim + problem.v_dim
    keys = problem.storage(heads, problem.kv_len, row)
    return keys + problem.storage(min(resident, per_head) * tiles.rows, row), cdiv(per_head, resident)


def _streamed_by_waves(problem: Problem, cost: Cost, waves: int) -> int:
    """All terms but K and V as they are; K and V once per wave (as much of them as the mask shows a tile)."""
    terms = cost.logical.terms
    streamed = sum(t.read_bytes for t in terms if t.tensor in _STREAMED)
    rest = cost.logical.total_bytes - streamed
    assert cost.tiles is not None
    tiles = max(cdiv(problem.q_len, cost.tiles.rows), 1) * problem.group
    return rest + cdiv(streamed * waves, tiles)


def _why(tiles: Tiles | None, active: int, llc_bytes: int, waves: int, regime: Regime) -> str:
    what = "operands and temporaries" if tiles is None else "K and V in flight"
    mib = f"{what} {active / 2**20:.3g} MiB, {USABLE_SHARE:.0%} of the cache {USABLE_SHARE * llc_bytes / 2**20:.3g} MiB"
    if regime is Regime.NEAR:
        return f"{mib}: within a factor of 2, only the bracket is claimed"
    if regime is Regime.FITS:
        return f"{mib}: re-reads are free"
    return f"{mib}: " + (
        "every pass reaches DRAM" if tiles is None else f"K and V once per wave, {waves} waves"
    )
