"""Which kernel ran, read from what a call executed."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attnprof.core.record import Severity
from attnprof.explain.observed import backend_judgments, classify, observe, observe_backend

Q = torch.randn(1, 4, 16, 64, generator=torch.Generator().manual_seed(0))
FLASH_OP = "aten::_scaled_dot_product_flash_attention_for_cpu"


def test_the_default_on_cpu_is_flash_and_the_operator_is_the_evidence():
    seen = observe(lambda: scaled_dot_product_attention(Q, Q, Q))
    assert seen.backend == "flash"
    assert seen.evidence == (FLASH_OP,)


def test_math_is_seen_although_it_is_a_composite():
    assert observe_backend(lambda: scaled_dot_product_attention(Q, Q, Q, dropout_p=0.1)) == "math"
    with sdpa_kernel(SDPBackend.MATH):
        assert observe_backend(lambda: scaled_dot_product_attention(Q, Q, Q)) == "math"


def test_a_backward_is_seen_through_to_its_forward():
    q = Q.clone().requires_grad_()
    assert observe_backend(lambda: scaled_dot_product_attention(q, Q, Q).sum().backward()) == "flash"


def test_own_products_and_softmax_are_unfused():
    assert observe_backend(lambda: (Q @ Q.transpose(-2, -1)).softmax(-1) @ Q) == "unfused"
    assert observe_backend(lambda: Q + 1) == "unknown"


def test_multihead_attention_hides_behind_its_own_operator_in_eval_mode():
    module = torch.nn.MultiheadAttention(64, 4, batch_first=True)
    x = torch.randn(2, 8, 64)
    assert observe_backend(lambda: module(x, x, x, need_weights=False)) == "flash"
    assert observe_backend(lambda: module(x, x, x, need_weights=True)) == "unfused"
    module.eval()
    with torch.inference_mode():
        assert observe_backend(lambda: module(x, x, x)) == "native_mha"


def test_observing_writes_nothing(capfd):
    observe_backend(lambda: scaled_dot_product_attention(Q, Q, Q))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("names", "backend"),
    [
        (
            ["aten::_scaled_dot_product_efficient_attention", "fmha_cutlassF_f16_aligned_64x64_rf_sm80"],
            "mem_efficient",
        ),
        (["void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128>>"], "flash"),
        (["cudnn_generated_fort_native_sdpa_sm90_knob_7_64x128x128"], "cudnn"),
        (["fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention)"], "mem_efficient"),
        (["triton_tem_fused_flex_attention_0"], "flex"),
        (["Torch-Compiled Region: 0/0", FLASH_OP], "compiled: flash"),
        (["Torch-Compiled Region: 0/0", "aten::empty"], "compiled"),
        ([FLASH_OP, "aten::_scaled_dot_product_attention_math"], "flash+math"),
        (["flex_attention", "aten::softmax", "aten::matmul"], "flex"),
        ([], "unknown"),
    ],
)
def test_names_are_classified(names, backend):
    assert classify(names).backend == backend


def test_another_kernel_than_asked_is_an_alarm():
    (alarm,) = backend_judgments("FLASH_ATTENTION", "math")
    assert alarm.severity is Severity.ALARM
    assert alarm.message == "flash was asked for, math ran"
    assert backend_judgments("MATH", "math") == ()
    assert backend_judgments("flash", "flash") == ()
    assert backend_judgments(None, "math") == ()


def test_a_rewritten_compilation_is_told_apart():
    seen = classify(["Torch-Compiled Region: 0/0", FLASH_OP], fused=True)
    assert seen.backend == "compiled: rewritten to SDPA (flash)"
    (judgment,) = backend_judgments(None, seen.backend)
    assert judgment.code == "compiled-rewritten"
