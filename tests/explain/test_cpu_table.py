"""The CPU's choice on every kind of call that users report (torch 2.13), asked of rules and dispatcher alike."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attnprof.core.mask import Causal, Dense
from attnprof.core.problem import Problem
from attnprof.explain import Call, explain
from attnprof.explain.observed import observe_backend


def zeros(*shape, dtype=torch.float32, **options):
    return torch.zeros(shape, dtype=dtype, **options)


def qkv(q=(1, 4, 16, 64), k=None, v=None, dtype=torch.float32):
    return zeros(*q, dtype=dtype), zeros(*(k or q), dtype=dtype), zeros(*(v or k or q), dtype=dtype)


def bools(*shape):
    return torch.ones(shape, dtype=torch.bool)


FLASH = {
    "base": (qkv(), {}),
    "float64": (qkv(dtype=torch.float64), {}),
    "float16": (qkv(dtype=torch.float16), {}),
    "bfloat16": (qkv(dtype=torch.bfloat16), {}),
    "head dim 63": (qkv((1, 4, 16, 63)), {}),
    "causal": (qkv(), {"is_causal": True}),
    "causal of unequal lengths": (qkv((1, 4, 5, 64), (1, 4, 9, 64)), {"is_causal": True}),
    "bool mask": (qkv(), {"attn_mask": bools(16, 16)}),
    "bool mask 4-D": (qkv(), {"attn_mask": bools(1, 4, 16, 16)}),
    "bool mask of keys": (qkv(), {"attn_mask": bools(1, 1, 1, 16)}),
    "float mask": (qkv(), {"attn_mask": zeros(16, 16)}),
    "bfloat16 with a float32 mask": (qkv(dtype=torch.bfloat16), {"attn_mask": zeros(16, 16)}),
    "transposed views": (tuple(zeros(1, 16, 4, 64).transpose(1, 2) for _ in range(3)), {}),
    "grouped": (qkv((1, 8, 16, 64), (1, 2, 16, 64)), {"enable_gqa": True}),
}
MATH = {
    "3-D": (qkv((4, 16, 64)), {}, "shape", "3, 3, 3 dimensions"),
    "5-D": (qkv((1, 1, 4, 16, 64)), {}, "shape", "5, 5, 5 dimensions"),
    "narrow v": (qkv(v=(1, 4, 16, 32)), {}, "head dim", "q 64, k 64, v 32"),
    "dropout": (qkv(), {"dropout_p": 0.1}, "dropout", "dropout_p=0.1"),
    "mask with gradient": (qkv(), {"attn_mask": zeros(16, 16, requires_grad=True)}, "grad", "requires a gradient"),
    "3-D mask": (qkv(), {"attn_mask": bools(4, 16, 16)}, "mask", "(4, 16, 16)"),
    "last stride": (tuple(zeros(1, 4, 64, 16).transpose(2, 3) for _ in range(3)), {}, "stride", "q 16, k 16, v 16"),
    "kv batch 1": (qkv((2, 4, 16, 64), (1, 4, 16, 64)), {}, "shape", "q 2, k 1, v 1"),
    "one KV head": (qkv((1, 4, 16, 64), (1, 1, 16, 64)), {}, "GQA", "4 query heads on 1"),
}  # fmt: skip
ERRORS = {
    "grouped without the flag": (qkv((1, 8, 16, 64), (1, 2, 16, 64)), {}, "enable_gqa is False"),
    "8 on 3": (qkv((1, 8, 16, 64), (1, 3, 16, 64)), {"enable_gqa": True}, "do not divide 8"),
    "mixed dtypes": ((zeros(1, 4, 16, 64), *qkv(dtype=torch.float16)[1:]), {}, "q is float32, k float16"),
    "unequal qk dims": (qkv(k=(1, 4, 16, 32)), {}, "q has head dim 64, k 32"),
}


def asked(tensors, options):
    return explain(Call.from_tensors(*tensors, **options))


@pytest.mark.parametrize("name", list(FLASH))
def test_chosen_flash(name):
    tensors, options = FLASH[name]
    e = asked(tensors, options)
    assert (e.chosen, e.observed, e.disagreements) == ("flash", "flash", ())
    assert observe_backend(lambda: scaled_dot_product_attention(*tensors, **options)) == "flash"


@pytest.mark.parametrize("name", list(MATH))
def test_chosen_math_and_why_not_flash(name):
    tensors, options, rule, value = MATH[name]
    e = asked(tensors, options)
    assert (e.chosen, e.observed) == ("math", "math")
    assert observe_backend(lambda: scaled_dot_product_attention(*tensors, **options)) == "math"
    (rejection,) = e.backend("flash").rejections
    assert str(rejection.rule) == rule
    assert value in rejection.reason
    assert rejection.fix


@pytest.mark.parametrize("name", list(ERRORS))
def test_calls_that_raise_name_their_cause(name):
    tensors, options, text = ERRORS[name]
    with pytest.raises((RuntimeError, ValueError)):
        scaled_dot_product_attention(*tensors, **options)
    e = asked(tensors, options)
    assert e.chosen is None
    assert e.runnable == ()
    assert text in e.error
    assert text in str(e).replace("\n         ", " ")


@pytest.mark.parametrize(("backend", "enum"), [("mem_efficient", "EFFICIENT"), ("cudnn", "CUDNN")])
def test_forced_gpu_backends_are_named_as_absent(backend, enum):
    e = explain(Problem(q_heads=4, q_len=16), force=backend)
    assert e.chosen is None
    assert "not available on CPU" in e.backend(backend).rejections[0].reason
    assert e.observed == "no kernel"
    with (
        sdpa_kernel(getattr(SDPBackend, f"{enum}_ATTENTION")),
        pytest.raises(RuntimeError, match="No viable backend"),
    ):
        scaled_dot_product_attention(*qkv())


def test_forced_flash_with_a_mask_that_requires_a_gradient_has_a_reason_where_torch_has_none():
    mask = zeros(16, 16, requires_grad=True)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        with (
            pytest.warns(UserWarning, match="not used because") as warned,
            pytest.raises(RuntimeError, match="No available kernel"),
        ):
            scaled_dot_product_attention(*qkv(), attn_mask=mask)
        assert [str(w.message).partition(" (")[0] for w in warned] == [
            "Flash attention kernel not used because:"
        ]
        e = explain(Call.from_tensors(*qkv(), mask))
    assert e.chosen is None
    (rejection,) = e.backend("flash").rejections
    assert "requires a gradient" in rejection.reason
    assert "detach()" in rejection.fix


def test_global_switches_are_shown_as_the_cause():
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_math_sdp(False)
    try:
        e = explain(Problem(q_heads=4, q_len=16))
        with pytest.raises(RuntimeError):
            scaled_dot_product_attention(*qkv())
    finally:
        torch.backends.cuda.enable_flash_sdp(True)
        torch.backends.cuda.enable_math_sdp(True)
    assert e.chosen is None
    assert e.observed == "no kernel"
    assert e.disagreements == ()
    assert e.error == "PyTorch raises: switched off: flash, math"
    for name in ("flash", "math"):
        assert [str(r.rule) for r in e.backend(name).rejections] == ["global switch"]
        assert "enable_" in e.backend(name).rejections[0].fix


def test_a_boolean_mask_s_copy_is_named():
    e = asked(qkv((1, 1, 1024, 64)), {"attn_mask": bools(1, 1, 1024, 1024)})
    assert e.backend("flash").note == "copies the boolean mask to float32: 4 MiB"
    assert not asked(qkv(), {"attn_mask": zeros(16, 16)}).backend("flash").note


def test_can_use_flash_attention_is_no_source_on_a_cpu():
    params = torch.backends.cuda.SDPAParams(*qkv(), None, 0.0, False, False)
    assert not torch.backends.cuda.can_use_flash_attention(params)
    assert asked(qkv(), {}).observed == "flash"


def test_mask_and_is_causal_flash_applies_both_math_is_rejected():
    mask = bools(16, 16)
    mask[:, 0] = False
    e = asked(qkv(), {"attn_mask": mask, "is_causal": True})
    assert e.chosen == "flash"
    assert "both set" in e.backend("math").rejections[0].reason
    assert [j.code for j in e.judgments][:1] == ["mask-and-causal"]
    both = Dense(mask).intersect(Causal(), 16, 16)
    anded = Problem(q_heads=4, q_len=16, mask=both)
    assert (anded.pairs, anded.empty_rows) == (120, 1)
    q, k, v = (torch.randn(1, 4, 16, 64, generator=torch.Generator().manual_seed(i)) for i in range(3))
    dense = mask & torch.ones(16, 16).tril().bool()
    ran = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)
    torch.testing.assert_close(ran, scaled_dot_product_attention(q, k, v, attn_mask=dense), atol=1e-6, rtol=0)
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(RuntimeError):
        scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)


def test_k_and_v_of_different_length_are_refused_although_pytorch_runs_them():
    e = asked(qkv(v=(1, 4, 8, 64)), {})
    assert e.chosen is None
    assert e.observed == "flash"
    assert "k has 16 keys, v has 8" in e.error
    assert "read past the end" in e.error


def test_dropout_without_training_is_warned_of_and_runs_math():
    e = explain(Problem(q_heads=4, q_len=16, dropout=0.5))
    assert e.chosen == "math"
    assert "dropout-in-eval" in {j.code for j in e.judgments}
    q, k, v = (torch.randn(1, 4, 16, 64) for _ in range(3))
    one, two = (scaled_dot_product_attention(q, k, v, dropout_p=0.5) for _ in range(2))
    assert not torch.equal(one, two)


def test_flash_is_bitwise_equal_for_one_and_two_threads():
    q, k, v = (torch.randn(1, 8, 512, 64, generator=torch.Generator().manual_seed(i)) for i in range(3))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(scaled_dot_product_attention(q, k, v))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
