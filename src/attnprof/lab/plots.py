"""The laboratory's two pictures, labelled so that they can stand alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnprof.core.units import MIB, format_bytes, format_si
from attnprof.lab.collect import PLOTTED, ROOFLINE_N, Data
from attnprof.lab.measure_bytes import CAPACITY, B_c
from attnprof.textbook import compare, ratio_limit

SCALE = 2.0
MOST_INTENSE = 1024.0  # FLOP/byte, right end of the roofline
NAIVE, FLASH, LEAST = "#C44E52", "#2A6FBB", "#5B8C5A"
SHAPES = ((64, 64), (64, 128), (128, 64), (128, 32))
Words = Mapping[str, str]


def save(chart: Any, path: Path) -> None:
    """Write a chart as PNG."""
    import vl_convert

    path.write_bytes(vl_convert.vegalite_to_png(chart.to_json(), scale=SCALE))


def bytes_chart(data: Data, words: Words) -> Any:
    """Block D: bytes against N, log-log, two forms with measured markers, the compulsory line below them."""
    import altair as alt

    names = [words["naive_line"], words["flash_line"], words["least_line"]]
    lines = [
        {"N": c.N, "bytes": value, "line": name}
        for c in data.plotted
        for name, value in zip(names, (c.naive_with_o_bytes, c.flash_bytes, c.flash_dram_bytes), strict=True)
    ]
    of = {"naive": names[0], "flash": names[1]}
    markers = [
        {"N": row.N, "bytes": row.total_bytes, "line": of[row.method]}
        for row in data.measured
        if row.N in PLOTTED
    ]
    x = alt.X(
        "N:Q", title=words["x"], scale=alt.Scale(type="log", base=2, domain=[200, 20000]),
        axis=alt.Axis(values=list(PLOTTED), format="d"),
    )  # fmt: skip
    y = alt.Y(
        "bytes:Q", title=words["y_bytes"], scale=alt.Scale(type="log", domain=[1e5, 1e10]),
        axis=alt.Axis(values=[10**i for i in range(5, 11)], format="~s"),
    )  # fmt: skip
    color = alt.Color(
        "line:N", title=None, scale=alt.Scale(domain=names, range=[NAIVE, FLASH, LEAST]),
        legend=alt.Legend(orient="top-left", labelLimit=600, symbolType="stroke", symbolStrokeWidth=3, columns=1),
    )  # fmt: skip
    base = alt.Chart(alt.InlineData(values=lines)).mark_line(strokeWidth=2).encode(x=x, y=y, color=color)
    points = alt.Chart(alt.InlineData(values=markers)).mark_point(size=80, filled=True, opacity=1)
    points = points.encode(x=x, y=y, color=color, shape=alt.value("circle"))
    title = alt.Title(
        words["bytes_title"], subtitle=_lines(words["bytes_subtitle"].format(M=format_bytes(CAPACITY)))
    )
    return (base + points + _annotation(data, words, x)).properties(width=640, height=420, title=title)


def much_better(data: Data) -> tuple[int, int]:
    """The first plotted length whose score matrix is above this machine's L2, and that L2's bytes."""
    l2 = data.ceilings.capacities_bytes.get("L2") or MIB
    return next(N for N in PLOTTED if l2 < N * N * 4), l2


def _annotation(data: Data, words: Words, x: Any) -> Any:
    import altair as alt

    N, l2 = much_better(data)
    c = next(c for c in data.plotted if c.N == N)
    text = words["annotation"].format(
        N=N, score=format_bytes(N * N * 4), l2=format_bytes(l2), ratio=c.ratio_with_o, dram=c.dram_ratio
    )
    place = alt.InlineData(values=[{"N": N, "low": c.flash_dram_bytes, "bytes": c.naive_with_o_bytes}])
    rule = alt.Chart(place).mark_rule(strokeDash=[4, 3], color="#444444").encode(x=x, y="low:Q", y2="bytes:Q")
    below = alt.InlineData(values=[{"N": N, "y": c.flash_dram_bytes * 0.6}])  # under the lowest line
    label = alt.Chart(below).mark_text(align="left", baseline="top", dx=4, fontSize=12, lineBreak="\n")
    return rule + label.encode(x=x, y="y:Q", text=alt.value(text))


def _lines(text: str) -> list[str]:
    return text.split("\n")


def ratio_chart(data: Data, words: Words) -> Any:
    """Intensity of flash over naive against N for four tile shapes, and the roofline of this machine beside it."""
    import altair as alt

    panels = _ratio_panel(data, words) | _roofline_panel(data, words)
    return panels.resolve_scale(color="independent", strokeDash="independent").properties(
        title=alt.Title(words["ratio_title"])
    )


def _ratio_panel(data: Data, words: Words) -> Any:
    import altair as alt

    rows, names = [], []
    for d, rows_per_tile in SHAPES:
        name = words["ratio_line"].format(
            d=d, B_r=rows_per_tile, limit=f"{ratio_limit(d, rows_per_tile):.3g}"
        )
        names.append(name)
        rows += [
            {"N": N, "ratio": compare(N, d, rows_per_tile, B_c).ratio_with_o, "line": name} for N in PLOTTED
        ]
    measured = [
        {"N": N, "ratio": data.at("naive", N).total_bytes / data.at("flash", N).total_bytes, "line": names[0]}
        for N in sorted({row.N for row in data.measured if row.N in PLOTTED})
    ]
    x = alt.X(
        "N:Q", title=words["x"], scale=alt.Scale(type="log", base=2, domain=[200, 20000]),
        axis=alt.Axis(values=list(PLOTTED), format="d"),
    )  # fmt: skip
    y = alt.Y("ratio:Q", title=words["y_ratio"], scale=alt.Scale(domain=[0, 4.5]))
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=480, symbolType="stroke", symbolStrokeWidth=3,
                        symbolSize=300)  # fmt: skip
    colors = alt.Scale(domain=names, range=[FLASH, "#7A5195", NAIVE, LEAST])
    color = alt.Color("line:N", title=None, scale=colors, legend=legend)
    lines = alt.Chart(alt.InlineData(values=rows)).mark_line(strokeWidth=2)
    dashes = alt.Scale(domain=names, range=[[1, 0], [6, 3], [1, 0], [2, 3]])
    dash = alt.StrokeDash("line:N", title=None, scale=dashes, legend=legend)
    points = alt.Chart(alt.InlineData(values=measured)).mark_point(size=80, filled=True, opacity=1)
    both = lines.encode(x=x, y=y, color=color, strokeDash=dash) + points.encode(x=x, y=y, color=color)
    return both.properties(
        width=430, height=360, title=alt.Title(words["ratio_panel"], subtitle=words["ratio_subtitle"])
    )


def roofline_points(data: Data) -> list[dict[str, Any]]:
    """Where naive and flash stand at N = 2048: by the textbook's bytes, and by bytes beyond the cache."""
    c = next(c for c in data.plotted if c.N == ROOFLINE_N)
    achieved = {timing.name: timing.flops_per_s for timing in data.timings}
    return [
        {"key": "naive_point", "intensity": c.flops / c.naive_with_o_bytes, "achieved": achieved["naive"]},
        {"key": "flash_point", "intensity": c.flash_intensity, "achieved": achieved["sdpa_flash"]},
        {
            "key": "flash_dram_point",
            "intensity": c.flops / c.flash_dram_bytes,
            "achieved": achieved["sdpa_flash"],
        },
    ]


def _roofline_panel(data: Data, words: Words) -> Any:
    import altair as alt

    roof = data.roof
    peak = roof.flops_per_s
    assert peak is not None
    known = [(level.name, level.bytes_per_s) for level in roof.levels if level.bytes_per_s]
    rows: list[dict[str, Any]] = []
    names = []
    start = peak / max(bandwidth for _, bandwidth in known) / 2
    for level, bandwidth in known:
        name = f"{level}: {format_si(bandwidth, 'B/s', 3)}"
        names.append(name)
        corners = sorted({start, peak / bandwidth, MOST_INTENSE})
        rows += [{"x": at, "y": min(peak, at * bandwidth), "line": name} for at in corners]
    scale = alt.Scale(type="log", base=2, domain=[start, MOST_INTENSE], nice=False)
    x = alt.X("x:Q", title=words["x_intensity"], scale=scale, axis=alt.Axis(format="~g"))
    achieved = [point["achieved"] for point in roofline_points(data)]
    low, high = min(*(float(row["y"]) for row in rows), *achieved) / 1.5, max(peak, *achieved) * 2.2
    y = alt.Y("y:Q", title=words["y_flops"], scale=alt.Scale(type="log", domain=[low, high], nice=False),
              axis=alt.Axis(format="~s"))  # fmt: skip
    greys = ["#9A9A9A", "#777777", "#555555", "#222222"]
    color = alt.Color("line:N", title=words["bandwidths"], sort=names,
                      scale=alt.Scale(domain=names, range=greys[-len(names) :]),
                      legend=alt.Legend(orient="bottom", columns=2, symbolSize=300))  # fmt: skip
    dashes = alt.Scale(domain=names, range=[[1, 2], [3, 2], [6, 3], [1, 0]][-len(names) :])
    dash = alt.StrokeDash("line:N", title=words["bandwidths"], sort=names, scale=dashes)
    ceilings = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=color, strokeDash=dash)
    )
    top = alt.InlineData(
        values=[{"x": 1.0, "y": peak, "text": words["peak"].format(peak=format_si(peak, "FLOP/s", 3))}]
    )
    label = alt.Chart(top).mark_text(align="left", dy=-8).encode(x=x, y=y, text="text:N")
    return (ceilings + label + _roofline_marks(data, words, x, y, low)).properties(
        width=430, height=360, title=alt.Title(words["roofline_panel"], subtitle=words["roofline_subtitle"])
    )


def _roofline_marks(data: Data, words: Words, x: Any, y: Any, low: float) -> Any:
    import altair as alt

    colors = {"naive_point": NAIVE, "flash_point": FLASH, "flash_dram_point": LEAST}
    layers = None
    for index, point in enumerate(roofline_points(data)):
        where = {"x": point["intensity"], "y": point["achieved"], "low": low}
        text = words[point["key"]].format(intensity=point["intensity"])
        place, color = alt.InlineData(values=[where]), colors[point["key"]]
        rule = (
            alt.Chart(place).mark_rule(color=color, strokeWidth=1.5).encode(x=x, y=alt.Y("low:Q"), y2="y:Q")
        )
        dot = alt.Chart(place).mark_point(size=90, filled=True, opacity=1, color=color).encode(x=x, y=y)
        align: Any = "left" if index == 1 else "right"
        label = alt.Chart(place).mark_text(
            align=align,
            dx=6 if index == 1 else -6,
            dy=-12 - 34 * (index % 2),
            color=color,
            fontSize=11,
            lineBreak="\n",
            baseline="bottom",
        )
        label = label.encode(x=x, y="low:Q", text=alt.value(text))
        layers = rule + dot + label if layers is None else layers + rule + dot + label
    return layers
