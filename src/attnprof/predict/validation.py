"""Prediction against published measurements, left out by shape and by source, beside two rooflines."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np

from attnprof.predict.cases import Bools, Columns, Floats
from attnprof.predict.fit import DEFAULT_SPREAD, Fit, Spread, fit_constants, half_width, predicted_s, shipped
from attnprof.predict.published import PublishedRow, SkippedRow, packaged_text, parse_rows
from attnprof.predict.residual import Labels, Rows, calibrate

FOLDS = 5
NORMAL_80 = 1.2816
CALIBRATED_SCALE = (
    0.8  # on the Gaussian process's standard deviation, so that 80% of left-out rows fall inside
)
_GROUPINGS = ("kernel", "gpu", "source", "pass", "metric")


class Errors(msgspec.Struct, frozen=True, kw_only=True):
    """Relative errors of predicted values: `bias` is the median signed error; None without rows."""

    rows: int
    median_abs_rel_error: float | None
    p90_abs_rel_error: float | None
    bias: float | None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of the rows that share one value of one column."""

    by: str
    name: str
    rows: int
    median_abs_rel_error: float | None
    p90_abs_rel_error: float | None
    bias: float | None


class ModeReport(msgspec.Struct, frozen=True, kw_only=True):
    """One way of leaving rows out; `interval_coverage` is the share of rows inside the stated 80% interval."""

    mode: str
    meaning: str
    rows: int
    median_abs_rel_error: float | None
    p90_abs_rel_error: float | None
    bias: float | None
    interval_coverage: float | None
    groups: tuple[Group, ...]


class RowNote(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is named, and why. `row` is its line in the file, the header being 1."""

    row: int
    source: str
    reason: str
    detail: str


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """The whole comparison. The figures at the top are those of `mode`."""

    mode: str
    rows: int
    predicted: int
    skipped: dict[str, int]
    median_abs_rel_error: float | None
    p90_abs_rel_error: float | None
    bias: float | None
    interval_coverage: float | None
    baselines: dict[str, Errors]
    groups: tuple[Group, ...]
    modes: dict[str, ModeReport]
    sources_in_fit: tuple[str, ...]
    above_peak: tuple[RowNote, ...]
    skipped_rows: tuple[RowNote, ...]
    worst: tuple[RowNote, ...]


MEANINGS = {
    "shapes": "leave shapes out: fitted without the row's shape, then calibrated on its source's other shapes",
    "source": "leave the source out: fitted on the other sources only, nothing of the row's source seen",
}


@dataclass(frozen=True)
class _Outcome:
    """Log error (predicted over stated time) and half-width of the 80% interval of every row."""

    log_error: Floats
    half_width: Floats


def validate(text: str, modes: Sequence[str] = ("shapes", "source")) -> Validation:
    """Predict every row of a CSV that can be predicted, in each way of leaving rows out.

    Raises: InvalidInput when the CSV lacks a column.
    """
    rows, skipped = parse_rows(text)
    timed = [row for row in rows if row.seconds is not None]
    memory, memory_skipped = _memory(rows)
    outcomes = {
        mode: _LEAVING_OUT[mode](timed) if timed else _Outcome(np.zeros(0), np.zeros(0)) for mode in modes
    }
    reports = {mode: _report(mode, timed, outcomes[mode], memory) for mode in modes}
    head = reports[modes[0]]
    skips = [*skipped, *memory_skipped]
    return Validation(
        mode=modes[0], rows=len(rows) + len(skipped), predicted=len(timed) + len(memory),
        skipped=dict(Counter(skip.reason for skip in skips).most_common()),
        median_abs_rel_error=head.median_abs_rel_error, p90_abs_rel_error=head.p90_abs_rel_error, bias=head.bias,
        interval_coverage=head.interval_coverage, baselines=baselines(timed), groups=head.groups, modes=reports,
        sources_in_fit=tuple(sorted({row.source for row in timed} & set(shipped().sources))),
        above_peak=tuple(_above_peak(timed)), skipped_rows=tuple(_noted(skips)),
        worst=tuple(_worst(timed, outcomes[modes[0]])),
    )  # fmt: skip


def baselines(rows: Sequence[PublishedRow]) -> dict[str, Errors]:
    """Errors of two rooflines: datasheet rates, and matmul rates as measured on the chip."""
    both = {}
    for name, sustained in (("datasheet_roofline", False), ("measured_matmul_roofline", True)):
        log_error = (
            np.log([roofline_s(row, sustained) / _seconds(row) for row in rows]) if rows else np.zeros(0)
        )
        both[name] = Errors(rows=len(rows), **_summary(log_error))
    return both


def roofline_s(row: PublishedRow, sustained: bool = False) -> float:
    """The larger of useful FLOPs over the matmul rate and compulsory bytes over the DRAM bandwidth."""
    chip = row.case.chip
    mean_rate = 2 / (1 / chip.peak(row.case.qk) + 1 / chip.peak(row.case.pv))
    rate = mean_rate * (chip.sustained if sustained else 1.0)
    return max(row.flops / rate, row.stored_bytes / chip.dram_bytes_per_s)


def fit_rows(rows: Sequence[PublishedRow], spread: Spread | None = None) -> Fit:
    """Constants from published rows; a group of source, chip, kernel and pass weighs as the root of its rows."""
    rows = [rows[i] for i in _one_each(rows, np.arange(len(rows)))]
    groups = [(row.source, row.gpu, row.kernel, row.case.direction) for row in rows]
    sizes = Counter(groups)
    weights = np.array([sizes[group] ** -0.5 for group in groups])
    seconds = np.array([_seconds(row) for row in rows])
    sources = [row.source for row in rows]
    return fit_constants([row.case for row in rows], seconds, weights, sources, spread or DEFAULT_SPREAD)


@cache
def packaged_rows() -> tuple[PublishedRow, ...]:
    """The timed rows that the shipped constants were fitted on."""
    return tuple(row for row in parse_rows(packaged_text())[0] if row.seconds is not None)


def leave_source_out(rows: Sequence[PublishedRow]) -> _Outcome:
    """Every row by constants that saw nothing of its source; a source not in the shipped fit takes the shipped ones."""
    log_error, widths = np.zeros(len(rows)), np.zeros(len(rows))
    for source in sorted({row.source for row in rows}):
        mine = np.array([row.source == source for row in rows])
        fit = _fit_without(source)
        columns = Columns([row.case for row in rows if row.source == source])
        log_error[mine] = np.log(predicted_s(columns, fit)) - _log_s([r for r in rows if r.source == source])
        widths[mine] = half_width(columns, fit)
    return _Outcome(log_error, widths)


def leave_shapes_out(rows: Sequence[PublishedRow]) -> _Outcome:
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
    return _Outcome(log_error, widths)


def _shifted(own: Rows, left_over: Floats, known: Labels, wanted: Labels) -> tuple[Floats, Floats | None]:
    """Calibration of the wanted rows; no shift, and no width of its own, where the source has no other shape."""
    unique = _one_each(own.rows, known)
    if not len(unique) or not len(wanted):
        return np.zeros(len(wanted)), None
    shift, deviation = calibrate(own, left_over, unique, wanted)
    return shift, deviation * NORMAL_80 * CALIBRATED_SCALE


_LEAVING_OUT: dict[str, Callable[[Sequence[PublishedRow]], _Outcome]] = {
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


def _seconds(row: PublishedRow) -> float:
    if row.seconds is None:
        raise ValueError(f"row {row.number} states no time")
    return row.seconds


def _log_s(rows: Sequence[PublishedRow]) -> Floats:
    return np.log([_seconds(row) for row in rows])


def _summary(log_error: Floats) -> dict[str, float | None]:
    """Median and 90th percentile of |predicted / stated - 1|, and the median of predicted / stated - 1."""
    if not len(log_error):
        return {"median_abs_rel_error": None, "p90_abs_rel_error": None, "bias": None}
    relative = np.expm1(log_error)
    return {"median_abs_rel_error": float(np.median(np.abs(relative))),
            "p90_abs_rel_error": float(np.quantile(np.abs(relative), 0.9)),
            "bias": float(np.median(relative))}  # fmt: skip


def _report(
    mode: str, rows: Sequence[PublishedRow], outcome: _Outcome, memory: Sequence[tuple[PublishedRow, float]]
) -> ModeReport:
    names = {by: [_name(row, by) for row in rows] for by in _GROUPINGS}
    groups = [
        Group(by=by, name=name, rows=labels.count(name), **_summary(outcome.log_error[np.array(labels) == name]))
        for by, labels in names.items() for name in sorted(set(labels))
    ]  # fmt: skip
    if memory:
        errors = np.array([error for _, error in memory])
        groups.append(Group(by="metric", name="peak_mem", rows=len(memory), **_summary(errors)))
    inside = np.abs(outcome.log_error) <= outcome.half_width
    return ModeReport(mode=mode, meaning=MEANINGS[mode], rows=len(rows), groups=tuple(groups),
                      interval_coverage=float(np.mean(inside)) if len(rows) else None,
                      **_summary(outcome.log_error))  # fmt: skip


def _name(row: PublishedRow, by: str) -> str:
    values = {"kernel": row.kernel, "gpu": row.gpu, "source": row.source, "pass": str(row.case.direction)}
    return values.get(by, row.metric)


def _memory(rows: Sequence[PublishedRow]) -> tuple[list[tuple[PublishedRow, float]], list[SkippedRow]]:
    """Log errors of the rows that state a peak memory."""
    from attnprof.predict.memory import published_peak_bytes

    found: list[tuple[PublishedRow, float]] = []
    skips: list[SkippedRow] = []
    for row in rows:
        if row.metric != "peak_mem":
            continue
        peak = published_peak_bytes(row)
        if peak is None:
            detail = f"no memory accounting for {row.kernel} in this setting"
            skips.append(
                SkippedRow(number=row.number, source=row.source, reason="no memory model", detail=detail)
            )
        else:
            found.append((row, float(np.log(peak / row.value))))
    return found, skips


def _above_peak(rows: Sequence[PublishedRow]) -> list[RowNote]:
    """Rows that state more than the chip's dense datasheet rate or DRAM bandwidth can give."""
    notes = []
    for row in rows:
        share = roofline_s(row) / _seconds(row)
        if share > 1:
            detail = (f"{row.kernel}: {share:.1%} of the datasheet roofline of {row.case.chip.name} "
                      "(wrong rate, wrong count, cached, or clocked above the datasheet)")  # fmt: skip
            notes.append(
                RowNote(row=row.number, source=row.source, reason="above the chip's peak", detail=detail)
            )
    return notes


def _noted(skips: Sequence[SkippedRow]) -> list[RowNote]:
    return [RowNote(row=s.number, source=s.source, reason=s.reason, detail=s.detail) for s in skips]


def _worst(rows: Sequence[PublishedRow], outcome: _Outcome, count: int = 10) -> list[RowNote]:
    """The rows with the largest errors: outliers named as such."""
    order = np.argsort(-np.abs(outcome.log_error))[:count]
    notes = []
    for i in order.tolist():
        ratio = f"predicted {np.exp(outcome.log_error[i]):.2f} of the stated time"
        detail = f"{rows[i].kernel} on {rows[i].gpu}, {rows[i].problem}: {ratio}"
        notes.append(
            RowNote(row=rows[i].number, source=rows[i].source, reason="largest error", detail=detail)
        )
    return notes
