"""An eager method as a list of operators: its traffic table and its peak memory follow from the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from attnprof.core.schedules.formula import Symbols, evaluate, make_term
from attnprof.core.traffic import ByteKind, Term, Traffic


class Buffer(msgspec.Struct, frozen=True, kw_only=True):
    """A storage: the tensor it is listed under, its size in bytes, and what a broadcast read asks for."""

    tensor: str
    size: str
    asked: str = ""


class Step(msgspec.Struct, frozen=True):
    """One operator: buffers read, written, dead afterwards; `scratch` is its own temporary storage."""

    op: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    frees: tuple[str, ...] = ()
    scratch: str = ""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Operators in order over named buffers; `kept` buffers are inputs (never allocated by the program)."""

    buffers: Mapping[str, Buffer]
    steps: tuple[Step, ...]
    kept: frozenset[str]

    def traffic(self, kind: ByteKind, symbols: Symbols, *, level: str, policy: str) -> Traffic:
        """Operands summed over operators. Logical counts a broadcast operand as often as it is asked for."""
        broadcast = kind is ByteKind.LOGICAL
        reads: Counter[tuple[str, str]] = Counter()
        writes: Counter[tuple[str, str]] = Counter()
        for step in self.steps:
            for name in step.reads:
                buffer = self.buffers[name]
                reads[buffer.tensor, (broadcast and buffer.asked) or buffer.size] += 1
            for name in step.writes:
                writes[self.buffers[name].tensor, self.buffers[name].size] += 1
        return Traffic(kind=kind, level=level, policy=policy, terms=_terms(symbols, reads, writes))

    def peak_bytes(self, symbols: Symbols) -> int:
        """Largest storage alive at once, inputs excluded."""
        live: dict[str, int] = {}
        peak = 0
        for step in self.steps:
            live |= {n: evaluate(self.buffers[n].size, symbols) for n in step.writes if n not in self.kept}
            peak = max(peak, sum(live.values()) + evaluate(step.scratch, symbols))
            for name in step.frees:
                live.pop(name, None)
        return peak


def _terms(
    symbols: Symbols, reads: Counter[tuple[str, str]], writes: Counter[tuple[str, str]]
) -> tuple[Term, ...]:
    tensors = dict.fromkeys(tensor for tensor, _ in [*reads, *writes])
    return tuple(make_term(symbols, t, read=_sum_of(t, reads), write=_sum_of(t, writes)) for t in tensors)


def _sum_of(tensor: str, counts: Counter[tuple[str, str]]) -> str:
    parts = [(n, size) for (name, size), n in counts.items() if name == tensor]
    return " + ".join(size if n == 1 else f"{n}*{size}" for n, size in parts)
