"""The timed callable of a direction: forward, backward of a stored forward, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attnprof.bench.inputs import Inputs
from attnprof.core.errors import KernelError
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
        stored = one_tensor(kernel(q, k, v))
        return lambda: gradients(stored, keep=True)

    def both() -> tuple[Tensor, ...]:
        output = one_tensor(kernel(q, k, v))
        return (output.detach(), *gradients(output, keep=False))

    return both


def one_tensor(returned: Any) -> Tensor:
    """What a kernel returned, when it is what a kernel must return. Raises: KernelError for anything else."""
    import torch

    if isinstance(returned, torch.Tensor):
        return returned
    kind = type(returned).__name__
    what = f"a {kind} of {len(returned)}" if isinstance(returned, tuple | list) else kind
    raise KernelError(
        f"the kernel returned {what}: it must return one tensor o (batch, heads, length, dim); wrap it to drop the rest"
    )


def as_results(returned: Any, direction: Direction) -> tuple[Tensor, ...]:
    """What a call of `direction` returned, as a tuple of detached tensors."""
    many = (one_tensor(returned),) if direction is Direction.FWD else returned
    return tuple(x.detach() for x in many)
