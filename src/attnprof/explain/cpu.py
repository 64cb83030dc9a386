"""Whether this CPU has arithmetic for a 16-bit type, from its own flags."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from attnprof.core.dtypes import DType
from attnprof.core.record import Judgment

# Flags as Linux prints them in /proc/cpuinfo: x86 first, then ARM.
NATIVE_FLAGS = {
    DType.FLOAT16: frozenset({"avx512_fp16", "amx_fp16", "fphp", "asimdhp"}),
    DType.BFLOAT16: frozenset({"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}),
}
SLOWER_MEANS_EMULATED = 1.5


@cache
def cpu_flags(path: str = "/proc/cpuinfo") -> frozenset[str]:
    """Feature flags of this CPU; empty where the system does not list them."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return frozenset()
    listed = [line.partition(":")[2] for line in lines if line.lower().startswith(("flags", "features"))]
    return frozenset(listed[0].split()) if listed else frozenset()


def emulated_judgment(dtype: DType, flags: frozenset[str]) -> Judgment | None:
    """A warning when `flags` are known and none of them computes in `dtype`.

    >>> emulated_judgment(DType.FLOAT16, frozenset({"avx2"})).code
    'emulated-dtype'
    """
    native = NATIVE_FLAGS.get(dtype)
    if native is None or not flags or flags & native:
        return None
    return Judgment(
        code="emulated-dtype",
        message=f"16-bit emulated on this CPU: none of the flags {', '.join(sorted(native))} for {dtype}",
        remedy="read these times as this CPU's only, and compare kernels in float32",
    )


def measured_emulation(dtype: DType, time_s: float, float32_time_s: float) -> Judgment | None:
    """The same judgment from measured data: a 16-bit call that takes 1.5 times its float32 twin or more.

    Units: seconds per call of one variant on one problem, in `dtype` and in float32.
    """
    if dtype not in NATIVE_FLAGS or time_s < SLOWER_MEANS_EMULATED * float32_time_s:
        return None
    return Judgment(
        code="emulated-dtype-measured",
        message=f"16-bit emulated on this CPU: {dtype} took {time_s / float32_time_s:.1f}x its float32 twin",
        remedy="compare kernels in float32 here",
    )
