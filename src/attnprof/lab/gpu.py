"""Question F3 in figures: what each resource of a GPU needs for one head, naive and flash, from its published rates."""

from __future__ import annotations

import msgspec

from attnprof.core.dtypes import DType
from attnprof.core.errors import StoreError
from attnprof.textbook import bytes_naive, bytes_o, flops

CHIPS = ("A100 SXM 40GB", "H100 SXM", "RTX 2070")
FP16 = 2
VECTOR_OPS_PER_SCORE = 5  # scale, maximum, subtraction, sum, conversion
ROWS_PER_WARP, B_r = 16, 64  # each warp of a 64-row tile reads the whole K and V tile from shared memory


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one head keeps each resource busy with the whole chip at its peak; None where no rate is known."""

    chip: str
    source: str
    matmul_s: float
    exp_s: float | None
    vector_s: float
    shared_memory_s: float | None
    naive_dram_s: float
    flash_dram_s: float

    @property
    def bytes_only(self) -> float:
        """Speed-up if DRAM bytes were all."""
        return self.naive_dram_s / self.flash_dram_s

    @property
    def roofline(self) -> float:
        """Speed-up with the matmul ceiling beside DRAM, all overlapped."""
        return max(self.naive_dram_s, self.matmul_s) / max(self.flash_dram_s, self.matmul_s)

    @property
    def flash_serial_s(self) -> float:
        """Flash with matmul, exp and vector work one after the other, as a kernel without overlap runs them."""
        return self.matmul_s + (self.exp_s or 0.0) + self.vector_s

    @property
    def serial(self) -> float:
        """Speed-up without overlap inside the flash kernel."""
        return max(self.naive_dram_s, self.matmul_s) / self.flash_serial_s


def resources(chip_name: str, N: int, d: int) -> Resources:
    """Busy times of one head in fp16."""
    from attnprof.store.machines import find_chip

    chip = find_chip(chip_name)
    matmul, vector, dram = chip.flops_per_s(DType.FLOAT16), chip.fp32_flops_per_s, chip.bandwidth_bytes_per_s
    if matmul is None or vector is None or dram is None:
        raise StoreError(
            f"{chip_name}: the catalogue lacks a rate that the laboratory needs; use another chip"
        )
    from_shared = 2 * N * d * FP16 * (N / B_r) * (B_r / ROWS_PER_WARP)
    return Resources(
        chip=chip.name,
        source=chip.source.split(" ; ")[0],
        matmul_s=flops(N, d) / matmul,
        exp_s=N * N / chip.exp_per_s if chip.exp_per_s else None,
        vector_s=VECTOR_OPS_PER_SCORE * N * N / vector,
        shared_memory_s=from_shared / chip.smem_bytes_per_s if chip.smem_bytes_per_s else None,
        naive_dram_s=(bytes_naive(N, d, FP16) + bytes_o(N, d, FP16)) / dram,
        flash_dram_s=4 * bytes_o(N, d, FP16) / dram,
    )
