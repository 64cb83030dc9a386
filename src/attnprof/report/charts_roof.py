"""The roofline: measured ceilings of the machine, and every row under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnprof.core.ceilings import Ceilings, Roof
from attnprof.core.dtypes import parse_dtype
from attnprof.report.charts_base import Chart, Pen, Values, base, finish, kept, padded
from attnprof.report.charts_data import SeriesData, tidy
from attnprof.report.table import number

TITLE = "Roofline"
TERA = 1e12


def roofline_chart(data: SeriesData, ceilings: Ceilings | None, reason: str) -> Chart:
    """Useful FLOP rate over arithmetic intensity; filled markers use compulsory bytes, open ones logical bytes."""
    points = kept(kept(tidy(data), "tflop_per_s"), "intensity")
    if ceilings is None:
        return Chart(name="roofline", title=TITLE, caption="", reason=reason)
    roof = ceilings.roof(parse_dtype(data.series.dtype))
    bandwidths = [(level.name, level.bytes_per_s) for level in roof.levels if level.bytes_per_s]
    if not points or roof.flops_per_s is None or not bandwidths:
        return Chart(name="roofline", title=TITLE, caption="", reason=_why(points, roof))
    peak = roof.flops_per_s / TERA
    low, high = _span(points, peak, bandwidths)
    lines = _lines(low, high, peak, bandwidths)
    x, y = _axes(points, lines, (low, high), peak)
    named = [{"x": high, "y": peak, "text": f"matmul {number(peak, 3)} TFLOP/s"}]
    drawn = _roofs(x, y) + _rows(Pen(data))
    caption = (
        f"Ceilings {roof.basis} on {roof.device}. Filled: useful FLOPs per compulsory byte (a bound at any level). "
        "Open: the same row per logical byte, the traffic its tiles ask for."
    )
    tables: dict[str, Values] = {
        "rows": points,
        "logical": kept(points, "logical_intensity"),
        "roofs": lines,
        "named": named,
    }
    return finish("roofline", TITLE, caption, drawn, tables)


def _why(points: Values, roof: Roof) -> str:
    return (
        f"no ceiling of {roof.device} is known for {roof.dtype}" if points else "no row has work and a time"
    )


def _span(points: Values, peak: float, bandwidths: Sequence[tuple[str, float]]) -> list[float]:
    """Intensities of rows and ridge points, with room on both sides."""
    own = [point[field] for point in points for field in ("intensity", "logical_intensity")]
    return padded([*own, *(peak * TERA / rate for _, rate in bandwidths)], 1.6)


def _lines(
    low: float, high: float, peak: float, bandwidths: Sequence[tuple[str, float]]
) -> list[Mapping[str, Any]]:
    """One slanted line per level of memory up to the flat matmul ceiling."""
    return [
        {"x": at, "y": min(peak, at * rate / TERA), "roof": f"{name} {number(rate / 1e9, 3)} GB/s"}
        for name, rate in bandwidths
        for at in (low, peak * TERA / rate, high)
    ]


def _axes(points: Values, lines: Values, domain: tuple[float, float], peak: float) -> tuple[Any, Any]:
    import altair as alt

    floor = min([*(point["tflop_per_s"] for point in points), *(line["y"] for line in lines)]) / 1.6
    axis = alt.Axis(format="~g", tickCount=6)
    x_scale = alt.Scale(type="log", domain=list(domain), nice=False)
    y_scale = alt.Scale(type="log", domain=[floor, peak * 1.8], nice=False)
    x = alt.X("x:Q", title="arithmetic intensity (useful FLOP / byte)", scale=x_scale, axis=axis)
    return x, alt.Y("y:Q", title="useful FLOP rate (TFLOP/s)", scale=y_scale, axis=axis)


def _roofs(x: Any, y: Any) -> Any:
    import altair as alt

    dash = alt.StrokeDash("roof:N", legend=alt.Legend(title="ceiling"))
    roofs = base("roofs").mark_line(color="#7F7F7F", strokeWidth=1.5).encode(x=x, y=y, strokeDash=dash)
    label = base("named").mark_text(align="right", dy=-7, fontSize=11).encode(x=x, y=y, text="text:N")
    return roofs + label


def _rows(pen: Pen) -> Any:
    import altair as alt

    tip = [
        alt.Tooltip("variant:N"), alt.Tooltip("length:Q", format="d"),
        alt.Tooltip("tflop_per_s:Q", title="TFLOP/s", format=".3~r"),
        alt.Tooltip("intensity:Q", title="FLOP / compulsory byte", format=".4~r"),
        alt.Tooltip("logical_intensity:Q", title="FLOP / logical byte", format=".4~r"),
        alt.Tooltip("binding:N", title="binds"), alt.Tooltip("times_bound:Q", title="time / bound", format=".3~r"),
    ]  # fmt: skip
    shared = {"y": "tflop_per_s:Q", "color": pen.color, "shape": pen.shape, "tooltip": tip}
    opened = base("logical").mark_point(size=40, filled=False, strokeWidth=1.2)
    filled = base("rows").mark_point(size=55, filled=True, opacity=1)
    return opened.encode(x="logical_intensity:Q", **shared) + filled.encode(x="intensity:Q", **shared)
