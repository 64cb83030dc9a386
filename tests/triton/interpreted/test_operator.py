"""The PyTorch operator (schema, fake tensors, torch.compile), its bytes, and tuning, under the interpreter."""

from __future__ import annotations

import pytest
import torch
from tests.triton.interpreted.test_forward import TILES, kernel_of
from tests.variants import reference
from triton.runtime.errors import OutOfResources

from attnprof.core.errors import InvalidInput, KernelError
from attnprof.core.mask import Causal, Full, Lengths, Window
from attnprof.core.problem import Direction, Problem
from attnprof.core.variant import Setting
from attnprof.kernels import flash_op, flash_tune
from attnprof.kernels.flash_config import Config, band_rows, candidates
from attnprof.kernels.interpreted import counting_memory
from attnprof.variants.triton_flash import triton_flash

BYTES = {
    "full": Problem(q_heads=2, q_len=100, head_dim=24, mask=Full()),
    "causal": Problem(
        q_heads=2, kv_heads=1, q_len=100, kv_len=70, head_dim=16, mask=Causal(), dtype="float16"
    ),
    "bottom_right": Problem(batch=2, q_len=40, kv_len=90, head_dim=16, mask=Causal("bottom_right")),
    "window": Problem(q_heads=2, q_len=120, qk_dim=16, v_dim=40, mask=Window(20, 5), dtype="bfloat16"),
    "empty_rows": Problem(q_len=90, kv_len=30, head_dim=16, mask=Causal("bottom_right")),
    "lengths": Problem(batch=2, q_len=70, head_dim=16, mask=Lengths((70, 20), (33, 70), Causal())),
}


@pytest.mark.parametrize("case", list(BYTES))
@pytest.mark.parametrize("direction", ["fwd", "bwd"])
@pytest.mark.parametrize("tiles", [(16, 32, 32, 16), (64, 16, 16, 64)])
def test_counted_bytes_are_the_model_bytes(case, direction, tiles):
    m, n, backward_m, backward_n = tiles
    config = Config(m=m, n=n, backward_m=backward_m, backward_n=backward_n)
    kernel = kernel_of(BYTES[case].replace(direction=direction), config)
    tensors = reference.inputs(BYTES[case], grad=True)
    with counting_memory() as forward:
        output = kernel(*tensors)
    with counting_memory() as backward:
        output.backward(torch.ones_like(output))
    counted = forward if direction == "fwd" else backward
    model = kernel.cost.logical
    assert (counted.read_bytes, counted.write_bytes) == (model.read_bytes, model.write_bytes)


def test_one_call_computes_36_of_64_blocks():
    problem = Problem(q_len=1024, head_dim=16, mask=Causal())
    kernel = kernel_of(problem, Config(m=128, n=128))
    with counting_memory() as asked:
        kernel(*reference.inputs(problem))
    rows = 1024 * 16 * 4
    keys = asked.read_bytes - rows - 16 * 8  # without Q and the bands
    assert keys == 36 * 128 * (16 + 16) * 4


def test_operator_passes_the_checks_of_torch_library():
    problem = Problem(q_heads=2, kv_heads=1, q_len=17, head_dim=16)
    bands = torch.tensor(band_rows(problem), dtype=torch.int32)
    arguments = (*reference.inputs(problem, grad=True), bands, 0.25, TILES.as_list())
    checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static")
    results = torch.library.opcheck(torch.ops.attnprof.triton_flash.default, arguments, test_utils=checks)
    assert set(results.values()) == {"SUCCESS"}


def test_operator_is_one_node_of_a_compiled_graph():
    problem = Problem(q_heads=2, q_len=17, head_dim=16, mask=Causal())
    kernel = kernel_of(problem)
    graphs = []

    def backend(graph, _):
        graphs.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph.forward

    tensors = reference.inputs(problem)
    compiled = torch.compile(lambda q, k, v: kernel(q, k, v) * 2, backend=backend, fullgraph=True)
    assert torch.allclose(compiled(*tensors).double(), 2 * reference.attention(problem, *tensors), atol=1e-5)
    assert len(graphs) == 1
    assert torch.ops.attnprof.triton_flash.default in graphs[0]


@pytest.mark.parametrize("sizes", [{"batch": 0}, {"q_len": 0, "kv_len": 5}, {"kv_len": 0}])
def test_sizes_of_zero(sizes):
    problem = Problem(**{"q_heads": 2, "q_len": 5, "head_dim": 16, **sizes})
    q, k, v = reference.inputs(problem, grad=True)
    output = triton_flash.prepare(problem, Setting())(q, k, v)
    output.sum().backward()
    assert output.shape == (problem.batch, 2, problem.q_len, 16)
    assert not output.any()
    assert not q.grad.any()
    assert v.grad.shape == v.shape


def test_heads_beyond_a_cuda_grid_are_refused():
    with pytest.raises(InvalidInput, match="65535 that a CUDA grid takes"):
        flash_op._grid(16, 16, 65_536)


@pytest.mark.parametrize("direction", list(Direction))
def test_tuning_keeps_the_fastest_candidate(monkeypatch, direction):
    problem = Problem(q_len=33, head_dim=16, direction=direction)
    tried = candidates(problem)
    times = iter([5.0, *range(4, 4 + len(tried) - 2), 1.0])

    def fake_bench(call, **_):
        call()
        return next(times)

    monkeypatch.setattr(flash_tune, "do_bench", fake_bench)
    flash_tune.tuned.cache_clear()
    assert flash_tune.tuned(problem, "cpu") == tried[-1]


def test_tuning_drops_what_does_not_fit(monkeypatch):
    def too_big(*_, **__):
        raise OutOfResources(300_000, 232_448, "shared memory")

    monkeypatch.setattr(flash_tune, "do_bench", too_big)
    flash_tune.tuned.cache_clear()
    with pytest.raises(KernelError, match="no tile configuration fits cpu"):
        flash_tune.tuned(Problem(q_len=33, head_dim=16), "cpu")


def test_choice_is_recorded():
    kernel = kernel_of(Problem(q_len=33, head_dim=16))
    assert kernel.choice == "forward 16x16 warps=4 stages=2; backward 16x16 warps=4 stages=1"
