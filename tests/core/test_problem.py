"""Problems: FLOPs, bytes and names of known calls, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnprof.core.errors import InvalidProblem, UnknownName
from attnprof.core.mask import Align, Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Direction, Problem
from attnprof.core.record import Record, Skipped
from attnprof.core.units import KIB, MIB

BR = Align.BOTTOM_RIGHT


@pytest.mark.parametrize(
    ("sizes", "mask", "flops", "empty_in_all"),
    [
        ({"q_heads": 4, "q_len": 5, "kv_len": 9}, Causal(), 15_360, 0),  # C01
        ({"q_heads": 4, "q_len": 5, "kv_len": 9}, Causal(BR), 35_840, 0),
        ({"q_heads": 4, "q_len": 5, "kv_len": 9}, Full(), 46_080, 0),
        ({"q_heads": 4, "q_len": 9, "kv_len": 5}, Causal(BR), 15_360, 16),  # C02
        ({"q_heads": 4, "q_len": 1, "kv_len": 16}, Causal(), 1_024, 0),  # C03
        ({"q_heads": 4, "q_len": 1, "kv_len": 16}, Causal(BR), 16_384, 0),
        ({"q_len": 8, "head_dim": 16}, Window(2, 0), 1_344, 0),  # C08
        ({"q_len": 8, "head_dim": 16}, Window(3, 0), 1_664, 0),
        ({"q_len": 8, "head_dim": 16}, Window(3, 3), 2_816, 0),
        ({"q_heads": 12, "q_len": 64}, Full(), 12_582_912, 0),  # C09
        ({"q_heads": 12, "q_len": 64}, Causal(), 6_389_760, 0),
        ({"q_heads": 8, "kv_heads": 2, "q_len": 64}, Full(), 8_388_608, 0),  # C10
        ({"q_len": 4, "kv_len": 10, "qk_dim": 8, "v_dim": 16}, Causal(BR), 1_632, 0),  # C12
        ({"batch": 2, "q_heads": 5, "q_len": 9, "head_dim": 4}, Full(), 12_960, 0),
        ({"q_heads": 32, "kv_heads": 8, "q_len": 1, "kv_len": 4096, "head_dim": 128}, Full(), 67_108_864, 0),  # C16
    ],
)  # fmt: skip
def test_flops_and_empty_rows_of_known_calls(sizes, mask, flops, empty_in_all):
    problem = Problem(mask=mask, **sizes)
    assert (problem.useful_flops, problem.total_empty_rows) == (flops, empty_in_all)
    assert problem.exp_ops == problem.total_pairs


def test_c09_the_causal_share_is_exact():
    dense, causal = (Problem(q_heads=12, q_len=64, mask=mask) for mask in (Full(), Causal()))
    assert causal.pairs == 2080
    assert Fraction(causal.useful_flops, dense.useful_flops) == Fraction("0.5078125")


def test_c10_gqa_bytes():
    grouped = Problem(q_heads=8, kv_heads=2, q_len=64)
    expanded = grouped.replace(kv_heads=8)
    assert grouped.compulsory_bytes == 327_680
    assert expanded.compulsory_bytes == 524_288
    assert grouped.useful_flops == expanded.useful_flops
    assert grouped.useful_flops / grouped.compulsory_bytes == pytest.approx(25.6)
    assert expanded.useful_flops / expanded.compulsory_bytes == 16.0
    assert (grouped.group, expanded.group) == (4, 1)


def test_c14_backwards_count_by_their_factor():
    forward = Problem(q_heads=4, q_len=32)
    assert forward.useful_flops == 1_048_576
    for direction, stored, recomputed in (("bwd", 2_097_152, 2_621_440), ("fwd_bwd", 3_145_728, 3_670_016)):
        problem = forward.replace(direction=direction)
        assert problem.useful_flops == problem.flops(2.0) == stored
        assert problem.flops(2.5) == recomputed


def test_c16_decode_bytes_and_intensity():
    decode = Problem(q_heads=32, kv_heads=8, q_len=1, kv_len=4096, head_dim=128, dtype="float16")
    assert decode.compulsory_bytes == 16_793_600
    assert decode.useful_flops / decode.compulsory_bytes == pytest.approx(3.9961, abs=1e-4)
    assert decode.replace(kv_heads=32).compulsory_bytes == 67_125_248
    large = Problem(batch=16, q_heads=80, kv_heads=8, q_len=1, kv_len=10_241, head_dim=128, dtype="bf16")
    assert large.compulsory_bytes == 671_809_536


def test_c17_a_mask_is_stored_once_at_one_byte_an_element():
    row = [1] * 16
    shared, per_head = Dense([row] * 16), Dense([[[row] * 16] * 4])
    assert Problem(q_heads=4, q_len=16, mask=shared).mask_bytes == 256
    assert Problem(q_heads=4, q_len=16, mask=per_head).mask_bytes == 1024
    assert Problem(q_len=1024, mask=Causal()).mask_bytes == 0


def test_score_matrices_and_outputs_of_c21():
    single, half = (Problem(q_heads=8, q_len=1024, dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert (single.score_bytes, half.score_bytes) == (32 * MIB, 16 * MIB)
    assert (single.o_bytes, half.o_bytes) == (2 * MIB, MIB)


@pytest.mark.parametrize(
    ("sizes", "compulsory"),
    [
        ({"batch": 0, "q_heads": 4, "q_len": 16}, 0),
        ({"q_heads": 4, "q_len": 16, "kv_len": 0}, 32 * KIB),
        ({"q_heads": 4, "q_len": 0, "kv_len": 16}, 0),
    ],
)
def test_c22_zero_sizes_are_problems(sizes, compulsory):
    problem = Problem(**sizes)
    assert (problem.useful_flops, problem.pairs, problem.exp_ops) == (0, 0, 0)
    assert problem.compulsory_bytes == compulsory


def test_c22_rows_without_keys_are_empty():
    assert Problem(q_heads=4, q_len=16, kv_len=0).total_empty_rows == 64


def test_only_keys_that_are_seen_are_compulsory():
    window = Problem(q_len=4, kv_len=100, mask=Window(1, 0, BR))
    assert window.visible_kv_bytes == 5 * 2 * 64 * 4
    assert window.compulsory_read_bytes == window.q_bytes + window.visible_kv_bytes


def test_backward_bytes():
    forward = Problem(q_heads=2, q_len=8)
    backward, both = forward.replace(direction="bwd"), forward.replace(direction="fwd_bwd")
    inputs = forward.q_bytes + forward.k_bytes + forward.v_bytes
    assert backward.compulsory_read_bytes == both.compulsory_read_bytes == inputs + forward.o_bytes
    assert backward.compulsory_write_bytes == inputs
    assert both.compulsory_write_bytes == inputs + forward.o_bytes


def test_pairs_per_head_are_an_exact_mean_where_elements_differ():
    problem = Problem(batch=2, q_heads=3, q_len=4, mask=Lengths([4, 1], [4, 2]))
    assert problem.pairs == 9
    assert problem.empty_rows == Fraction(3, 2)
    uneven = problem.replace(mask=Lengths([4, 1], [4, 1]))
    assert uneven.pairs == Fraction(17, 2)
    assert uneven.useful_flops == 2 * 3 * 17 * 128


# --- names --------------------------------------------------------------------------------------------------


def test_s5_the_scale_is_part_of_the_key():
    usual, unit = Problem(q_len=8), Problem(q_len=8, scale=1.0)
    keys = {
        Record(variant="naive", asked=p, problem=p, device="cpu", outcome=Skipped(reason="x")).key
        for p in (usual, unit)
    }
    assert len(keys) == 2
    assert usual.effective_scale == 0.125
    assert unit.effective_scale == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 2}, {"q_heads": 8}, {"kv_heads": 2}, {"q_len": 9}, {"kv_len": 9}, {"qk_dim": 32}, {"v_dim": 32},
        {"dtype": "float16"}, {"mask": Causal()}, {"mask": Causal(BR)}, {"direction": "bwd"}, {"scale": 0.5},
        {"dropout": 0.1}, {"mask": Window(2, 0)}, {"mask": Dense([[1] * 8] * 8)}, {"mask": Dense([[0] * 8] * 8)},
    ],
)  # fmt: skip
def test_every_value_is_part_of_the_name(change):
    base = {"q_heads": 4, "q_len": 8, "kv_len": 8}
    assert str(Problem(**base)) != str(Problem(**(base | change)))


def test_a_name_reads_well():
    text = str(
        Problem(batch=2, q_heads=12, kv_heads=3, q_len=64, kv_len=128, qk_dim=64, v_dim=32, mask=Causal(BR))
    )
    assert text == "B2 H12/3 N64x128 d64/32 float32 causal:bottom_right fwd"


def test_what_is_left_out_follows():
    problem = Problem(q_heads=6, q_len=10)
    assert (problem.kv_heads, problem.kv_len, problem.qk_dim, problem.v_dim) == (6, 10, 64, 64)
    assert problem.replace(head_dim=32).v_dim == 32
    assert problem.replace(qk_dim=32).head_dim == 32
    assert problem.replace(head_dim=32, v_dim=16).v_dim == 16


@settings(max_examples=100, deadline=None)
@given(
    st.builds(
        Problem,
        batch=st.integers(0, 3), q_heads=st.sampled_from([2, 4]), kv_heads=st.sampled_from([1, 2]),
        q_len=st.integers(0, 9), kv_len=st.integers(0, 9), qk_dim=st.integers(1, 9), v_dim=st.integers(1, 9),
        mask=st.sampled_from([Full(), Causal(), Causal(BR), Window(2, 0)]), direction=st.sampled_from(list(Direction)),
        scale=st.sampled_from([None, 0.5]),
    )
)  # fmt: skip
def test_a_problem_survives_json(problem):
    assert msgspec.json.decode(msgspec.json.encode(problem), type=Problem) == problem


@pytest.mark.parametrize("mask", [Dense([[1, 0], [1, 1]]), Lengths([2], [1], Causal(BR))])
def test_masks_survive_json(mask):
    problem = Problem(q_len=2, mask=mask)
    assert msgspec.json.decode(msgspec.json.encode(problem), type=Problem) == problem


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"q_len": -1}, "q_len=-1"), ({"q_len": 1.5}, "q_len=1.5"), ({"q_len": True}, "q_len=True"),
        ({"q_len": 4, "q_heads": 0}, "q_heads=0"), ({"q_len": 4, "head_dim": 0}, "dim=0"),
        ({"q_len": 4, "q_heads": 8, "kv_heads": 3}, "kv_heads=3 does not divide q_heads=8"),
        ({"q_len": 4, "head_dim": 32, "qk_dim": 64}, "head_dim=32 and qk_dim=64 differ"),
        ({"q_len": 4, "dropout": 1.0}, "dropout=1.0"), ({"q_len": 4, "dropout": -0.1}, "dropout=-0.1"),
        ({"q_len": 4, "scale": float("nan")}, "scale=nan"), ({"q_len": 4, "scale": float("inf")}, "scale=inf"),
        ({"q_len": 4, "direction": "sideways"}, "fwd, bwd, fwd_bwd"),
        ({"q_len": 4, "mask": Dense([[1, 1]] * 3)}, "does not broadcast"),
    ],
)  # fmt: skip
def test_what_is_no_problem_is_refused(values, message):
    with pytest.raises(InvalidProblem, match=message):
        Problem(**values)


def test_an_unknown_dtype_names_the_nearest():
    with pytest.raises(UnknownName, match="bf16"):
        Problem(q_len=4, dtype="bf61")
