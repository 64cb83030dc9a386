"""Sampling to the digit, on a device whose clock is scripted."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from attnprof.bench.devices.fake import FakeDevice
from attnprof.bench.sweep import Conditions
from attnprof.bench.timing import Series, calls_per_sample, measure_floor, sample_rounds, warm_up


def series(device, seconds, calls=1):
    return Series(
        call=lambda: device.advance(seconds), scope=nullcontext, calls_per_sample=calls, warmup_calls=2
    )


def run(device, all_series, **conditions):
    log = {"order": [], "failed": {}, "done": []}
    sample_rounds(
        device, all_series, all_series, Conditions(**conditions), before=log["order"].append,
        failed=lambda name, error: log["failed"].update({name: str(error)}), done=log["done"].append,
    )  # fmt: skip
    return log


def test_rounds_interleave_and_rotate():
    device = FakeDevice()
    both = {"a": series(device, 1.0), "b": series(device, 2.0)}
    log = run(device, both, min_rounds=3, max_rounds=3, budget_s=100.0)
    assert log["order"] == ["a", "b", "b", "a", "a", "b"]
    assert both["a"].samples_s == [1.0, 1.0, 1.0]
    assert both["b"].rounds == [0, 1, 2]


def test_steady_samples_stop_at_the_precision():
    device = FakeDevice()
    one = {"a": series(device, 0.05)}
    run(device, one, min_rounds=10, budget_s=2.0, precision=0.02)
    assert len(one["a"].samples_s) == 10
    assert one["a"].stopped == "interval of the median within 2%"


def test_noisy_samples_stop_at_the_budget_and_say_so():
    device = FakeDevice()
    values = iter([1.0, 3.0] * 1000)
    noisy = Series(
        call=lambda: device.advance(next(values)), scope=nullcontext, calls_per_sample=1, warmup_calls=0
    )
    run(device, {"a": noisy}, min_rounds=5, budget_s=20.0)
    assert noisy.stopped.startswith("time budget spent (interval")


def test_a_very_slow_case_stops_before_the_least_rounds():
    device = FakeDevice()
    one = {"a": series(device, 50.0)}
    run(device, one, min_rounds=10, budget_s=2.0)
    assert len(one["a"].samples_s) == 3
    assert "3 samples" in one["a"].stopped


def test_a_failing_series_leaves_the_others():
    device = FakeDevice()

    def broken():
        raise RuntimeError("boom")

    both = {
        "bad": Series(call=broken, scope=nullcontext, calls_per_sample=1, warmup_calls=0),
        "good": series(device, 1.0),
    }
    log = run(device, both, min_rounds=4, budget_s=1.0)
    assert log["failed"] == {"bad": "boom"}
    assert log["done"] == ["good"]
    assert len(both["good"].samples_s) >= 3


def test_cold_cache_is_flushed_before_each_sample():
    device = FakeDevice()
    run(device, {"a": series(device, 1.0)}, min_rounds=3, max_rounds=3, budget_s=1.0, cache="cold")
    assert sum("flush" in str(entry) for entry in device.log) == 3


@pytest.mark.parametrize(
    ("call_s", "floor_s", "cache", "want"),
    [
        (1e-5, 1e-8, "warm", 100),
        (1.0, 1e-8, "warm", 1),
        (1e-5, 1e-8, "cold", 1),
        (1e-5, 1e-4, "warm", 2000),
        (0.0, 1e-8, "warm", 20_000),
    ],
)
def test_calls_per_sample(call_s, floor_s, cache, want):
    assert calls_per_sample(call_s, floor_s, cache) == want


def test_warm_up_waits_until_times_agree():
    device = FakeDevice()
    values = iter([9.0, 0.02, 0.01, 0.0101, 0.0102, 0.01])
    device_calls, last = warm_up(device, lambda: device.advance(next(values) / 100))
    assert device_calls == 5
    assert last == pytest.approx(0.000102)


def test_floor_is_the_smallest_empty_call():
    assert measure_floor(FakeDevice(noise_s=(0.0,))) == 0.0


def test_every_scope_is_entered_outside_the_clock():
    device = FakeDevice()
    entered = []

    class Scope:
        def __enter__(self):
            device.advance(100.0)  # as slow as can be: it must not appear in a sample
            entered.append(1)

        def __exit__(self, *_):
            return None

    one = Series(call=lambda: device.advance(1.0), scope=Scope, calls_per_sample=2, warmup_calls=0)
    run(device, {"a": one}, min_rounds=3, max_rounds=3, budget_s=1.0)
    assert one.samples_s == [1.0, 1.0, 1.0]
    assert len(entered) == 3
