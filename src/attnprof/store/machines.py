"""The hardware catalogue: figures of chips with their sources, and search by any usual name."""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files

import msgspec

from attnprof.core.ceilings import Chip
from attnprof.core.errors import UnknownName
from attnprof.core.units import GIB, KIB, MIB

_TERA, _GIGA, _MEGA = 1e12, 1e9, 1e6

# Column of the data file -> (field of Chip, unit of the column in SI).
_SCALED = {
    "boost_clock_mhz": ("boost_clock_hz", _MEGA),
    "fp32_tflops": ("fp32_flops_per_s", _TERA),
    "tf32_tflops": ("tf32_flops_per_s", _TERA),
    "fp16_tflops": ("fp16_flops_per_s", _TERA),
    "fp16_fp16acc_tflops": ("fp16_fp16acc_flops_per_s", _TERA),
    "bf16_tflops": ("bf16_flops_per_s", _TERA),
    "fp8_tflops": ("fp8_flops_per_s", _TERA),
    "fp4_tflops": ("fp4_flops_per_s", _TERA),
    "int8_tops": ("int8_ops_per_s", _TERA),
    "mem_bw_gbs": ("bandwidth_bytes_per_s", _GIGA),
    "tdp_w": ("tdp_w", 1.0),
    "measured_matmul_tflops": ("measured_matmul_flops_per_s", _TERA),
    "exp_ops_per_clk_sm": ("exp_per_clock_sm", 1.0),
    "smem_bytes_per_clk_sm": ("smem_bytes_per_clock_sm", 1.0),
}
_COUNTED = {
    "year": ("year", 1),
    "sm_count": ("sm_count", 1),
    "mem_gb": ("memory_bytes", GIB),
    "l2_mb": ("l2_bytes", MIB),
    "smem_per_sm_kb": ("smem_per_sm_bytes", KIB),
    "l1_per_sm_kb": ("l1_per_sm_bytes", KIB),
    "regfile_per_sm_kb": ("registers_per_sm_bytes", KIB),
}
_BRANDS = r"nvidia|geforce|tesla|amd|radeon|instinct|habana|apple|google|huawei|\(r\)|\(tm\)"


@cache
def chips() -> dict[str, Chip]:
    """Every chip of the catalogue by name, in the order of its file."""
    shared = {row["architecture"]: row for row in _rows("architectures.csv")}
    return {row["name"]: _chip(row, shared) for row in _rows("chips.csv")}


def find_chip(name: str) -> Chip:
    """The chip that `name` means; blanks, case, brand words and the names that drivers print are understood.

    Raises: UnknownName with the nearest names, or with the candidates when several chips are meant.

    >>> find_chip("NVIDIA GeForce RTX2070").name
    'RTX 2070'
    >>> find_chip("H100").name
    'H100 SXM'
    """
    key = _key(name)
    spellings = _spellings()
    if key in spellings:
        return chips()[spellings[key]]
    candidates = sorted({chip for text, chip in spellings.items() if key and text.startswith(key)})
    if len(candidates) == 1:
        return chips()[candidates[0]]
    if candidates:
        raise UnknownName(f"device {name!r} may mean {', '.join(candidates)}: say which one")
    raise UnknownName(
        f"device {name!r} is not in the hardware catalogue; nearest: {', '.join(nearest_chips(name))}"
    )


def nearest_chips(name: str, count: int = 4) -> list[str]:
    """The catalogue's names that look most like `name`."""
    import difflib

    spellings = _spellings()
    close = difflib.get_close_matches(_key(name), list(spellings), n=3 * count, cutoff=0.0)
    return list(dict.fromkeys(spellings[text] for text in close))[:count]


def _rows(file_name: str) -> list[dict[str, str]]:
    text = files("attnprof.store").joinpath("data", file_name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _chip(row: dict[str, str], shared: dict[str, dict[str, str]]) -> Chip:
    """One entry; the figures per SM and clock come from its architecture."""
    architecture = shared.get(row["compute_capability"]) or shared.get(row["arch"]) or {}
    values = {**row, **{key: architecture.get(key, "") for key in (*_SCALED, *_COUNTED) if key not in row}}
    note = " ; ".join(text for text in (row["note"], architecture.get("note", "")) if text)
    source = " ; ".join(text for text in (row["source"], architecture.get("source", "")) if text)
    fields: dict[str, object] = {
        "name": row["name"],
        "aliases": tuple(alias for alias in row["aliases"].split("|") if alias),
        "vendor": row["vendor"],
        "architecture": row["arch"],
        "compute_capability": row["compute_capability"],
        "source": source,
        "checked": row["checked"],
        "note": note,
    }
    fields |= {field: float(values[key]) * unit for key, (field, unit) in _SCALED.items() if values[key]}
    fields |= {
        field: round(float(values[key]) * unit) for key, (field, unit) in _COUNTED.items() if values[key]
    }
    return msgspec.convert(fields, Chip)


@cache
def _spellings() -> dict[str, str]:
    """Every normalised spelling -> the chip's name."""
    return {_key(text): chip.name for chip in chips().values() for text in (chip.name, *chip.aliases)}


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(_BRANDS, " ", name.lower()))
