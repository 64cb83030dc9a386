"""What a variant is: a name, claims as data, a cost, and a function that prepares the timed callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from attnprof.core.dtypes import DType
from attnprof.core.errors import InvalidProblem
from attnprof.core.mask import Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Direction, Problem
from attnprof.core.traffic import Cost

if TYPE_CHECKING:
    from torch import Tensor

Kernel = Callable[["Tensor", "Tensor", "Tensor"], "Tensor"]
Prepare = Callable[[Problem, "Setting"], Kernel]

FLOAT_DTYPES = frozenset({DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16})
ALL_MASKS = (Full, Causal, Window, Lengths, Dense)
BANDED_MASKS = (Full, Causal, Window)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where a kernel is prepared: `device` as PyTorch names it (cpu, cuda, cuda:0)."""

    device: str = "cpu"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The problems that a variant claims; everything else is refused before it runs."""

    devices: frozenset[str] = frozenset({"cpu", "cuda"})
    dtypes: frozenset[DType] = FLOAT_DTYPES
    masks: tuple[type, ...] = ALL_MASKS
    directions: frozenset[Direction] = frozenset(Direction)
    unequal_lengths: bool = True
    unequal_dims: bool = True
    grouped_heads: bool = True
    dropout: bool = False
    max_head_dim: int | None = None
    extra: Callable[[Problem], str | None] | None = None

    def refuse(self, problem: Problem) -> str | None:
        """Why the variant does not compute `problem`; None when it does."""
        for refused, reason in self._rules(problem):
            if refused:
                return reason
        return self.extra(problem) if self.extra else None

    def _rules(self, p: Problem) -> tuple[tuple[bool, str], ...]:
        kinds = ", ".join(sorted(kind.__name__.lower() for kind in self.masks))
        widest = max(p.qk_dim, p.v_dim)
        return (
            (p.dtype not in self.dtypes, f"dtype {p.dtype} is not one of {', '.join(sorted(self.dtypes))}"),
            (not isinstance(p.mask, self.masks), f"mask {p.mask} is not one of the kinds {kinds}"),
            (p.direction not in self.directions, f"direction {p.direction} is not computed"),
            (
                p.q_len != p.kv_len and not self.unequal_lengths,
                f"q_len {p.q_len} and kv_len {p.kv_len} differ",
            ),
            (p.qk_dim != p.v_dim and not self.unequal_dims, f"qk_dim {p.qk_dim} and v_dim {p.v_dim} differ"),
            (p.group != 1 and not self.grouped_heads, f"{p.q_heads} query heads on {p.kv_heads} KV heads"),
            (p.dropout > 0 and not self.dropout, f"dropout {p.dropout} is not supported"),
            (
                self.max_head_dim is not None and widest > self.max_head_dim,
                f"head dim {widest} is above {self.max_head_dim}",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One kernel. `prepare(problem, setting)` is untimed; it returns the callable f(q, k, v) -> o that is timed.

    `preset` turns the asked problem into the one that is really computed (None for a kernel that answers
    the question as asked); `needs` returns why it cannot run on a device, or None; `backend` names the kernel
    that the method asks for, where it asks for one. `scope` is the context in which its calls run, entered
    around a whole batch of samples and outside the clock (choosing a backend costs more than a small call).
    `limits_on` holds other claims for a kind of device; `remark` is what its row must say on a device;
    `compiles` says that the first call on a new shape compiles for seconds.
    """

    name: str
    title: str
    prepare: Prepare
    cost: Callable[[Problem], Cost] | None = None
    limits: Limits = field(default_factory=Limits)
    preset: Callable[[Problem], Problem] | None = None
    needs: Callable[[str], str | None] | None = None
    install: str | None = None
    backend: str | None = None
    scope: Callable[[Setting], AbstractContextManager[object]] | None = None
    limits_on: Mapping[str, Limits] = field(default_factory=dict)
    remark: Callable[[str], str | None] | None = None
    compiles: bool = False
    note: str = ""

    def problem_for(self, asked: Problem) -> Problem:
        """The problem that this variant computes when `asked` is asked for."""
        return self.preset(asked) if self.preset else asked

    def problem_or_asked(self, asked: Problem) -> Problem:
        """Like `problem_for`, and `asked` itself where the preset cannot be applied."""
        try:
            return self.problem_for(asked)
        except InvalidProblem:
            return asked

    def unavailable(self, device: str) -> str | None:
        """Why it cannot run on `device` of this machine; None when it can."""
        kind = device.split(":", maxsplit=1)[0]
        if kind not in self.limits.devices:
            return f"runs on {', '.join(sorted(self.limits.devices))}, not on {kind}"
        return self.needs(device) if self.needs else None

    def entered(self, setting: Setting) -> AbstractContextManager[object]:
        """The context to enter around its calls: `scope`, or one that does nothing."""
        return self.scope(setting) if self.scope else nullcontext()

    def refuse(self, asked: Problem, device: str = "cpu") -> str | None:
        """Why it does not compute `asked` on `device`; None when it does."""
        limits = self.limits_on.get(device.split(":", maxsplit=1)[0], self.limits)
        try:
            return limits.refuse(self.problem_for(asked))
        except InvalidProblem as error:
            return str(error)


def variant(*, name: str, title: str, **claims: Any) -> Callable[[Prepare], Variant]:
    """Decorator of a `prepare` function; the module then holds a `Variant` value, nothing is registered."""

    def wrap(prepare: Prepare) -> Variant:
        return Variant(
            name=name, title=title, prepare=prepare, note=(prepare.__doc__ or "").strip(), **claims
        )

    return wrap


def renamed(variant: Variant, **changes: Any) -> Variant:
    """A variant derived from another by a change of some of its values."""
    return replace(variant, **changes)
