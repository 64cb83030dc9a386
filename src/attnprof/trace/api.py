"""`trace`: the bytes that a real run moves across the boundary of a memory of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attnprof.core.errors import AttnprofError, InvalidInput, KernelError
from attnprof.core.problem import Direction, Problem
from attnprof.core.variant import Setting, Variant

if TYPE_CHECKING:
    from torch import Tensor

    from attnprof.bench.inputs import Inputs
    from attnprof.trace.points import Trace
    from attnprof.trace.policy import Policy

DEFAULT_CAPACITIES = (160 * 1024,)


def trace(
    subject: Variant | Callable[..., Any] | str,
    problem: Problem,
    capacities: Sequence[int] = DEFAULT_CAPACITIES,
    *,
    line_bytes: int = 64,
    policy: Policy | None = None,
    seed: int = 0,
) -> Trace:
    """Run `subject` on the CPU and play its reads and writes through an exact LRU memory of each capacity.

    `subject` is a variant, a variant's name, or any f(q, k, v). For direction bwd the forward runs first and only
    the backward is counted.
    Units: capacities and results in bytes.
    Raises: InvalidInput for a capacity below one line, a problem that the variant refuses, or a result of another
    shape; KernelError when the call fails, with the operator after which it did.

    >>> point, = trace("flash_tiled", Problem(q_len=256, head_dim=64), [160 * 1024])  # doctest: +SKIP
    >>> point.total_bytes  # doctest: +SKIP
    655360
    """
    from attnprof.bench.inputs import make_inputs
    from attnprof.variants.catalog import as_variant, find

    variant = find(subject) if isinstance(subject, str) else as_variant(subject)
    refused = variant.unavailable("cpu") or variant.refuse(problem, "cpu") or _compiled(variant, subject)
    if refused:
        raise InvalidInput(f"{variant.name} does not compute {problem} on the CPU: {refused}")
    computed = variant.problem_for(problem)
    inputs = make_inputs(computed, "cpu", seed)
    setting = Setting(device="cpu")
    kernel = variant.prepare(computed, setting)
    with variant.entered(setting):
        return _traced(kernel, inputs, computed, variant.name, capacities, line_bytes, policy)


def trace_call(
    function: Callable[..., Any],
    *tensors: Tensor,
    capacities: Sequence[int] = DEFAULT_CAPACITIES,
    line_bytes: int = 64,
    policy: Policy | None = None,
) -> Trace:
    """Like `trace`, for a function of any tensors that already exist; the first three are called Q, K and V."""
    from attnprof.trace.session import Session

    session = Session(capacities, line_bytes, policy)
    for label, tensor in zip((*"QKV", *("mask" for _ in tensors[3:])), tensors, strict=False):
        session.name(tensor, label)
    name = getattr(function, "__name__", type(function).__name__)
    result = _called(session, name, lambda: function(*tensors))
    session.name_result(result, "O")
    session.check_written(result)
    return session.finish(name, None)


def _traced(
    kernel: Callable[..., Any],
    inputs: Inputs,
    problem: Problem,
    name: str,
    capacities: Sequence[int],
    line_bytes: int,
    policy: Policy | None,
) -> Trace:
    from attnprof.trace.session import Session

    session = Session(capacities, line_bytes, policy)
    for label, tensor in zip(("Q", "K", "V", "dO"), (*inputs.tensors, inputs.grad), strict=True):
        if tensor is not None:
            session.name(tensor, label)
    session.playing = problem.direction is not Direction.BWD
    out = _called(session, name, lambda: kernel(*inputs.tensors))
    _check_shape(out, problem, name)
    session.name_result(out, "O")
    session.check_written(out)
    if problem.direction is not Direction.FWD:
        session.playing = True
        gradients = _called(session, name, lambda: _backward(out, inputs))
        for label, tensor in zip(("dQ", "dK", "dV"), gradients, strict=True):
            session.name_result(tensor, label)
    return session.finish(name, problem)  # the results are still alive: they are written back


def _compiled(variant: Variant, subject: object) -> str | None:
    if variant.compiles or hasattr(subject, "_torchdynamo_orig_callable"):
        return "compiled code cannot be seen operator by operator (recorded, it runs uncompiled); trace the original"
    return None


def _backward(out: Tensor, inputs: Inputs) -> tuple[Tensor, ...]:
    import torch

    return torch.autograd.grad(out, inputs.tensors, inputs.grad)


def _called(session: Any, name: str, call: Callable[[], Any]) -> Any:
    try:
        with session.recording():
            return call()
    except AttnprofError:
        raise
    except Exception as error:
        raise KernelError(
            f"{name} failed {session.progress()}: {type(error).__name__}: {error}; run it without the trace to debug it"
        ) from error


def _check_shape(out: Any, problem: Problem, name: str) -> None:
    import torch

    expected = (problem.batch, problem.q_heads, problem.q_len, problem.v_dim)
    if not isinstance(out, torch.Tensor):
        raise InvalidInput(
            f"{name} returned {type(out).__name__}: f(q, k, v) must return one tensor of shape {expected}"
        )
    if tuple(out.shape) != expected:
        raise InvalidInput(
            f"{name} returned shape {tuple(out.shape)}: it must be {expected} (batch, q_heads, q_len, v_dim)"
        )
