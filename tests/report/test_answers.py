"""The answers: who is fastest and may be used, from where on, and what to distrust."""

from __future__ import annotations

import pytest
from tests.report.factory import US, measured, problem, record, sweep

from attnprof.core.mask import Causal, Dense, Window
from attnprof.core.record import Accuracy, Judgment, Memory, Severity, Skipped, Verdict
from attnprof.report.answers import answers, crossovers, distrusted, memory_growth, rank, series
from attnprof.report.metrics import rows

WRONG = Accuracy(verdict=Verdict.WRONG, reason="error 0.3 > 1e-6", max_abs_error=0.3)


def answer(*records):
    """The answer of records that share one question."""
    (found,) = answers(records, rows(records))
    return found


def find(records):
    """All answers of records."""
    return answers(records, rows(records))


def test_fastest_per_length_and_crossover():
    found = find(sweep())
    assert [(a.length, a.best.variant) for a in found] == [
        (256, "naive"), (512, "sdpa_flash"), (1024, "sdpa_flash"), (2048, "sdpa_flash"),
    ]  # fmt: skip
    (crossing,) = crossovers(found)
    assert (crossing.variant, crossing.length) == ("sdpa_flash", 512)
    assert (crossing.lengths, crossing.faster) == ((256, 512, 1024, 2048), (512, 1024, 2048))


def test_a_wrong_result_is_ranked_by_time_but_never_best():
    found = answer(record("naive"), record("cheat", outcome=measured(1, accuracy=WRONG)))
    assert [row.variant for row in found.ranked] == ["cheat", "naive"]
    assert found.best.variant == "naive"


def test_a_preset_is_never_the_fastest_correct_kernel():
    window = record("sliding_w128", problem=problem().replace(mask=Window(127, 0)), outcome=measured(1))
    assert answer(window, record("naive")).best.variant == "naive"


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([record(outcome=Skipped(reason="x"))], "nothing was measured"),
        ([record(problem=problem(512))], "only kernels of another function were measured"),
        ([record(outcome=measured(accuracy=WRONG))], "every result is wrong"),
        ([record(outcome=measured(accuracy=None))], "no result was checked and passed"),
    ],
)
def test_no_best_has_a_reason(records, reason):
    found = answer(*records)
    assert found.best is None
    assert found.reason == reason


def test_a_loss_in_between_moves_the_crossover_up():
    records = []
    for length, time in ((64, 50), (128, 150), (256, 90)):
        records += [record("naive", length), record("x", length, measured(time))]
    (crossing,) = crossovers(find(records))
    assert crossing.length == 256


def rough(median_us, **changes):
    """Nine samples between half and one and a half of the median."""
    samples = tuple(median_us * US * (1 + 0.125 * step) for step in (0, 3, -3, 1, -1, 4, -4, 2, -2))
    return measured(samples_s=samples, rounds=tuple(range(9)), **changes)


def test_a_paired_ratio_whose_interval_reaches_one_is_not_told_apart():
    naive, near = record("naive"), record("a", outcome=rough(99))
    assert (answer(naive, near).best.variant, answer(naive, near).tied) == ("a", ("naive",))
    assert answer(naive, record("b", outcome=rough(20))).tied == ()


def test_what_drifts_over_both_does_not_hide_their_order():
    slow = tuple(100 * US * 1.2**i for i in range(9))
    naive = record(outcome=measured(samples_s=tuple(1.05 * s for s in slow)))
    assert answer(naive, record("x", outcome=measured(samples_s=slow))).tied == ()


def test_without_shared_rounds_the_intervals_of_the_medians_decide():
    later = tuple(range(100, 109))
    near, far = (record("x", outcome=measured(time, rounds=later)) for time in (99, 50))
    assert answer(record("naive"), near).tied == ("naive",)
    assert answer(record("naive"), far).tied == ()


def test_fewer_than_six_samples_allow_no_claim():
    few = measured(50, samples_s=(5e-5,) * 5, rounds=tuple(range(5)))
    found = answer(record("naive"), record("x", outcome=few))
    assert (found.best.variant, found.few, found.tied) == ("x", True, ("naive",))
    assert answer(record("naive", outcome=few), record("x", outcome=measured(20))).tied == ("naive",)
    (crossing,) = crossovers([found])
    assert (crossing.length, crossing.unknown) == (None, (1024,))


def test_a_crossover_begins_where_the_interval_lies_above_one():
    records = []
    for length, outcome in ((64, measured(200)), (128, rough(99)), (256, measured(50))):
        records += [record("naive", length), record("x", length, outcome)]
    (crossing,) = crossovers(find(records))
    assert (crossing.length, crossing.faster, crossing.unclear) == (256, (256,), (128,))
    (never,) = crossovers(find(records[:4]))
    assert (never.length, never.faster, never.unclear) == (None, (), (128,))


def test_never_faster_has_no_crossover():
    (crossing,) = crossovers(find([record("naive", 64), record("x", 64, measured(200))]))
    assert crossing.length is None


def test_memory_grows_with_the_fitted_exponent():
    growth = {variant: a for (_, variant), a in memory_growth(find(sweep())).items()}
    assert growth["naive"] == pytest.approx(2, abs=1e-3)
    assert growth["sdpa_flash"] == pytest.approx(1, abs=1e-3)
    one_length = memory_growth(find([record()]))
    assert list(one_length.values()) == [None]
    empty = record(outcome=measured(memory=Memory(peak_bytes=0, output_bytes=0, method="m")))
    assert memory_growth(find([empty])) == {}


def test_alignments_shapes_and_masks_are_never_ranked_together():
    top = problem().replace(kv_len=2048)
    bottom = top.replace(mask=Causal("bottom_right"))
    dense = problem(2).replace(mask=Dense([[1, 0], [1, 1]]))
    other = problem(2).replace(mask=Dense([[1, 1], [1, 1]]))
    found = find([record(asked=p) for p in (top, bottom, dense, other)])
    assert len(found) == 4
    assert series(record(asked=dense)) == series(record(asked=other))
    assert series(record(asked=dense)).mask == "dense"


def test_a_series_names_what_stays_fixed():
    text = str(series(record(asked=problem().replace(q_len=1, kv_heads=3, v_dim=32, scale=1.0, dropout=0.1))))
    sizes = "batch 1, 12/3 heads, head_dim 64/32, q_len 1, float32, causal, fwd"
    assert text == f"{sizes}, scale 1, dropout 0.1, cpu, warm cache"
    assert "q_len" not in str(series(record()))


def test_rank_puts_rows_without_a_time_last():
    made = rows(
        [
            record("none", outcome=Skipped(reason="x")),
            record("slow", outcome=measured(9)),
            record("fast", outcome=measured(1)),
        ]
    )
    assert [row.variant for row in rank(made)] == ["fast", "slow", "none"]


def test_distrust_is_gathered_by_kind_gravest_first():
    few = measured(samples_s=(1e-4,), rounds=(0,))
    note = Judgment(code="n", message="just a note", severity=Severity.NOTE)
    made = rows(
        [
            record(outcome=few),
            record("b", outcome=few),
            record("c", outcome=measured(accuracy=WRONG), judgments=(note,)),
        ]
    )
    found = [(judgment.code, len(fallen)) for judgment, fallen in distrusted(made)]
    assert found == [("wrong_result", 1), ("too_few_samples", 2)]
