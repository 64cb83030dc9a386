"""The sweep grammar and what it refuses."""

from __future__ import annotations

import pytest

from attnprof.core.axes import AxisTexts, parse_ints, parse_names
from attnprof.core.errors import InvalidProblem, InvalidSweep


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("64:2048:x2", (64, 128, 256, 512, 1024, 2048)),
        ("1,4,8", (1, 4, 8)),
        ("64:256:64", (64, 128, 192, 256)),
        ("64:100:x2,7,64", (64, 7)),
        ("5:5:x2", (5,)),
        ("0", (0,)),
    ],
)
def test_ranges(text, want):
    assert parse_ints(text) == want


@pytest.mark.parametrize(
    "text", ["", "a", "1.5", "64:2048", "64:2048:y2", "10:5:x2", "0:8:x2", "1:8:x1", "1:8:0", "1;2"]
)
def test_malformed_ranges_name_axis_and_grammar(text):
    with pytest.raises(InvalidSweep, match="--batch"):
        parse_ints(text, "--batch")


def test_a_range_of_too_many_points_is_refused():
    for text in ("0:20000:1", "1:99999999999:1"):
        with pytest.raises(InvalidSweep, match="at most 10000"):
            parse_ints(text)
    with pytest.raises(InvalidSweep, match="span 1000000 problems"):
        AxisTexts(seq_lens="1:1000:1", batch="1:1000:1").problems()


def test_names():
    assert parse_names(" a, b,,c ") == ("a", "b", "c")


def test_product_order_and_defaults():
    problems = AxisTexts(seq_lens="8,16", batch="1,2", heads="4", kv_heads="2").problems()
    assert [(p.batch, p.q_len) for p in problems] == [(1, 8), (1, 16), (2, 8), (2, 16)]
    assert {(p.kv_heads, p.kv_len == p.q_len, str(p.mask), p.dtype.value) for p in problems} == {
        (2, True, "causal", "float32")
    }


def test_a_scale_of_zero_is_a_scale():
    (problem,) = AxisTexts(seq_lens="8", scale=0.0).problems()
    assert (problem.scale, problem.dropout) == (0.0, 0.0)


def test_unequal_lengths_and_dims():
    (problem,) = AxisTexts(
        q_lens="1", kv_lens="64", head_dim="32", v_dim="16", mask="causal:bottom_right"
    ).problems()
    assert (problem.q_len, problem.kv_len, problem.qk_dim, problem.v_dim, problem.pairs) == (
        1,
        64,
        32,
        16,
        64,
    )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"seq_lens": "8", "q_lens": "8"}, "not both"),
        ({"kv_lens": "8"}, "without --q-lens"),
        ({"mask": ","}, "masks is empty"),
    ],
)
def test_contradictions(texts, message):
    with pytest.raises(InvalidSweep, match=message):
        AxisTexts(**texts).axes()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"heads": "12", "kv_heads": "5"}, "kv_heads=5 does not divide q_heads=12"),
        ({"heads": "0"}, "q_heads=0"),
        ({"batch": "-1"}, "batch=-1"),
        ({"mask": "window:-4:0"}, "window left=-4"),
        ({"mask": "ring"}, "'ring' cannot be read"),
        ({"direction": "sideways"}, "'sideways' is unknown"),
    ],
)
def test_values_that_form_no_problem(texts, message):
    with pytest.raises(InvalidProblem, match=message):
        AxisTexts(seq_lens="8", **texts).problems()
