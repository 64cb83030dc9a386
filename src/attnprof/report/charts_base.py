"""What the charts share: axes, colours with markers, log scales that fit the data, and the finished chart value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from attnprof.report.charts_data import SeriesData, Style

Values = Sequence[Mapping[str, Any]]
WIDTH, HEIGHT = 640, 360
MAX_TICKS = 10


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart: a Vega-Lite specification with its data inside, or the reason why there is none."""

    name: str  # file name without suffix
    title: str
    caption: str
    spec: dict[str, Any] | None = None
    reason: str = ""


def finish(
    name: str, title: str, caption: str, drawing: Any, data: Mapping[str, Values] | None = None
) -> Chart:
    """A chart value from an Altair chart over named data; the title is drawn into the static form only."""
    spec: dict[str, Any] = drawing.properties(width=WIDTH, height=HEIGHT, title=title).to_dict(validate=False)
    spec.pop("config", None)
    if data is not None:
        used = _fields(spec)
        spec["datasets"] = {
            key: [{field: value[field] for field in value if field in used} for value in values]
            for key, values in data.items()
        }
    return Chart(name=name, title=title, caption=caption, spec=spec)


def _fields(part: Any) -> set[str]:
    """Fields that a specification reads: the page carries no other."""
    if isinstance(part, list):
        return set().union(*map(_fields, part))
    if not isinstance(part, dict):
        return set()
    own = {part["field"]} if isinstance(part.get("field"), str) else set()
    return own.union(*map(_fields, part.values()))


def padded(values: Iterable[float | None], by: float = 1.25) -> list[float]:
    """Domain of a log axis around positive values, with room for markers.

    >>> padded([1.0, None, 100.0], by=2)
    [0.5, 200.0]
    """
    known = [value for value in values if value is not None and value > 0]
    return [min(known) / by, max(known) * by]


def log_y(values: Iterable[float | None], base: int | None = None) -> Any:
    """A log scale around the values; without a base, 2 where they span less than two decades: more ticks."""
    import altair as alt

    domain = padded(values)
    chosen = base or (2 if domain[1] / domain[0] < 100 else 10)
    return alt.Scale(type="log", base=chosen, domain=domain, nice=False)


def ticks(lengths: Sequence[int]) -> list[int]:
    """Lengths that get a tick: all of them, or at most ten spread over them."""
    if len(lengths) <= MAX_TICKS:
        return list(lengths)
    step = (len(lengths) - 1) / (MAX_TICKS - 1)
    return [lengths[round(i * step)] for i in range(MAX_TICKS)]


def base(name: str) -> Any:
    """A chart over the named data that `finish` puts into the specification."""
    import altair as alt

    return alt.Chart(alt.NamedData(name=name))


def kept(values: Values, field: str) -> list[Mapping[str, Any]]:
    """Values in which `field` exists and is above zero, as a log axis needs."""
    return [value for value in values if value.get(field) is not None and value[field] > 0]


def variant_encodings(names: Sequence[str], styles: Mapping[str, Style]) -> tuple[Any, Any]:
    """Colour and marker by variant; the legend shows both together."""
    import altair as alt

    domain = list(names)
    colors = alt.Scale(domain=domain, range=[styles[name].color for name in domain])
    shapes = alt.Scale(domain=domain, range=[styles[name].shape for name in domain])
    legend = alt.Legend(title="variant", symbolOpacity=1)
    return alt.Color("variant:N", scale=colors, legend=legend), alt.Shape(
        "variant:N", scale=shapes, legend=legend
    )


class Pen:
    """The encodings that every chart of a series shares, made once: length axis, colour and marker by variant."""

    def __init__(self, data: SeriesData) -> None:
        import altair as alt

        self.data = data
        self.color, self.shape = variant_encodings(data.variants, data.styles)
        self.x = alt.X(
            "length:Q",
            title="sequence length N (tokens)"
            if data.series.queries == "as keys"
            else "key length N_k (tokens)",
            scale=alt.Scale(type="log", base=2, domain=padded(data.lengths, 1.15), nice=False),
            axis=alt.Axis(values=ticks(data.lengths), format="d", labelOverlap=True, labelFlush=False),
        )

    def lines(self, name: str, y: Any, tooltip: Sequence[Any]) -> Any:
        """A line and a marker per variant over the length, from the named data."""
        drawn = base(name).encode(x=self.x, y=y, color=self.color, tooltip=list(tooltip))
        markers = drawn.mark_point(size=55, filled=True, opacity=1).encode(shape=self.shape)
        return drawn.mark_line(strokeWidth=1.5) + markers

    def bars(self, name: str, low: Any, high: str) -> Any:
        """Vertical intervals from `low` to the field `high`."""
        drawn = base(name).mark_rule(strokeWidth=2, opacity=0.6)
        return drawn.encode(x=self.x, y=low, y2=f"{high}:Q", color=self.color)

    def dashed(self, name: str, y: Any) -> Any:
        """A thin dashed line per variant: a model beside what was measured."""
        drawn = base(name).mark_line(strokeDash=[3, 3], strokeWidth=1.2, opacity=0.8)
        return drawn.encode(x=self.x, y=y, color=self.color)
