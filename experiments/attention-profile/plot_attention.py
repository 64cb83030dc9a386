"""Plots of both runs and of the published RTX 2070 figures, as PNG and SVG in plots/.

python plot_attention.py
"""

from __future__ import annotations

from typing import Any

from study import PLOTS, published_table, results

from attnprof.report.charts import memory_chart, rate_chart, speedup_chart, time_chart
from attnprof.report.charts_base import Pen, log_y, padded
from attnprof.report.charts_data import SeriesData, series_data, styles, tidy

DRAWN = (time_chart, speedup_chart, memory_chart, rate_chart)
PUBLISHED_PLOTS = (
    ("time_us", "time of one call (µs)", "Time against length, RTX 2070, batch 1 (published)"),
    ("peak_mb", "peak memory (MB)", "Peak memory, RTX 2070, batch 1 (published: two lengths)"),
)


def main() -> None:
    """Draw everything."""
    PLOTS.mkdir(exist_ok=True)
    for name in ("v1", "v2"):
        read = results(name)
        for data in series_data(read.answers, styles([row.variant for row in read.rows])):
            plot_series(name, data)
    for metric, axis, title in PUBLISHED_PLOTS:
        save(f"rtx2070_{metric}", published_spec(metric, axis, title))
    print(f"plots in {PLOTS.name}/: {', '.join(sorted(path.name for path in PLOTS.glob('*.png')))}")


def plot_series(name: str, data: SeriesData) -> None:
    """Time, speed-up, memory and rate of one batch size."""
    for draw in DRAWN:
        chart = draw(Pen(data), tidy(data))
        if chart.spec is not None:
            title = {"text": chart.title, "subtitle": str(data.series)}
            save(
                f"{name}_{chart.name}_b{data.series.batch}",
                chart.spec | {"title": title, "background": "white"},
            )


def published_spec(metric: str, axis: str, title: str) -> dict[str, Any]:
    """The published figures, log-log, in the variants' usual colours and markers."""
    import altair as alt

    table = published_table(metric)
    marks = styles(list(table))
    points = [
        {"variant": name, "length": length, "value": value}
        for name, by_length in table.items()
        for length, value in by_length.items()
    ]
    domain = list(marks)
    color = alt.Color("variant:N", scale=alt.Scale(domain=domain, range=[marks[n].color for n in domain]))
    shape = alt.Shape("variant:N", scale=alt.Scale(domain=domain, range=[marks[n].shape for n in domain]))
    lengths = sorted({point["length"] for point in points})
    scale = alt.Scale(type="log", base=2, domain=padded(lengths, 1.15), nice=False)
    x = alt.X(
        "length:Q", title="sequence length N (tokens)", axis=alt.Axis(values=lengths, format="d"), scale=scale
    )
    y = alt.Y("value:Q", title=axis, scale=log_y([point["value"] for point in points]))
    drawn = alt.Chart(alt.Data(values=points), title=title, width=640, height=360)
    lines = drawn.mark_line().encode(x=x, y=y, color=color)
    points_drawn = drawn.mark_point(size=70, filled=True).encode(x=x, y=y, color=color, shape=shape)
    return (lines + points_drawn).properties(background="white").to_dict()


def save(name: str, spec: dict[str, Any]) -> None:
    """One chart as PNG and SVG."""
    import vl_convert

    (PLOTS / f"{name}.png").write_bytes(vl_convert.vegalite_to_png(spec, scale=1))
    (PLOTS / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")


if __name__ == "__main__":
    main()
