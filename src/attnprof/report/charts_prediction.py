"""Prediction against measurement: every drawn row was not used for the prediction it is held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from attnprof.core.errors import AttnprofError
from attnprof.core.record import Manifest, Record
from attnprof.report.charts_base import Chart, base, finish, padded, variant_encodings
from attnprof.report.charts_data import MAX_VARIANTS, Style

if TYPE_CHECKING:
    from attnprof.predict.api import Prediction

NAME, TITLE = "prediction", "Prediction against measurement"
MAX_CALIBRATION_ROWS = 24
MAX_POINTS = 300
MICRO = 1e6


class Basis(msgspec.Struct, frozen=True):
    """How predictions are made: in words, the function, and the records that they may be held against."""

    text: str
    predict: Callable[[Record], Prediction]
    held_out: tuple[Record, ...]


def prediction_chart(
    records: Sequence[Record], manifest: Manifest | None, all_styles: dict[str, Style]
) -> Chart:
    """Predicted over measured time: by chip where the device is a known one, else calibrated on half of the run."""
    timed = [r for r in records if r.measured and r.measured.samples_s and r.cost and r.problem.total_pairs]
    try:
        basis = _by_chip(timed, manifest) or _by_calibration(timed, manifest)
        points = _points(basis)
    except AttnprofError as error:
        return Chart(name=NAME, title=TITLE, caption="", reason=str(error))
    if not points:
        reason = "no measured row is of a kernel and a size that can be predicted"
        return Chart(name=NAME, title=TITLE, caption="", reason=reason)
    names = [name for name in all_styles if any(point["variant"] == name for point in points)][:MAX_VARIANTS]
    drawn = [point for point in points if point["variant"] in names]
    return finish(
        NAME, TITLE, f"{basis.text} {_errors(drawn)}", _draw(drawn, names, all_styles), _data(drawn)
    )


def _by_chip(timed: Sequence[Record], manifest: Manifest | None) -> Basis | None:
    """The fitted model of a known chip; None when the device is none of them."""
    from attnprof.predict.api import predict
    from attnprof.predict.chips import chip_model

    if manifest is None or not manifest.identity.device.startswith("cuda"):
        return None
    chip = chip_model(manifest.identity.device_name).name
    text = (
        f"Predicted for a {chip} from published measurements, not from this run; bars are the 80% interval."
    )
    return Basis(
        text,
        lambda record: predict(record.asked, chip, [record.variant])[0],
        tuple(_thinned(timed, MAX_POINTS)),
    )


def _by_calibration(timed: Sequence[Record], manifest: Manifest | None) -> Basis:
    """The device's constants from every second length; the other lengths are held against them."""
    from attnprof.predict.local import calibrate_records

    lengths = sorted({record.asked.kv_len for record in timed})
    used = set(lengths[::2])
    known = _thinned([record for record in timed if record.asked.kv_len in used], MAX_CALIBRATION_ROWS)
    model = calibrate_records(known, manifest)
    text = (
        f"Calibrated on {len(known)} rows of every second length; drawn are rows of the other lengths only."
    )
    rest = [r for r in timed if r.asked.kv_len not in used and r.variant in model.variants]
    return Basis(
        f"{text} Bars are the 80% interval.",
        lambda record: model.predict(record.asked, [record.variant])[0],
        tuple(_thinned(rest, MAX_POINTS)),
    )


def _thinned(records: Sequence[Record], most: int) -> list[Record]:
    step = max(1, -(-len(records) // most))
    return list(records[::step])


def _points(basis: Basis) -> list[Mapping[str, Any]]:
    points = []
    for record in basis.held_out:
        try:
            found = basis.predict(record)
        except AttnprofError:  # a kernel of the user's own: no cost is known outside of the run
            continue
        if (
            found.time_s is not None
            and found.low_s is not None
            and found.high_s is not None
            and record.measured
        ):
            points.append(_point(record, found.time_s, found.low_s, found.high_s))
    return points


def _point(record: Record, time_s: float, low_s: float, high_s: float) -> Mapping[str, Any]:
    assert record.measured is not None
    return {
        "variant": record.variant,
        "problem": str(record.problem),
        "measured_us": median(record.measured.samples_s) * MICRO,
        "predicted_us": time_s * MICRO,
        "low_us": low_s * MICRO,
        "high_us": high_s * MICRO,
    }


def _errors(points: Sequence[Mapping[str, Any]]) -> str:
    errors = [abs(point["predicted_us"] / point["measured_us"] - 1) for point in points]
    inside = sum(point["low_us"] <= point["measured_us"] <= point["high_us"] for point in points)
    return (
        f"Median absolute error {median(errors):.0%} over {len(points)} rows; "
        f"{inside / len(points):.0%} of the intervals hold the measurement."
    )


def _data(points: Sequence[Mapping[str, Any]]) -> dict[str, Sequence[Mapping[str, Any]]]:
    low, high = _domain(points)
    return {"points": points, "diagonal": [{"at": low}, {"at": high}]}


def _domain(points: Sequence[Mapping[str, Any]]) -> list[float]:
    return padded(
        [point[field] for point in points for field in ("measured_us", "predicted_us", "low_us", "high_us")]
    )


def _draw(points: Sequence[Mapping[str, Any]], names: Sequence[str], all_styles: dict[str, Style]) -> Any:
    import altair as alt

    scale = alt.Scale(type="log", domain=_domain(points), nice=False)
    axis = alt.Axis(tickCount=6)
    x = alt.X("measured_us:Q", title="measured median (µs)", scale=scale, axis=axis)
    color, shape = variant_encodings(names, all_styles)
    title = "predicted (µs)"
    tip = [alt.Tooltip("variant:N"), alt.Tooltip("problem:N")]
    tip += [
        alt.Tooltip(f"{name}_us:Q", title=f"{name} (µs)", format=",.4~r")
        for name in ("measured", "predicted", "low", "high")
    ]
    bars = base("points").mark_rule(opacity=0.5).encode(
        x=x, y=alt.Y("low_us:Q", title=title, scale=scale, axis=axis), y2="high_us:Q", color=color
    )  # fmt: skip
    marks = base("points").mark_point(size=50, filled=True, opacity=1).encode(
        x=x, y=alt.Y("predicted_us:Q", title=title, scale=scale, axis=axis), color=color, shape=shape, tooltip=tip
    )  # fmt: skip
    even = base("diagonal").mark_line(strokeDash=[4, 4], color="#7F7F7F").encode(
        x=alt.X("at:Q", title="measured median (µs)", scale=scale), y=alt.Y("at:Q", title=title, scale=scale)
    )  # fmt: skip
    return even + bars + marks
