"""The roofline: measured ceilings of the machine, and every row under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnprof.core.ceilings import Ceilings, Roof
from attnprof.core.dtypes import parse_dtype
from attnprof.report.charts_base import Chart, base, finish, kept, padded, variant_color, variant_shape
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
    drawn = _lines(points, roof.flops_per_s / TERA, bandwidths) + _rows(points, data)
    caption = (
        f"Ceilings {roof.basis} on {roof.device}. Filled: useful FLOPs per compulsory byte (a bound at any level). "
        "Open: the same row per logical byte, the traffic its tiles ask for."
    )
    return finish("roofline", TITLE, caption, drawn)


def _why(points: Sequence[dict[str, Any]], roof: Roof) -> str:
    return (
        f"no ceiling of {roof.device} is known for {roof.dtype}" if points else "no row has work and a time"
    )


def _intensities(points: Sequence[dict[str, Any]]) -> list[float]:
    return [p[f] for p in points for f in ("intensity", "logical_intensity") if p[f] is not None and p[f] > 0]


def _lines(points: Sequence[dict[str, Any]], peak: float, bandwidths: Sequence[tuple[str, float]]) -> Any:
    """One slanted line per level of memory up to the flat matmul ceiling, each named at its foot."""
    import altair as alt

    low, high = padded([*_intensities(points), *(peak * TERA / rate for _, rate in bandwidths)], 1.6)
    lines = []
    for name, rate in bandwidths:
        ridge = peak * TERA / rate
        for at in (low, ridge, high):
            lines.append(
                {"x": at, "y": min(peak, at * rate / TERA), "roof": f"{name} {number(rate / 1e9, 3)} GB/s"}
            )
    floor = min([p["tflop_per_s"] for p in points] + [line["y"] for line in lines]) / 1.6
    x_scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(format="~g", tickCount=6)
    x = alt.X("x:Q", title="arithmetic intensity (useful FLOP / byte)", scale=x_scale, axis=axis)
    y = alt.Y("y:Q", title="useful FLOP rate (TFLOP/s)", axis=alt.Axis(format="~g", tickCount=6),
              scale=alt.Scale(type="log", domain=[floor, peak * 1.8], nice=False))  # fmt: skip
    roofs = base(lines).mark_line(color="#7F7F7F", strokeWidth=1.5).encode(
        x=x, y=y, strokeDash=alt.StrokeDash("roof:N", legend=alt.Legend(title="ceiling"))
    )  # fmt: skip
    label = base([{"x": high, "y": peak, "text": f"matmul {number(peak, 3)} TFLOP/s"}]).mark_text(
        align="right", dy=-7, fontSize=11
    ).encode(x=x, y=y, text="text:N")  # fmt: skip
    return roofs + label


def _rows(points: Sequence[dict[str, Any]], data: SeriesData) -> Any:
    import altair as alt

    tip = [
        alt.Tooltip("variant:N"), alt.Tooltip("length:Q", format="d"),
        alt.Tooltip("tflop_per_s:Q", title="TFLOP/s", format=".3~r"),
        alt.Tooltip("intensity:Q", title="FLOP / compulsory byte", format=".4~r"),
        alt.Tooltip("logical_intensity:Q", title="FLOP / logical byte", format=".4~r"),
        alt.Tooltip("binding:N", title="binds"), alt.Tooltip("times_bound:Q", title="time / bound", format=".3~r"),
    ]  # fmt: skip
    rows = base(points).encode(y=alt.Y("tflop_per_s:Q"), color=variant_color(data), tooltip=tip)
    filled = rows.mark_point(size=55, filled=True, opacity=1).encode(
        x="intensity:Q", shape=variant_shape(data)
    )
    if not kept(points, "logical_intensity"):
        return filled
    logical = base(kept(points, "logical_intensity")).encode(
        y=alt.Y("tflop_per_s:Q"), color=variant_color(data), tooltip=tip
    )
    opened = logical.mark_point(size=40, filled=False, strokeWidth=1.2).encode(
        x="logical_intensity:Q", shape=variant_shape(data)
    )
    return opened + filled
