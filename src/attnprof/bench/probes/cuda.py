"""Probes of a CUDA device: matmuls per element type, PyTorch's streaming kernels in L2 and HBM, exp, launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attnprof.bench.devices.base import Call, Device
from attnprof.bench.probes.sampling import Probe, repeated
from attnprof.core.ceilings import MAIN_MEMORY
from attnprof.core.record import Identity
from attnprof.core.units import GIB, MIB, format_bytes

MATMUL_SIZES = {"float32": 4096, "tf32": 8192, "bfloat16": 8192, "float16": 8192, "float8_e4m3fn": 8192}
FIRST_CAPABILITY = {"tf32": (8, 0), "bfloat16": (8, 0), "float8_e4m3fn": (8, 9)}
KERNELS = {"read": 1, "write": 1, "copy": 2, "triad": 3}  # arrays that each moves, as STREAM counts
EXP_ELEMENTS, EXP_REPEATS = 1 << 22, 256
L2_SHARE = 0.25
HBM_MULTIPLE = 16  # of the L2: what stays cached is then negligible
SMALLEST_HBM_BYTES, LARGEST_HBM_BYTES = 512 * MIB, 4 * GIB
GRAPH_CALLS = 20  # kernels in one graph, so that launches do not limit the short ones in L2


def probes(device: Device) -> Iterator[Probe]:
    """Every probe that this GPU can run."""
    identity = device.identity()
    yield _floor(device)
    yield _exp(device)
    for dtype, size in MATMUL_SIZES.items():
        if not missing(dtype, identity):
            yield _matmul(device, dtype, size)
    for level, size in working_sets(identity.caches_bytes["L2"], device.available_bytes()).items():
        for kernel in KERNELS:
            yield _stream(device, level, kernel, size)


def missing(dtype: str, identity: Identity) -> str:
    """Why this GPU has no matmul of `dtype`; empty when it has."""
    needs = FIRST_CAPABILITY.get(dtype, (0, 0))
    major, minor = (int(part) for part in identity.compute_capability.split("."))
    if (major, minor) >= needs:
        return ""
    return f"{dtype} matmuls need compute capability {needs[0]}.{needs[1]}, this GPU has {identity.compute_capability}"


def working_sets(l2_bytes: int, available_bytes: int) -> dict[str, int]:
    """Bytes of all arrays of a probe that live in each level."""
    main = min(max(HBM_MULTIPLE * l2_bytes, SMALLEST_HBM_BYTES), LARGEST_HBM_BYTES, available_bytes // 2)
    return {"L2": round(L2_SHARE * l2_bytes), MAIN_MEMORY: main}


def capacities(identity: Identity) -> dict[str, int]:
    """Bytes that each level holds."""
    return {"L2": identity.caches_bytes["L2"], MAIN_MEMORY: identity.memory_bytes}


def _floor(device: Device) -> Probe:
    def make() -> Call:
        import torch

        x = torch.ones(1, device=device.name)
        out = torch.empty_like(x)
        return lambda: torch.add(x, x, out=out)

    return Probe(
        path=("floor_s",),
        work=1,
        make=make,
        conditions="one kernel (add) on one element, launched back to back",
    )


def _exp(device: Device) -> Probe:
    def make() -> Call:
        from attnprof.bench.probes.triton_exp import exp_call

        return exp_call(device.name, EXP_ELEMENTS, EXP_REPEATS)

    return Probe(
        path=("exp", "float32"),
        work=EXP_ELEMENTS * EXP_REPEATS,
        make=make,
        conditions=f"{EXP_REPEATS} dependent exp2 in registers on each of {EXP_ELEMENTS} float32",
    )


def _matmul(device: Device, dtype: str, size: int) -> Probe:
    make = {"float8_e4m3fn": _scaled_matmul, "tf32": _tf32_matmul}.get(dtype, _plain_matmul)
    return Probe(
        path=("flops", dtype),
        work=2 * size**3,
        make=lambda: make(device.name, dtype, size),
        conditions=f"{dtype} {size}x{size}x{size}, float32 accumulation",
    )


def _plain_matmul(device: str, dtype: str, size: int) -> Call:
    import torch

    a, b = (torch.randn(size, size, device=device).to(getattr(torch, dtype)) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _tf32_matmul(device: str, _dtype: str, size: int) -> Call:
    import torch

    call = _plain_matmul(device, "float32", size)

    def with_tf32() -> object:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            return call()
        finally:
            torch.set_float32_matmul_precision(before)

    return with_tf32


def _scaled_matmul(device: str, dtype: str, size: int) -> Call:
    import torch

    a = torch.randn(size, size, device=device).to(getattr(torch, dtype))
    b = (
        torch.randn(size, size, device=device).to(getattr(torch, dtype)).t()
    )  # column-major, as the kernel requires
    one = torch.ones((), device=device)
    return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _stream(device: Device, level: str, kernel: str, total_bytes: int) -> Probe:
    arrays = KERNELS[kernel]
    length = total_bytes // arrays // 4
    moved = 4 * arrays * length
    return Probe(
        path=("bandwidth", level, kernel),
        work=GRAPH_CALLS * moved,
        make=lambda: device.captured(repeated(_streaming_call(device.name, kernel, length), GRAPH_CALLS)),
        conditions=f"{format_bytes(moved)}, float32, {GRAPH_CALLS} kernels in a CUDA graph, bytes as in STREAM",
    )


def _streaming_call(device: str, kernel: str, length: int) -> Call:
    import torch

    arrays: list[Any] = [torch.ones(length, device=device) for _ in range(KERNELS[kernel])]
    calls: dict[str, Callable[..., object]] = {
        "read": lambda a: a.sum(),
        "write": lambda a: a.zero_(),
        "copy": lambda a, b: a.copy_(b),
        "triad": lambda a, b, c: torch.add(b, c, alpha=0.5, out=a),
    }
    return lambda: calls[kernel](*arrays)
