"""Keeps a worker process alive: a crash, a kill or a hang costs one case, never the sweep."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Self

import msgspec

from attnprof.bench.protocol import Done, Event, Ready, Refused, Task
from attnprof.core.errors import KernelError, UsageError
from attnprof.core.record import Failed, FailureKind

START_TIMEOUT_S = 120.0
_TAIL_BYTES = 2000


class WorkerLost(Exception):
    """The worker died or hung; `outcome` is what that means for the case it was running."""

    def __init__(self, outcome: Failed) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Worker:
    """One worker process and its event stream; started on first use, restarted after a loss."""

    def __init__(self, device: str, threads: int | None) -> None:
        self._arguments = (device, str(threads or 0))
        self._process: subprocess.Popen[bytes] | None = None
        self._events: queue.Queue[bytes] = queue.Queue()
        self._stderr: IO[bytes] | None = None
        self._pump: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Ready:
        """Start the process and wait until its device is open.

        Raises: UsageError when the device cannot be used; KernelError when the process dies at once.
        """
        self._events = queue.Queue()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "attnprof.bench.worker", *self._arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._stderr, start_new_session=True,
        )  # fmt: skip
        self._pump = threading.Thread(target=_pump, args=(self._process, self._events), daemon=True)
        self._pump.start()
        try:
            event = self._next(START_TIMEOUT_S)
        except WorkerLost as lost:
            raise KernelError(f"the worker process did not start: {lost}") from lost
        if isinstance(event, Refused):
            raise UsageError(event.message)
        assert isinstance(event, Ready)
        return event

    def events(self, task: Task) -> Iterator[Event]:
        """Send a task and yield its events up to `Done`.

        Raises: WorkerLost when the process dies, or gives no sign of life for the task's time limit.
        """
        if self._process is None:
            self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(task) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerLost(self._death()) from None
        while True:
            event = self._next(task.conditions.timeout_s)
            yield event
            if isinstance(event, Done):
                return

    def _next(self, timeout_s: float) -> Event:
        try:
            line = self._events.get(timeout=timeout_s)
        except queue.Empty:
            self.stop()
            raise WorkerLost(
                Failed(
                    kind=FailureKind.TIMEOUT,
                    message=f"no sign of life for {timeout_s:g} s (time limit); stopped",
                )
            ) from None
        if not line:
            raise WorkerLost(self._death())
        return msgspec.json.decode(line, type=Event)

    def _death(self) -> Failed:
        assert self._process is not None
        code = self._process.wait()
        tail = self._tail()
        self.stop()
        if code < 0:
            name = signal.Signals(-code).name
            why = " (often the system's out-of-memory killer)" if -code == signal.SIGKILL else ""
            return Failed(kind=FailureKind.KILLED, message=f"the worker was ended by {name}{why}{tail}")
        return Failed(kind=FailureKind.KILLED, message=f"the worker exited with code {code}{tail}")

    def _tail(self) -> str:
        if self._stderr is None:
            return ""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _TAIL_BYTES))
        last = self._stderr.read().decode(errors="replace").strip().splitlines()
        return f": {last[-1]}" if last else ""

    def stop(self) -> None:
        """End the process and everything that it started."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()
        if self._pump is not None:
            self._pump.join()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None


def _pump(process: subprocess.Popen[bytes], events: queue.Queue[bytes]) -> None:
    """Move lines from the process to the queue; an empty line stands for its end."""
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            events.put(line)
    events.put(b"")
