"""The CPU rules against PyTorch's own dispatcher, on random calls and inside forced backends."""

import pytest
import torch
from tests.explain.random_calls import random_calls
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attnprof.core.problem import Problem
from attnprof.explain import Call, explain
from attnprof.explain.probe import NO_KERNEL, fused_choice, make
from attnprof.explain.switches import switches_now

CALLS = random_calls(400)
NAMES = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}


def test_the_rules_pick_what_the_dispatcher_picks():
    wrong = [(str(c), e.dispatched, e.observed) for c in CALLS if (e := explain(c)).disagreements]
    assert wrong == []


def test_the_random_calls_reach_every_outcome():
    found = [explain(c) for c in CALLS]
    assert {e.dispatched for e in found} == {"flash", "math"}
    assert sum(e.dispatched == "math" for e in found) > 100
    assert sum(e.dispatched == "flash" for e in found) > 100
    assert sum(e.chosen is None for e in found) > 20
    rules = {str(r.rule) for e in found for b in e.backends for r in b.rejections}
    assert rules >= {
        "device",
        "dtype",
        "head dim",
        "stride",
        "shape",
        "mask",
        "dropout",
        "grad",
        "GQA",
        "causal",
    }


@pytest.mark.parametrize("name", list(NAMES))
def test_forced_backends_agree_too(name):
    with sdpa_kernel(NAMES[name]):
        for call in CALLS[:150]:
            e = explain(call, switches=switches_now())
            assert not e.disagreements, (str(call), e.disagreements)


def test_what_raises_is_what_the_rules_say_raises():
    """The pick is one thing, whether it then runs another; a call without elements returns before it is checked."""
    for call in (c for c in CALLS[:300] if all(t.numel for _, t in c.tensors)):
        tensors = [make(t, "cpu").detach().zero_() for _, t in call.tensors]
        mask = None if call.attn_mask is None else make(call.attn_mask, "cpu").detach().zero_()
        again = Call.from_tensors(*tensors, mask, call.dropout_p, call.is_causal, enable_gqa=call.enable_gqa)
        runs = True
        try:
            scaled_dot_product_attention(
                *tensors, mask, call.dropout_p, call.is_causal, enable_gqa=call.enable_gqa
            )
        except (RuntimeError, ValueError):
            runs = False
        assert (explain(again).chosen is not None) == runs, str(again)


def test_every_rejection_has_a_reason_a_source_a_fix_and_a_cost():
    for call in CALLS[:250]:
        for device in ("cpu", "sm_75", "sm_90", "gfx942"):
            for report in explain(call, device).backends:
                assert (report.status == "rejected") == bool(report.rejections)
                for r in report.rejections:
                    assert min(len(r.reason), len(r.fix), len(r.cost)) > 3
                    assert r.source.startswith("PyTorch ")
                    assert "/" in r.source


def test_a_disagreement_is_reported(monkeypatch):
    monkeypatch.setattr("attnprof.explain.explanation.fused_choice", lambda *_: "math")
    e = explain(Problem(q_heads=4, q_len=16))
    assert "the rules say flash" in e.disagreements[0]
    assert "picks math" in str(e)
    assert "picks math" in e.to_markdown()


def test_calls_too_large_for_this_machine_are_asked_without_storage():
    call = Call.from_problem(Problem(batch=64, q_heads=64, q_len=200_000))
    assert fused_choice(call) == "flash"
    assert explain(call).chosen == "flash"


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "float4_e2m1fn"])
@pytest.mark.parametrize("direction", ["fwd", "fwd_bwd"])
def test_dtypes_that_no_backend_computes(dtype, direction):
    e = explain(Problem(q_heads=4, q_len=16, dtype=dtype, direction=direction))
    assert e.chosen is None
    assert dtype in e.error
    assert e.disagreements == ()


def test_a_dispatcher_that_raises_is_no_kernel():
    call = Call.from_tensors(*(torch.zeros(1, 4, 16, 64),) * 3, dropout_p=0.1)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert fused_choice(call) == NO_KERNEL
