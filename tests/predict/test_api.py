"""`predict`: rooflines with known values, unknown devices, refusals, memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from attnprof import Causal, Problem, Window, predict
from attnprof.core.errors import UnknownName
from attnprof.core.units import MIB
from attnprof.explain import explain
from attnprof.explain.backends import decide
from attnprof.explain.choice import VARIANTS

DECODE = Problem(q_heads=32, kv_heads=8, q_len=1, kv_len=4096, head_dim=128, dtype="float16")
PREFILL = Problem(q_heads=16, q_len=4096, head_dim=128, dtype="bfloat16")


def one(problem: Problem, device: str = "H100 SXM", variant: str = "sdpa_flash"):
    (row,) = predict(problem, device, [variant])
    return row


def test_decode_roofline():
    row = one(DECODE)
    assert (row.useful_flops, row.compulsory_bytes) == (67_108_864, 16_793_600)
    assert row.ceilings.intensity_flop_per_byte == pytest.approx(3.9961, abs=1e-4)
    assert row.ceilings.ridge_flop_per_byte == pytest.approx(295.34, abs=0.01)
    assert row.ceilings.dram_s == pytest.approx(5.0130e-6, abs=1e-10)
    assert row.ceilings.matmul_s == pytest.approx(0.0678e-6, abs=1e-10)
    assert row.ceilings.bound == "DRAM"
    assert row.time_s > row.ceilings.dram_s


def test_decode_with_as_many_kv_heads():
    row = one(DECODE.replace(kv_heads=32))
    assert row.compulsory_bytes == 67_125_248
    assert row.ceilings.intensity_flop_per_byte == pytest.approx(0.99976, abs=1e-5)


def test_long_cache_decode_counts():
    problem = Problem(batch=16, q_heads=80, kv_heads=8, q_len=1, kv_len=10_241, head_dim=128, dtype="float16")
    row = one(problem)
    assert row.compulsory_bytes == 671_809_536
    assert row.useful_flops / 4.1408e-3 == pytest.approx(1.6208e12, rel=1e-3)
    assert row.compulsory_bytes / 4.1408e-3 == pytest.approx(162.24e9, rel=1e-4)


@pytest.mark.parametrize(("head_dim", "share"), [(64, 1.0), (128, 0.5)])
def test_exponentials_beside_matmuls_on_an_h100(head_dim: int, share: float):
    row = one(PREFILL.replace(head_dim=head_dim))
    assert row.ceilings.exp_share_of_matmul == pytest.approx(share, rel=1e-3)


def test_an_unknown_device_has_no_time_and_names_the_nearest():
    row = one(PREFILL, device="H1000")
    assert (row.time_s, row.outcome, row.binding, row.ceilings) == (None, "n/a", None, None)
    assert "H100 SXM" in row.reason
    assert row.logical_bytes > 0


def test_a_chip_without_figures_has_no_time():
    row = one(PREFILL, device="M1")
    assert row.time_s is None
    assert "catalogue" in row.reason


def test_kernels_are_refused_where_they_cannot_run():
    assert "sm80" in one(PREFILL, device="RTX 2070").reason
    assert "sm90" in one(PREFILL, device="A100 SXM 80GB", variant="FlashAttention-3").reason
    assert "16-bit" in one(PREFILL.replace(dtype="float32")).reason


@pytest.mark.parametrize("device", ["T4", "A100 SXM 80GB", "H100 SXM", "B200", "RTX 4090", "MI300X"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"dtype": "float32"}, {"dtype": "float64"}, {"kv_heads": 4}, {"mask": Window(127, 0)}, {"head_dim": 256},
     {"direction": "fwd_bwd"}, {"q_len": 1}],
)  # fmt: skip
def test_the_default_is_the_backend_that_explain_names(device: str, changes: dict[str, Any]):
    problem = PREFILL.replace(**changes)
    chosen = explain(problem, device).backend(explain(problem, device).chosen)
    row = one(problem, device, "sdpa_default")
    assert f"sdpa_default: PyTorch picks {chosen.title} here" in row.assumptions
    forced = one(problem, device, VARIANTS[chosen.name])
    assert forced.time_s is None or (row.time_s, row.family) == (forced.time_s, forced.family)


def test_a_call_that_pytorch_refuses_has_no_time(monkeypatch: pytest.MonkeyPatch):
    from attnprof.explain import choice

    monkeypatch.setattr(
        choice, "decide", lambda s: msgspec.structs.replace(decide(s), chosen=None, error="no")
    )
    row = one(PREFILL, variant="sdpa_default")
    assert (row.time_s, row.reason) == (None, "no")


@pytest.mark.parametrize("direction", ["fwd", "fwd_bwd"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", ["FlashAttention", "FlashAttention-2", "FlashAttention-3", "FlashAttention-4", "cuDNN", "ThunderKittens",
             "FlashInfer", "flash_attn3", "sdpa_flash", "sdpa_cudnn"],
)  # fmt: skip
def test_kernels_of_16_bit_types_refuse_wider_ones(name: str, dtype: str, direction: str):
    row = one(PREFILL.replace(dtype=dtype, direction=direction), "B200", name)
    assert row.time_s is None
    assert dtype in row.reason


@pytest.mark.parametrize("name", ["sdpa_memeff", "memory-efficient", "xFormers"])
def test_memory_efficient_kernels_take_float32_and_no_float64(name: str):
    assert one(PREFILL.replace(dtype="float32"), variant=name).time_s > 0
    assert "float64" in one(PREFILL.replace(dtype="float64"), variant=name).reason


def test_unfused_kernels_take_float64():
    wide = PREFILL.replace(dtype="float64")
    assert all(one(wide, variant=name).time_s > 0 for name in ("naive", "sdpa_math", "sdpa_default"))


def test_a_mask_that_pytorch_passes_as_a_tensor_skips_no_tile():
    windowed = PREFILL.replace(mask=Window(127, 0))
    row, own = one(windowed, variant="sdpa_default"), one(windowed, variant="triton_flash")
    assert row.executed_flops == one(PREFILL, variant="sdpa_default").executed_flops
    assert row.useful_flops == own.useful_flops
    assert row.time_s > 4 * own.time_s
    assert "mask tensor" in one(windowed).reason


def test_unknown_kernels_are_refused():
    with pytest.raises(UnknownName, match="quicksort"):
        predict(PREFILL, variants=["quicksort"])


def test_the_interval_holds_the_time_and_the_slowest_resource_binds():
    for row in predict(PREFILL):
        assert row.low_s < row.time_s < row.high_s
        assert row.resources_s[row.binding] == max(row.resources_s.values())


def test_naive_is_bound_by_dram_and_flash_is_faster():
    rows = {row.variant: row for row in predict(PREFILL, variants=["naive", "sdpa_flash"])}
    assert rows["naive"].binding == "dram"
    assert rows["naive"].time_s > 3 * rows["sdpa_flash"].time_s


def test_time_grows_with_length_and_shrinks_on_a_faster_chip():
    times = [one(PREFILL.replace(q_len=n, kv_len=n)).time_s for n in (512, 1024, 2048, 4096, 8192)]
    assert times == sorted(times)
    assert one(PREFILL, "A100 SXM 80GB").time_s > one(PREFILL).time_s


def test_memory_shows_the_library_workspace_apart():
    problem = Problem(q_heads=12, q_len=2048, head_dim=64, dtype="float16", mask=Causal())
    row = one(problem, "RTX 2070", "sdpa_math")
    assert row.library_workspace_bytes == 8_519_680
    assert (
        row.peak_bytes
        == row.input_bytes + row.output_bytes + row.workspace_bytes + row.library_workspace_bytes
    )
    assert row.peak_bytes / MIB == pytest.approx(489, rel=0.05)


def test_an_empty_problem_has_no_time():
    row = one(PREFILL.replace(batch=0))
    assert row.time_s is None
    assert "nothing to compute" in row.reason


def test_prediction_starts_without_torch():
    code = (
        "import sys; from attnprof import Problem, predict;"
        "predict(Problem(q_len=512, dtype='float16'), 'A100 SXM 80GB', ['sdpa_flash', 'naive']);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
