"""Two measurements of one question, compared round by round."""

from __future__ import annotations

from typing import NamedTuple

from attnprof.core.record import Measured
from attnprof.core.stats import by_round, paired_ratio

MIN_SAMPLES = 6  # below it no 95% interval of a median exists


class Paired(NamedTuple):
    """Median of the ratios of one round each; the interval is None below six shared rounds."""

    value: float
    low: float | None
    high: float | None


def paired(base: Measured, mine: Measured) -> Paired | None:
    """How many times as long `base` took as `mine` (above 1: `mine` is faster); None when no round is shared."""
    ours, theirs = (by_round(done.samples_s, done.rounds) for done in (mine, base))
    ours = {number: value for number, value in ours.items() if value > 0}
    shared = len(ours.keys() & theirs.keys())
    if not shared:
        return None
    ratio = paired_ratio(theirs, ours)
    return Paired(*ratio) if shared >= MIN_SAMPLES else Paired(ratio.value, None, None)
