"""The right set of backends by device name (PyTorch 2.13): what runs, and which is chosen."""

import pytest

from attnprof.core.errors import UnknownName
from attnprof.core.mask import Causal, Dense, Window
from attnprof.core.problem import Problem
from attnprof.explain import Call, explain
from attnprof.explain.call import TensorSpec, contiguous
from attnprof.explain.switches import Switches
from attnprof.explain.target import find_target

WINDOW = Window(left=127, right=0)
CASES = {
    "fp16": {"dtype": "float16"},
    "bf16": {"dtype": "bfloat16"},
    "fp32": {"dtype": "float32"},
    "d96": {"dtype": "float16", "head_dim": 96},
    "d256": {"dtype": "float16", "head_dim": 256},
    "d512": {"dtype": "float16", "head_dim": 512},
    "mask": {"dtype": "float16", "mask": WINDOW},
    "gqa": {"dtype": "float16", "kv_heads": 2},
    "dropout": {"dtype": "float16", "dropout": 0.1},
    "dropout16": {"dtype": "float16", "dropout": 0.125},
    "grad": {"dtype": "float16", "direction": "fwd_bwd"},
    "causal": {"dtype": "bfloat16", "mask": Causal()},
}
# F flash, E memory-efficient, C cuDNN, M math; the chosen one comes first.
OLD = {
    "fp16": "EM", "bf16": "M", "fp32": "EM", "d96": "EM", "d256": "EM", "d512": "EM", "mask": "EM", "gqa": "M",
    "dropout": "EM", "dropout16": "EM", "grad": "EM", "causal": "M",
}  # fmt: skip
AMPERE = {
    "fp16": "FECM", "bf16": "FECM", "fp32": "EM", "d96": "FECM", "d256": "FEM", "d512": "EM", "mask": "ECM",
    "gqa": "FCM", "dropout": "FEM", "dropout16": "FECM", "grad": "FECM", "causal": "FECM",
}  # fmt: skip
HOPPER = {
    "fp16": "CFEM", "bf16": "CFEM", "fp32": "EM", "d96": "CFEM", "d256": "CFEM", "d512": "EM", "mask": "CEM",
    "gqa": "CFM", "dropout": "FEM", "dropout16": "CFEM", "grad": "CFEM", "causal": "CFEM",
}  # fmt: skip
CDNA3 = {
    "fp16": "FEM", "bf16": "FEM", "fp32": "EM", "d96": "FEM", "d256": "FEM", "d512": "FEM", "mask": "EM",
    "gqa": "FM", "dropout": "FEM", "dropout16": "FEM", "grad": "FEM", "causal": "FEM",
}  # fmt: skip
DEVICES = {"T4": OLD, "V100": OLD, "RTX 2070": OLD, "A100": AMPERE, "H100": HOPPER, "MI300X": CDNA3}
LETTER = {"F": "flash", "E": "mem_efficient", "C": "cudnn", "M": "math"}


def asked(device, torch_version="2.13.0", switches=None, **changes):
    problem = Problem(**{"q_heads": 8, "q_len": 1024, **changes})
    return explain(problem, device, torch_version=torch_version, switches=switches or Switches())


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("device", list(DEVICES))
def test_the_right_set_for_a_named_device(device, case):
    want = [LETTER[letter] for letter in DEVICES[device][case]]
    e = asked(device, **CASES[case])
    assert (e.chosen, set(e.runnable)) == (want[0], set(want))
    assert e.observed == ""


def rules_of(e, backend):
    return {str(r.rule) for r in e.backend(backend).rejections}


def test_every_reason_is_listed_not_only_the_first():
    e = asked("T4", dtype="float32", mask=WINDOW, head_dim=512)
    assert rules_of(e, "flash") == {"compute capability", "mask", "dtype", "head dim"}


def test_the_cost_of_a_fix_is_bytes_and_time_where_the_bandwidth_is_known():
    (gqa,) = asked("T4", dtype="float16", kv_heads=2).backend("mem_efficient").rejections
    one = 2 * 1024 * 64 * 2  # a K of two heads in float16
    assert gqa.cost_bytes == 2 * (one + 4 * one)
    assert gqa.cost_s == pytest.approx(gqa.cost_bytes / 320e9)
    assert "2.5 MiB" in gqa.cost
    (mask,) = asked("A100", dtype="float16", mask=WINDOW).backend("flash").rejections
    assert mask.cost_bytes == 1024 * 1024
    assert mask.cost_s is None  # "A100" may be any of four, of two bandwidths


def test_backends_that_take_the_call_have_a_predicted_time_where_the_device_is_one_chip():
    e = asked("H100", dtype="float16")
    times = {b.name: b.predicted_s for b in e.backends if b.predicted_s is not None}
    assert set(times) == {"flash", "mem_efficient", "cudnn", "math"}
    assert times["math"] > 3 * times["flash"] > 0
    assert "predicted" in str(e)
    assert all(b.predicted_s is None for b in asked("A100", dtype="float16").backends)
    spec = contiguous((1, 8, 1024, 64), "float16")
    by_call = explain(Call(q=spec, k=spec, v=spec), "H100", torch_version="2.13.0", switches=Switches())
    assert by_call.backend("flash").predicted_s == times["flash"]
    masked = Call(q=spec, k=spec, v=spec, attn_mask=contiguous((1024, 1024), "bool"))
    assert explain(masked, "H100", switches=Switches()).backend("math").predicted_s is None


def test_causal_of_unequal_lengths_is_not_for_cuda_flash():
    e = asked("A100", dtype="float16", q_len=1, kv_len=16, mask=Causal())
    assert rules_of(e, "flash") == {"causal"}
    assert e.chosen == "mem_efficient"
    assert "1 of 16 keys visible" in e.judgments[0].message


@pytest.mark.parametrize(
    ("device", "changes", "trains"),
    [
        ("RTX 4090", {"head_dim": 224}, False),
        ("RTX 4090", {"head_dim": 256}, True),
        ("RTX 4090", {"head_dim": 256, "dropout": 0.5}, False),
        ("RTX 4090", {"head_dim": 192}, True),
        ("RTX 5090", {"head_dim": 224}, False),
        ("A100", {"head_dim": 224}, True),
    ],
)
def test_devices_with_little_shared_memory_cannot_train_wide_heads(device, changes, trains):
    e = asked(device, dtype="float16", direction="fwd_bwd", **changes)
    assert ("grad" not in rules_of(e, "flash")) == trains


@pytest.mark.parametrize(
    ("version", "device", "changes", "chosen"),
    [
        ("2.9.1", "H100", {"dtype": "float16"}, "cudnn"),
        ("2.14.0", "H100", {"dtype": "float16", "head_dim": 256}, "flash"),
        ("2.13.0", "H100", {"dtype": "float16", "head_dim": 256}, "cudnn"),
        ("2.14.0", "T4", {"dtype": "float16", "kv_heads": 2}, "mem_efficient"),
        ("2.13.0", "T4", {"dtype": "float16", "kv_heads": 2}, "math"),
    ],
)
def test_rules_differ_by_version(version, device, changes, chosen):
    assert asked(device, version, **changes).chosen == chosen


def test_a_version_without_rules_says_so():
    e = asked("T4", "2.5.1")
    assert "no rules for PyTorch 2.5.1" in e.notes[0]
    assert "no rules for PyTorch 2.5.1" in str(e)


def test_a_later_version_than_the_last_rules_says_so():
    assert asked("T4", "2.14.1").notes == ()
    assert "2.17.0 is later and may differ" in asked("T4", "2.17.0").notes[0]


def test_environment_and_determinism_change_the_choice():
    off = Switches(environment={"TORCH_CUDNN_SDPA_DEPRIORITIZED": "1"})
    assert asked("H100", dtype="float16", switches=off).chosen == "flash"
    e = asked("H100", dtype="float16", switches=Switches(deterministic=True))
    assert rules_of(e, "cudnn") == {"determinism"}


def test_experimental_amd_devices_need_their_environment_variable():
    assert rules_of(asked("gfx1151", dtype="float16"), "flash") == {"environment variable"}
    on = Switches(environment={"TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL": "1"})
    assert asked("gfx1151", dtype="float16", switches=on).chosen == "flash"
    assert rules_of(asked("gfx906", dtype="float16"), "flash") == {"device"}
    assert rules_of(asked("gfx1100", dtype="float16", head_dim=512), "flash") == {"head dim"}


def test_views_that_start_between_alignments_are_rejected_by_memory_efficient():
    spec = contiguous((1, 8, 64, 64), "float16")
    odd = TensorSpec(shape=spec.shape, strides=spec.strides, dtype="float16", storage_offset=1)
    call = Call(q=odd, k=spec, v=spec)
    e = explain(call, "A100", torch_version="2.13.0", switches=Switches())
    assert rules_of(e, "mem_efficient") == {"stride"}
    assert "q 2 B" in e.backend("mem_efficient").rejections[0].reason
    assert explain(call, "T4", torch_version="2.13.0", switches=Switches()).chosen == "mem_efficient"


def test_a_dense_mask_is_a_mask_tensor_even_if_it_says_causal():
    e = asked("A100", dtype="float16", q_len=2, mask=Dense([[1, 0], [1, 1]]))
    assert rules_of(e, "flash") == {"mask"}
    assert "mask-equals-causal" in {j.code for j in e.judgments}


def test_devices_without_rules_are_not_guessed():
    e = asked("Gaudi 3")
    assert e.runnable == ("math",)
    assert "no dispatch rules for Gaudi 3" in e.backend("flash").rejections[0].reason


def test_names_of_devices():
    assert find_target("sm_90").capability == find_target("9.0").capability == find_target("H100").capability
    assert find_target("GFX942").arch == find_target("MI300X").arch == "gfx942"
    with pytest.raises(UnknownName, match="nearest"):
        find_target("H1000 Ultra")
    with pytest.raises(UnknownName, match="no CUDA device is here"):
        find_target("cuda")
