"""The float64 reference against published values, and the verdict."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from attnprof import Causal, Dense, Full, Problem, Window
from attnprof.bench.check import attention_chunked, judge, make_reference
from attnprof.bench.inputs import make_inputs
from attnprof.core.errors import KernelError
from attnprof.core.record import Verdict

_spec = importlib.util.spec_from_file_location("fill", Path(__file__).parent / "fill.py")
fill = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fill)


def reference(problem):
    return attention_chunked(problem, fill.fill_inputs(problem), torch.float64)[0]


def unequal(q_len, kv_len, mask):
    return Problem(q_heads=4, q_len=q_len, kv_len=kv_len, head_dim=64, mask=mask)


def close(got, want):
    assert [round(float(x), 6) for x in got] == pytest.approx(want, abs=2e-6)


@pytest.mark.parametrize(
    ("mask", "row", "want"),
    [
        (Causal(), 0, [-0.471963, -0.200935, 0.070093, 0.341121]),
        (Causal(), 4, [-0.178185, 0.092843, 0.155499, 0.037406]),
        (Causal("bottom_right"), 0, [-0.175105, 0.095923, 0.155556, 0.033208]),
        (Causal("bottom_right"), 4, [-0.086954, -0.039409, 0.114039, 0.060680]),
    ],
)
def test_unequal_lengths(mask, row, want):
    close(reference(unequal(5, 9, mask))[0, 0, row, :4], want)


def test_alignments_differ_and_sums():
    top, bottom = (reference(unequal(5, 9, m)) for m in (Causal(), Causal("bottom_right")))
    assert float(top.sum()) == pytest.approx(-7.663593, abs=2e-6)
    assert float(bottom.sum()) == pytest.approx(-6.322064, abs=2e-6)
    assert float((top - bottom).abs().max()) == pytest.approx(0.519092, abs=2e-6)


def test_queries_longer_than_keys_have_zero_rows():
    bottom = reference(unequal(9, 5, Causal("bottom_right")))
    assert bottom[:, :, :4].abs().max() == 0
    close(bottom[0, 0, -1, :4], [-0.190348, 0.080681, 0.165830, 0.038769])
    assert float(bottom.sum()) == pytest.approx(-8.960809, abs=2e-6)
    assert float(reference(unequal(9, 5, Causal())).sum()) == pytest.approx(-14.084346, abs=2e-6)


def test_decode_under_both_alignments():
    problem = unequal(1, 16, Causal())
    v = fill.fill_inputs(problem).v.double()
    assert torch.equal(reference(problem)[:, :, 0], v[:, :, 0])
    close(
        reference(unequal(1, 16, Causal("bottom_right")))[0, 0, 0, :4],
        [-0.064186, -0.041637, 0.036402, 0.059622],
    )


def test_fully_masked_row_is_zero_and_textbook_is_flagged():
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[2] = False
    problem = Problem(q_len=4, head_dim=8, mask=Dense(mask))
    inputs = fill.fill_inputs(problem)
    exact = reference(problem)
    close(exact[0, 0, 0, :3], [-0.222330, 0.048698, 0.079105])
    close(exact[0, 0, 1, :3], [-0.225583, 0.045445, 0.079716])
    close(exact[0, 0, 3, :3], [-0.223493, 0.047535, 0.074507])
    assert exact[0, 0, 2].abs().max() == 0
    nan = exact.float()
    nan[0, 0, 2] = float("nan")
    accuracy = judge(problem, (nan,), make_reference(problem, inputs))
    assert (accuracy.verdict, accuracy.reason, accuracy.nan_rows) == (Verdict.NAN, "1 NaN row", 1)
    assert accuracy.max_abs_error is None


def test_mask_and_causal_together_is_and():
    mask = torch.ones(16, 16, dtype=torch.bool)
    mask[:, 0] = False
    both = Dense(mask).intersect(Causal(), 16, 16)
    problem = Problem(q_heads=4, q_len=16, head_dim=64, mask=both)
    assert (problem.pairs, problem.empty_rows) == (120, 1)
    close(reference(problem)[0, 0, 1, :3], [-0.126168, 0.144860, 0.415888])
    close(reference(problem)[0, 0, 15, :3], [-0.039532, -0.037891, 0.031319])


@pytest.mark.parametrize(
    ("mask", "want"),
    [
        (Window(2, 0), [-0.105709, 0.165319, 0.075280]),
        (Window(3, 0), [-0.111095, 0.159933, 0.164950]),
        (Window(-1, 0), [-0.167125, 0.103903, 0.123815]),
    ],
)
def test_window_rows(mask, want):
    close(reference(Problem(q_len=8, head_dim=16, mask=mask))[0, 0, 7, :3], want)


def test_head_order_of_grouped_queries():
    problem = Problem(q_heads=4, kv_heads=2, q_len=3, head_dim=8)
    close(reference(problem)[0, 1, 0, :3], [-0.306208, -0.035180, 0.235848])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_rounding_floor_and_naive_error_of_16_bit(dtype):
    problem = Problem(batch=2, q_heads=4, q_len=256, head_dim=64, dtype=dtype)
    found = make_reference(problem, fill.fill_inputs(problem, times=6.0))
    published = {"float16": (1.1e-4, 2.95e-5), "bfloat16": (1.1e-3, 2.07e-4), "float32": (1e-7, None)}[dtype]
    assert found.naive_error <= published[0] * 1.1
    if published[1] is not None:
        assert found.floor == pytest.approx(published[1], rel=0.02)
        assert found.naive_error > published[0] * 0.9


def test_first_values_of_the_16_bit_case():
    problem = Problem(batch=2, q_heads=4, q_len=256, head_dim=64, dtype="bfloat16")
    exact = attention_chunked(problem, fill.fill_inputs(problem, times=6.0), torch.float64)[0]
    close(exact[0, 0, 0, :3], [-0.014965, 0.029318, -0.001011])


@pytest.mark.parametrize("shape", [(0, 4, 16, 16), (1, 4, 16, 0), (1, 4, 0, 16)])
def test_zero_sizes(shape):
    batch, heads, q_len, kv_len = shape
    problem = Problem(batch=batch, q_heads=heads, q_len=q_len, kv_len=kv_len, head_dim=64)
    exact = reference(problem)
    assert exact.shape == (batch, heads, q_len, 64)
    assert float(exact.abs().sum()) == 0


def test_small_errors_pass_and_large_ones_do_not():
    problem = Problem(q_heads=2, q_len=33, head_dim=16, mask=Causal())
    inputs = make_inputs(problem, "cpu", seed=1)
    found = make_reference(problem, inputs)
    right = found.results[0].float()
    assert judge(problem, (right,), found).verdict is Verdict.PASS
    wrong = right + 10 * (2 * found.naive_error + found.floor)
    assert judge(problem, (wrong,), found).verdict is Verdict.WRONG
    assert judge(problem, (right / 0,), found).verdict is Verdict.NAN


def test_wrong_shape_is_an_error_that_names_both():
    problem = Problem(q_len=8, head_dim=16)
    found = make_reference(problem, make_inputs(problem, "cpu", seed=0))
    with pytest.raises(KernelError, match=r"returned shape \(1, 1, 8, 15\).*\(1, 1, 8, 16\)"):
        judge(problem, (found.results[0][..., :-1],), found)


@pytest.mark.parametrize("direction", ["bwd", "fwd_bwd"])
def test_reference_gradients_equal_autograd_of_the_whole(direction, monkeypatch):
    monkeypatch.setattr("attnprof.bench.check.CHUNK_BYTES", 8 * 2 * 4 * 21 * 5)  # several chunks
    problem = Problem(batch=2, q_heads=4, kv_heads=2, q_len=17, kv_len=21, head_dim=8, mask=Causal("bottom_right"),
                      direction=direction, dtype="float64")  # fmt: skip
    inputs = make_inputs(problem, "cpu", seed=3)
    chunked = attention_chunked(problem, inputs, torch.float64)
    q, k, v = inputs.tensors
    rows, keys = torch.arange(17)[:, None], torch.arange(21)[None]
    scores = q @ k.repeat_interleave(2, 1).transpose(-2, -1) / 8**0.5
    o = scores.masked_fill(keys > rows + 4, float("-inf")).softmax(-1) @ v.repeat_interleave(2, 1)
    whole = torch.autograd.grad(o, (q, k, v), inputs.grad)
    for got, want in zip(chunked[-3:], whole, strict=True):
        assert torch.allclose(got, want, atol=1e-12)


def test_dropout_has_no_verdict():
    problem = Problem(q_len=8, dropout=0.5)
    accuracy = judge(problem, (), None)
    assert (accuracy.verdict, accuracy.reason) == (Verdict.NOT_APPLICABLE, "dropout: two runs differ")


def test_full_mask_reference_is_plain_softmax():
    problem = Problem(q_len=7, kv_len=5, head_dim=4, mask=Full())
    i = fill.fill_inputs(problem)
    want = (i.q.double() @ i.k.double().transpose(-2, -1) / 2).softmax(-1) @ i.v.double()
    assert torch.allclose(reference(problem), want, atol=1e-14)


def test_a_result_of_another_dtype_is_wrong_and_named():
    problem = Problem(q_len=8, head_dim=16)
    found = make_reference(problem, make_inputs(problem, "cpu", seed=0))
    accuracy = judge(problem, found.results, found)
    assert accuracy.verdict is Verdict.WRONG
    assert accuracy.reason == "result is float64, the problem's dtype is float32"
    assert accuracy.max_abs_error == 0
