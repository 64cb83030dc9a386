"""One problem's variants on a scripted device: refusals, failures and what a row holds."""

from __future__ import annotations

import msgspec
import pytest
import torch

from attnprof import Causal, Problem, profile
from attnprof.bench.devices.fake import FakeDevice
from attnprof.bench.group import Group, failure, too_large
from attnprof.bench.sweep import Conditions
from attnprof.core.record import Failed, FailureKind, Measured, Memory, Record, Skipped, Unsupported, Verdict
from attnprof.core.variant import Limits, Variant
from attnprof.variants.catalog import as_variant, find

QUICK = Conditions(min_rounds=5, max_rounds=5)
SMALL = Problem(q_heads=2, q_len=16, head_dim=8, mask=Causal())


def steady(**values):
    """A device on which every call takes 10 ms."""
    return FakeDevice(noise_s=(0.01,), **values)


def measure(problem, *variants, device=None, conditions=QUICK):
    records: dict[str, Record] = {}
    alive = []
    group = Group(problem, variants, conditions, device or steady())
    group.measure(emit=lambda r: records.setdefault(r.variant, r), alive=alive.append)
    return records, alive


def test_a_row_holds_what_the_device_said():
    memory = Memory(peak_bytes=100, output_bytes=40, method="scripted")
    records, alive = measure(SMALL, find("naive"), device=steady(memory=memory))
    outcome = records["naive"].outcome
    assert isinstance(outcome, Measured)
    assert (outcome.memory, outcome.memory.workspace_bytes) == (memory, 60)
    assert outcome.rounds == (0, 1, 2, 3, 4)
    assert outcome.accuracy.verdict is Verdict.PASS
    assert records["naive"].cost.useful_flops == SMALL.useful_flops
    assert alive == ["naive"] * 6  # once before it is prepared, once before each sample
    assert msgspec.json.decode(msgspec.json.encode(records["naive"]), type=Record) == records["naive"]


def test_refused_by_claims_by_device_by_size():
    narrow = as_variant(lambda *tensors: tensors[0], "narrow")
    narrow = Variant(name="narrow", title="", prepare=narrow.prepare, limits=Limits(max_head_dim=4))
    elsewhere = Variant(
        name="elsewhere", title="", prepare=narrow.prepare, limits=Limits(devices=frozenset({"cuda"}))
    )
    records, alive = measure(SMALL, narrow, elsewhere, find("naive"), device=steady(available_bytes=1000))
    assert records["narrow"].outcome == Unsupported(reason="head dim 8 is above 4")
    assert records["elsewhere"].outcome == Unsupported(reason="runs on cuda, not on cpu")
    assert isinstance(records["naive"].outcome, Skipped)
    assert alive == []


def test_a_preset_keeps_the_question_and_its_own_problem():
    asked = Problem(q_heads=8, q_len=16, head_dim=8, mask=Causal())
    records, _ = measure(asked, find("gqa_4kv"), find("sliding_w128"))
    assert (records["gqa_4kv"].asked.kv_heads, records["gqa_4kv"].problem.kv_heads) == (8, 2)
    assert str(records["sliding_w128"].problem.mask) == "window:127:0"


def test_a_kernel_that_breaks_while_sampled_fails_alone():
    calls = iter(range(1000))

    def fragile(q, k, v):
        if next(calls) > 6:
            raise RuntimeError("CUDA error: an illegal memory access")
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    records, _ = measure(SMALL, as_variant(fragile), find("naive"))
    assert isinstance(records["fragile"].outcome, Failed)
    assert isinstance(records["naive"].outcome, Measured)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("x"), FailureKind.EXCEPTION),
        (MemoryError(), FailureKind.OUT_OF_MEMORY),
        (torch.OutOfMemoryError("CUDA out of memory"), FailureKind.OUT_OF_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), FailureKind.OUT_OF_MEMORY),
    ],
)
def test_failures_have_a_kind(error, kind):
    assert failure(error).kind is kind


def test_long_messages_are_cut():
    assert len(failure(RuntimeError("x" * 5000)).message) == 500


def test_too_large_says_how_many_score_matrices():
    problem = Problem(q_len=200_000, head_dim=64)
    text = too_large(problem, find("naive").cost(problem), 2**34)
    assert "149 GiB x2" in text
    assert "available 16 GiB" in text
    assert too_large(SMALL, find("naive").cost(SMALL), 2**34) is None
    assert too_large(SMALL, None, 10) is not None


@pytest.mark.parametrize("direction", ["bwd", "fwd_bwd"])
def test_backward_rows_are_checked_against_gradients(direction):
    problem = SMALL.replace(direction=direction)
    records, _ = measure(problem, find("naive"), find("sdpa_default"))
    for record in records.values():
        assert record.outcome.accuracy.verdict is Verdict.PASS, record.outcome
        assert record.cost.backward_factor in (2.0, 2.5)


def test_backward_factors_of_a_stored_and_a_recomputed_p():
    problem = Problem(q_heads=4, q_len=32, head_dim=64, direction="fwd_bwd").replace(batch=1)
    assert problem.forward_flops == 1_048_576
    assert find("naive").cost(problem).useful_flops == 3_145_728
    assert find("sdpa_flash").cost(problem).useful_flops == 3_670_016


def test_profile_takes_any_callable():
    def mine(q, k, v, *, is_causal, scale):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal, scale=scale)

    record = profile(mine, SMALL, conditions=QUICK)
    assert record.variant == "mine"
    assert record.outcome.accuracy.verdict is Verdict.PASS
    assert record.outcome.backend == "flash"


@pytest.fixture
def two_threads():
    """The published peaks are of two threads; the flash kernel has scratch for each."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_peak_memory_of_the_published_case_does_not_depend_on_order():
    problem = Problem(q_heads=8, q_len=1024, head_dim=64)
    mib = {}
    for order in (("naive", "sdpa_math", "sdpa_flash"), ("sdpa_flash", "sdpa_math", "naive")):
        conditions = Conditions(min_rounds=1, max_rounds=1, check=False)
        for name in order:
            memory = profile(name, problem, conditions=conditions).outcome.memory
            mib.setdefault(name, []).append(memory.peak_bytes / 2**20)
    assert mib["naive"] == pytest.approx([66.0, 66.0], rel=0.01)
    assert mib["sdpa_math"] == pytest.approx([74.0, 74.0], rel=0.01)
    assert mib["sdpa_flash"] == pytest.approx([3.16, 3.16], rel=0.05)


def test_choice_cost_and_remark_of_a_kernel_reach_its_record():
    from dataclasses import dataclass, replace

    from attnprof.core.schedules import fa2_cost
    from attnprof.variants.naive import naive

    problem = Problem(q_heads=2, q_len=16, head_dim=16)
    chosen = fa2_cost(problem, rows=16, cols=32)

    @dataclass(frozen=True)
    class Tuned:
        kernel: object
        choice: str = "forward 16x32"
        cost: object = chosen

        def __call__(self, q, k, v):
            return self.kernel(q, k, v)

    tuned = replace(
        naive,
        name="tuned",
        prepare=lambda p, s: Tuned(naive.prepare(p, s)),
        remark=lambda device: f"said of {device}",
    )
    record = profile(tuned, problem)
    assert record.outcome.choice == "forward 16x32"
    assert record.cost == chosen
    assert "said of cpu" in [j.message for j in record.judgments]


def test_inputs_are_restored_even_when_the_kernel_also_raises():
    def spoils(*tensors):
        tensors[0].zero_()
        raise RuntimeError("after the damage")

    records, _ = measure(SMALL, as_variant(spoils), find("naive"), find("sdpa_default"))
    assert "after the damage" in records["spoils"].outcome.message
    for name in ("naive", "sdpa_default"):
        assert records[name].outcome.accuracy.verdict is Verdict.PASS
