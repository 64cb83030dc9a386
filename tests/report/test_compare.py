"""Two runs compared: verdicts that are right on noisy, drifting machines, and everything else that changed."""

from __future__ import annotations

import math
import random
from itertools import count

import msgspec
import pytest
from tests.report import factory

from attnprof.core.record import Accuracy, Failed, Memory, Run, Unsupported, Verdict
from attnprof.core.units import MIB
from attnprof.report.compare import CaseVerdict, compare
from attnprof.report.compare_text import headline, markdown, preamble
from attnprof.report.compare_timing import (
    Estimate,
    common_course,
    moved_alike,
    scatter,
    serial_correlation,
    spread,
    without,
)

VARIANTS = ("naive", "sdpa_default", "sdpa_flash", "sdpa_math", "gqa_4kv")


def noisy(rng, base_s, common, sigma=0.03):
    samples = tuple(base_s * math.exp(move + rng.gauss(0, sigma)) for move in common)
    return factory.measured(samples_s=samples, rounds=tuple(range(len(samples))))


def run_of(*records, **manifest):
    return Run(manifest=factory.manifest(**manifest), records=records)


def simulated(rng, slow=(), factor=1.1, common=None, rounds=24, variants=VARIANTS):
    common = common or [0.0] * rounds
    return run_of(
        *(
            factory.record(
                name, 1024, noisy(rng, 1e-3 * (place + 1) * (factor if name in slow else 1), common)
            )
            for place, name in enumerate(variants)
        )
    )


def verdicts(result):
    return {case.variant: str(case.verdict) for case in result.cases}


def single(a, b, **options):
    result = compare(run_of(factory.record(outcome=a)), run_of(factory.record(outcome=b)), **options)
    return result.cases[0]


# --- verdicts -----------------------------------------------------------------------------------------------


def test_the_same_run_twice_has_no_difference():
    run = simulated(random.Random(1))
    result = compare(run, run)
    assert set(verdicts(result).values()) == {"no difference"}
    assert [case.ratio for case in result.cases] == [pytest.approx(1.0)] * 5
    assert result.regressions == ()


@pytest.mark.parametrize("variants", [VARIANTS, ("sdpa_flash",)])
def test_aa_pairs_have_no_difference_in_95_of_100(variants):
    rng = random.Random(2)
    clean = sum(
        set(verdicts(compare(simulated(rng, variants=variants), simulated(rng, variants=variants))).values())
        == {"no difference"}
        for _ in range(100)
    )
    assert clean >= 95


def test_aa_pairs_hold_on_a_machine_that_drifts_and_changes_level():
    rng = random.Random(3)

    def drifting():
        level, levels = rng.gauss(0, 0.08), []
        for _ in range(24):
            level += rng.gauss(0, 0.015)
            levels.append(level)
        return levels

    pairs = [(simulated(rng, common=drifting()), simulated(rng, common=drifting())) for _ in range(100)]
    clean = sum(compare(a, b).count(CaseVerdict.SAME) == 5 for a, b in pairs)
    as_timed = sum(compare(a, b, absolute=True).count(CaseVerdict.SAME) == 5 for a, b in pairs)
    assert clean >= 95
    assert as_timed < 50  # what the comparison would say if it did not take the machine out


@pytest.mark.parametrize(("factor", "expected"), [(1.10, "slower"), (1 / 1.10, "faster")])
def test_ten_percent_in_one_variant_is_found_and_nothing_else(factor, expected):
    rng = random.Random(4)
    found = 0
    for _ in range(40):
        got = verdicts(compare(simulated(rng), simulated(rng, slow=("sdpa_flash",), factor=factor)))
        found += got.pop("sdpa_flash") == expected
        assert set(got.values()) == {"no difference"}
    assert found >= 38


def test_a_slow_down_is_found_while_the_whole_machine_got_faster():
    rng = random.Random(5)
    a, b = simulated(rng), simulated(rng, slow=("sdpa_flash",), factor=1.15, common=[-0.14] * 24)
    result = compare(a, b)
    assert verdicts(result)["sdpa_flash"] == "slower"
    flash = next(case for case in result.cases if case.variant == "sdpa_flash")
    assert flash.judged == "beside the other variants"
    assert flash.ratio_as_timed == pytest.approx(1.0, abs=0.03)
    assert flash.ratio == pytest.approx(1.15, abs=0.04)


def test_what_moves_everything_is_told_once_and_judged_only_when_asked():
    rng = random.Random(6)
    a, b = simulated(rng), simulated(rng, common=[0.2] * 24)
    assert compare(a, b).regressions == ()
    assert compare(a, b).common_ratio == pytest.approx(math.exp(0.2), rel=0.03)
    assert any("times as long" in line for _, lines in preamble(compare(a, b)) for line in lines)
    assert len(compare(a, b, absolute=True).regressions) == 5


def test_an_unchanged_kernel_is_not_blamed_when_a_new_version_changed_its_neighbours():
    rng = random.Random(7)
    a, b = simulated(rng), simulated(rng, slow=VARIANTS[1:], factor=1 / 1.3)
    identity = msgspec.structs.replace(b.manifest.identity, versions={"torch": "2.14.0"})
    b = msgspec.structs.replace(b, manifest=factory.manifest(identity=identity))
    result = compare(a, b)
    assert result.versions == ("torch version: 2.13.0 -> 2.14.0",)
    assert verdicts(result)["naive"] == "no difference"


def test_a_change_below_the_threshold_is_none_however_certain():
    a, b = factory.measured(100.0), factory.measured(104.0)
    assert single(a, b).verdict is CaseVerdict.SAME
    assert single(a, b, threshold=0.03).verdict is CaseVerdict.SLOWER


def test_an_overloaded_machine_is_not_believed_however_many_its_samples():
    """Preemption turns a call of 4 ms into 8, 12 or 16: one run lies mostly at one of them, the next at another."""
    rng = random.Random(15)
    low, high = ([rng.choices([4e-3, 8e-3, 12e-3, 16e-3], weights)[0] for _ in range(200)] for weights in
                 ((5, 3, 2, 1), (1, 2, 3, 5)))  # fmt: skip
    made = [factory.measured(samples_s=tuple(samples), rounds=tuple(range(200))) for samples in (low, high)]
    case = single(*made)
    assert case.ratio >= 2
    assert case.verdict is CaseVerdict.SAME


def test_a_change_within_the_noise_is_none_however_large():
    rng = random.Random(8)
    a, b = (noisy(rng, base, [0.0] * 8, sigma=0.3) for base in (1e-3, 1.15e-3))
    case = single(a, b)
    assert case.verdict is CaseVerdict.SAME
    assert case.resolution > 0.15
    result = compare(run_of(factory.record(outcome=a)), run_of(factory.record(outcome=b)))
    assert any("could not have shown" in line for _, lines in preamble(result) for line in lines)


def test_too_few_rounds_are_not_comparable():
    few = factory.measured(samples_s=(1e-3,) * 5, rounds=(0, 1, 2, 3, 4))
    case = single(factory.measured(), few)
    assert (case.verdict, case.reason) == ("not comparable", "B has 5 rounds of samples, 6 are needed")
    assert case.ratio is None


def test_many_samples_in_few_rounds_are_few_samples():
    few = factory.measured(samples_s=(1e-3,) * 60, rounds=tuple(i % 3 for i in range(60)))
    assert single(few, few).reason == "A has 3 rounds of samples, 6 are needed"


def test_drifting_samples_are_little_evidence():
    climbing = [0.01 * step for step in range(24)]
    rng = random.Random(9)
    drifting = single(noisy(rng, 1e-3, climbing, 0.005), noisy(rng, 1.08e-3, climbing, 0.005))
    shuffled = rng.sample(climbing, 24)
    still = single(noisy(rng, 1e-3, shuffled, 0.005), noisy(rng, 1.08e-3, shuffled, 0.005))
    assert drifting.resolution > 2 * still.resolution


# --- environment --------------------------------------------------------------------------------------------


def threads(number):
    return msgspec.structs.replace(factory.manifest().identity, threads=number)


def test_another_thread_count_is_said_first_and_nothing_is_judged():
    rng = random.Random(10)
    a = simulated(rng)
    b = msgspec.structs.replace(
        simulated(rng, common=[0.6] * 24), manifest=factory.manifest(identity=threads(1))
    )
    result = compare(a, b)
    assert result.environment == ("threads: 2 -> 1",)
    assert set(verdicts(result).values()) == {"not comparable"}
    assert all(case.reason == "threads: 2 -> 1" and case.ratio for case in result.cases)
    said = [line for _, lines in preamble(result) for line in lines]
    assert said[0] == "threads: 2 -> 1"
    assert not any("judged as timed" in line for line in said)
    assert markdown(result).index("threads: 2") < markdown(result).index("sdpa\\_flash")


def test_an_unknown_environment_is_not_comparable():
    run = simulated(random.Random(11))
    lost = msgspec.structs.replace(run, manifest=None, damaged=("manifest.json: schema 9",))
    result = compare(run, lost)
    assert result.environment == ("environment of B: unknown, its manifest cannot be read",)
    assert result.damaged == ("B: manifest.json: schema 9",)
    assert set(verdicts(result).values()) == {"not comparable"}


def test_weather_may_differ():
    weather = msgspec.structs.replace(factory.manifest().weather, git_commit="abc", load_1min=2.5)
    run = simulated(random.Random(12))
    other = msgspec.structs.replace(run, manifest=factory.manifest(weather=weather, attnprof_version="0.2.0"))
    result = compare(run, other)
    assert result.weather == ("load_1min: unknown -> 2.5", "git_commit: unknown -> abc")
    assert result.versions == ("attnprof version: 0.1.0 -> 0.2.0",)
    assert result.environment == ()


# --- everything else ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "text", "regression"),
    [
        ({"backend": "math"}, "backend flash -> math", False),
        ({"memory": Memory(peak_bytes=20 * MIB, output_bytes=3 * MIB, method="x")},
         "peak memory 12.00 MiB -> 20.00 MiB", True),
        ({"memory": Memory(peak_bytes=8 * MIB, output_bytes=3 * MIB, method="x")},
         "peak memory 12.00 MiB -> 8.00 MiB", False),
        ({"accuracy": Accuracy(verdict=Verdict.WRONG)}, "error verdict pass -> wrong", True),
    ],
)  # fmt: skip
def test_memory_error_and_backend_changes_are_told(change, text, regression):
    case = single(factory.measured(), factory.measured(**change))
    assert [f"{c.what} {c.text}" for c in case.changes] == [text]
    assert case.regression is regression


def test_memory_within_the_threshold_is_no_change():
    memory = Memory(peak_bytes=12 * MIB + MIB // 2, output_bytes=3 * MIB, method="x")
    assert single(factory.measured(), factory.measured(memory=memory)).changes == ()


def test_a_case_that_now_fails_is_a_regression():
    case = single(factory.measured(), Failed(kind="exception", message="boom"))
    assert case.regression
    assert case.reason == "B is failed: boom"
    assert case.changes[0].text == "measured -> failed: boom"
    gone = single(factory.measured(), Unsupported(reason="no kernel"))
    assert (gone.regression, gone.reason) == (False, "B is unsupported: no kernel")


def test_cases_in_one_run_only_are_listed():
    a = run_of(factory.record("naive"), factory.record("flex"))
    b = run_of(factory.record("naive"), factory.record("naive", 99))
    result = compare(a, b)
    assert [key.split(" |")[0] for key in result.only_in_a] == ["flex"]
    assert len(result.only_in_b) == 1
    assert "only in A: flex" in markdown(result)


def test_another_problem_under_the_same_name_is_not_comparable():
    a, b = (run_of(factory.record("w", problem=factory.problem(heads_len))) for heads_len in (1024, 512))
    assert compare(a, b).cases[0].reason.startswith("A computed")


def test_another_scale_is_another_case():
    scaled = factory.record(asked=factory.problem(scale=1.0))
    result = compare(run_of(factory.record()), run_of(scaled))
    assert result.cases == ()
    assert len(result.only_in_a) == len(result.only_in_b) == 1


def test_hostile_names_are_text_in_markdown():
    name = f"{factory.HOSTILE}|[x](http://e)\n`@all"
    a = run_of(factory.record(name))
    text = markdown(compare(a, run_of(factory.record(name, outcome=factory.measured(150.0)))))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    row = next(line for line in text.splitlines() if "script" in line)
    unescaped = row.replace("\\|", "")
    assert unescaped.count("|") == 8
    assert headline(compare(a, a)).startswith("no regression in 1 judged case")


# --- the parts ----------------------------------------------------------------------------------------------


def test_serial_correlation_knows_a_walk_from_noise():
    rng = random.Random(13)
    steps = count()
    walk = [0.0]
    while next(steps) < 60:
        walk.append(walk[-1] + rng.gauss(0, 1))
    noise = [rng.gauss(0, 1) for _ in range(61)]
    assert serial_correlation(walk) > 0.7
    assert serial_correlation(noise) < 0.3
    assert serial_correlation([1.0, 2.0, 3.0]) == 0.0


def test_what_the_others_did_together_is_taken_out_round_by_round():
    drift = [0.0, 0.3, 0.1, 0.5]
    levels = {"a": 1.0, "b": 2.0, "c": 3.0}
    run = {name: {r: level + move for r, move in enumerate(drift)} for name, level in levels.items()}
    course = common_course(run, levels)
    assert list(course.values()) == pytest.approx(drift)
    own = {r: 7.0 + move for r, move in enumerate(drift)}
    assert without(own, course) == pytest.approx([7.0] * 4)
    assert common_course(run, {"a": 1.0, "b": 2.0}) == {}  # two witnesses are too few
    assert without(own, {}) == list(own.values())


def test_rounds_that_the_others_lack_get_their_usual_level():
    assert without({0: 5.0, 1: 6.0, 2: 7.0}, {0: 1.0, 1: 2.0}) == [4.0, 4.0, 5.5]


def test_one_that_moves_alone_is_no_common_course():
    levels = {"a": 0.0, "b": 0.0, "c": 0.0}
    run = {"a": {0: 0.0}, "b": {0: 0.0}, "c": {0: 0.5}}
    assert common_course(run, levels) == {0: 0.0}


def test_four_fifths_must_have_moved_alike():
    still, moved = Estimate(0.0, 0.01), Estimate(0.5, 0.01)
    assert moved_alike([still] * 4 + [moved], 0.02)
    assert not moved_alike([still] * 3 + [moved], 0.02)
    assert moved_alike([Estimate(0.5, 0.3)], 0.02)  # within its own error


def test_scatter_is_what_the_samples_do_not_explain():
    assert scatter([]) == 0.0
    assert scatter([Estimate(0.01, 0.05), Estimate(-0.01, 0.05)]) == 0.0
    assert scatter([Estimate(0.1, 0.01), Estimate(-0.1, 0.01)]) == pytest.approx(0.148, abs=0.001)


def test_spread_is_around_each_variants_own_course_and_wider_for_few():
    assert spread([[Estimate(0.1, 0.0)] * 2]) == 0.0  # two cases tell nothing
    shifted = [Estimate(0.1 + x, 0.0) for x in (-0.02, 0.0, 0.02)]
    still = [Estimate(x, 0.0) for x in (-0.02, 0.0, 0.02)]
    assert spread([shifted]) == pytest.approx(spread([still]))
    assert spread([still, shifted]) < spread([still])


def test_lengths_that_moved_differently_are_witnesses_of_the_machine():
    """One variant alone: a move at one length is judged beside how much the other lengths moved."""
    rng = random.Random(14)

    def at(moves):
        common = [[move] * 24 for move in moves]
        return run_of(
            *(factory.record("x", 64 * 2**i, noisy(rng, 1e-3, level)) for i, level in enumerate(common))
        )

    still, one, unsteady = at([0, 0, 0, 0, 0]), at([0.15, 0, 0, 0, 0]), at([0.15, -0.1, 0.12, -0.14, 0.05])
    assert [case.verdict for case in compare(still, one).cases] == ["slower"] + ["no difference"] * 4
    assert {case.verdict for case in compare(still, unsteady).cases} == {"no difference"}
