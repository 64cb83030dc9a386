"""Numbers derived from records on reading: one `Row` per record, with the columns of results.csv.

The run file holds facts (raw samples, peaks, predicted cost); rates, speed-ups and shares are computed here,
so that a new metric works on old runs. A number that does not exist is None, and `why_missing` says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from attnprof.core.ceilings import Ceilings
from attnprof.core.dtypes import DType
from attnprof.core.problem import Problem
from attnprof.core.record import Measured, Record
from attnprof.core.roofline import Placement
from attnprof.core.stats import median_interval, quantile
from attnprof.core.units import MIB
from attnprof.report.judgments import judge
from attnprof.report.paired import MIN_SAMPLES, paired
from attnprof.report.placing import placed_columns, placement
from attnprof.report.row import BASELINE, Row

MICRO = 1e6
TERA = 1e12
DIFFERENT_FUNCTION = "function differs"


class Question(NamedTuple):
    """What rows must share to be ranked against each other: asked problem, device and cache state."""

    asked: Problem
    device: str
    cache: str


def question(record: Record) -> Question:
    """The question that a record answers."""
    return Question(record.asked, record.device, record.cache)


def rows(records: Sequence[Record], ceilings: Ceilings | None = None) -> tuple[Row, ...]:
    """One row per record, in the records' order, with the judgments that follow from the numbers.

    `ceilings` are those of the records' device; without them no row is placed under a roof.
    """
    baselines = {question(r): r for r in records if r.variant == BASELINE and r.measured}
    full_precision = {(r.variant, question(r)): r for r in records if r.asked.dtype is DType.FLOAT32}
    return tuple(
        _row(
            record,
            baselines.get(question(record)),
            _twin(record, full_precision),
            placement(record, ceilings),
        )
        for record in records
    )


def _twin(record: Record, full_precision: Mapping[tuple[str, Question], Record]) -> Record | None:
    """The same variant's float32 record of a 16-bit one."""
    if record.asked.dtype not in (DType.FLOAT16, DType.BFLOAT16):
        return None
    asked = record.asked.replace(dtype=DType.FLOAT32)
    return full_precision.get((record.variant, Question(asked, record.device, record.cache)))


def _row(record: Record, baseline: Record | None, twin: Record | None, placed: Placement | None) -> Row:
    done = record.measured
    parts: dict[str, Any] = _sizes(record.problem) | _conditions(record) | _work(record) | _outcome(record)
    if done is not None:
        parts |= (
            _time(done) | _speedup(record, baseline) | _memory(done) | _accuracy(done) | _rates(parts, done)
        )
    judgments = (*record.judgments, *judge(record, twin))
    known = {judgment.code for judgment in judgments}
    alarms = tuple(alarm for alarm in (placed.judgments if placed else ()) if alarm.code not in known)
    return Row(**parts, **placed_columns(placed), judgments=(*judgments, *alarms))


def _sizes(p: Problem) -> dict[str, Any]:
    return {
        "batch": p.batch,
        "q_heads": p.q_heads,
        "kv_heads": p.kv_heads,
        "q_len": p.q_len,
        "kv_len": p.kv_len,
        "head_dim": p.qk_dim,
        "v_dim": p.v_dim,
        "dtype": str(p.dtype),
        "mask": str(p.mask),
        "direction": str(p.direction),
        "scale": p.effective_scale,
        "dropout": p.dropout,
        "empty_rows": p.total_empty_rows,
        "exp_ops": p.exp_ops,
    }


def _conditions(record: Record) -> dict[str, Any]:
    same = record.problem == record.asked
    return {
        "variant": record.variant,
        "device": record.device,
        "cache": record.cache,
        "seed": record.seed,
        "started_at": record.started_at or None,
        "asked": str(record.asked),
        "same_function": same,
        "note": None if same else f"{DIFFERENT_FUNCTION}: computes {record.problem}",
    }


def _outcome(record: Record) -> dict[str, Any]:
    """The outcome's tag and its reason; a failure names its kind."""
    outcome: Any = record.outcome
    reason = getattr(outcome, "reason", None)
    if hasattr(outcome, "message"):
        reason = f"{outcome.kind}: {outcome.message}"
    return {"outcome": str(outcome.__struct_config__.tag), "reason": reason}


def _work(record: Record) -> dict[str, Any]:
    p, cost = record.problem, record.cost
    known: dict[str, Any] = {
        "useful_flops": p.useful_flops if cost is None else cost.useful_flops,
        "compulsory_bytes": p.compulsory_bytes,
        "compulsory_read_bytes": p.compulsory_read_bytes,
        "compulsory_write_bytes": p.compulsory_write_bytes,
    }
    known["intensity_flop_per_byte"] = _ratio(known["useful_flops"], p.compulsory_bytes)
    if cost is None:
        return known
    logical = cost.logical
    return known | {
        "executed_flops": cost.executed_flops,
        "backward_factor": cost.backward_factor,
        "logical_bytes": logical.total_bytes,
        "logical_read_bytes": logical.read_bytes,
        "logical_write_bytes": logical.write_bytes,
        "logical_level": logical.level,
        "logical_policy": logical.policy or None,
        "op_boundary_bytes": cost.op_boundary.total_bytes if cost.op_boundary else None,
        "logical_intensity_flop_per_byte": _ratio(cost.useful_flops, logical.total_bytes),
        "predicted_peak_mib": cost.peak_bytes / MIB,
    }


def _time(done: Measured) -> dict[str, Any]:
    known: dict[str, Any] = {
        "n_samples": len(done.samples_s),
        "calls_per_sample": done.calls_per_sample,
        "warmup_calls": done.warmup_calls,
        "first_call_us": done.first_call_s * MICRO,
        "compile_s": done.compile_s,
        "recompiles": done.recompiles,
        "floor_us": done.floor_s * MICRO,
        "stopped": done.stopped or None,
        "backend": done.backend or None,
        "choice": done.choice or None,
        "counted": "; ".join(f"{name}={value:g}" for name, value in done.counted.items()) or None,
    }
    if not done.samples_s:
        return known
    middle = median_interval(done.samples_s)
    if len(done.samples_s) >= MIN_SAMPLES:
        known |= {"time_ci_low_us": middle.low * MICRO, "time_ci_high_us": middle.high * MICRO}
    return known | {
        "time_median_us": middle.value * MICRO,
        "time_p20_us": quantile(done.samples_s, 0.2) * MICRO,
        "time_p80_us": quantile(done.samples_s, 0.8) * MICRO,
        "time_min_us": min(done.samples_s) * MICRO,
    }


def _speedup(record: Record, baseline: Record | None) -> dict[str, Any]:
    """Median of the ratios round by round, with its 95% interval; ratio of the medians where no round is shared."""
    mine, base = record.measured, baseline.measured if baseline else None
    if mine is None or base is None or not mine.samples_s or not base.samples_s:
        return {}
    ratio = paired(base, mine)
    if ratio is None:
        return {"speedup_vs_naive": _ratio(median(base.samples_s), median(mine.samples_s))}
    shown = {"speedup_vs_naive": ratio.value, "speedup_paired": ratio.value}
    return shown | {"speedup_low": ratio.low, "speedup_high": ratio.high}


def _memory(done: Measured) -> dict[str, Any]:
    memory = done.memory
    if memory is None:
        return {}
    return {
        "peak_mib": memory.peak_bytes / MIB,
        "output_mib": memory.output_bytes / MIB,
        "workspace_mib": memory.workspace_bytes / MIB,
        "allocator_mib": memory.allocator_bytes / MIB,
        "memory_method": memory.method,
    }


def _accuracy(done: Measured) -> dict[str, Any]:
    found = done.accuracy
    if found is None:
        return {}
    return {
        "verdict": str(found.verdict),
        "verdict_reason": found.reason or None,
        "max_abs_error": found.max_abs_error,
        "rel_l2_error": found.rel_l2_error,
        "naive_error": found.naive_error,
        "error_floor": found.floor,
        "nan_rows": found.nan_rows,
    }


def _rates(parts: dict[str, Any], done: Measured) -> dict[str, Any]:
    seconds = median(done.samples_s) if done.samples_s else 0.0
    return {
        "tflop_per_s": _rate(parts["useful_flops"], seconds),
        "executed_tflop_per_s": _rate(parts.get("executed_flops"), seconds),
    }


def _rate(flops: int | None, seconds: float) -> float | None:
    return flops / seconds / TERA if flops and seconds > 0 else None


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if numerator and denominator else None
