"""The recorder: sees every operator that PyTorch runs and turns it into reads and writes of storage ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attnprof.trace.effects import Effects, effects, named_arguments, tensors_in
from attnprof.trace.fused import Play, schedule_of
from attnprof.trace.labels import TEMPORARY, result_label
from attnprof.trace.ranges import line_runs
from attnprof.trace.storages import Storage, Storages
from attnprof.trace.stream import Operand, Stream


@dataclass(kw_only=True)
class OperatorCount:
    """What one kind of operator did, whatever the memory: its calls and its operands' bytes (op boundary)."""

    name: str
    calls: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    note: str = ""


@dataclass(kw_only=True)
class Recorded:
    """What the recorder counted apart from the memories."""

    operators: list[OperatorCount] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Logs operators into a `Stream` while it is active; views are free, `playing` False only follows lifetimes."""

    supports_higher_order_operators = True

    def __init__(self, stream: Stream, storages: Storages, line_bytes: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # likewise
        self.recorded = Recorded()
        self.playing = True
        self._stream = stream
        self._storages = storages
        self._line_bytes = line_bytes
        self._numbers: dict[str, int] = {}
        self._written: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, then record it."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        effect = effects(func)
        results = tensors_in(result)
        if effect.moves_data:
            self._record(effect, named_arguments(func, args, kwargs), results)
        else:
            for tensor in results:  # allocated, not yet written
                self._storages.of(tensor, TEMPORARY)
        return result

    def check_written(self, tensor: Tensor) -> None:
        """Flag a result that no recorded operator wrote: a kernel outside PyTorch's dispatcher did."""
        storage = self._storages.of(tensor)
        if storage.index not in self._written and storage.label not in {"Q", "K", "V"}:
            self._flag(
                "result", "written outside PyTorch's operators (a custom kernel): its traffic is not seen"
            )

    # --- one operator -----------------------------------------------------------------------------------------

    def _record(self, effect: Effects, arguments: dict[str, Any], results: list[Tensor]) -> None:
        inputs = {name: tensors_in(value) for name, value in arguments.items()}
        mutated = [t for name in effect.mutated for t in inputs.get(name, ())]
        read = self._reads(effect, arguments, inputs)
        known = {self._storages.of(t) for tensors in inputs.values() for t in tensors}
        fresh = [t for t in results if t.numel() and self._storages.seen(t) not in known]
        if not fresh and not mutated:
            return  # a view, or a number
        self._name(effect, read, fresh, mutated)
        plays = schedule_of(effect.name)
        if plays is not None:
            self._play_schedule(effect, plays, arguments, results)
            return
        if effect.pointwise:
            shape = (*mutated, *fresh)[0].shape
            read = [t if t.shape == shape else t.expand(shape) for t in read]
        for reads, writes in self._parts(effect, read, [*mutated, *fresh]):
            self._emit(effect.name, reads, writes, effect.matmul)
        if effect.fused:
            self._flag(
                effect.name, "fused operator without a known schedule: its operands are counted once each"
            )

    def _reads(
        self, effect: Effects, arguments: dict[str, Any], inputs: dict[str, list[Tensor]]
    ) -> list[Tensor]:
        if not effect.reads_arguments:
            return []
        unread = set(effect.overwritten)
        if arguments.get("beta", 1) == 0:  # addmm and baddbmm then ignore their first operand
            unread.add("self")
        return [t for name, tensors in inputs.items() if name not in unread for t in tensors if t.numel()]

    def _name(self, effect: Effects, read: list[Tensor], fresh: list[Tensor], mutated: list[Tensor]) -> None:
        sources = [self._storages.of(t).label for t in read]
        for tensor in fresh:
            boolean = tensor.dtype is torch.bool
            storage = self._storages.of(tensor, result_label(effect.name, sources, effect.matmul, boolean))
            self._written.add(storage.index)
        for tensor in mutated:
            storage = self._storages.of(tensor)
            self._written.add(storage.index)
            label = result_label(effect.name, sources, effect.matmul, tensor.dtype is torch.bool)
            if storage.label == TEMPORARY or label in {"P", "dS"}:  # S becomes P in place, dP becomes dS
                storage.label = label

    def _parts(
        self, effect: Effects, read: list[Tensor], written: list[Tensor]
    ) -> list[tuple[list[Tensor], list[Tensor]]]:
        """A batched matmul is one matmul per batch element; everything else is one part."""
        if effect.name not in {"bmm", "baddbmm", "baddbmm_"} or len(written[0]) <= 1:
            return [(read, written)]
        batch = len(written[0])
        return [
            ([t[i] if t.dim() == 3 and len(t) == batch else t for t in read], [t[i] for t in written])
            for i in range(batch)
        ]

    # --- into the stream --------------------------------------------------------------------------------------

    def _emit(
        self, name: str, read: Sequence[Tensor], written: Sequence[Tensor], matmul: bool = False
    ) -> None:
        operands = [self._operand(t, write=False) for t in read]
        if matmul and len(operands) >= 2:
            operands[-1].first = True  # a matmul packs its second operand before it streams the first
        operands += [self._operand(t, write=True) for t in written]
        self._send(name, operands)

    def _operand(self, tensor: Tensor, write: bool) -> Operand:
        storage = self._storages.of(tensor)
        return Operand(
            storage=storage, runs=line_runs(tensor, self._line_bytes) + storage.base_line, write=write
        )

    def _send(self, name: str, operands: list[Operand], new_call: bool = True) -> None:
        if not self.playing or not operands:
            return
        number = self._numbers.setdefault(name, len(self._numbers))
        if number == len(self.recorded.operators):
            self.recorded.operators.append(OperatorCount(name=name))
        count = self.recorded.operators[number]
        count.calls += new_call
        count.read_bytes += self._line_bytes * sum(x.lines for x in operands if not x.write)
        count.write_bytes += self._line_bytes * sum(x.lines for x in operands if x.write)
        self._stream.operator(number, operands)

    # --- fused operators --------------------------------------------------------------------------------------

    def _play_schedule(
        self, effect: Effects, play: Play, arguments: dict[str, Any], results: list[Tensor]
    ) -> None:
        scratch: list[Storage] = []

        def workspace(nbytes: int) -> Callable[[bool], Operand]:
            storage = self._storages.allocate(nbytes, "scratch")
            scratch.append(storage)
            runs = np.array([[storage.base_line, storage.base_line + storage.lines]], np.int64)
            return lambda write: Operand(storage=storage, runs=runs, write=write)

        first = True
        for step in play.steps(arguments, results, workspace):
            self._send(effect.name, [x if isinstance(x, Operand) else self._operand(*x) for x in step], first)
            first = False
        for storage in scratch:
            self._storages.release(storage)
        self._flag(effect.name, play.note)

    def _flag(self, name: str, note: str) -> None:
        if self.playing:
            text = f"{name}: {note}"
            if text not in self.recorded.flags:
                self.recorded.flags.append(text)
