"""The timed callable of a direction: forward, backward of a stored forward, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attnprof.bench.inputs import Inputs
from attnprof.core.problem import Direction
from attnprof.core.variant import Kernel

if TYPE_CHECKING:
    from torch import Tensor


def directed(kernel: Kernel, inputs: Inputs, direction: Direction) -> Callable[[], Any]:
    """A call without arguments: o; (dq, dk, dv) of a forward run here once; or (o, dq, dk, dv)."""
    import torch

    q, k, v = inputs.tensors
    if direction is Direction.FWD:

        def forward() -> Tensor:
            with torch.no_grad():
                return kernel(q, k, v)

        return forward

    def gradients(output: Tensor, *, keep: bool) -> tuple[Tensor, ...]:
        return torch.autograd.grad(output, (q, k, v), inputs.grad, retain_graph=keep)

    if direction is Direction.BWD:
        stored = kernel(q, k, v)
        return lambda: gradients(stored, keep=True)

    def both() -> tuple[Tensor, ...]:
        output = kernel(q, k, v)
        return (output.detach(), *gradients(output, keep=False))

    return both


def as_results(returned: Any) -> tuple[Tensor, ...]:
    """What a call returned, as a tuple of detached tensors."""
    many = returned if isinstance(returned, tuple) else (returned,)
    return tuple(x.detach() for x in many)
