"""Rows: what is derived from a record, and what is said where a number does not exist."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.factory import US, measured, problem, record, sweep

from attnprof.core.dtypes import DType
from attnprof.core.mask import Causal, Window
from attnprof.core.problem import Problem
from attnprof.core.record import (
    Accuracy,
    Failed,
    FailureKind,
    Judgment,
    Memory,
    Severity,
    Skipped,
    Unsupported,
    Verdict,
)
from attnprof.report.judgments import judge
from attnprof.report.metrics import rows
from attnprof.report.row import COLUMNS, why_missing

CONTRACT = [
    "variant",
    "batch",
    "q_heads",
    "kv_heads",
    "q_len",
    "kv_len",
    "head_dim",
    "v_dim",
    "dtype",
    "mask",
    "direction",
    "outcome",
    "reason",
    "time_median_us",
    "time_p20_us",
    "time_p80_us",
    "speedup_vs_naive",
    "peak_mib",
    "useful_flops",
    "tflop_per_s",
]


def one(made):
    """The row of a single record."""
    (row,) = rows([made])
    return row


def codes(row):
    """The codes of a row's judgments."""
    return [judgment.code for judgment in row.judgments]


def test_columns_begin_as_the_contract_says():
    assert list(COLUMNS[: len(CONTRACT)]) == CONTRACT


def test_published_speedups_follow_from_their_times():
    naive = record("naive", 2048, measured(4947))
    default = record("sdpa_default", 2048, measured(647))
    math_ = record("sdpa_math", 2048, measured(8483))
    made = rows([naive, default, math_])
    assert [round(row.speedup_vs_naive, 2) for row in made] == [1.0, 7.65, 0.58]
    assert made[1].speedup_low <= made[1].speedup_paired <= made[1].speedup_high


def test_rate_counts_useful_flops_and_names_executed_apart():
    row = one(record("naive", 1024, measured(1000)))
    assert row.useful_flops == problem(1024).useful_flops == 12 * 4 * 64 * (1024 * 1025 // 2)
    assert row.tflop_per_s == pytest.approx(row.useful_flops / 1e-3 / 1e12)
    assert row.executed_tflop_per_s == pytest.approx(12 * 4 * 64 * 1024**2 / 1e-3 / 1e12)


def test_bytes_are_split_and_labelled():
    row = one(record())
    assert row.compulsory_read_bytes + row.compulsory_write_bytes == row.compulsory_bytes
    assert row.logical_read_bytes + row.logical_write_bytes == row.logical_bytes
    assert row.logical_level == "dram"
    assert row.intensity_flop_per_byte == pytest.approx(row.useful_flops / row.compulsory_bytes)


def test_memory_is_in_mib():
    row = one(record())
    assert (row.peak_mib, row.output_mib, row.workspace_mib) == (12, 3, 9)


def test_round_pairing_ignores_what_drifts_over_both():
    slow = tuple(100 * US * 1.5**i for i in range(8))
    naive = record(outcome=measured(samples_s=tuple(2 * s for s in slow), rounds=tuple(range(8))))
    other = record("x", outcome=measured(samples_s=slow, rounds=tuple(range(8))))
    row = rows([naive, other])[1]
    assert row.speedup_low == pytest.approx(2) == row.speedup_high


def test_the_shown_speedup_is_the_median_of_the_ratios_by_round():
    naive = record(outcome=measured(samples_s=(1.0, 2.0, 9.0, 4.0, 5.0, 6.0, 7.0), rounds=tuple(range(7))))
    other = record(
        "x", outcome=measured(samples_s=(1.0, 1.0, 3.0, 8.0, 1.0, 2.0, 7.0), rounds=tuple(range(7)))
    )
    row = rows([naive, other])[1]
    assert row.speedup_vs_naive == row.speedup_paired == 2  # the medians' ratio is 2.5
    assert (row.speedup_low, row.speedup_high) == (0.5, 5)


def test_fewer_than_six_shared_rounds_have_a_value_and_no_interval():
    naive = record(outcome=measured(rounds=tuple(range(4, 13))))
    row = rows([naive, record("x")])[1]
    assert row.speedup_vs_naive == pytest.approx(1, rel=0.05)
    assert row.speedup_low is row.speedup_high is None
    assert why_missing(row, "speedup_low") == "fewer than 6 sampling rounds are shared with naive"
    few = one(record(outcome=measured(samples_s=(1e-4,) * 5, rounds=tuple(range(5)))))
    assert why_missing(few, "time_ci_low_us") == "no 95% interval exists below 6 samples"


def test_without_shared_rounds_there_is_no_interval():
    naive = record(outcome=measured(rounds=tuple(range(100, 109))))
    row = rows([naive, record("x")])[1]
    assert row.speedup_vs_naive == pytest.approx(1)
    assert (row.speedup_paired, row.speedup_low, row.speedup_high) == (None, None, None)
    assert why_missing(row, "speedup_paired") == "no sampling round is shared with naive"


def test_baseline_is_naive_of_the_same_question():
    other_length = record("naive", 512, measured(1))
    other_cache = record("naive", 1024, measured(1), cache="cold")
    row = rows([other_length, other_cache, record("x", 1024)])[2]
    assert row.speedup_vs_naive is None
    assert why_missing(row, "speedup_vs_naive") == "no measured naive for this problem"


def test_preset_is_compared_with_naive_but_marked_as_another_function():
    asked = problem(1024)
    window = record(
        "sliding_w128", asked=asked, problem=asked.replace(mask=Window(127, 0)), outcome=measured(50)
    )
    row = rows([record("naive", 1024, measured(100)), window])[1]
    assert row.mask == "window:127:0"
    assert row.speedup_vs_naive == pytest.approx(2)
    assert not row.same_function
    assert not row.correct
    assert row.note.startswith("function differs")
    assert codes(row) == ["function_differs"]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Skipped(reason="predicted 149.0 GiB x2 > available"), "predicted 149.0 GiB x2 > available"),
        (Unsupported(reason="needs sm80"), "needs sm80"),
        (Failed(kind=FailureKind.KILLED, message="signal 9"), "killed: signal 9"),
    ],
)
def test_rows_without_a_measurement_keep_their_reason(outcome, reason):
    row = one(record(outcome=outcome))
    assert row.reason == reason
    assert row.time_median_us is row.peak_mib is row.tflop_per_s is row.verdict is None
    assert why_missing(row, "time_median_us") == f"{row.outcome}: {reason}"
    assert row.judgments == ()
    assert not row.correct


def test_empty_problem_has_no_rate():
    empty = Problem(batch=0, q_len=16)
    row = one(record(asked=empty))
    assert row.useful_flops == 0
    assert row.tflop_per_s is None
    assert row.intensity_flop_per_byte is None
    assert why_missing(row, "tflop_per_s") == "no work or no samples"
    assert why_missing(row, "intensity_flop_per_byte") == "no work or no bytes"


def test_a_measurement_without_samples_has_no_time():
    row = rows([record(), record("x", outcome=measured(samples_s=(), rounds=()))])[1]
    assert row.time_median_us is row.speedup_vs_naive is row.tflop_per_s is None
    assert why_missing(row, "time_median_us") == "no samples"
    assert codes(row) == ["too_few_samples"]


def test_zero_time_gives_no_rate_and_no_ratio():
    row = rows([record(), record("x", outcome=measured(samples_s=(0.0,) * 9))])[1]
    assert row.tflop_per_s is row.speedup_vs_naive is row.speedup_low is None


def test_missing_facts_say_why():
    row = one(record(outcome=measured(memory=None, accuracy=None), cost=None))
    assert why_missing(row, "peak_mib") == "peak memory was not measured"
    assert why_missing(row, "max_abs_error") == "not checked against the reference"
    assert why_missing(row, "logical_bytes") == "the variant states no cost"
    assert why_missing(row, "backward_factor") == "forward only"
    assert why_missing(row, "op_boundary_bytes") == "the variant states no cost"
    assert why_missing(one(record()), "op_boundary_bytes") == "the variant states no operators"
    assert why_missing(row, "note") == "nothing to say"
    assert why_missing(row, "choice") == "not recorded"
    assert row.useful_flops == problem().useful_flops
    assert codes(row) == ["unchecked"]


def test_counters_become_one_cell():
    assert (
        one(record(outcome=measured(counted={"energy_j": 1.5, "clock_hz": 2e9}))).counted
        == "energy_j=1.5; clock_hz=2e+09"
    )


def test_empty_rows_are_summed_over_batch_and_heads():
    asked = Problem(q_heads=4, q_len=9, kv_len=5, mask=Causal("bottom_right"))
    assert one(record(asked=asked)).empty_rows == 16


# --- judgments ---


def test_a_quiet_row_is_not_judged():
    assert one(record()).judgments == ()


def test_wrong_result_is_an_alarm_and_never_correct():
    bad = Accuracy(verdict=Verdict.NAN, reason="1 NaN row", nan_rows=1)
    row = one(record(outcome=measured(accuracy=bad)))
    (judgment,) = row.judgments
    assert (judgment.code, judgment.severity) == ("wrong_result", Severity.ALARM)
    assert "1 NaN rows" in judgment.message
    assert row.wrong
    assert not row.correct


def test_dropout_row_is_unchecked_for_its_reason():
    row = one(record(outcome=measured(accuracy=Accuracy(verdict=Verdict.NOT_APPLICABLE, reason="dropout"))))
    assert codes(row) == ["unchecked"]
    assert "dropout" in row.judgments[0].message
    assert why_missing(row, "max_abs_error") == "dropout"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"samples_s": (1e-4,) * 5, "rounds": tuple(range(5))}, "too_few_samples"),
        ({"samples_s": tuple(1e-4 * (1 + i % 2) for i in range(9))}, "noisy"),
        ({"samples_s": tuple(1e-4 * (1 + 0.03 * i) for i in range(9))}, "drift"),
        ({"floor_s": 2e-5}, "near_floor"),
        ({"recompiles": 2}, "recompiled"),
    ],
)
def test_each_fault_is_named_with_a_remedy(changes, code):
    judgments = {j.code: j for j in one(record(outcome=measured(100, **changes))).judgments}
    assert code in judgments
    assert judgments[code].remedy


def test_16_bit_slower_than_float32_on_a_cpu_is_called_emulated():
    fp16 = record("naive", asked=problem().replace(dtype=DType.FLOAT16), outcome=measured(456e3))
    fp32 = record("naive", outcome=measured(61e3))
    assert codes(rows([fp16, fp32])[0]) == ["emulated_16bit"]
    assert "7.5 times" in rows([fp16, fp32])[0].judgments[0].message
    assert codes(rows([fp16])[0]) == []
    on_gpu = [msgspec_replace(r, device="cuda") for r in (fp16, fp32)]
    assert codes(rows(on_gpu)[0]) == []
    fast = record("naive", asked=fp16.asked, outcome=measured(50e3))
    assert codes(rows([fast, fp32])[0]) == []


def msgspec_replace(made, **changes):
    """A record with other values."""
    import msgspec

    return msgspec.structs.replace(made, **changes)


def test_stored_judgments_stay_and_are_not_said_twice():
    stored = Judgment(code="too_few_samples", message="said while measuring")
    made = record(outcome=measured(samples_s=(1e-4,), rounds=(0,)), judgments=(stored,))
    assert one(made).judgments == (stored,)
    assert judge(record(outcome=Skipped(reason="x"))) == ()


@settings(deadline=None)
@given(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3), st.sampled_from([64, 100, 2048]))
def test_property_ratio_and_rate_agree_with_the_times(naive_us, other_us, length):
    base, row = rows([record("naive", length, measured(naive_us)), record("x", length, measured(other_us))])
    assert row.speedup_vs_naive == pytest.approx(base.time_median_us / row.time_median_us)
    assert row.tflop_per_s * row.time_median_us * 1e6 == pytest.approx(row.useful_flops)
    assert row.time_ci_low_us <= row.time_median_us <= row.time_ci_high_us


def test_sweep_of_the_factory_gives_one_row_a_record():
    assert len(rows(sweep())) == 8
    assert (
        one(record(outcome=measured(memory=Memory(peak_bytes=0, output_bytes=0, method="m")))).peak_mib == 0
    )
