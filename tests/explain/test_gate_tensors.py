"""The gate on tensors: dangerous calls are refused before a kernel runs, odd ones are labelled."""

import pytest
import torch

from attnprof.core.errors import InvalidProblem
from attnprof.explain.gate import gate_tensors, judge_tensors

INF = float("-inf")


def qkv(q=(1, 4, 16, 64), k=None, v=None, dtype=torch.float32):
    k = k or q
    return (torch.zeros(q, dtype=dtype), torch.zeros(k, dtype=dtype), torch.zeros(v or k, dtype=dtype))


def codes(*tensors, **options):
    return {j.code: j for j in judge_tensors(*tensors, **options)}


def test_a_plain_call_passes():
    assert gate_tensors(*qkv()) == ()


def test_k_and_v_of_different_length_are_refused():
    with pytest.raises(InvalidProblem, match="k has 16 keys, v has 8"):
        gate_tensors(*qkv(v=(1, 4, 8, 64)))


def test_mask_together_with_is_causal_is_refused_with_what_and_means():
    mask = torch.ones(16, 16, dtype=torch.bool)
    mask[:, 0] = False
    with pytest.raises(InvalidProblem, match="both set") as caught:
        gate_tensors(*qkv(), mask, is_causal=True)
    assert "120 pairs and 1 empty rows" in str(caught.value)
    assert "intersect" in str(caught.value)
    labelled = gate_tensors(*qkv(), mask, is_causal=True, allow={"mask-and-causal"})
    assert any("4 empty rows" in j.message for j in labelled)


def test_is_causal_with_unequal_lengths_is_labelled():
    q, k, v = qkv((1, 4, 1, 64), (1, 4, 16, 64))
    assert "1 of 16 keys visible" in codes(q, k, v, is_causal=True)["causal-top-left"].message
    assert "causal-top-left" not in codes(q, k, v)


def test_a_float_mask_of_zeros_and_ones_is_refused_unless_allowed():
    mask = torch.ones(16, 16).tril()
    with pytest.raises(InvalidProblem, match="hides nothing"):
        gate_tensors(*qkv(), mask)
    assert "float-01-mask" in {j.code for j in gate_tensors(*qkv(), mask, allow={"float-01-mask"})}


@pytest.mark.parametrize(
    "mask", [torch.zeros(16, 16), torch.full((16, 16), 0.5), torch.zeros(16, 16).fill_(-3.0)]
)
def test_a_bias_is_not_taken_for_a_zero_one_mask(mask):
    assert "float-01-mask" not in codes(*qkv(), mask)


def test_a_nan_in_the_mask_is_refused():
    with pytest.raises(InvalidProblem, match="NaN"):
        gate_tensors(*qkv(), torch.full((16, 16), float("nan")))


@pytest.mark.parametrize("name", ["k", "v"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_non_finite_value_under_the_mask_is_refused(name, value):
    q, k, v = qkv()
    {"k": k, "v": v}[name][0, 2, 5, 3] = value
    mask = torch.ones(16, 16, dtype=torch.bool)
    mask[:, 5] = False
    with pytest.raises(InvalidProblem, match=f"{name} is not finite at key 5"):
        gate_tensors(q, k, v, mask)
    mask[:, 5], mask[:, 6] = True, False
    assert "hidden-non-finite" not in codes(q, k, v, mask)


def test_causal_hides_the_last_key_too():
    q, k, v = qkv()
    v[0, 0, 15, 0] = float("nan")
    assert "key 15" in codes(q, k, v, is_causal=True)["hidden-non-finite"].message
    assert "hidden-non-finite" not in codes(q, k, v)


def test_why_hidden_values_are_refused_pytorch_really_lets_them_through():
    q, k, v = qkv()
    v[0, 0, 15, 0] = float("nan")
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert out[0, 0, :15, 0].isnan().any()


def test_heads_are_checked_before_pytorch_does():
    grouped = qkv((1, 8, 16, 64), (1, 2, 16, 64))
    with pytest.raises(InvalidProblem, match="enable_gqa is False"):
        gate_tensors(*grouped)
    assert gate_tensors(*grouped, enable_gqa=True) == ()
    with pytest.raises(InvalidProblem, match="do not divide 8"):
        gate_tensors(*qkv((1, 8, 16, 64), (1, 3, 16, 64)), enable_gqa=True)


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        (
            lambda: (torch.zeros(1, 4, 16, 64), torch.zeros(1, 4, 16, 32), torch.zeros(1, 4, 16, 32)),
            "q has head dim 64",
        ),
        (lambda: (torch.zeros(1, 4, 16, 64), *qkv(dtype=torch.float16)[1:]), "q is float32, k float16"),
        (lambda: (torch.zeros(64), *qkv()[1:]), "q has 1, k has 4, v has 4 dimensions"),
        (lambda: (*qkv(), torch.ones(7, 16, dtype=torch.bool)), "does not broadcast"),
        (lambda: (*qkv(), torch.ones(16, 16, dtype=torch.int32)), "attn_mask is int32"),
        (lambda: (*qkv(), torch.ones(16, 16, dtype=torch.float64)), "attn_mask is float64 for float32"),
        (lambda: (*qkv((2, 4, 16, 64)),)[:1] + qkv((3, 4, 16, 64))[1:], "batch sizes differ: q 2, k 3, v 3"),
    ],
)
def test_calls_that_pytorch_raises_on_are_refused_in_plain_words(tensors, text):
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        torch.nn.functional.scaled_dot_product_attention(*tensors())
    with pytest.raises(InvalidProblem, match=text):
        gate_tensors(*tensors())


def test_what_pytorch_broadcasts_is_let_through():
    for tensors in (
        (torch.zeros(1, 4, 16, 64), torch.zeros(4, 16, 64), torch.zeros(4, 16, 64)),
        (torch.zeros(2, 4, 16, 64), torch.zeros(1, 4, 16, 64), torch.zeros(1, 4, 16, 64)),
        (torch.zeros(2, 4, 16, 64), torch.zeros(2, 1, 16, 64), torch.zeros(2, 4, 16, 64)),
        (*qkv(), torch.ones(4, 16, 16, dtype=torch.bool).tril()),
        (*qkv(), torch.ones(16, 1, dtype=torch.bool)),
        (*qkv(dtype=torch.bfloat16), torch.zeros(16, 16)),
    ):
        torch.nn.functional.scaled_dot_product_attention(*tensors)
        gate_tensors(*tensors)


@pytest.mark.parametrize(
    ("mask", "code"),
    [
        (torch.ones(16, 16).tril().bool(), "mask-equals-causal"),
        (torch.zeros(16, 16).masked_fill(~torch.ones(16, 16).tril().bool(), INF), "mask-equals-causal"),
        (torch.ones(1, 4, 16, 16).bool(), "mask-equals-full"),
        (torch.ones(16, 16).tril().bool().fliplr(), None),
        (torch.randn(16, 16, generator=torch.Generator().manual_seed(0)), None),
    ],
)
def test_masks_that_equal_a_rule(mask, code):
    found = {c for c in codes(*qkv(), mask) if c.startswith("mask-equals")}
    assert found == ({code} if code else set())


def test_empty_rows_are_counted_over_batch_and_heads():
    mask = torch.ones(16, 16, dtype=torch.bool)
    mask[3] = False
    assert "4 empty rows" in codes(*qkv(), mask)["empty-rows"].message


def test_dropout_is_judged_by_training_or_by_gradients():
    q, k, v = qkv()
    assert "dropout-in-eval" in codes(q, k, v, dropout_p=0.5)
    assert "dropout-in-eval" not in codes(q, k, v, dropout_p=0.5, training=True)
    assert "dropout-in-eval" not in codes(q.requires_grad_(), k, v, dropout_p=0.5)
    assert "dropout-in-eval" in codes(q, k, v, dropout_p=0.5, training=False)


def test_bshd_tensors_are_suspected():
    assert "layout-suspicion" in codes(*qkv((1, 512, 12, 64)))


def test_zero_sizes_pass():
    for q, k in (((0, 4, 16, 64), None), ((1, 4, 16, 64), (1, 4, 0, 64)), ((1, 4, 0, 64), (1, 4, 16, 64))):
        assert gate_tensors(*qkv(q, k)) == ()
        assert gate_tensors(*qkv(q, k), is_causal=True) == ()
