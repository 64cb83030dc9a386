"""The gate on problems: what is said before a kernel runs."""

from itertools import product

import pytest

from attnprof.core.dtypes import DType
from attnprof.core.mask import Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Problem
from attnprof.core.record import Severity
from attnprof.explain.cpu import cpu_flags, measured_emulation
from attnprof.explain.gate import gate_problem
from attnprof.explain.problem_checks import equal_rule

NATIVE = frozenset({"avx512_bf16", "avx512_fp16"})


def codes(problem, device="cpu", **options):
    return {j.code: j for j in gate_problem(problem, device, flags=NATIVE, **options)}


def test_a_plain_problem_is_let_through_without_a_word():
    assert not codes(Problem(q_heads=4, q_len=16))


def test_decode_with_is_causal_sees_one_key_and_says_so():
    found = codes(Problem(q_heads=4, q_len=1, kv_len=16, mask=Causal()))
    assert "1 of 16 keys visible; is_causal is top-left" in found["causal-top-left"].message
    assert "bottom_right" in found["causal-top-left"].remedy


def test_bottom_right_decode_is_not_warned_of():
    assert not codes(Problem(q_heads=4, q_len=1, kv_len=16, mask=Causal("bottom_right")))


def test_top_left_that_hides_no_key_is_a_note():
    judgment = codes(Problem(q_heads=4, q_len=9, kv_len=5, mask=Causal()))["causal-top-left"]
    assert "5 of 5 keys visible" in judgment.message
    assert judgment.severity is Severity.NOTE


def test_empty_rows_are_counted_over_heads():
    found = codes(Problem(q_heads=4, q_len=9, kv_len=5, mask=Causal("bottom_right")))
    assert "16 empty rows" in found["empty-rows"].message
    one = codes(Problem(q_len=4, mask=Dense([[1] * 4, [1] * 4, [0] * 4, [1] * 4])))
    assert one["empty-rows"].message.startswith("1 empty row:")


@pytest.mark.parametrize(
    ("mask", "code"),
    [
        (Dense([[1, 0, 0], [1, 1, 0], [1, 1, 1]]), "mask-equals-causal"),
        (Dense([[1, 1, 1]] * 3), "mask-equals-full"),
        (Dense([[1, 1, 1]]), "mask-equals-full"),
        (Window(left=-1, right=0), "mask-equals-causal"),
        (Window(left=7, right=7), "mask-equals-full"),
        (Window(left=1, right=0), None),
        (Dense([[1, 0, 0], [1, 1, 0], [1, 0, 1]]), None),
        (Lengths(q_lens=(3,), kv_lens=(3,)), None),
    ],
)
def test_a_mask_that_says_only_a_rule_is_named(mask, code):
    found = {c for c in codes(Problem(q_len=3, mask=mask)) if c.startswith("mask-equals")}
    assert found == ({code} if code else set())


@pytest.mark.parametrize(
    ("length", "expected"),
    [(46_340, None), (46_341, "2,147,488,281 elements > 2^31-1"), (65_537, "> 2^32")],
)
def test_index_limits_of_masks(length, expected):
    found = codes(Problem(q_len=length, mask=Causal()))
    if expected is None:
        assert not found
    else:
        assert expected in found["int32-mask"].message
    assert ("memory-efficient" in found["int32-mask"].message if found else False) == (length == 65_537)


def test_windows_equal_a_rule_exactly_when_every_row_does():
    rules = (Full(), Causal(), Causal("bottom_right"))
    for q_len, kv_len, left, right in product(range(1, 6), range(1, 6), range(-1, 6), range(-1, 4)):
        for align in ("top_left", "bottom_right"):
            mask = Window(left=left, right=right, align=align)
            same = [rule for rule in rules if rows(rule, q_len, kv_len) == rows(mask, q_len, kv_len)]
            assert equal_rule(mask, q_len, kv_len) == (same[0] if same else None)


def rows(mask, q_len, kv_len):
    (_, band), *_ = mask.bands(1, q_len, kv_len)
    spans = (band.span(i) for i in range(q_len))
    return [set(range(*span)) for span in spans]


def test_index_limits_of_scores_are_a_note_and_of_operands_a_warning():
    found = codes(Problem(batch=4, q_heads=32, q_len=4096))
    assert found["int32-score-matrix"].severity is Severity.NOTE
    assert not codes(Problem(batch=4, q_heads=32, q_len=4096), backend="FLASH_ATTENTION")
    big = codes(Problem(batch=2**14, q_heads=32, q_len=64, head_dim=64))
    assert big["int32-q"].severity is Severity.WARNING


def test_grid_limit_holds_on_a_gpu_only():
    p = Problem(batch=65_536, q_len=16)
    assert "65,536 > 65,535" in codes(p, "cuda:0")["grid-limit"].message
    assert codes(p, "cuda")["grid-limit"].severity is Severity.WARNING
    assert codes(Problem(batch=8192, q_heads=16, q_len=16), "cuda")["grid-limit"].severity is Severity.NOTE
    assert "grid-limit" not in codes(p, "cpu")
    assert "grid-limit" not in codes(Problem(batch=65_535, q_len=16), "cuda")


def test_dropout_in_a_forward_only_call_is_warned_of():
    found = codes(Problem(q_len=16, dropout=0.5))["dropout-in-eval"]
    assert "dropout_p=0.5" in found.message
    assert not codes(Problem(q_len=16, dropout=0.5, direction="fwd_bwd"))


@pytest.mark.parametrize(
    ("heads", "length", "severity"),
    [(1024, 12, Severity.WARNING), (64, 12, Severity.NOTE), (128, 4096, None), (12, 8, None)],
)
def test_bshd_read_as_bhsd_is_suspected(heads, length, severity):
    found = codes(Problem(q_heads=heads, q_len=length)).get("layout-suspicion")
    assert (found.severity if found else None) == severity


def test_decode_of_many_heads_is_not_a_layout_suspicion():
    assert not codes(Problem(q_heads=256, kv_heads=256, q_len=1, kv_len=4096))


def test_emulated_types_are_told_by_the_cpu_s_flags():
    p = Problem(q_len=16, dtype="float16")
    found = {j.code: j for j in gate_problem(p, flags=frozenset({"avx2", "avx512_bf16"}))}
    assert "16-bit emulated on this CPU" in found["emulated-dtype"].message
    assert not gate_problem(p.replace(dtype="bfloat16"), flags=frozenset({"avx512_bf16"}))
    assert not gate_problem(p, "cuda", flags=frozenset({"avx2"}))
    assert not gate_problem(p, flags=frozenset())


def test_flags_are_read_from_the_system(tmp_path):
    listing = tmp_path / "cpuinfo"
    listing.write_text("processor : 0\nflags\t\t: fpu avx2 amx_fp16\n")
    assert cpu_flags(str(listing)) == {"fpu", "avx2", "amx_fp16"}
    assert cpu_flags(str(tmp_path / "none")) == frozenset()


def test_measured_data_speak_for_themselves():
    judgment = measured_emulation(DType.FLOAT16, 0.456, 0.061)
    assert "7.5x its float32 twin" in judgment.message
    assert measured_emulation(DType.FLOAT16, 0.05, 0.061) is None
    assert measured_emulation(DType.FLOAT64, 1.0, 0.1) is None


def test_math_says_what_its_float32_copies_take():
    p = Problem(q_heads=8, q_len=1024, dtype="bfloat16")
    message = codes(p, backend="math")["math-upcast"].message
    assert "64 MiB for two score matrices" in message
    assert "6 MiB for copies of q, k, v" in message
    assert "math-upcast" in codes(p, backend="MATH")
    assert not codes(p, backend="flash")
    assert not codes(p.replace(dtype="float32"), backend="math")


def test_zero_sizes_pass_the_gate():
    for changes in ({"batch": 0}, {"kv_len": 0}, {"q_len": 0}):
        for mask in (Full(), Causal(), Window(left=3, right=0)):
            p = Problem(**{"batch": 1, "q_heads": 4, "q_len": 16, "kv_len": 16, "mask": mask, **changes})
            assert all(j.severity is not Severity.ALARM for j in gate_problem(p, flags=NATIVE))
