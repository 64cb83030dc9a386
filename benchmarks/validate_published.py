"""Write the error tables of the packaged published measurements, and the RTX 2070 profile, as Markdown.

Run: python benchmarks/validate_published.py > docs/results/published.md
"""

from __future__ import annotations

from attnprof.core.units import MIB
from attnprof.predict.cases import Columns
from attnprof.predict.fit import predicted_s, shipped
from attnprof.predict.leaving_out import leave_source_out
from attnprof.predict.memory import library_workspace_bytes, published_peak_bytes
from attnprof.predict.published import PublishedRow, packaged_text, parse_rows
from attnprof.predict.validation import Errors, Group, ModeReport, Validation, validate

PROFILE = "RTX 2070"
OUTLIER = 1.5


def main() -> None:
    """Print the page."""
    result = validate(packaged_text())
    print(
        "# Prediction against published measurements\n\nMade by `python benchmarks/validate_published.py`.\n"
    )
    print(f"{result.rows} rows, {result.predicted} predicted. Left out: "
          + "; ".join(f"{count} ({reason})" for reason, count in result.skipped.items()) + ".\n")  # fmt: skip
    _summary(result)
    for report in result.modes.values():
        _groups(report)
    _notes(result)
    _profile([row for row in parse_rows(packaged_text())[0] if row.gpu == PROFILE])


def _summary(result: Validation) -> None:
    print("| prediction | rows | median | 90th percentile | bias | inside the 80% interval |")
    print("|---|--:|--:|--:|--:|--:|")
    for report in result.modes.values():
        print(f"| {report.meaning} | {report.rows} | {_figures(report)} | {report.interval_coverage:.0%} |")
    for name, errors in result.baselines.items():
        print(f"| {name.replace('_', ' ')} | {errors.rows} | {_figures(errors)} | n/a |")


def _groups(report: ModeReport) -> None:
    print(
        f"\n## {report.meaning}\n\n| by | name | rows | median | 90th percentile | bias |\n|---|---|--:|--:|--:|--:|"
    )
    for group in report.groups:
        print(f"| {group.by} | {group.name} | {group.rows} | {_figures(group)} |")


def _figures(errors: Errors | Group | ModeReport) -> str:
    shares = (errors.median_abs_rel_error, errors.p90_abs_rel_error)
    plain = [f"{share:.1%}" for share in shares if share is not None]
    return " | ".join([*plain, f"{errors.bias:+.1%}"])


def _notes(result: Validation) -> None:
    for title, notes in (("Rows above the chip's peak", result.above_peak), ("Largest errors", result.worst)):
        print(f"\n## {title}\n")
        for note in notes:
            print(f"- row {note.row} ({note.source}): {note.detail}")


def _profile(rows: list[PublishedRow]) -> None:
    timed = [row for row in rows if row.seconds is not None]
    fitted = predicted_s(Columns([row.case for row in timed]), shipped())
    unseen = leave_source_out(timed).log_error
    print(
        f"\n## The {PROFILE} profile\n\n| variant | length | stated us | predicted us | ratio | source unseen |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for row, seconds, error in zip(timed, fitted, unseen, strict=True):
        ratio = seconds / (row.seconds or 1)
        mark = " outlier" if not 1 / OUTLIER < ratio < OUTLIER else ""
        print(f"| {row.kernel} | {row.case.q_len} | {row.value * 1e6:.0f} | {seconds * 1e6:.0f} | {ratio:.2f}{mark} | "
              f"{2.718281828**error:.2f} |")  # fmt: skip
    print("\n| variant | length | stated peak | predicted MiB | error | of it cuBLAS workspace |")
    print("|---|--:|--:|--:|--:|--:|")
    workspace = library_workspace_bytes(7.5) / MIB
    for row in rows:
        peak = published_peak_bytes(row)
        if row.metric == "peak_mem" and peak is not None:
            print(f"| {row.kernel} | {row.case.q_len} | {row.value / 1e6:g} | {peak / 1e6:.1f} | "
                  f"{peak / row.value - 1:+.1%} | {workspace:.3f} |")  # fmt: skip


if __name__ == "__main__":
    main()
