"""The worker process (`python -m attnprof.bench.worker`): opens the device, measures tasks, reports every step."""

from __future__ import annotations

import os
import queue
import sys
import threading

import msgspec

from attnprof.bench.devices import open_device
from attnprof.bench.devices.base import Device
from attnprof.bench.group import Group
from attnprof.bench.protocol import Alive, Done, Event, Ready, Refused, Row, Task
from attnprof.core.errors import AttnprofError
from attnprof.variants.catalog import find


class Wire:
    """The event stream. Kernels may print: their stdout is sent to stderr, events keep the real one."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)

    def send(self, event: Event) -> None:
        """One event as one line."""
        self._file.write(msgspec.json.encode(event) + b"\n")


def read_tasks(tasks: queue.Queue[Task | None]) -> None:
    """Feed tasks from stdin; when the parent is gone, nothing here is worth finishing."""
    decoder = msgspec.json.Decoder(Task)
    for line in sys.stdin.buffer:
        tasks.put(decoder.decode(line))
    os._exit(0)


def serve(wire: Wire, device: Device, tasks: queue.Queue[Task | None]) -> None:
    """Measure tasks one after another, without end: the parent closes stdin."""
    while (task := tasks.get()) is not None:
        group = Group(task.asked, map(find, task.variants), task.conditions, device)
        group.measure(
            emit=lambda record: wire.send(Row(record=record)),
            alive=lambda name: wire.send(Alive(variant=name)),
        )
        wire.send(Done())


def set_threads(threads: int) -> None:
    """Limit PyTorch to so many threads; 0 keeps its own choice."""
    if threads:
        import torch

        torch.set_num_threads(threads)


def main() -> None:
    """Entry point: argv is the device and the number of threads (0 keeps PyTorch's own)."""
    wire = Wire()
    set_threads(int(sys.argv[2]))
    try:
        device = open_device(sys.argv[1])
    except AttnprofError as error:
        wire.send(Refused(message=str(error)))
        return
    wire.send(Ready(identity=device.identity(), weather=device.weather()))
    tasks: queue.Queue[Task | None] = queue.Queue()
    threading.Thread(target=read_tasks, args=(tasks,), daemon=True).start()
    serve(wire, device, tasks)


if __name__ == "__main__":
    main()
