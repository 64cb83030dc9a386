"""What the charts share: axes, colours with markers, log scales that fit the data, and the finished chart value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from attnprof.report.charts_data import SeriesData

WIDTH, HEIGHT = 640, 360
MAX_TICKS = 10


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart: a Vega-Lite specification with its data inside, or the reason why there is none."""

    name: str  # file name without suffix
    title: str
    caption: str
    spec: dict[str, Any] | None = None
    reason: str = ""


def finish(name: str, title: str, caption: str, drawing: Any) -> Chart:
    """A chart value from an Altair chart; the title is drawn into the static form only."""
    spec: dict[str, Any] = drawing.properties(width=WIDTH, height=HEIGHT, title=title).to_dict(validate=False)
    spec.pop("config", None)
    return Chart(name=name, title=title, caption=caption, spec=spec)


def padded(values: Iterable[float | None], by: float = 1.25) -> list[float]:
    """Domain of a log axis around positive values, with room for markers.

    >>> padded([1.0, None, 100.0], by=2)
    [0.5, 200.0]
    """
    known = [value for value in values if value is not None and value > 0]
    return [min(known) / by, max(known) * by]


def log_y(values: Iterable[float | None]) -> Any:
    """A log scale around the values; base 2 where they span less than two decades, so that ticks stay readable."""
    import altair as alt

    domain = padded(values)
    base = 2 if domain[1] / domain[0] < 100 else 10
    return alt.Scale(type="log", base=base, domain=domain, nice=False)


def ticks(lengths: Sequence[int]) -> list[int]:
    """Lengths that get a tick: all of them, or at most ten spread over them."""
    if len(lengths) <= MAX_TICKS:
        return list(lengths)
    step = (len(lengths) - 1) / (MAX_TICKS - 1)
    return [lengths[round(i * step)] for i in range(MAX_TICKS)]


def length_axis(data: SeriesData) -> Any:
    """The x axis: key/value length, log base 2, a tick at measured lengths."""
    import altair as alt

    title = "sequence length N (tokens)" if data.series.queries == "as keys" else "key length N_k (tokens)"
    return alt.X(
        "length:Q",
        title=title,
        scale=alt.Scale(type="log", base=2, domain=padded(data.lengths, 1.15), nice=False),
        axis=alt.Axis(values=ticks(data.lengths), format="d", labelOverlap=True, labelFlush=False),
    )


def variant_color(data: SeriesData, *, legend: bool = True) -> Any:
    """Colour by variant, the same in every chart; the legend shows colour and marker together."""
    import altair as alt

    names = list(data.variants)
    scale = alt.Scale(domain=names, range=[data.styles[name].color for name in names])
    return alt.Color(
        "variant:N", scale=scale, legend=alt.Legend(title="variant", symbolOpacity=1) if legend else None
    )


def variant_shape(data: SeriesData) -> Any:
    """Marker by variant: a second channel beside the colour."""
    import altair as alt

    names = list(data.variants)
    scale = alt.Scale(domain=names, range=[data.styles[name].shape for name in names])
    return alt.Shape("variant:N", scale=scale, legend=alt.Legend(title="variant", symbolOpacity=1))


def base(values: Sequence[dict[str, Any]]) -> Any:
    """A chart over plain values."""
    import altair as alt

    return alt.Chart(alt.InlineData(values=list(values)))


def kept(values: Sequence[dict[str, Any]], field: str) -> list[dict[str, Any]]:
    """Values in which `field` exists and is above zero, as a log axis needs."""
    return [value for value in values if value.get(field) is not None and value[field] > 0]


def lines_with_markers(
    values: Sequence[dict[str, Any]], data: SeriesData, y: Any, tooltip: Sequence[Any]
) -> Any:
    """A line and a marker per variant over the length."""
    drawn = base(values).encode(x=length_axis(data), y=y, color=variant_color(data), tooltip=list(tooltip))
    return drawn.mark_line(strokeWidth=1.5) + drawn.mark_point(size=55, filled=True, opacity=1).encode(
        shape=variant_shape(data)
    )
