"""Judgments derived on reading: what to distrust in a row, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from attnprof.core.record import Judgment, Measured, Record, Severity, Verdict
from attnprof.core.stats import drift, median_interval
from attnprof.core.units import format_seconds
from attnprof.report.paired import MIN_SAMPLES

MAX_DRIFT = 0.10
MAX_RELATIVE_WIDTH = 0.10
FLOOR_SHARE = 0.10
THROTTLE = "throttle_"  # prefix of telemetry's throttle reasons
EMULATION_RATIO = 1.5  # a 16-bit kernel moves half the bytes; slower than fp32 means that it is emulated

Rule = Callable[[Record, Measured], Judgment | None]


def judge(record: Record, twin: Record | None = None) -> tuple[Judgment, ...]:
    """What follows from a record's numbers; `twin` is the same variant's float32 record of a 16-bit one."""
    done = record.measured
    if done is None:
        return ()
    known = {judgment.code for judgment in record.judgments}
    found = [rule(record, done) for rule in _RULES]
    found.append(_emulated(record, done, twin))
    return tuple(judgment for judgment in found if judgment is not None and judgment.code not in known)


def _too_few(_: Record, done: Measured) -> Judgment | None:
    n = len(done.samples_s)
    if n >= MIN_SAMPLES:
        return None
    message = f"{n} sample{'' if n == 1 else 's'}: no 95% interval of the median exists below {MIN_SAMPLES}"
    return Judgment(code="too_few_samples", message=message, remedy="allow more time per case")


def _noisy(_: Record, done: Measured) -> Judgment | None:
    if len(done.samples_s) < MIN_SAMPLES:
        return None
    middle = median_interval(done.samples_s)
    if middle.relative_width <= MAX_RELATIVE_WIDTH:
        return None
    message = f"the 95% interval of the median is wide: {format_seconds(middle.low)} to {format_seconds(middle.high)}"
    return Judgment(
        code="noisy", message=message, remedy="stop other load, pin threads, or take more samples"
    )


def _drifting(_: Record, done: Measured) -> Judgment | None:
    change = drift(done.samples_s)
    if len(done.samples_s) < MIN_SAMPLES or abs(change) <= MAX_DRIFT:
        return None
    message = f"times drifted by {change:+.0%} from the first to the last third of the samples"
    return Judgment(
        code="drift", message=message, remedy="warm up longer, fix the clock, or check the temperature"
    )


def _near_floor(_: Record, done: Measured) -> Judgment | None:
    middle = median(done.samples_s) if done.samples_s else 0.0
    if middle <= 0 or done.floor_s <= FLOOR_SHARE * middle:
        return None
    message = f"an empty call alone takes {done.floor_s / middle:.0%} of this time"
    return Judgment(
        code="near_floor", message=message, remedy="compare larger problems: here the call overhead decides"
    )


def _wrong(_: Record, done: Measured) -> Judgment | None:
    found = done.accuracy
    if found is None or found.verdict not in (Verdict.WRONG, Verdict.NAN):
        return None
    rows = f" ({found.nan_rows} NaN rows)" if found.nan_rows else ""
    message = f"result is {found.verdict}{rows}: {found.reason or 'it differs from the float64 reference'}"
    remedy = "do not use this kernel here; it is never ranked best"
    return Judgment(code="wrong_result", message=message, remedy=remedy, severity=Severity.ALARM)


def _unchecked(_: Record, done: Measured) -> Judgment | None:
    if done.accuracy is not None and done.accuracy.verdict is not Verdict.NOT_APPLICABLE:
        return None
    reason = done.accuracy.reason if done.accuracy else ""
    message = f"not checked against the reference{f': {reason}' if reason else ''}"
    return Judgment(code="unchecked", message=message, remedy="check a smaller size", severity=Severity.NOTE)


def _other_function(record: Record, _: Measured) -> Judgment | None:
    if record.problem == record.asked:
        return None
    message = f"function differs: it computes {record.problem}"
    remedy = "compare its time, not its result, with the others"
    return Judgment(code="function_differs", message=message, remedy=remedy, severity=Severity.NOTE)


def _recompiled(_: Record, done: Measured) -> Judgment | None:
    if not done.recompiles or done.recompiles < 2:
        return None
    message = f"{done.recompiles} graphs were compiled"
    return Judgment(
        code="recompiled", message=message, remedy="mark lengths as dynamic", severity=Severity.NOTE
    )


def _emulated(record: Record, done: Measured, twin: Record | None) -> Judgment | None:
    """A 16-bit row of a CPU that is clearly slower than the same variant's float32 row."""
    other = twin.measured if twin else None
    if not record.device.startswith("cpu") or other is None or not other.samples_s or not done.samples_s:
        return None
    ratio = median(done.samples_s) / median(other.samples_s)
    if ratio < EMULATION_RATIO:
        return None
    message = f"16-bit emulated on this CPU: {ratio:.1f} times slower than float32"
    return Judgment(code="emulated_16bit", message=message, remedy="measure float32 here, 16-bit on a GPU")


def _throttled(_: Record, done: Measured) -> Judgment | None:
    """The GPU held its clock back while this row ran (telemetry names the reasons)."""
    active = [name for name, value in done.counted.items() if name.startswith(THROTTLE) and value]
    if not active:
        return None
    reasons = ", ".join(name.removeprefix(THROTTLE).replace("_", " ") for name in active)
    message = f"the GPU held its clock back: {reasons}"
    return Judgment(
        code="throttled", message=message, remedy="cool it, raise its power limit, or lock the clock"
    )


_RULES: tuple[Rule, ...] = (
    _wrong, _too_few, _noisy, _drifting, _near_floor, _unchecked, _other_function, _recompiled,
    _throttled,
)  # fmt: skip
