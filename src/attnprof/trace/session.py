"""One traced call: memories, stream, storages and recorder put together and taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from attnprof.core.errors import InvalidInput
from attnprof.core.problem import Problem
from attnprof.trace.effects import tensors_in
from attnprof.trace.lru import LruMemory
from attnprof.trace.points import Trace, TracePoint, operator_terms, tensor_terms
from attnprof.trace.policy import Policy
from attnprof.trace.recorder import Recorder
from attnprof.trace.storages import Storages
from attnprof.trace.stream import Stream


class Session:
    """Records calls made under `recording()`; `finish` gives the trace."""

    def __init__(self, capacities: Sequence[int], line_bytes: int, policy: Policy | None) -> None:
        self._capacities = tuple(capacities)
        self._line_bytes = line_bytes
        self._policy = policy or Policy()
        _check(self._capacities, line_bytes)
        memories = [LruMemory(capacity // line_bytes) for capacity in self._capacities]
        self._stream = Stream(memories, self._policy, line_bytes)
        self._storages = Storages(line_bytes, self._policy.freed, self._stream.death)
        self._recorder = Recorder(self._stream, self._storages, line_bytes)

    @property
    def playing(self) -> bool:
        """Whether operators are counted; when not, only labels and lifetimes are followed."""
        return self._recorder.playing

    @playing.setter
    def playing(self, value: bool) -> None:
        self._recorder.playing = value

    def name(self, tensor: Tensor, label: str) -> None:
        """Say what a tensor holds; the first name of a storage stays."""
        self._storages.of(tensor, label)

    def name_result(self, result: Any, label: str) -> None:
        """Say what a result holds, unless it is one of the inputs."""
        for tensor in tensors_in(result):
            storage = self._storages.of(tensor, label)
            if storage.label not in {"Q", "K", "V", "dO"}:
                storage.label = label

    def check_written(self, result: Any) -> None:
        """Flag results that a kernel outside PyTorch's dispatcher wrote."""
        for tensor in tensors_in(result):
            self._recorder.check_written(tensor)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Count what runs inside, on one thread (small tiles on many threads only wait for each other)."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with self._recorder:
                yield
        except BaseException:
            self._storages.close()
            raise
        finally:
            torch.set_num_threads(threads)

    def progress(self) -> str:
        """How far a call got, for an error message."""
        operators = self._recorder.recorded.operators
        if not operators:
            return "before its first operator"
        calls = sum(op.calls for op in operators)
        return f"after {calls} operators (the last new one was {operators[-1].name})"

    def finish(self, name: str, problem: Problem | None) -> Trace:
        """Write dirty lines back and gather the points."""
        self._storages.close()
        self._stream.finish()
        recorded = self._recorder.recorded
        points = [
            TracePoint(
                capacity_bytes=capacity,
                by_tensor=tensor_terms(self._storages.all, memory.by_storage, self._line_bytes, self._policy),
                by_operator=operator_terms(
                    recorded.operators, memory.by_operator, self._line_bytes, self._policy
                ),
                policy=self._policy,
            )
            for capacity, memory in zip(self._capacities, self._stream.memories, strict=True)
        ]
        return Trace(
            points,
            name=name,
            problem=problem,
            line_bytes=self._line_bytes,
            line_accesses=self._stream.line_accesses,
            operators=recorded.operators,
            flags=recorded.flags,
        )


def _check(capacities: Sequence[int], line_bytes: int) -> None:
    if line_bytes <= 0 or line_bytes & (line_bytes - 1):
        raise InvalidInput(
            f"line_bytes={line_bytes}: a line is a power of two of bytes; CPUs use 64, GPU sectors are 32"
        )
    if not capacities:
        raise InvalidInput("no capacity given: name at least one, such as 160KiB")
    for capacity in capacities:
        if capacity < line_bytes:
            raise InvalidInput(
                f"capacity {capacity} bytes: a memory must hold at least one line of {line_bytes} bytes"
            )
