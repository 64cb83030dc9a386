"""Build a report: from a run's records to the files that a person sends to a colleague."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from attnprof.core.errors import StoreError
from attnprof.report.benchmark_json import write_benchmark_json
from attnprof.report.charts import series_charts
from attnprof.report.charts_base import Chart
from attnprof.report.charts_capacity import capacity_chart
from attnprof.report.charts_data import SeriesData, series_data, styles
from attnprof.report.charts_map import best_map
from attnprof.report.charts_prediction import prediction_chart
from attnprof.report.charts_roof import roofline_chart
from attnprof.report.export import results_csv, write_results_json, write_results_parquet
from attnprof.report.html import Figures, report_html
from attnprof.report.load import Results
from attnprof.report.markdown import results_md
from attnprof.report.words import Paragraph, story
from attnprof.store.traces import StoredTrace

MAX_SERIES = 12  # in the page's selector; the table holds every row
STATIC_SERIES = 3  # all are drawn as PNG and SVG up to so many; of more only the first
MAX_CURVES = 4
PNG_SCALE = 2


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report before it is written: what it says and what it draws."""

    title: str
    story: tuple[Paragraph, ...]
    fixed: tuple[Chart, ...]
    figures: tuple[Figures, ...]


def build(results: Results, title: str) -> Report:
    """Everything that the report's files are made of."""
    all_styles = styles([row.variant for row in results.rows])
    data = series_data(results.answers, all_styles)
    figures = tuple(
        Figures(label=str(each.series), charts=_charts(each, results), left_out=each.left_out)
        for each in data[:MAX_SERIES]
    )
    return Report(
        title=title,
        story=story(results.answers, results.rows, results.damaged, results.ceilings[1]),
        fixed=(
            best_map(results.answers, all_styles),
            prediction_chart(results.records, results.manifest, all_styles),
            *_capacity_charts(results),
        ),
        figures=figures,
    )


def _capacity_charts(results: Results) -> tuple[Chart, ...]:
    """A curve per trace that was kept beside the run; none kept is said with the way to get one."""
    drawn = [trace for trace in results.traces if trace.curve and trace.curve.points][:MAX_CURVES]
    if not drawn:
        reason = "no trace in the run directory: attnprof trace VARIANT --curve --json > DIR/trace.json"
        return (Chart(name="capacity", title="Capacity curve", caption="", reason=reason),)
    return tuple(
        msgspec.structs.replace(_curve(trace), name=f"capacity{f'-{index}' if index > 1 else ''}")
        for index, trace in enumerate(drawn, start=1)
    )


def _curve(trace: StoredTrace) -> Chart:
    assert trace.curve is not None
    models = {"compulsory": trace.compulsory_bytes}
    return capacity_chart(
        f"{trace.variant}: {trace.description}",
        [(point.capacity_bytes, point.read_bytes, point.write_bytes) for point in trace.curve.points],
        models | ({"logical": trace.logical.total_bytes} if trace.logical else {}),
        [(mark.name, mark.capacity_bytes) for mark in trace.curve.marks],
        trace.policy,
    )


def _charts(data: SeriesData, results: Results) -> tuple[Chart, ...]:
    *first, error = series_charts(data)
    return (*first, roofline_chart(data, *results.ceilings), error)


def write_report(results: Results, made: Report, out: Path) -> tuple[Path, ...]:
    """Write report.html, RESULTS.md, results.* and each chart as PNG and SVG; return their paths.

    Raises: StoreError when the directory cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        images = _write_images(made, out / "charts")
        page = report_html(made.title, made.story, made.fixed, made.figures, results.rows, results.manifest)
        (out / "report.html").write_text(page, encoding="utf-8")
        (out / "results.csv").write_text(results_csv(results.rows), encoding="utf-8")
        write_results_json(results.rows, out / "results.json")
        write_benchmark_json(results.run, out / "benchmark.json")
        write_results_parquet(results.rows, out / "results.parquet")
        shown = [(chart, f"charts/{path.name}") for chart, path in images if path.suffix == ".svg"]
        text = results_md(made.story, results.answers, shown, results.manifest)
        (out / "RESULTS.md").write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"report in {str(out)!r} cannot be written: {error.strerror}; choose another --out"
        ) from error
    names = ("report.html", "RESULTS.md", "results.csv", "results.json", "results.parquet", "benchmark.json")
    return (*(out / name for name in names), *(path for _, path in images))


def _write_images(made: Report, directory: Path) -> list[tuple[Chart, Path]]:
    """PNG and SVG of the charts of up to three series (with a number from the second on), and of the whole run's."""
    directory.mkdir(exist_ok=True)
    written: list[tuple[Chart, Path]] = []
    drawn = made.figures if len(made.figures) <= STATIC_SERIES else made.figures[:1]
    for index, figures in enumerate(drawn):
        suffix = f"-{index + 1}" if index else ""
        written += _draw_all(figures.charts, figures.label, suffix, directory)
    return written + _draw_all(made.fixed, "", "", directory)


def _draw_all(charts: Sequence[Chart], label: str, suffix: str, directory: Path) -> list[tuple[Chart, Path]]:
    import vl_convert

    written = []
    for chart in charts:
        if chart.spec is None:
            continue
        titled = chart.spec | {"title": {"text": chart.title, "subtitle": label}, "background": "white"}
        png, svg = (directory / f"{chart.name}{suffix}.{kind}" for kind in ("png", "svg"))
        drawn = vl_convert.vegalite_to_svg(titled)
        svg.write_text(drawn, encoding="utf-8")
        png.write_bytes(vl_convert.svg_to_png(drawn, scale=PNG_SCALE))
        named = msgspec.structs.replace(chart, title=f"{chart.title}, {label}" if label else chart.title)
        written += [(named, png), (named, svg)]
    return written
