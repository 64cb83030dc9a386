"""Probes of a CPU: matmuls per element type, streaming loops per level of memory, exp, the cost of an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from attnprof.bench.devices.base import Call, Device
from attnprof.bench.probes.sampling import Probe, repeated
from attnprof.core.ceilings import MAIN_MEMORY
from attnprof.core.record import Identity
from attnprof.core.units import GIB, KIB, MIB, format_bytes

KERNELS = ("read", "write", "copy", "triad")
MATMUL_SIZES = {
    "float32": (512, 1024, 2048),
    "bfloat16": (512, 1024, 2048),
    "float16": (256,),
    "float64": (1024,),
}
EXP_LIBRARIES = ("numpy.exp", "torch.exp", "torch.exp2")  # the fastest is the ceiling
EXP_ELEMENTS, EXP_PASSES = 16 * KIB, 64  # per thread, 128 KiB in and out: cached
LEVEL_SHARE = 0.5  # of a cache that a probe's arrays take: far from the edge, well above the level before
PASS_BYTES = 512 * MIB  # moved by one call of a streaming probe: several milliseconds at any level
SMALLEST_MAIN_BYTES, LARGEST_MAIN_BYTES = 256 * MIB, 2 * GIB


def probes(device: Device) -> Iterator[Probe]:
    """Every probe of this CPU, the quick ones first."""
    identity = device.identity()
    yield _floor()
    yield from (_exp(library, identity.threads) for library in EXP_LIBRARIES)
    for dtype, sizes in MATMUL_SIZES.items():
        yield from (_matmul(dtype, size, identity.threads) for size in sizes)
    sets = working_sets(identity.caches_bytes, device.available_bytes(), identity.threads)
    for kind, threads in _thread_counts(identity.threads).items():
        for level, bytes_per_thread in sets.items():
            for kernel in KERNELS:
                yield _stream((kind, level, kernel), bytes_per_thread, threads)


def working_sets(caches_bytes: dict[str, int], available_bytes: int, threads: int) -> dict[str, int]:
    """Bytes per thread that live in each level: half of a private cache, a thread's part of the shared last one.

    Main memory takes 4 times the last level, at least 256 MiB, within a quarter of what is available.
    """
    names = list(caches_bytes)
    last = names[-1] if names else ""
    sets = {
        name: round(LEVEL_SHARE * size / (threads if name == last and len(names) > 2 else 1))
        for name, size in caches_bytes.items()
    }
    main = max(4 * caches_bytes.get(last, 0), SMALLEST_MAIN_BYTES)
    main = min(main, LARGEST_MAIN_BYTES, available_bytes // 4)
    return sets | {MAIN_MEMORY: main // threads}


def capacities(identity: Identity) -> dict[str, int]:
    """Bytes that each level holds for all threads together: private caches once a thread, the last level once."""
    names = list(identity.caches_bytes)
    shared = names[-1] if len(names) > 2 else ""
    sizes = {
        name: size * (1 if name == shared else identity.threads)
        for name, size in identity.caches_bytes.items()
    }
    return sizes | ({MAIN_MEMORY: identity.memory_bytes} if identity.memory_bytes else {})


def _thread_counts(threads: int) -> dict[str, int]:
    return {"bandwidth": threads, "core_bandwidth": 1}


def _floor() -> Probe:
    def make() -> Call:
        import torch

        x = torch.ones(1)
        out = torch.empty(1)
        return lambda: torch.add(x, x, out=out)

    return Probe(path=("floor_s",), work=1, make=make, conditions="one operator (add) on one element")


def _exp(library: str, threads: int) -> Probe:
    """Exponentials of one library; each thread works on its own array, which stays in its cache."""
    size = format_bytes(2 * 4 * EXP_ELEMENTS)
    return Probe(
        path=("exp", "float32"),
        work=threads * EXP_PASSES * EXP_ELEMENTS,
        make=lambda: on_threads(lambda: _exp_call(library), threads),
        conditions=f"{library}, float32, {size} a thread, {threads} threads",
    )


def _exp_call(library: str) -> Call:
    """Below PyTorch's grain size (32,768 elements) a call stays on the thread that makes it."""
    import numpy as np
    import torch

    x = np.linspace(-10, 0, EXP_ELEMENTS, dtype=np.float32)
    out = np.empty_like(x)
    tensor, tensor_out = torch.from_numpy(x), torch.from_numpy(out)
    calls: dict[str, Call] = {
        "numpy.exp": lambda: np.exp(x, out=out),
        "torch.exp": lambda: torch.exp(tensor, out=tensor_out),
        "torch.exp2": lambda: torch.exp2(tensor, out=tensor_out),
    }
    return repeated(calls[library], EXP_PASSES)


def _matmul(dtype: str, size: int, threads: int) -> Probe:
    def make() -> Call:
        import torch

        a, b = (torch.randn(size, size).to(getattr(torch, dtype)) for _ in range(2))
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)

    conditions = f"torch.mm {size}x{size}x{size}, {threads} threads"
    return Probe(path=("flops", dtype), work=2 * size**3, make=make, conditions=conditions)


def _stream(path: tuple[str, str, str], bytes_per_thread: int, threads: int) -> Probe:
    from attnprof.bench.probes.loops import ARRAYS, ELEMENT_BYTES

    arrays = ARRAYS[path[-1]]
    length = max(64, bytes_per_thread // arrays // ELEMENT_BYTES // 64 * 64)
    moved = arrays * length * ELEMENT_BYTES
    passes = max(1, PASS_BYTES // threads // moved)
    conditions = f"{format_bytes(moved)} a thread, {threads} threads, float32, bytes as in STREAM"
    return Probe(
        path=path,
        work=threads * passes * moved,
        make=lambda: _streaming_call(path[-1], length, passes, threads),
        conditions=conditions,
    )


def _streaming_call(kernel: str, length: int, passes: int, threads: int) -> Call:
    """The loop on every thread at once, each on arrays that it touched first."""
    import numpy as np

    from attnprof.bench.probes.loops import ARRAYS, LOOPS

    loop = LOOPS[kernel]

    def prepare() -> Call:
        arrays = [np.ones(length, dtype=np.float32) for _ in range(ARRAYS[kernel])]
        loop(*arrays, 1)
        return lambda: loop(*arrays, passes)

    return on_threads(prepare, threads)


def on_threads(prepare: Callable[[], Call], threads: int) -> Call:
    """A call that runs one prepared call on each of so many threads and waits for all.

    The threads are Python's, not OpenMP's: none waits for another inside, so a thread that the system takes away
    costs its own time only.
    """
    if threads == 1:
        return prepare()
    pool = ThreadPoolExecutor(threads)
    barrier = Barrier(threads)

    def start() -> Call:
        barrier.wait()  # holds each thread of the pool to one set of arrays
        return prepare()

    parts = [pool.submit(start) for _ in range(threads)]
    calls = [part.result() for part in parts]
    return lambda: list(pool.map(_run, calls))


def _run(call: Call) -> object:
    return call()
