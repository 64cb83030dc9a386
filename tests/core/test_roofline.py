"""Roofline placement: the decode case of public reports to the digit, alarms above a ceiling, n/a where none is."""

from __future__ import annotations

import msgspec
import pytest

from attnprof.core.ceilings import Ceilings, Chip, Level, Rate, Roof
from attnprof.core.dtypes import DType
from attnprof.core.problem import Problem
from attnprof.core.record import Identity, Severity, Weather
from attnprof.core.roofline import ABOVE_CEILING, Resource, place, unplaced
from attnprof.core.schedules.common import cost as make_cost
from attnprof.core.schedules.common import logical
from attnprof.core.traffic import ByteKind, Term, Traffic
from attnprof.core.units import MIB

STATED = Chip(
    name="stated",
    vendor="NVIDIA",
    architecture="Hopper",
    bf16_flops_per_s=989.4e12,
    bandwidth_bytes_per_s=3.35e12,
    l2_bytes=50 * MIB,
    source="stated in the case",
    checked="2026-11-29",
)
DECODE = Problem(q_heads=32, kv_heads=8, q_len=1, kv_len=4096, head_dim=128, dtype="bfloat16")


def cost_of(problem):
    return make_cost(
        problem,
        logical=logical("L2", "none", []),
        executed_pairs=problem.total_pairs,
        workspace_bytes=0,
        backward_factor=2.5,
    )


def roof_of(**changes):
    return msgspec.structs.replace(STATED.roof(DType.BFLOAT16), **changes)


def test_decode_work_and_bytes():
    cost = cost_of(DECODE)
    assert cost.useful_flops == 67_108_864
    assert cost.compulsory.total_bytes == 16_793_600
    assert place(cost, None, roof_of()).intensity_flops_per_byte == pytest.approx(3.9961, abs=5e-5)


def test_decode_bound():
    placed = place(cost_of(DECODE), None, roof_of())
    assert placed.ridge_flops_per_byte == pytest.approx(295.34, abs=0.005)
    assert placed.share(Resource.MEMORY).least_s == pytest.approx(5.0130e-6, abs=5e-11)
    assert placed.share(Resource.MATMUL).least_s == pytest.approx(0.0678e-6, abs=5e-11)
    assert placed.binding == "DRAM bytes"
    assert placed.bound_s == placed.share(Resource.MEMORY).least_s
    assert placed.judgments == ()


def test_decode_measured_at_5_us_is_above_the_ceiling_and_raises_an_alarm():
    placed = place(cost_of(DECODE), 5e-6, roof_of())
    matmul, memory = placed.share(Resource.MATMUL), placed.share(Resource.MEMORY)
    assert matmul.rate_per_s == pytest.approx(13.42e12, abs=5e9)
    assert memory.rate_per_s == pytest.approx(3358.7e9, abs=5e7)
    assert memory.share == pytest.approx(1.0026, abs=5e-5)
    (alarm,) = placed.judgments
    assert (alarm.code, alarm.severity) == (ABOVE_CEILING, Severity.ALARM)
    assert alarm.message == "DRAM bytes: 3.359 TB/s is 100.26% of the datasheet ceiling 3.35 TB/s"
    assert "16.02 MiB may stay in L2: measure with a cold cache" in alarm.remedy


def test_a_slower_measurement_raises_none():
    placed = place(cost_of(DECODE), 10e-6, roof_of())
    assert placed.judgments == ()
    assert placed.times_bound == pytest.approx(10 / 5.0130, rel=1e-4)


def test_32_kv_heads():
    cost = cost_of(DECODE.replace(kv_heads=32))
    assert cost.compulsory.total_bytes == 67_125_248
    assert place(cost, None, roof_of()).intensity_flops_per_byte == pytest.approx(0.99976, abs=5e-6)


def test_a_batch_of_decodes_whose_tool_printed_a_bandwidth_600_times_too_small():
    problem = Problem(
        batch=16, q_heads=80, kv_heads=8, q_len=1, kv_len=10_241, head_dim=128, dtype="bfloat16"
    )
    placed = place(cost_of(problem), 4.1408e-3, roof_of())
    memory, matmul = placed.share(Resource.MEMORY), placed.share(Resource.MATMUL)
    assert memory.work == 671_809_536
    assert memory.rate_per_s == pytest.approx(162.24e9, abs=5e6)
    assert matmul.rate_per_s == pytest.approx(1.6208e12, abs=5e7)


def test_causal_work_counted_twice_is_flagged_at_121_percent():
    counted_dense = Problem(batch=4, q_heads=16, q_len=8192, head_dim=128, dtype="bfloat16")
    true_rate = 189e12
    seconds = counted_dense.useful_flops / 2 / true_rate
    placed = place(cost_of(counted_dense), seconds, roof_of(flops_per_s=312e12))
    assert placed.share(Resource.MATMUL).share == pytest.approx(1.21, abs=0.005)
    (alarm,) = placed.judgments
    assert "overcounted (causal)" in alarm.remedy


def test_no_share_above_one_without_an_alarm():
    for seconds in (1e-9, 1e-7, 1e-6, 5e-6, 1e-4):
        placed = place(cost_of(DECODE), seconds, roof_of(exp_per_s=1e12, floor_s=1e-6))
        above = [share for share in placed.shares if share.share > 1]
        assert len(above) == len(placed.judgments)


def test_an_unknown_device_gives_the_reason_and_no_number():
    placed = unplaced("device 'X1' is not in the hardware catalogue; nearest: L4")
    assert "nearest" in placed.reason
    assert (placed.binding, placed.bound_s, placed.times_bound, placed.shares) == (None, None, None, ())


def test_a_device_without_any_figure_for_the_dtype():
    placed = place(cost_of(DECODE), 1e-5, Roof(device="M9", dtype=DType.BFLOAT16, basis="datasheet"))
    assert placed.reason == "no ceiling of M9 is known for bfloat16"


def test_a_missing_figure_is_left_out_with_its_reason():
    placed = place(cost_of(DECODE), 1e-5, roof_of(flops_per_s=None))
    matmul = placed.share(Resource.MATMUL)
    assert (matmul.share, matmul.least_s) == (None, None)
    assert matmul.reason == "no bfloat16 matmul figure for this device"
    assert placed.binding == "DRAM bytes"
    assert placed.ridge_flops_per_byte is None


def test_exp_binds_where_its_rate_is_low():
    problem = Problem(q_heads=8, q_len=4096, head_dim=64, dtype="bfloat16")
    assert place(cost_of(problem), None, roof_of(exp_per_s=1e12)).binding == "exp"


def test_the_floor_binds_a_tiny_call():
    problem = Problem(q_len=16, head_dim=16, dtype="bfloat16")
    placed = place(cost_of(problem), 4e-6, roof_of(floor_s=3e-6))
    assert placed.binding == "floor"
    assert placed.times_bound == pytest.approx(4 / 3)
    assert placed.share(Resource.FLOOR).share == pytest.approx(0.75)


def test_nothing_to_do_has_no_bound_and_no_rate_from_zero_seconds():
    placed = place(cost_of(DECODE.replace(q_len=0, kv_len=0)), 1e-6, roof_of())
    assert (placed.binding, placed.times_bound, placed.intensity_flops_per_byte) == (None, None, None)
    assert place(cost_of(DECODE), 0.0, roof_of()).share(Resource.MATMUL).share is None


CPU = roof_of(
    basis="measured",
    levels=(
        Level(name="L2", bytes_per_s=2e11, capacity_bytes=MIB),
        Level(name="L3", bytes_per_s=1e11, capacity_bytes=32 * MIB),
        Level(name="DRAM", bytes_per_s=2e10, capacity_bytes=2**34),
    ),
)


@pytest.mark.parametrize(
    ("kv_len", "cache", "level"),
    [(64, "warm", "L2"), (4096, "warm", "L3"), (4096, "cold", "DRAM"), (65_536, "warm", "DRAM")],
)
def test_warm_bytes_are_held_against_the_level_that_holds_them(kv_len, cache, level):
    placed = place(cost_of(DECODE.replace(kv_len=kv_len)), 1.0, CPU, cache=cache)
    assert placed.share(Resource.MEMORY).level == level


def test_a_working_set_near_the_size_of_a_cache_may_partly_come_out_of_it():
    cost = cost_of(DECODE.replace(kv_len=10_000))  # 41 MB against 32 MiB of L3
    (alarm,) = place(cost, 1e-3, CPU, cache="warm").judgments
    assert "may stay in L3" in alarm.remedy


def test_the_kernels_own_traffic_replaces_the_lower_bound():
    own = Traffic(kind=ByteKind.DRAM_MODEL, level="DRAM", terms=(Term(tensor="K", read_bytes=10**9),))
    placed = place(cost_of(DECODE), None, roof_of(), traffic=own)
    assert placed.share(Resource.MEMORY).work == 10**9


def test_measured_ceilings_make_a_roof():
    def rate(best):
        return Rate(best=best, median=best, spread=0.0, samples=5, conditions="test")

    ceilings = Ceilings(
        identity=Identity(device="cpu", device_name="box", threads=2, versions={}),
        weather=Weather(),
        measured_at="2026-11-29T00:00:00+00:00",
        flops={"float32": rate(2e11)},
        exp={"float32": rate(3e9)},
        bandwidth={"L2": {"read": rate(9e10), "copy": rate(1e11)}, "DRAM": {"read": rate(2e10)}},
        capacities_bytes={"L2": MIB},
        floor_s=rate(1e-7),
    )
    roof = ceilings.roof(DType.FLOAT32)
    assert (roof.device, roof.basis, roof.flops_per_s, roof.exp_per_s) == ("box", "measured", 2e11, 3e9)
    assert roof.levels[0] == Level(name="L2", bytes_per_s=1e11, capacity_bytes=MIB)
    assert roof.main_memory.bytes_per_s == 2e10
    half = ceilings.roof(DType.FLOAT16)
    assert (half.flops_per_s, half.exp_per_s) == (None, 3e9)  # exponentials of 16-bit scores are float32's
    assert ceilings.roof(DType.FLOAT64).exp_per_s is None
