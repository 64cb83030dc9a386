"""On a CUDA device: the rules against its dispatcher, and the kernel that ran against both."""

import msgspec
import pytest
import torch
from tests.explain.random_calls import random_calls
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attnprof.explain import Call, explain
from attnprof.explain.call import TensorSpec
from attnprof.explain.observed import observe_backend
from attnprof.explain.probe import make

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def on_cuda(call):
    return msgspec.structs.replace(call, device="cuda")


def test_the_rules_pick_what_the_device_s_dispatcher_picks():
    wrong = [
        (str(call), e.dispatched, e.observed)
        for call in random_calls(400)
        if (e := explain(on_cuda(call), "cuda")).disagreements
    ]
    assert wrong == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("dim", [64, 96, 256])
def test_the_kernel_that_runs_is_the_one_that_was_foretold(dtype, dim):
    spec = TensorSpec(shape=(1, 4, 256, dim), strides=(4 * 256 * dim, 256 * dim, dim, 1), dtype=dtype)
    q, k, v = (make(spec, "cuda").zero_() for _ in range(3))
    foretold = explain(Call.from_tensors(q, k, v)).chosen
    assert observe_backend(lambda: scaled_dot_product_attention(q, k, v)) == foretold


@pytest.mark.parametrize("backend", ["MATH", "EFFICIENT_ATTENTION"])
def test_forced_kernels_are_recognised(backend):
    q = torch.zeros(1, 4, 256, 64, device="cuda", dtype=torch.float16)
    with sdpa_kernel(getattr(SDPBackend, backend)):
        seen = observe_backend(lambda: scaled_dot_product_attention(q, q, q))
    assert seen == {"MATH": "math", "EFFICIENT_ATTENTION": "mem_efficient"}[backend]
