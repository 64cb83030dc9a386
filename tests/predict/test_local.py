"""Calibration: constants that made the rows are found again, and other shapes follow."""

from __future__ import annotations

import numpy as np
import pytest

from attnprof.core.ceilings import Ceilings, Rate
from attnprof.core.dtypes import DType
from attnprof.core.errors import InvalidInput
from attnprof.core.problem import Problem
from attnprof.core.record import Identity, Measured, Record, Weather
from attnprof.predict.local import calibrate_records, model_of_ceilings
from attnprof.variants.catalog import find

NAMES = ("naive", "flash_tiled", "sdpa_math")
TRUE = {"naive": (30e-6, 6e10, 2e-9), "flash_tiled": (300e-6, 4e10, 3e-9), "sdpa_math": (60e-6, 5e10, 2.5e-9)}
BYTES_PER_S = 6e9


def seconds(name: str, problem: Problem) -> float:
    cost = find(name).cost(problem)
    overhead, flops_per_s, pair_s = TRUE[name]
    return (
        overhead
        + cost.executed_flops / flops_per_s
        + cost.exp_ops * pair_s
        + cost.logical.total_bytes / BYTES_PER_S
    )


def record(name: str, problem: Problem, noise: float = 0.0) -> Record:
    sample = seconds(name, problem) * (1 + noise)
    measured = Measured(samples_s=(sample,) * 3, rounds=(0, 1, 2), calls_per_sample=1, warmup_calls=1, first_call_s=0.0,
                        prepare_s=0.0, floor_s=0.0, stopped="rounds")  # fmt: skip
    cost = find(name).cost(problem)
    return Record(variant=name, asked=problem, problem=problem, device="cpu", outcome=measured, cost=cost)


def small_run(noise: float = 0.02) -> list[Record]:
    rng = np.random.default_rng(0)
    lengths = (64, 128, 256, 512, 768, 1024)
    return [record(name, Problem(q_heads=4, q_len=n, head_dim=64), noise * rng.standard_normal())
            for name in NAMES for n in lengths]  # fmt: skip


def test_longer_lengths_other_heads_and_dims_within_fifteen_percent():
    model = calibrate_records(small_run(), None)
    shapes = ((4, 2048, 64), (4, 4096, 64), (12, 1024, 64), (4, 1024, 32), (2, 1024, 128))
    problems = [Problem(q_heads=heads, q_len=length, head_dim=dim) for heads, length, dim in shapes]
    errors = [
        abs(row.time_s / seconds(row.variant, row.problem) - 1) for p in problems for row in model.predict(p)
    ]
    assert np.median(errors) < 0.15


def test_the_interval_and_parts_belong_to_the_time():
    row = calibrate_records(small_run(), None).predict(Problem(q_heads=4, q_len=2048), ["naive"])[0]
    assert row.low_s < row.time_s < row.high_s
    assert sum(row.resources_s.values()) == pytest.approx(row.time_s)
    assert "18 rows" in row.assumptions[0]


def test_a_variant_that_was_not_measured_has_no_time():
    row = calibrate_records(small_run(), None).predict(Problem(q_len=256), ["fa1_tiled"])[0]
    assert row.time_s is None
    assert "fa1_tiled" in row.reason


def test_too_few_rows_are_refused_with_the_way_out():
    with pytest.raises(InvalidInput, match="attnprof run"):
        calibrate_records(small_run()[:3], None)


def ceilings(**rates: float) -> Ceilings:
    def rate(best: float) -> Rate:
        return Rate(best=best, median=best, spread=0.0, samples=3, conditions="")

    identity = Identity(device="cpu", device_name="a CPU", threads=1, versions={})
    return Ceilings(
        identity=identity,
        weather=Weather(),
        measured_at="",
        flops={"float32": rate(rates["flops"])},
        exp={"float32": rate(rates["exp"])},
        bandwidth={"L3": {"read": rate(3e10)}, "DRAM": {"read": rate(1e10)}},
        capacities_bytes={"L3": 32 * 2**20},
        floor_s=rate(1e-6),
    )


def test_ceilings_alone_give_a_broader_interval_and_the_device_name():
    model = model_of_ceilings(ceilings(flops=1e11, exp=1e9), DType.FLOAT32)
    (row,) = model.predict(Problem(q_heads=4, q_len=1024), ["naive"])
    assert row.device == "a CPU"
    fitted = calibrate_records(small_run(), None).predict(Problem(q_heads=4, q_len=1024), ["naive"])[0]
    assert row.high_s / row.low_s > fitted.high_s / fitted.low_s


def test_twice_the_ceilings_take_less_time():
    problem = Problem(q_heads=4, q_len=1024)
    slow, fast = (
        model_of_ceilings(ceilings(flops=f, exp=f / 100), DType.FLOAT32).predict(problem, ["naive"])[0].time_s
        for f in (1e11, 2e11)
    )
    assert slow > fast


def test_a_type_without_a_ceiling_is_refused():
    with pytest.raises(InvalidInput, match="float16"):
        model_of_ceilings(ceilings(flops=1e11, exp=1e9), DType.FLOAT16)
