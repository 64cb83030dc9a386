"""The map of the fastest correct kernel over length and one more axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from attnprof.report.answers import Answer, Series
from attnprof.report.charts_base import Chart, base, finish
from attnprof.report.charts_data import Style
from attnprof.report.table import number

MAX_ROWS, MAX_COLUMNS = 16, 24
_AXES: tuple[tuple[str, Callable[[Series], Any]], ...] = (
    ("batch", lambda key: key.batch),
    ("heads", lambda key: key.heads),
    ("dtype", lambda key: key.dtype),
    ("mask", lambda key: key.mask),
    ("head_dim", lambda key: key.dim),
)


def best_map(found: Sequence[Answer], all_styles: dict[str, Style]) -> Chart:
    """Which correct kernel is fastest; the second axis is the one that varies: batch, else heads, dtype, mask."""
    title, axis, cells = _cells(found)
    if not cells:
        return Chart(name="best", title=title, caption="", reason="no length has a correct, measured kernel")
    names = [name for name in all_styles if any(cell["best"] == name for cell in cells)]
    caption = (
        f"{cells[0]['fixed']}. Number in a tile: speed-up over naive (n/a where naive was not measured). "
        "~: not told apart from another kernel. ?: fewer than six samples, no claim. "
        "A tile that is missing had no correct result."
    )
    return finish("best", title, caption, _draw(axis, names, all_styles), {"cells": cells})


def _cells(found: Sequence[Answer]) -> tuple[str, str, list[dict[str, Any]]]:
    axis, rows = _slice(found)
    lengths = sorted({answer.length for answer in rows})[:MAX_COLUMNS]
    heights = sorted({_value(answer, axis) for answer in rows})[:MAX_ROWS]
    cells = [
        {
            "length": answer.length,
            "row": _value(answer, axis),
            "best": answer.best.variant,
            "time_us": answer.best.time_median_us,
            "speedup": answer.best.speedup_vs_naive,
            "label": _mark(answer) + number(answer.best.speedup_vs_naive, 2),
            "fixed": _fixed(answer.series, axis),
        }
        for answer in rows
        if answer.best and answer.length in lengths and _value(answer, axis) in heights
    ]
    return f"Fastest correct kernel by length and {axis}", axis, cells


def _mark(answer: Answer) -> str:
    return "?" if answer.few else "~" if answer.tied else ""


def _slice(found: Sequence[Answer]) -> tuple[str, list[Answer]]:
    """The axis with most values, and the answers that agree in every other one (the most common combination)."""
    counts = {name: len({get(answer.series) for answer in found}) for name, get in _AXES}
    axis = next((name for name, count in counts.items() if count > 1), "batch")
    others = Counter(_rest(answer.series, axis) for answer in found)
    common = others.most_common(1)[0][0] if others else ()
    return axis, [answer for answer in found if _rest(answer.series, axis) == common]


def _rest(key: Series, axis: str) -> tuple[Any, ...]:
    own = [get(key) for name, get in _AXES if name != axis]
    return (*own, key.direction, key.queries, key.other, key.device, key.cache)


def _value(answer: Answer, axis: str) -> Any:
    return dict(_AXES)[axis](answer.series)


def _fixed(key: Series, axis: str) -> str:
    return (
        ", ".join(f"{name} {get(key)}" for name, get in _AXES if name != axis)
        + f", {key.direction}, {key.device}"
    )


def _draw(axis: str, names: Sequence[str], all_styles: dict[str, Style]) -> Any:
    import altair as alt

    drawn = base("cells").encode(
        x=alt.X("length:O", title="length (tokens)", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        y=alt.Y("row:O", title=axis),
        tooltip=[
            alt.Tooltip("best:N", title="fastest"),
            alt.Tooltip("length:O"),
            alt.Tooltip("row:O", title=axis),
            alt.Tooltip("time_us:Q", title="median (µs)", format=",.4~r"),
            alt.Tooltip("speedup:Q", title="over naive", format=".3~r"),
        ],
    )
    scale = alt.Scale(domain=list(names), range=[all_styles[name].color for name in names])
    legend = alt.Legend(title="fastest correct")
    tiles = drawn.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("best:N", scale=scale, legend=legend)
    )
    plates = drawn.mark_text(fontSize=12, fontWeight="bold", stroke="white", strokeWidth=3).encode(
        text="label:N"
    )
    text = drawn.mark_text(fontSize=12, fontWeight="bold", fill="#1a1a1a").encode(text="label:N")
    return tiles + plates + text
