"""Inputs of a problem: seeded, in the problem's dtype and layout (B, H, N, D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from attnprof.core.errors import KernelError
from attnprof.core.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """q, k, v, and the output's gradient for a backward. Shapes: see `Problem`."""

    q: Tensor
    k: Tensor
    v: Tensor
    grad: Tensor | None = None

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """q, k, v."""
        return self.q, self.k, self.v


def input_bytes(problem: Problem) -> int:
    """Storage of q, k, v and the output's gradient."""
    grad = 0 if problem.direction == "fwd" else problem.o_bytes
    return problem.q_bytes + problem.k_bytes + problem.v_bytes + grad


def make_inputs(problem: Problem, device: str, seed: int) -> Inputs:
    """Normal random inputs, the same for a seed on every device: drawn in float32 on the CPU, then cast."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, problem.dtype)

    def draw(heads: int, length: int, dim: int) -> Tensor:
        values = torch.randn(problem.batch, heads, length, dim, generator=generator)
        return values.to(device=device, dtype=dtype)

    q = draw(problem.q_heads, problem.q_len, problem.qk_dim)
    k = draw(problem.kv_heads, problem.kv_len, problem.qk_dim)
    v = draw(problem.kv_heads, problem.kv_len, problem.v_dim)
    if problem.direction == "fwd":
        return Inputs(q=q, k=k, v=v)
    grad = draw(problem.q_heads, problem.q_len, problem.v_dim)
    return Inputs(q=q.requires_grad_(), k=k.requires_grad_(), v=v.requires_grad_(), grad=grad)


class Guard:
    """A scope in which kernels may read inputs: on leaving it, by an error too, changed ones are restored.

    Raises: KernelError naming the inputs that were changed, unless another error is already on its way.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._tensors = {"q": inputs.q, "k": inputs.k, "v": inputs.v}
        self._copies = {name: tensor.detach().clone() for name, tensor in self._tensors.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        changed = self._restore()
        if changed and error is None:
            raise KernelError(
                f"the kernel changed its input {', '.join(changed)}: it must leave q, k and v as they are"
            )

    def _restore(self) -> tuple[str, ...]:
        """Names of the inputs that were changed; they hold their first values again."""
        import torch

        changed = tuple(n for n, t in self._tensors.items() if not torch.equal(t.detach(), self._copies[n]))
        for name in changed:
            with torch.no_grad():
                self._tensors[name].copy_(self._copies[name])
        return changed
