"""The devices that a kernel can be timed on, behind one protocol."""

from __future__ import annotations

import re

from attnprof.bench.devices.base import Device
from attnprof.core.errors import UnknownName, UsageError, nearest

__all__ = ["Device", "open_device"]

KINDS = ("cpu", "cuda")


def open_device(name: str) -> Device:
    """The device that `name` means: `cpu`, `cuda` or `cuda:1`.

    Raises: UnknownName for another word; UsageError when the device is not usable here, with the cause.
    """
    match = re.fullmatch(r"(cpu|cuda)(?::(\d+))?", name)
    if match is None or (match[1] == "cpu" and match[2] not in (None, "0")):
        raise UnknownName(
            f"device {name!r} is unknown; {nearest(name, list(KINDS))}, cuda:1 for a second GPU"
        )
    if match[1] == "cpu":
        from attnprof.bench.devices.cpu import CpuDevice

        return CpuDevice()
    from attnprof.bench.devices.cuda import CudaDevice, cuda_unavailable

    index = int(match[2] or 0)
    reason = cuda_unavailable(index)
    if reason:
        way_out = "use --device cpu, or `attnprof predict` for a GPU that is not here"
        raise UsageError(f"device {name!r} cannot be used: {reason}; {way_out}")
    import torch

    torch.cuda.set_device(index)  # events, graphs and Triton work on the current device
    return CudaDevice(index=index)
