"""A chip as the time model sees it: rates per SM and cycle, sustained share, and what had to be assumed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from attnprof.core.ceilings import Chip
from attnprof.core.errors import InvalidInput
from attnprof.store.machines import find_chip

# Dense 16-bit FLOP a cycle of one SM (compute unit), from the tensor-core counts of each generation: it gives a
# missing SM count or clock from the peak. Keys: compute capability, AMD's gfx name.
_FLOPS_PER_CYCLE = {
    "7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "10.0": 8192, "10.3": 8192,
    "12.0": 1024, "12.1": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096, "gfx1100": 512,
}  # fmt: skip
_USUAL_CLOCK_HZ = {"7.0": 1.53e9, "7.5": 1.59e9, "8.0": 1.41e9, "8.6": 1.7e9, "8.9": 2.5e9, "9.0": 1.83e9,
                   "10.0": 1.85e9, "10.3": 1.85e9, "12.0": 2.4e9, "12.1": 2.4e9, "gfx950": 2.4e9}  # fmt: skip
_USUAL_L2_BYTES = 50_000_000
_DIES = {"MI250X": 2, "MI250": 2}  # a kernel runs on one die of these
_EXP_PER_CYCLE = 16.0
# Full-rate tensor cores throttle: the mean share of the datasheet that a large matmul sustains on the chips of the
# catalogue where it was measured. Chips with fewer FLOP a cycle than `_THROTTLING` (GeForce's half rate, H20) do not.
_SUSTAINED = {
    "Ampere": 0.85,
    "Hopper": 0.83,
    "Blackwell": 0.77,
    "GeForce class": 0.78,
    "Volta and Turing": 0.77,
}
_SUSTAINED_AMD = 0.65
_THROTTLING = {"Hopper": 1500.0}
_USUAL_THROTTLING = 700.0
_RATES = {
    "fp64": None, "fp32": "fp32_flops_per_s", "fp16": "fp16_flops_per_s", "fp16acc": "fp16_fp16acc_flops_per_s",
    "fp8": "fp8_flops_per_s", "int8": "int8_ops_per_s", "fp4": "fp4_flops_per_s",
}  # fmt: skip
_MULTIPLES = {"fp16acc": ("fp16", 1.0), "mxfp8": ("fp8", 1.0), "fp8acc16": ("int8", 1.0), "int4": ("int8", 2.0),
              "int8": ("fp8", 1.0), "fp8": ("fp16", 2.0), "fp64": ("fp32", 1 / 32)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ChipModel:
    """Numbers of one chip. `peaks` are dense datasheet rates by precision; `sustained` is the share of them that a
    large matmul reaches (measured where the catalogue has it); `assumed` names what the catalogue lacks."""

    name: str
    vendor: str
    generation: str
    capability: float | None
    sm_count: float
    clock_hz: float
    dram_bytes_per_s: float
    l2_bytes: float
    exp_per_cycle: float
    smem_bytes_per_cycle: float
    sustained: float
    peaks: dict[str, float]
    assumed: tuple[str, ...]

    def peak(self, precision: str) -> float:
        """Dense datasheet rate. Raises: InvalidInput when no rate of that precision is known or follows."""
        if precision in self.peaks:
            return self.peaks[precision]
        if precision in _MULTIPLES:
            base, factor = _MULTIPLES[precision]
            return self.peak(base) * factor
        raise InvalidInput(f"{self.name}: no {precision} rate in the hardware catalogue")

    def flops_per_cycle(self, precision: str) -> float:
        """Sustained FLOP of one SM in a cycle."""
        return self.peak(precision) * self.sustained / (self.sm_count * self.clock_hz)

    @property
    def exp_per_s(self) -> float:
        """Exponentials a second of the whole chip."""
        return self.exp_per_cycle * self.sm_count * self.clock_hz


def chip_model(name: str) -> ChipModel:
    """The model of a chip by any of its names.

    Raises: UnknownName with the nearest names; InvalidInput when the catalogue lacks its matmul rate or bandwidth.
    """
    return _model(find_chip(name).name)


@cache
def _model(name: str) -> ChipModel:
    chip = find_chip(name)
    dense = chip.bf16_flops_per_s or chip.fp16_flops_per_s
    if not dense or not chip.bandwidth_bytes_per_s:
        lacks = "16-bit matmul rate" if not dense else "memory bandwidth"
        raise InvalidInput(f"{name}: the hardware catalogue has no {lacks} with a source, so its time is n/a")
    assumed: list[str] = []
    sm_count, clock = _sm_and_clock(chip, dense, assumed)
    dies = _DIES.get(name, 1)
    if dies > 1:
        assumed.append("one of its two dies runs the kernel")
    return ChipModel(
        name=name, vendor=chip.vendor, generation=_generation(chip), capability=_capability(chip),
        sm_count=sm_count / dies, clock_hz=clock, dram_bytes_per_s=chip.bandwidth_bytes_per_s / dies,
        l2_bytes=_known(chip.l2_bytes, _USUAL_L2_BYTES, "L2 of 50 MB", assumed),
        exp_per_cycle=_known(chip.exp_per_clock_sm, _EXP_PER_CYCLE, "16 exponentials a cycle and SM", assumed),
        smem_bytes_per_cycle=_known(chip.smem_bytes_per_clock_sm, 128.0, "128 B of shared memory a cycle", assumed),
        sustained=_sustained(chip, dense, sm_count * clock, assumed),
        peaks={"fp16": dense / dies} | {p: getattr(chip, field) / dies for p, field in _RATES.items()
                                        if p != "fp16" and field and getattr(chip, field)},
        assumed=tuple(assumed),
    )  # fmt: skip


def _known(value: float | None, otherwise: float, words: str, assumed: list[str]) -> float:
    if value:
        return float(value)
    assumed.append(words)
    return otherwise


def _sm_and_clock(chip: Chip, dense: float, assumed: list[str]) -> tuple[float, float]:
    """SM count and clock; one that is missing follows from the 16-bit peak.

    Raises: InvalidInput for chips that are not built from SMs with a known rate.
    """
    per_cycle = _FLOPS_PER_CYCLE.get(chip.compute_capability or "")
    if chip.sm_count and chip.boost_clock_hz:
        return float(chip.sm_count), chip.boost_clock_hz
    if per_cycle is None:
        raise InvalidInput(
            f"{chip.name}: neither SM count and clock nor a rate per SM is known, so its time is n/a"
        )
    clock = _known(
        chip.boost_clock_hz, _USUAL_CLOCK_HZ.get(chip.compute_capability or "", 1.7e9), "clock", assumed
    )
    return _known(chip.sm_count, dense / per_cycle / clock, "SM count from the peak", assumed), clock


def _sustained(chip: Chip, dense: float, sm_hertz: float, assumed: list[str]) -> float:
    if chip.measured_matmul_flops_per_s:
        return chip.measured_matmul_flops_per_s / dense
    generation = _generation(chip)
    throttles = dense / sm_hertz > _THROTTLING.get(generation, _USUAL_THROTTLING)
    share = _SUSTAINED.get(generation, _SUSTAINED_AMD) if throttles else 1.0
    assumed.append(f"a large matmul sustains {share:.0%} of the datasheet")
    return share


def _capability(chip: Chip) -> float | None:
    try:
        return float(chip.compute_capability or "")
    except ValueError:
        return None


def _generation(chip: Chip) -> str:
    """Chips whose kernels share constants: GeForce-class NVIDIA chips of several years are one class."""
    capability = _capability(chip)
    if chip.vendor != "NVIDIA" or capability is None:
        return chip.architecture
    if capability in {8.6, 8.9} or capability >= 12:
        return "GeForce class"
    return {7: "Volta and Turing", 8: "Ampere", 9: "Hopper"}.get(int(capability), "Blackwell")
