"""A GPU that held its clock back is told beside the row."""

from __future__ import annotations

import pytest

from attnprof.core.problem import Problem
from attnprof.core.record import Measured, Record
from attnprof.report.judgments import judge


@pytest.mark.parametrize(
    ("counted", "message"),
    [
        ({"throttle_sw_power_cap": 1.0, "energy_j": 2.0}, "the GPU held its clock back: sw power cap"),
        ({"throttle_sw_power_cap": 1.0, "throttle_hw_slowdown": 1.0}, "sw power cap, hw slowdown"),
        ({"throttle_hw_slowdown": 0.0, "gpu_clock_hz": 1e9}, None),
        ({}, None),
    ],
)
def test_throttle_reasons_become_a_judgment(counted, message):
    done = Measured(
        samples_s=(1e-3,) * 9, rounds=tuple(range(9)), calls_per_sample=1, warmup_calls=1, first_call_s=1e-3,
        prepare_s=0.0, floor_s=1e-7, stopped="", counted=counted,
    )  # fmt: skip
    problem = Problem(q_len=64)
    record = Record(variant="naive", asked=problem, problem=problem, device="cuda:0", outcome=done)
    found = [judgment for judgment in judge(record) if judgment.code == "throttled"]
    assert bool(found) == (message is not None)
    if message:
        assert message in found[0].message
        assert "power limit" in found[0].remedy
