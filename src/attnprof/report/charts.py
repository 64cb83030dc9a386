"""The charts of one series, each defined once: the page draws that definition, PNG and SVG are made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnprof.core.stats import growth_exponent
from attnprof.report.charts_base import Chart, Pen, Values, base, finish, kept, log_y
from attnprof.report.charts_data import SeriesData, tidy, tidy_bytes

NO_TIME = "no row of this series has a time"
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 1])


def series_charts(data: SeriesData) -> tuple[Chart, ...]:
    """The charts that need nothing but the series' own rows."""
    if not data.points:
        named = (
            ("time", "Time against length"),
            ("speedup", "Speed-up over naive"),
            ("memory", "Peak memory"),
        )
        return tuple(Chart(name=name, title=title, caption="", reason=NO_TIME) for name, title in named)
    values, pen = tidy(data), Pen(data)
    drawers: tuple[Callable[[Pen, Values], Chart], ...] = (
        time_chart, speedup_chart, memory_chart, rate_chart, bytes_chart, error_chart,
    )  # fmt: skip
    return tuple(draw(pen, values) for draw in drawers)


def _tip(*fields: tuple[str, str, str]) -> list[Any]:
    import altair as alt

    shown = [alt.Tooltip("variant:N"), alt.Tooltip("length:Q", title="length", format="d")]
    return shown + [alt.Tooltip(f"{name}:Q", title=title, format=form) for name, title, form in fields]


def _columns(values: Values, *fields: str) -> list[float | None]:
    return [value[field] for value in values for field in fields]


def time_chart(pen: Pen, values: Values) -> Chart:
    """Median time against length with its 95% interval, log-log."""
    import altair as alt

    timed = kept(values, "time_us")
    scale = log_y(_columns(timed, "time_us", "low_us", "high_us"))
    title = "median time of one call (µs)"
    tip = _tip(
        ("time_us", "median (µs)", ",.4~r"),
        ("low_us", "95% from (µs)", ",.4~r"),
        ("high_us", "95% to (µs)", ",.4~r"),
    )
    bars = pen.bars("ranged", alt.Y("low_us:Q", title=title, scale=scale), "high_us")
    lines = pen.lines("rows", alt.Y("time_us:Q", title=title, scale=scale), tip)
    caption = (
        "Median of the samples; bars are the 95% interval of the median (none below six samples). "
        "Both axes are logarithmic."
    )
    data: dict[str, Values] = {"rows": timed, "ranged": kept(timed, "low_us")}
    return finish("time", "Time against length", caption, bars + lines, data)


def speedup_chart(pen: Pen, values: Values) -> Chart:
    """Speed-up over naive with the paired interval; above 1 is faster."""
    import altair as alt

    name, heading = "speedup", "Speed-up over naive"
    timed = kept(values, "speedup")
    if not timed:
        return Chart(name=name, title=heading, caption="", reason="naive was not measured in this series")
    scale = log_y([1.0, *_columns(timed, "speedup", "speedup_low", "speedup_high")])
    title = "time of naive / time of variant (ratio)"
    tip = _tip(
        ("speedup", "speed-up", ".3~r"),
        ("speedup_low", "95% from", ".3~r"),
        ("speedup_high", "95% to", ".3~r"),
    )
    bars = pen.bars("ranged", alt.Y("speedup_low:Q", title=title, scale=scale), "speedup_high")
    lines = pen.lines("rows", alt.Y("speedup:Q", title=title, scale=scale), tip)
    even = base("even").mark_rule(strokeDash=[4, 4], color="#7F7F7F").encode(y=alt.Y("one:Q", scale=scale))
    caption = (
        "Median of the ratios taken round by round; bars are its 95% interval: one that reaches 1 shows no difference. "
        "Without a bar: fewer than six rounds shared with naive (none shared: ratio of the medians). Above 1 is faster."
    )
    data: dict[str, Values] = {"rows": timed, "ranged": kept(timed, "speedup_low"), "even": [{"one": 1}]}
    return finish(name, heading, caption, even + bars + lines, data)


def memory_chart(pen: Pen, values: Values) -> Chart:
    """Measured peak memory with the fitted exponent; the model's peak is dashed."""
    import altair as alt

    name, heading = "memory", "Peak memory against length"
    held, predicted = kept(values, "peak_mib"), kept(values, "predicted_peak_mib")
    if not held:
        return Chart(
            name=name, title=heading, caption="", reason="peak memory was not measured in this series"
        )
    scale = log_y([*_columns(held, "peak_mib"), *_columns(predicted, "predicted_peak_mib")])
    title = "peak of one call, inputs excluded (MiB)"
    tip = _tip(("peak_mib", "measured (MiB)", ",.4~r"), ("predicted_peak_mib", "model (MiB)", ",.4~r"))
    model = pen.dashed("model", alt.Y("predicted_peak_mib:Q", title=title, scale=scale))
    lines = pen.lines("rows", alt.Y("peak_mib:Q", title=title, scale=scale), tip)
    growth = _exponents(pen.data, held)
    caption = f"Markers: measured. Dashed: the variant's model. Growth with length N: {growth}."
    return finish(name, heading, caption, model + lines, {"rows": held, "model": predicted})


def _exponents(data: SeriesData, held: Values) -> str:
    parts = []
    for name in data.variants:
        own = [value for value in held if value["variant"] == name]
        exponent = growth_exponent([v["length"] for v in own], [v["peak_mib"] for v in own])
        if own:
            parts.append(f"{name} N^{exponent:.2f}" if exponent is not None else f"{name} n/a (one length)")
    return ", ".join(parts)


def rate_chart(pen: Pen, values: Values) -> Chart:
    """Useful TFLOP/s; what the computed tiles amount to is dashed."""
    import altair as alt

    name, heading = "tflops", "FLOP rate against length"
    rated, executed = kept(values, "tflop_per_s"), kept(values, "executed_tflop_per_s")
    if not rated:
        return Chart(name=name, title=heading, caption="", reason="no row of this series has work and a time")
    scale = log_y([*_columns(rated, "tflop_per_s"), *_columns(executed, "executed_tflop_per_s")])
    title = "useful FLOP rate (TFLOP/s)"
    tip = _tip(
        ("tflop_per_s", "useful TFLOP/s", ".3~r"), ("executed_tflop_per_s", "executed TFLOP/s", ".3~r")
    )
    dashed = pen.dashed("executed", alt.Y("executed_tflop_per_s:Q", title=title, scale=scale))
    lines = pen.lines("rows", alt.Y("tflop_per_s:Q", title=title, scale=scale), tip)
    caption = "Markers: useful FLOPs (allowed pairs only) over the median time. Dashed: FLOPs of the tiles computed."
    return finish(name, heading, caption, dashed + lines, {"rows": rated, "executed": executed})


def bytes_chart(pen: Pen, _: Values) -> Chart:
    """Bytes by kind: never one line for two kinds."""
    import altair as alt

    name, heading = "bytes", "Bytes by kind against length"
    moved = tidy_bytes(pen.data)
    if not moved:
        return Chart(name=name, title=heading, caption="", reason="no row of this series moves a byte")
    kinds = sorted({value["kind"] for value in moved})
    tip = [
        alt.Tooltip("variant:N"), alt.Tooltip("length:Q", format="d"), alt.Tooltip("kind:N"),
        alt.Tooltip("bytes:Q", title="bytes", format=","), alt.Tooltip("read:Q", title="read (bytes)", format=","),
        alt.Tooltip("write:Q", title="written (bytes)", format=","), alt.Tooltip("policy:N"),
    ]  # fmt: skip
    y = alt.Y("bytes:Q", title="bytes of one call (model)", axis=alt.Axis(format="~s"),
              scale=log_y([value["bytes"] for value in moved]))  # fmt: skip
    drawn = base("bytes").encode(x=pen.x, y=y, color=pen.color, detail="kind:N", tooltip=tip)
    scale = alt.Scale(domain=kinds, range=[_DASHES[i % len(_DASHES)] for i in range(len(kinds))])
    dash = alt.StrokeDash("kind:N", scale=scale, legend=alt.Legend(title="kind (level of memory)"))
    marks = drawn.mark_point(size=45, filled=True, opacity=1).encode(shape=pen.shape)
    caption = "Predicted bytes, not comparable across kinds. Point at a marker for the read/write split and the policy."
    lines = drawn.mark_line(strokeWidth=1.5).encode(strokeDash=dash)
    return finish(name, heading, caption, lines + marks, {"bytes": moved})


def error_chart(pen: Pen, values: Values) -> Chart:
    """Largest absolute error against the float64 reference, beside the floor of the element type."""
    import altair as alt

    name, heading = "error", "Numerical error"
    checked, floors = kept(values, "max_abs_error"), kept(values, "error_floor")
    if not checked:
        return Chart(name=name, title=heading, caption="", reason="no row was checked, or every error is 0")
    scale = log_y([*_columns(checked, "max_abs_error"), *_columns(floors, "error_floor")], base=10)
    axis = alt.Axis(format=".1e", tickCount=6)
    title = "max abs error against float64"
    tip = [*_tip(("max_abs_error", "max abs error", ".2e"), ("error_floor", "rounding floor", ".2e"))]
    tip.append(alt.Tooltip("verdict:N"))
    lines = pen.lines("rows", alt.Y("max_abs_error:Q", title=title, scale=scale, axis=axis), tip)
    ticks = base("floors").mark_tick(thickness=2, size=18, color="#7F7F7F", orient="horizontal")
    floor = ticks.encode(x=pen.x, y=alt.Y("error_floor:Q", title=title, scale=scale, axis=axis))
    caption = "Grey ticks: the error of rounding the reference to the element type. A row with error 0 is not drawn."
    return finish(name, heading, caption, floor + lines, {"rows": checked, "floors": floors})
