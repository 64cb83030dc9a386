"""Which constants may judge which row: rows left out by shape and by source."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from attnprof.predict.cases import Bools, Columns, Floats
from attnprof.predict.fit import DEFAULT_SPREAD, Fit, Spread, fit_constants, half_width, predicted_s, shipped
from attnprof.predict.published import PublishedRow, packaged_text, parse_rows
from attnprof.predict.residual import Labels, Rows, calibrate

FOLDS = 5
NORMAL_80 = 1.2816
CALIBRATED_SCALE = 0.8  # on the process's standard deviation, so that 80% of left-out rows fall inside


@dataclass(frozen=True)
class Outcome:
    """Log error (predicted over stated time) and half-width of the 80% interval of every row."""

    log_error: Floats
    half_width: Floats


def fit_rows(rows: Sequence[PublishedRow], spread: Spread | None = None) -> Fit:
    """Constants from published rows; a group of source, chip, kernel and pass weighs as the root of its rows."""
    rows = [rows[i] for i in _one_each(rows, np.arange(len(rows)))]
    groups = [(row.source, row.gpu, row.kernel, row.case.direction) for row in rows]
    sizes = Counter(groups)
    weights = np.array([sizes[group] ** -0.5 for group in groups])
    seconds = np.array([stated_s(row) for row in rows])
    sources = [row.source for row in rows]
    return fit_constants([row.case for row in rows], seconds, weights, sources, spread or DEFAULT_SPREAD)


@cache
def packaged_rows() -> tuple[PublishedRow, ...]:
    """The timed rows that the shipped constants were fitted on."""
    return tuple(row for row in parse_rows(packaged_text())[0] if row.seconds is not None)


def leave_source_out(rows: Sequence[PublishedRow]) -> Outcome:
    """Every row by constants that saw nothing of its source; a source not in the shipped fit takes the shipped ones."""
    log_error, widths = np.zeros(len(rows)), np.zeros(len(rows))
    for source in sorted({row.source for row in rows}):
        mine = np.array([row.source == source for row in rows])
        fit = _fit_without(source)
        columns = Columns([row.case for row in rows if row.source == source])
        log_error[mine] = np.log(predicted_s(columns, fit)) - _log_s([r for r in rows if r.source == source])
        widths[mine] = half_width(columns, fit)
    return Outcome(log_error, widths)


def leave_shapes_out(rows: Sequence[PublishedRow]) -> Outcome:
    """Five folds by shape (sizes and dims, whatever mask, pass, kernel, device): the source's rest calibrates."""
    folds = np.array([_fold(row) for row in rows])
    stated, columns = _log_s(rows), Columns([row.case for row in rows])
    fits = [_fit_without_shapes(rows, folds != fold) for fold in range(FOLDS)]
    bases = [np.log(predicted_s(columns, fit)) for fit in fits]
    log_error, widths = np.zeros(len(rows)), np.zeros(len(rows))
    for source in sorted({row.source for row in rows}):
        mine = np.flatnonzero([row.source == source for row in rows])
        own = Rows([rows[i] for i in mine.tolist()])
        for fold, (fit, base) in enumerate(zip(fits, bases, strict=True)):
            wanted, known = np.flatnonzero(folds[mine] == fold), np.flatnonzero(folds[mine] != fold)
            shift, width = _shifted(own, (stated - base)[mine], known, wanted)
            if width is None:
                width = half_width(Columns([own.rows[i].case for i in wanted.tolist()]), fit)
            log_error[mine[wanted]], widths[mine[wanted]] = (base - stated)[mine[wanted]] + shift, width
    return Outcome(log_error, widths)


def _shifted(own: Rows, left_over: Floats, known: Labels, wanted: Labels) -> tuple[Floats, Floats | None]:
    """Calibration of the wanted rows; no shift, and no width of its own, where the source has no other shape."""
    unique = _one_each(own.rows, known)
    if not len(unique) or not len(wanted):
        return np.zeros(len(wanted)), None
    shift, deviation = calibrate(own, left_over, unique, wanted)
    return shift, deviation * NORMAL_80 * CALIBRATED_SCALE


LEAVING_OUT: dict[str, Callable[[Sequence[PublishedRow]], Outcome]] = {
    "shapes": leave_shapes_out,
    "source": leave_source_out,
}


@cache
def _fit_without(source: str) -> Fit:
    if source not in shipped().sources:
        return shipped()
    return fit_rows([row for row in packaged_rows() if row.source != source], shipped().spread)


def _fit_without_shapes(rows: Sequence[PublishedRow], kept: Bools) -> Fit:
    """Shipped constants for foreign sources; otherwise the packaged rows without the shapes that are left out."""
    if not {row.source for row in rows} & set(shipped().sources):
        return shipped()
    hidden = {(row.source, _shape(row)) for row, keep in zip(rows, kept, strict=True) if not keep}
    return fit_rows(
        [row for row in packaged_rows() if (row.source, _shape(row)) not in hidden], shipped().spread
    )


def _shape(row: PublishedRow) -> tuple[int, ...]:
    c = row.case
    return (c.batch, c.q_heads, c.kv_heads, c.q_len, c.kv_len, c.qk_dim, c.v_dim)


def _fold(row: PublishedRow) -> int:
    """A fold that depends on the shape only, the same in every run."""
    return zlib.crc32(repr((row.source, _shape(row))).encode()) % FOLDS


def _one_each(rows: Sequence[PublishedRow], indices: Labels) -> Labels:
    """One row for a measurement that is stated as time and as rate."""
    chosen: dict[object, int] = {}
    for i in indices.tolist():
        row = rows[i]
        key = (row.source, row.setup, row.address, row.case.causal, row.case.windowed, _shape(row))
        if key not in chosen or row.metric == "time":
            chosen[key] = i
    return np.array(sorted(chosen.values()), dtype=np.intp)


def stated_s(row: PublishedRow) -> float:
    """The time that a row states or implies. Raises: ValueError for a row about memory."""
    if row.seconds is None:
        raise ValueError(f"row {row.number} states no time")
    return row.seconds


def _log_s(rows: Sequence[PublishedRow]) -> Floats:
    return np.log([stated_s(row) for row in rows])
