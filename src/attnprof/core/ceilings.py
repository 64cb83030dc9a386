"""What a machine can do at most: cited figures of a chip, measured ones of this machine, and their roof."""

from __future__ import annotations

import msgspec

from attnprof.core.dtypes import DType
from attnprof.core.record import Identity, Weather

MAIN_MEMORY = "DRAM"


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One level of memory; None where a figure is not known."""

    name: str
    bytes_per_s: float | None = None
    capacity_bytes: int | None = None


class Roof(msgspec.Struct, frozen=True, kw_only=True):
    """The ceilings that hold for one element type on one device; None where there is no figure.

    `levels` run from the nearest to the farthest memory, the last is main memory. `basis` says where the
    figures come from: datasheet or measured.
    """

    device: str
    dtype: DType
    basis: str
    flops_per_s: float | None = None
    exp_per_s: float | None = None
    levels: tuple[Level, ...] = ()
    floor_s: float | None = None

    @property
    def main_memory(self) -> Level:
        """The farthest level."""
        return self.levels[-1] if self.levels else Level(name=MAIN_MEMORY)

    @property
    def ridge_flops_per_byte(self) -> float | None:
        """Arithmetic intensity from which the matmul ceiling binds rather than main memory."""
        bandwidth = self.main_memory.bytes_per_s
        return self.flops_per_s / bandwidth if self.flops_per_s and bandwidth else None

    def holding(self, working_set_bytes: int, share: float = 0.8) -> Level:
        """The nearest level that holds a working set in `share` of its capacity; else main memory."""
        for level in self.levels[:-1]:
            if level.capacity_bytes is not None and working_set_bytes <= share * level.capacity_bytes:
                return level
        return self.main_memory


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """A catalogue entry: figures that others publish, with their source and the date they were read.

    Rates are dense, never sparse, and of matmuls that accumulate in float32 (`fp16acc` names the other rate).
    None means that no source was found. `sm_count` counts compute units on AMD, cores on Apple.
    """

    name: str
    aliases: tuple[str, ...] = ()
    vendor: str
    architecture: str
    compute_capability: str = ""
    year: int | None = None
    sm_count: int | None = None
    boost_clock_hz: float | None = None
    fp32_flops_per_s: float | None = None
    tf32_flops_per_s: float | None = None
    fp16_flops_per_s: float | None = None
    fp16_fp16acc_flops_per_s: float | None = None
    bf16_flops_per_s: float | None = None
    fp8_flops_per_s: float | None = None
    fp4_flops_per_s: float | None = None
    int8_ops_per_s: float | None = None
    memory_bytes: int | None = None
    bandwidth_bytes_per_s: float | None = None
    l2_bytes: int | None = None
    tdp_w: float | None = None
    measured_matmul_flops_per_s: float | None = None
    smem_per_sm_bytes: int | None = None
    l1_per_sm_bytes: int | None = None
    registers_per_sm_bytes: int | None = None
    exp_per_clock_sm: float | None = None
    smem_bytes_per_clock_sm: float | None = None
    source: str
    checked: str
    note: str = ""

    def flops_per_s(self, dtype: DType) -> float | None:
        """Peak matmul rate for operands of `dtype`, accumulated in float32 (float32 never means tf32)."""
        rates = {
            DType.FLOAT32: self.fp32_flops_per_s,
            DType.FLOAT16: self.fp16_flops_per_s,
            DType.BFLOAT16: self.bf16_flops_per_s,
            DType.FLOAT8: self.fp8_flops_per_s,
            DType.FLOAT4: self.fp4_flops_per_s,
            DType.INT8: self.int8_ops_per_s,
        }
        return rates.get(dtype)

    @property
    def exp_per_s(self) -> float | None:
        """Exponentials of the special function units; None without units, SMs or clock."""
        return self._over_chip(self.exp_per_clock_sm)

    @property
    def smem_bytes_per_s(self) -> float | None:
        """Shared-memory bandwidth of the whole chip."""
        return self._over_chip(self.smem_bytes_per_clock_sm)

    def _over_chip(self, per_clock_sm: float | None) -> float | None:
        if per_clock_sm is None or self.sm_count is None or self.boost_clock_hz is None:
            return None
        return per_clock_sm * self.sm_count * self.boost_clock_hz

    def roof(self, dtype: DType) -> Roof:
        """The chip's ceilings for one element type. L2 has a capacity but no published bandwidth."""
        return Roof(
            device=self.name,
            dtype=dtype,
            basis="datasheet",
            flops_per_s=self.flops_per_s(dtype),
            exp_per_s=self.exp_per_s,
            levels=(
                Level(name="L2", capacity_bytes=self.l2_bytes),
                Level(
                    name=MAIN_MEMORY,
                    bytes_per_s=self.bandwidth_bytes_per_s,
                    capacity_bytes=self.memory_bytes,
                ),
            ),
        )


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """One measured ceiling: the best sample, since noise only slows; the spread shows how steady it was."""

    best: float
    median: float
    spread: float  # (best - median) / best
    samples: int
    conditions: str


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """Ceilings measured on one device under one identity.

    `bandwidth` maps level to kernel (read, write, copy, triad) to bytes per second with all threads,
    `core_bandwidth` the same for one thread; `flops` maps the element type to FLOP/s, `exp` to exponentials
    per second; `floor_s` is the cost of an empty kernel call. `capacities_bytes` counts private caches once for
    each thread.
    """

    schema: int = 1
    identity: Identity
    weather: Weather
    measured_at: str
    flops: dict[str, Rate]
    exp: dict[str, Rate]
    bandwidth: dict[str, dict[str, Rate]]
    core_bandwidth: dict[str, dict[str, Rate]] = {}
    capacities_bytes: dict[str, int]
    floor_s: Rate
    unavailable: dict[str, str] = {}

    def roof(self, dtype: DType) -> Roof:
        """The measured ceilings for one element type; a level's bandwidth is that of its fastest kernel.

        Narrower types are exponentiated in float32, so they share its rate.
        """
        flops = self.flops.get(dtype)
        exp = self.exp.get(DType.FLOAT32 if dtype.bits < DType.FLOAT32.bits else dtype)
        levels = tuple(
            Level(
                name=name,
                bytes_per_s=max(rate.best for rate in kernels.values()),
                capacity_bytes=self.capacities_bytes.get(name),
            )
            for name, kernels in self.bandwidth.items()
        )
        return Roof(
            device=self.identity.device_name,
            dtype=dtype,
            basis="measured",
            flops_per_s=flops.best if flops else None,
            exp_per_s=exp.best if exp else None,
            levels=levels,
            floor_s=self.floor_s.best,
        )
