"""The contract: what every variant of the catalogue must hold, by existing."""

from __future__ import annotations

import pytest
import torch
from tests.variants import reference

from attnprof.core.mask import Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Direction, Problem
from attnprof.core.variant import Setting
from attnprof.variants.catalog import variants

SIZES = {
    "square": {"batch": 1, "q_heads": 4, "q_len": 33, "head_dim": 16},
    "short_q": {"batch": 2, "q_heads": 4, "q_len": 9, "kv_len": 21, "head_dim": 8},
    "long_q": {"batch": 1, "q_heads": 4, "q_len": 21, "kv_len": 9, "head_dim": 24},
    "gqa": {"batch": 2, "q_heads": 8, "kv_heads": 2, "q_len": 19, "head_dim": 16},
    "decode": {"batch": 2, "q_heads": 4, "kv_heads": 1, "q_len": 1, "kv_len": 37, "head_dim": 16},
    "dims": {"batch": 1, "q_heads": 4, "q_len": 17, "qk_dim": 16, "v_dim": 24},
    "one_key": {"batch": 1, "q_heads": 4, "q_len": 3, "kv_len": 1, "head_dim": 8},
    "no_key": {"batch": 1, "q_heads": 4, "q_len": 5, "kv_len": 0, "head_dim": 8},
    "no_query": {"batch": 1, "q_heads": 4, "q_len": 0, "kv_len": 5, "head_dim": 8},
    "no_batch": {"batch": 0, "q_heads": 4, "q_len": 4, "head_dim": 8},
}
MASKS = {
    "full": Full(),
    "causal": Causal(),
    "bottom_right": Causal("bottom_right"),
    "window": Window(5, 0),
    "window_right": Window(2, 3, "bottom_right"),
    "window_future": Window(-1, 2),
    "window_self": Window(0, 0),
}
RAGGED = {"batch": 3, "q_heads": 4, "kv_heads": 2, "q_len": 11, "kv_len": 13, "head_dim": 16}
OTHERS = {
    "lengths": Problem(**RAGGED, mask=Lengths((11, 4, 0), (13, 5, 7))),
    "lengths_causal": Problem(**RAGGED, mask=Lengths((11, 4, 6), (13, 5, 0), Causal())),
    "lengths_bottom_right": Problem(**RAGGED, mask=Lengths((2, 11, 6), (13, 5, 6), Causal("bottom_right"))),
    "dense": Problem(
        q_heads=4, q_len=4, head_dim=8, mask=Dense([[1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [1] * 4])
    ),
    "dense_heads": Problem(
        batch=2,
        q_heads=4,
        q_len=2,
        kv_len=3,
        head_dim=8,
        mask=Dense([[[[h % 2, 1, 0], [1, b, 1]] for h in range(4)] for b in range(2)]),
    ),
    "scale": Problem(q_heads=4, q_len=7, head_dim=8, scale=1.0),
    "float16": Problem(q_heads=4, q_len=33, head_dim=16, dtype="float16", mask=Causal()),
    "bfloat16": Problem(q_heads=4, q_len=33, head_dim=16, dtype="bfloat16", mask=Causal()),
    "float64": Problem(q_heads=4, q_len=33, head_dim=16, dtype="float64", mask=Causal()),
}
PROBLEMS = {
    f"{size}-{name}": Problem(**sizes, mask=mask)
    for size, sizes in SIZES.items()
    for name, mask in MASKS.items()
} | OTHERS
FEW = ("square-causal", "gqa-window")  # for variants that compile for seconds a shape
UNCLAIMED = {
    "dropout": Problem(q_heads=4, q_len=8, head_dim=8, dropout=0.5),
    "float8": Problem(q_heads=4, q_len=8, head_dim=8, dtype="float8_e4m3fn"),
    "float4": Problem(q_heads=4, q_len=8, head_dim=8, dtype="float4_e2m1fn"),
}


def _pairs(names):
    """Every variant with every case; one case (skipped, with the reason) for a variant that cannot run here."""
    for name, variant in variants().items():
        few = FEW[:1] if variant.unavailable("cpu") else FEW if variant.compiles else names
        marks = (pytest.mark.slow,) if variant.compiles else ()
        for case in few:
            yield pytest.param(variant, case, marks=marks, id=f"{name}-{case}")


def _claimed(variant, problem):
    """The problem that the variant really computes; skips with the reason when it cannot or does not."""
    if reason := variant.unavailable("cpu") or variant.refuse(problem):
        pytest.skip(reason)
    return variant.problem_for(problem)


def _run(variant, problem, tensors):
    setting = Setting(device="cpu")
    kernel = variant.prepare(problem, setting)
    with variant.entered(setting):
        return kernel(*tensors)


def _tolerance(problem, values):
    largest = max((x.detach().abs().max().item() for x in values if x.numel()), default=1.0)
    return 16 * problem.dtype.unit_roundoff * max(largest, 1.0)


@pytest.mark.parametrize(("variant", "case"), list(_pairs(PROBLEMS)))
def test_output_is_attention(variant, case):
    problem = _claimed(variant, PROBLEMS[case])
    q, k, v = reference.inputs(problem, strided=_is_odd(case))
    got = _run(variant, problem, (q, k, v))
    want = reference.attention(problem, q, k, v)
    assert got.shape == (problem.batch, problem.q_heads, problem.q_len, problem.v_dim)
    assert got.dtype == q.dtype
    assert torch.allclose(got.double(), want, rtol=0, atol=_tolerance(problem, (v,)))


def _is_odd(case):
    return sum(map(ord, case)) % 2 == 1


BACKWARD = (
    "square-causal",
    "short_q-bottom_right",
    "long_q-bottom_right",
    "gqa-window",
    "decode-full",
    "dims-full",
    "square-window_right",
    "lengths_causal",
    "dense",
    "bfloat16",
    "float64",
)


@pytest.mark.parametrize(("variant", "case"), list(_pairs(BACKWARD)))
def test_gradients_are_those_of_attention(variant, case):
    problem = _claimed(variant, PROBLEMS[case].replace(direction=Direction.FWD_BWD))
    tensors = reference.inputs(problem, grad=True)
    exact = tuple(x.detach().double().requires_grad_() for x in tensors)
    want = reference.attention(problem, *exact)
    upstream = torch.randn(want.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    upstream = upstream.to(tensors[0].dtype)
    want.backward(upstream.double())
    _run(variant, problem, tensors).backward(upstream)
    tolerance = 4 * _tolerance(problem, (*(x.grad for x in exact), *tensors))
    for x, y in zip(tensors, exact, strict=True):
        assert torch.allclose(x.grad.double(), y.grad, rtol=0, atol=tolerance)


@pytest.mark.parametrize("variant", list(variants().values()), ids=list(variants()))
@pytest.mark.parametrize("case", list(UNCLAIMED))
def test_unclaimed_problems_are_refused_with_their_value(variant, case):
    problem = UNCLAIMED[case]
    reason = variant.refuse(problem)
    claimed = variant.limits.dropout if case == "dropout" else problem.dtype in variant.limits.dtypes
    assert claimed or (
        reason and (f"dropout {problem.dropout}" in reason or f"dtype {problem.dtype}" in reason)
    )


@pytest.mark.parametrize("variant", list(variants().values()), ids=list(variants()))
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_limits_hold_for_every_problem(variant, device):
    limits = variant.limits_on.get(device, variant.limits)
    for asked in PROBLEMS.values():
        refused = variant.refuse(asked, device)
        assert refused is None or refused.strip()
        if refused is None:
            problem = variant.problem_for(asked)
            assert isinstance(problem.mask, limits.masks)
            assert problem.dtype in limits.dtypes
            assert limits.grouped_heads or problem.group == 1
            assert limits.unequal_dims or problem.qk_dim == problem.v_dim


@pytest.mark.parametrize("variant", list(variants().values()), ids=list(variants()))
def test_model_bytes_are_at_least_compulsory(variant):
    for asked in (p.replace(direction=way) for p in PROBLEMS.values() for way in Direction):
        if variant.refuse(asked) is None:
            problem = variant.problem_for(asked)
            cost = variant.cost(problem)
            assert cost.logical.total_bytes >= cost.compulsory.total_bytes - _unseen_bytes(problem), str(
                problem
            )
            assert cost.executed_flops >= cost.useful_flops, str(problem)
            assert cost.peak_bytes >= cost.output_bytes >= 0


def _unseen_bytes(problem):
    """Inputs of rows that see no key (q, and the output's gradient): a kernel may leave them unread."""
    dims = problem.qk_dim + (0 if problem.direction is Direction.FWD else problem.v_dim)
    return problem.storage(problem.total_empty_rows, dims)


@pytest.mark.parametrize("variant", list(variants().values()), ids=list(variants()))
def test_names_and_texts(variant):
    assert variant.name == variant.name.lower()
    assert variant.title
    assert variant.note
    reason = variant.unavailable("cpu")
    assert reason is None or len(reason) > 10


def test_windows_of_a_decode_row_see_the_last_keys():
    problem = Problem(q_heads=4, q_len=1, kv_len=9, head_dim=8, mask=Window(1, 0, "bottom_right"))
    assert reference.visible(problem)[0, 0, 0].tolist() == [False] * 7 + [True] * 2
