"""The capacity curve as a chart: bytes that cross the boundary of a memory, against its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnprof.core.units import KIB, MIB, format_bytes
from attnprof.report.charts_base import Chart, base, finish, log_y, padded

_COLORS = ["#1F6FB4", "#E07A10"]


def capacity_chart(
    title: str,
    curve: Sequence[tuple[int, int, int]],
    lines: Mapping[str, int],
    marks: Sequence[tuple[str, int]],
    policy: str,
) -> Chart:
    """Reads and writes against capacity; `lines` are model values (logical, compulsory), `marks` real memories.

    Units: bytes; a curve point is (capacity, read, write).
    """
    import altair as alt

    capacities = [capacity for capacity, _, _ in curve]
    values: list[dict[str, Any]] = [
        {"capacity": capacity, "mb": total / 1e6, "what": what}
        for capacity, read, write in curve
        for what, total in (("traced: reads + writes", read + write), ("traced: reads", read))
    ]
    models: list[dict[str, Any]] = [{"mb": total / 1e6, "what": what} for what, total in lines.items()]
    scale = log_y([value["mb"] for value in [*values, *models]])
    x = _capacity_axis(alt, capacities)
    y = alt.Y("mb:Q", title="bytes across the memory's boundary (MB)", scale=scale)
    names = ["traced: reads + writes", "traced: reads"]
    color = alt.Color("what:N", scale=alt.Scale(domain=names, range=_COLORS), legend=alt.Legend(title=None))
    traced = base("curve").mark_line(point=True).encode(x=x, y=y, color=color)
    level = base("models")
    rule = level.mark_rule(strokeDash=[5, 4], color="#5F5F5F").encode(y=alt.Y("mb:Q", scale=scale))
    text = level.mark_text(align="right", baseline="bottom", x="width", dx=-4, dy=-2).encode(
        y=alt.Y("mb:Q", scale=scale), text="what:N"
    )
    drawing = traced + rule + text
    data = {"curve": values, "models": models}
    inside = [mark for mark in marks if capacities[0] <= mark[1] <= capacities[-1]]
    if inside:
        data["marks"] = [{"capacity": size, "name": f"{name} {format_bytes(size)}"} for name, size in inside]
        drawing += _marked(x)
    caption = f"Traced through an exact memory of each size ({policy}). Dashed: closed forms. Both axes logarithmic."
    return finish("capacity_curve", title, caption, drawing, data)


def _capacity_axis(alt: Any, capacities: Sequence[int]) -> Any:
    ticks = [size for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)]
    names = "{" + ",".join(f"'{size}': '{format_bytes(size)}'" for size in ticks) + "}"
    return alt.X(
        "capacity:Q",
        title="capacity of the memory",
        scale=alt.Scale(type="log", base=2, domain=padded(capacities, 1.1), nice=False),
        axis=alt.Axis(values=ticks, labelExpr=f"{names}[toString(datum.value)]", labelFlush=False),
    )


def _marked(x: Any) -> Any:
    at_size = base("marks").encode(x=x)
    rules = at_size.mark_rule(color="#2E8B57", opacity=0.6)
    return rules + at_size.mark_text(
        angle=270, align="right", baseline="bottom", y=4, dx=-2, dy=-2, color="#2E8B57"
    ).encode(text="name:N")
