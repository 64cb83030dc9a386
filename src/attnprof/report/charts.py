"""The charts of one series, each defined once: the page draws that definition, PNG and SVG are made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnprof.core.stats import growth_exponent
from attnprof.report.charts_base import (
    Chart,
    base,
    finish,
    kept,
    length_axis,
    lines_with_markers,
    log_y,
    variant_color,
    variant_shape,
)
from attnprof.report.charts_data import SeriesData, tidy, tidy_bytes

Values = list[dict[str, Any]]
NO_TIME = "no row of this series has a time"


def series_charts(data: SeriesData) -> tuple[Chart, ...]:
    """The charts that need nothing but the series' own rows."""
    values = tidy(data)
    drawers: tuple[Callable[[SeriesData, Values], Chart], ...] = (
        time_chart,
        speedup_chart,
        memory_chart,
        rate_chart,
        bytes_chart,
        error_chart,
    )
    return tuple(draw(data, values) for draw in drawers)


def _tip(*fields: tuple[str, str, str]) -> list[Any]:
    import altair as alt

    shown = [alt.Tooltip("variant:N"), alt.Tooltip("length:Q", title="length", format="d")]
    return shown + [alt.Tooltip(f"{name}:Q", title=title, format=form) for name, title, form in fields]


def time_chart(data: SeriesData, values: Values) -> Chart:
    """Median time against length with its 95% interval, log-log."""
    import altair as alt

    title = "Time against length"
    timed = kept(values, "time_us")
    if not timed:
        return Chart(name="time", title=title, caption="", reason=NO_TIME)
    every = [value[field] for value in timed for field in ("time_us", "low_us", "high_us")]
    y = alt.Y("time_us:Q", title="median time of one call (µs)", scale=log_y(every))
    tip = _tip(
        ("time_us", "median (µs)", ",.4~r"),
        ("low_us", "95% from (µs)", ",.4~r"),
        ("high_us", "95% to (µs)", ",.4~r"),
    )
    bars = base(timed).mark_rule(strokeWidth=2, opacity=0.6)
    bars = bars.encode(x=length_axis(data), y=y, y2="high_us:Q", color=variant_color(data))
    bars = bars.encode(y=alt.Y("low_us:Q", title="median time of one call (µs)", scale=log_y(every)))
    caption = "Median of the samples; bars are the 95% interval of the median. Both axes are logarithmic."
    return finish("time", title, caption, bars + lines_with_markers(timed, data, y, tip))


def speedup_chart(data: SeriesData, values: Values) -> Chart:
    """Speed-up over naive with the paired interval; above 1 is faster."""
    import altair as alt

    title = "Speed-up over naive"
    timed = kept(values, "speedup")
    if not timed:
        return Chart(name="speedup", title=title, caption="", reason="naive was not measured in this series")
    ranged = kept(timed, "speedup_low")
    every = [1.0] + [value[field] for value in timed for field in ("speedup", "speedup_low", "speedup_high")]
    scale = log_y(every)
    y = alt.Y("speedup:Q", title="time of naive / time of variant (ratio)", scale=scale)
    tip = _tip(
        ("speedup", "speed-up", ".3~r"),
        ("speedup_low", "95% from", ".3~r"),
        ("speedup_high", "95% to", ".3~r"),
    )
    bars = base(ranged).mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=length_axis(data),
        y=alt.Y("speedup_low:Q", title="time of naive / time of variant (ratio)", scale=scale),
        y2="speedup_high:Q",
        color=variant_color(data),
    )  # fmt: skip
    line = (
        base([{"one": 1}]).mark_rule(strokeDash=[4, 4], color="#7F7F7F").encode(y=alt.Y("one:Q", scale=scale))
    )
    caption = "Ratio of the medians; bars are the 95% interval of the ratios taken round by round. Above 1 is faster."
    return finish("speedup", title, caption, line + bars + lines_with_markers(timed, data, y, tip))


def memory_chart(data: SeriesData, values: Values) -> Chart:
    """Measured peak memory with the fitted exponent; the model's peak is dashed."""
    import altair as alt

    title = "Peak memory against length"
    held = kept(values, "peak_mib")
    if not held:
        return Chart(
            name="memory", title=title, caption="", reason="peak memory was not measured in this series"
        )
    predicted = kept(values, "predicted_peak_mib")
    every = [v["peak_mib"] for v in held] + [v["predicted_peak_mib"] for v in predicted]
    scale = log_y(every)
    y = alt.Y("peak_mib:Q", title="peak of one call, inputs excluded (MiB)", scale=scale)
    tip = _tip(("peak_mib", "measured (MiB)", ",.4~r"), ("predicted_peak_mib", "model (MiB)", ",.4~r"))
    model = base(predicted).mark_line(strokeDash=[3, 3], strokeWidth=1.2, opacity=0.8).encode(
        x=length_axis(data), y=alt.Y("predicted_peak_mib:Q", scale=scale), color=variant_color(data)
    )  # fmt: skip
    caption = (
        f"Markers: measured. Dashed: the variant's model. Growth with length N: {_exponents(data, held)}."
    )
    return finish("memory", title, caption, model + lines_with_markers(held, data, y, tip))


def _exponents(data: SeriesData, held: Values) -> str:
    parts = []
    for name in data.variants:
        own = [value for value in held if value["variant"] == name]
        exponent = growth_exponent([v["length"] for v in own], [v["peak_mib"] for v in own])
        if own:
            parts.append(f"{name} N^{exponent:.2f}" if exponent is not None else f"{name} n/a (one length)")
    return ", ".join(parts)


def rate_chart(data: SeriesData, values: Values) -> Chart:
    """Useful TFLOP/s; what the computed tiles amount to is dashed."""
    import altair as alt

    title = "FLOP rate against length"
    rated = kept(values, "tflop_per_s")
    if not rated:
        return Chart(
            name="tflops", title=title, caption="", reason="no row of this series has work and a time"
        )
    executed = kept(values, "executed_tflop_per_s")
    every = [v["tflop_per_s"] for v in rated] + [v["executed_tflop_per_s"] for v in executed]
    scale = log_y(every)
    y = alt.Y("tflop_per_s:Q", title="useful FLOP rate (TFLOP/s)", scale=scale)
    tip = _tip(
        ("tflop_per_s", "useful TFLOP/s", ".3~r"), ("executed_tflop_per_s", "executed TFLOP/s", ".3~r")
    )
    dashed = base(executed).mark_line(strokeDash=[3, 3], strokeWidth=1.2, opacity=0.8).encode(
        x=length_axis(data), y=alt.Y("executed_tflop_per_s:Q", scale=scale), color=variant_color(data)
    )  # fmt: skip
    caption = "Markers: useful FLOPs (allowed pairs only) over the median time. Dashed: FLOPs of the tiles computed."
    return finish("tflops", title, caption, dashed + lines_with_markers(rated, data, y, tip))


def bytes_chart(data: SeriesData, values: Values) -> Chart:  # noqa: ARG001  # one signature for all drawers
    """Bytes by kind: never one line for two kinds."""
    import altair as alt

    title = "Bytes by kind against length"
    moved = tidy_bytes(data)
    if not moved:
        return Chart(name="bytes", title=title, caption="", reason=NO_TIME)
    kinds = sorted({value["kind"] for value in moved})
    dashes = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 1]]
    tip = [
        alt.Tooltip("variant:N"), alt.Tooltip("length:Q", format="d"), alt.Tooltip("kind:N"),
        alt.Tooltip("bytes:Q", title="bytes", format=","), alt.Tooltip("read:Q", title="read (bytes)", format=","),
        alt.Tooltip("write:Q", title="written (bytes)", format=","), alt.Tooltip("policy:N"),
    ]  # fmt: skip
    drawn = base(moved).encode(
        x=length_axis(data),
        y=alt.Y("bytes:Q", title="bytes of one call (model)", scale=log_y(v["bytes"] for v in moved),
                axis=alt.Axis(format="~s")),
        color=variant_color(data),
        detail="kind:N",
        tooltip=tip,
    )  # fmt: skip
    scale = alt.Scale(domain=kinds, range=[dashes[i % len(dashes)] for i in range(len(kinds))])
    lines = drawn.mark_line(strokeWidth=1.5).encode(
        strokeDash=alt.StrokeDash("kind:N", scale=scale, legend=alt.Legend(title="kind (level of memory)"))
    )
    marks = drawn.mark_point(size=45, filled=True, opacity=1).encode(shape=variant_shape(data))
    caption = "Predicted bytes; kinds are drawn apart and are not comparable across kinds. Point at a marker for the "
    return finish("bytes", title, caption + "read/write split and the policy.", lines + marks)


def error_chart(data: SeriesData, values: Values) -> Chart:
    """Largest absolute error against the float64 reference, beside the floor of the element type."""
    import altair as alt

    title = "Numerical error"
    checked = kept(values, "max_abs_error")
    if not checked:
        return Chart(name="error", title=title, caption="", reason="no row was checked, or every error is 0")
    floors = kept(values, "error_floor")
    every = [v["max_abs_error"] for v in checked] + [v["error_floor"] for v in floors]
    scale = log_y(every)
    y = alt.Y(
        "max_abs_error:Q",
        title="max abs error against float64",
        scale=scale,
        axis=alt.Axis(format=".1e", tickCount=6),
    )
    tip = [*_tip(("max_abs_error", "max abs error", ".2e"), ("error_floor", "rounding floor", ".2e"))]
    tip.append(alt.Tooltip("verdict:N"))
    floor = base(floors).mark_tick(thickness=2, size=18, color="#7F7F7F", orient="horizontal").encode(
        x=length_axis(data), y=alt.Y("error_floor:Q", scale=scale)
    )  # fmt: skip
    caption = "Grey ticks: the error of rounding the reference to the element type. A row with error 0 is not drawn."
    return finish("error", title, caption, floor + lines_with_markers(checked, data, y, tip))
