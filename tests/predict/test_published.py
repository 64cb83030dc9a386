"""Published rows: what is read, what is refused, and how rates become times."""

from __future__ import annotations

import pytest

from attnprof.core.errors import InvalidInput
from attnprof.core.mask import Causal, Window
from attnprof.predict.kernels import Family
from attnprof.predict.published import COLUMNS, PublishedRow, SkippedRow, packaged_text, parse_rows

BASE = {
    "source_id": "s", "gpu": "A100 SXM 80GB", "kernel": "FlashAttention-2", "dtype": "fp16", "batch": "2",
    "heads_q": "16", "heads_kv": "16", "seqlen_q": "1024", "seqlen_k": "1024", "head_dim": "128", "causal": "0",
    "pass": "fwd", "metric": "time", "value": "0.2", "unit": "ms",
}  # fmt: skip


def parse(**changes: str) -> PublishedRow | SkippedRow:
    cells = {**dict.fromkeys(COLUMNS, ""), **BASE, **changes}
    rows, skipped = parse_rows(",".join(COLUMNS) + "\n" + ",".join(cells[name] for name in COLUMNS))
    return (rows + skipped)[0]


def row(**changes: str) -> PublishedRow:
    found = parse(**changes)
    assert isinstance(found, PublishedRow)
    return found


def test_times_in_every_unit():
    assert row().seconds == pytest.approx(2e-4)
    assert row(value="200", unit="us").seconds == pytest.approx(2e-4)


def test_rate_of_a_causal_row_counts_half_the_square():
    full = row(metric="tflops", unit="TFLOP/s", value="200")
    causal = row(metric="tflops", unit="TFLOP/s", value="200", causal="1")
    assert full.flops == 4 * 2 * 16 * 1024 * 1024 * 128
    assert causal.flops == full.flops / 2
    assert full.seconds == pytest.approx(full.flops / 200e12)


def test_backward_counts_five_matmuls_and_both_seven():
    forward, backward, both = (row(**{"pass": name}).flops for name in ("fwd", "bwd", "fwd+bwd"))
    assert backward == 2.5 * forward
    assert both == 3.5 * forward
    unequal = row(head_dim="192", note="model=x; head_dim_v=128", **{"pass": "bwd"})
    assert unequal.flops == pytest.approx(2 * 2 * 16 * 1024**2 * (3 * 192 + 2 * 128))


def test_bandwidth_divides_each_tensor_once():
    decode = row(
        metric="hbm_bw", unit="TB/s", value="2", seqlen_q="1", seqlen_k="4096", kernel="FlashInfer decode"
    )
    stored = 2 * 16 * 2 * 128 * 2 * (1 + 4096)
    assert decode.stored_bytes == stored
    assert decode.seconds == pytest.approx(stored / 2e12)


def test_window_and_alignment_come_from_the_note():
    window = row(note="model=m; sliding_window=128", causal="1").problem.mask
    assert isinstance(window, Window)
    assert (window.left, window.right) == (127, 0)
    aligned = row(note="bottom-right causal", causal="1", seqlen_q="512").problem.mask
    assert isinstance(aligned, Causal)
    assert str(aligned.align) == "bottom_right"


def test_variant_not_stated_is_the_usual_one():
    assert row(gpu="H100 (variant not stated)").case.chip.name == "H100 SXM"


@pytest.mark.parametrize(
    ("changes", "reason", "named"),
    [
        ({"unit": ""}, "missing or unknown unit", "time"),
        ({"unit": "furlongs"}, "missing or unknown unit", "furlongs"),
        ({"metric": "joules"}, "unknown metric", "joules"),
        ({"value": "-3"}, "value is nonsense", "-3"),
        ({"value": "inf"}, "value is nonsense", "inf"),
        ({"value": ""}, "value is nonsense", "''"),
        ({"value": "fast"}, "value is not a number", "fast"),
        ({"batch": ""}, "batch, heads or lengths are not given", "batch"),
        ({"heads_q": "0"}, "size is nonsense", "heads_q=0"),
        ({"head_dim": "100000000"}, "size is nonsense", "8,192"),
        ({"seqlen_q": "10.5"}, "size is nonsense", "10.5"),
        ({"heads_kv": "3"}, "not an attention problem", "kv_heads=3"),
        ({"gpu": "H1000"}, "unknown GPU", "H100"),
        ({"gpu": "M1"}, "chip lacks figures", "memory bandwidth"),
        ({"gpu": "RTX 5090 or DGX Spark"}, "GPU is ambiguous", "more than one"),
        ({"kernel": "quicksort"}, "unknown kernel", "quicksort"),
        ({"pass": "sideways"}, "unknown pass", "sideways"),
        ({"dtype": "fp3"}, "unknown dtype", "fp3"),
        ({"note": "random actual seq lens"}, "lengths are random", "maximum"),
    ],
)
def test_bad_rows_are_named_with_their_reason(changes: dict[str, str], reason: str, named: str):
    found = parse(**changes)
    assert isinstance(found, SkippedRow)
    assert found.reason == reason
    assert named in found.detail
    assert found.number == 2


def test_missing_columns_are_refused_by_name():
    with pytest.raises(InvalidInput, match="unit"):
        parse_rows("source_id,gpu,kernel,value\na,b,c,1\n")


def test_families_of_published_names():
    names = {
        "SDPA flash (FA2)": Family.FA2, "FlashAttention-3": Family.FA3, "xFormers CUTLASS": Family.MEMEFF,
        "PyTorch SDPA math": Family.MATH, "PyTorch naive": Family.NAIVE, "Triton tutorial FA2": Family.TRITON,
        "SageAttention2 int8 QK + fp8 PV": Family.QUANTISED, "FlashAttention-1": Family.FA1,
    }  # fmt: skip
    assert {name: row(kernel=name).case.family for name in names} == names


def test_other_spellings_are_understood():
    spelled = row(gpu="NVIDIA A100", dtype="BF16", causal="True", **{"pass": "forward"})
    assert (spelled.case.chip.name, spelled.case.qk, spelled.case.causal) == ("A100 SXM 80GB", "fp16", True)
    versions = {"FlashAttention v3": Family.FA3, "flash-attn 2.7.4": Family.FA2, "FA1": Family.FA1}
    assert {name: row(kernel=name, gpu="H100").case.family for name in versions} == versions
    assert row(kernel="FlashAttention-4", gpu="B200").case.family is Family.NATIVE


def test_one_die_of_an_mi250x():
    chip = row(gpu="MI250X").case.chip
    assert chip.peak("fp16") == pytest.approx(191.5e12)
    assert any("die" in text for text in chip.assumed)


def test_default_is_memory_efficient_below_sm80_and_above_dim_256():
    assert row(kernel="sdpa_default", gpu="RTX 2070").case.family is Family.MEMEFF
    assert row(kernel="SDPA default", gpu="H200 SXM", head_dim="512").case.family is Family.MEMEFF_WIDE
    assert row(kernel="SDPA default", gpu="H200 SXM").case.family is Family.FA2


def test_packaged_rows_are_predicted_but_for_those_without_work():
    rows, skipped = parse_rows(packaged_text())
    assert len(rows) > 0.95 * (len(rows) + len(skipped))
    assert {s.reason for s in skipped} == {
        "batch, heads or lengths are not given", "lengths are random", "GPU is ambiguous",
    }  # fmt: skip
