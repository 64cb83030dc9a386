"""Prediction against published measurements, left out by shape and by source, beside two rooflines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from attnprof.predict.cases import Floats
from attnprof.predict.fit import shipped
from attnprof.predict.leaving_out import LEAVING_OUT, Outcome, stated_s
from attnprof.predict.published import PublishedRow, SkippedRow, parse_rows

IMPLAUSIBLE = 2.0  # times the datasheet roofline: beyond it a row is not compared
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


def validate(text: str, modes: Sequence[str] = ("shapes", "source")) -> Validation:
    """Predict every row of a CSV that can be predicted, in each way of leaving rows out.

    Raises: InvalidInput when the CSV lacks a column.
    """
    rows, skipped = parse_rows(text)
    stated = [row for row in rows if row.seconds is not None]
    timed = [row for row in stated if roofline_s(row) <= IMPLAUSIBLE * stated_s(row)]
    memory, memory_skipped = _memory(rows)
    outcomes = {
        mode: LEAVING_OUT[mode](timed) if timed else Outcome(np.zeros(0), np.zeros(0)) for mode in modes
    }
    reports = {mode: _report(mode, timed, outcomes[mode], memory) for mode in modes}
    head = reports[modes[0]]
    skips = [*skipped, *memory_skipped, *_implausible(stated)]
    return Validation(
        mode=modes[0], rows=len(rows) + len(skipped), predicted=len(timed) + len(memory),
        skipped=dict(Counter(skip.reason for skip in skips).most_common()),
        median_abs_rel_error=head.median_abs_rel_error, p90_abs_rel_error=head.p90_abs_rel_error, bias=head.bias,
        interval_coverage=head.interval_coverage, baselines=baselines(timed), groups=head.groups, modes=reports,
        sources_in_fit=tuple(sorted({row.source for row in timed} & set(shipped().sources))),
        above_peak=tuple(_above_peak(stated)), skipped_rows=tuple(_noted(skips)),
        worst=tuple(_worst(timed, outcomes[modes[0]])),
    )  # fmt: skip


def baselines(rows: Sequence[PublishedRow]) -> dict[str, Errors]:
    """Errors of two rooflines: datasheet rates, and matmul rates as measured on the chip."""
    both = {}
    for name, sustained in (("datasheet_roofline", False), ("measured_matmul_roofline", True)):
        log_error = (
            np.log([roofline_s(row, sustained) / stated_s(row) for row in rows]) if rows else np.zeros(0)
        )
        both[name] = Errors(rows=len(rows), **_summary(log_error))
    return both


def roofline_s(row: PublishedRow, sustained: bool = False) -> float:
    """The larger of useful FLOPs over the matmul rate and compulsory bytes over the DRAM bandwidth."""
    chip = row.case.chip
    mean_rate = 2 / (1 / chip.peak(row.case.qk) + 1 / chip.peak(row.case.pv))
    rate = mean_rate * (chip.sustained if sustained else 1.0)
    return max(row.flops / rate, row.stored_bytes / chip.dram_bytes_per_s)


def _summary(log_error: Floats) -> dict[str, float | None]:
    """Median and 90th percentile of |predicted / stated - 1|, and the median of predicted / stated - 1."""
    if not len(log_error):
        return {"median_abs_rel_error": None, "p90_abs_rel_error": None, "bias": None}
    relative = np.expm1(log_error)
    return {"median_abs_rel_error": float(np.median(np.abs(relative))),
            "p90_abs_rel_error": float(np.quantile(np.abs(relative), 0.9)),
            "bias": float(np.median(relative))}  # fmt: skip


def _report(
    mode: str, rows: Sequence[PublishedRow], outcome: Outcome, memory: Sequence[tuple[PublishedRow, float]]
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
        share = roofline_s(row) / stated_s(row)
        if share > 1:
            detail = (f"{row.kernel}: {share:.1%} of the datasheet roofline of {row.case.chip.name} "
                      "(wrong rate, wrong count, cached, or clocked above the datasheet)")  # fmt: skip
            notes.append(
                RowNote(row=row.number, source=row.source, reason="above the chip's peak", detail=detail)
            )
    return notes


def _implausible(rows: Sequence[PublishedRow]) -> list[SkippedRow]:
    """Rows that state so much more than their chip can give that the number itself must be wrong."""
    found = [(row, roofline_s(row) / stated_s(row)) for row in rows]
    return [
        SkippedRow(
            number=row.number,
            source=row.source,
            reason="value is nonsense",
            detail=f"{share:.3g} times what {row.case.chip.name} can give by its datasheet",
        )
        for row, share in found
        if share > IMPLAUSIBLE
    ]


def _noted(skips: Sequence[SkippedRow]) -> list[RowNote]:
    return [RowNote(row=s.number, source=s.source, reason=s.reason, detail=s.detail) for s in skips]


def _worst(rows: Sequence[PublishedRow], outcome: Outcome, count: int = 10) -> list[RowNote]:
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
