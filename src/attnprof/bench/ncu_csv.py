"""The CSV that Nsight Compute prints: kernels in order of launch with their counters."""

from __future__ import annotations

import csv
import re

import msgspec

from attnprof.core.errors import InvalidInput

SECTOR_BYTES = 32  # of the L2: what lts__t_sectors counts

DRAM_READ, DRAM_WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
L2_ALL = "lts__t_bytes.sum"
L2_READ, L2_WRITE = "lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum"
METRICS = (DRAM_READ, DRAM_WRITE, L2_ALL, L2_READ, L2_WRITE)

_UNITS = {"": 1, "byte": 1, "sector": 1}
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class KernelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of one kernel launch, in bytes or sectors."""

    name: str
    values: dict[str, float]


def parse_ncu_csv(text: str) -> tuple[KernelCounts, ...]:
    """Kernels in order of launch with their counters, from `ncu --csv` (details page or raw page).

    Lines before the table (what the program printed, ncu's own) are skipped; units are scaled to bytes.
    Raises: InvalidInput when there is no table, or a value cannot be read.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise InvalidInput('ncu printed no CSV table (no line that starts with "ID"): no kernel was profiled')
    header, *rows = csv.reader(line for line in lines[start:] if line.startswith('"'))
    records = [dict(zip(header, row, strict=False)) for row in rows]
    if "Metric Name" in header:
        return _details_page(records)
    return _raw_page(records)


def _details_page(records: list[dict[str, str]]) -> tuple[KernelCounts, ...]:
    """One row per kernel and counter."""
    kernels: dict[str, tuple[str, dict[str, float]]] = {}
    for row in records:
        _, values = kernels.setdefault(row["ID"], (row["Kernel Name"], {}))
        values[row["Metric Name"]] = _value(row["Metric Value"], row["Metric Unit"])
    return tuple(KernelCounts(name=name, values=values) for name, values in kernels.values())


def _raw_page(records: list[dict[str, str]]) -> tuple[KernelCounts, ...]:
    """One row per kernel, after a row of units."""
    if not records:
        return ()
    units, *kernels = records
    return tuple(
        KernelCounts(
            name=row["Kernel Name"],
            values={
                name: _value(text, units[name]) for name, text in row.items() if name in METRICS and text
            },
        )
        for row in kernels
    )


def _value(text: str, unit: str) -> float:
    """A number in bytes or sectors: ncu groups digits and may scale units (Kbyte, Mbyte)."""
    match = re.fullmatch(r"([kmgt]?)(byte|sector|)s?", unit.strip().lower())
    try:
        number = float(text.replace(",", "").replace("\u202f", ""))
    except ValueError:
        raise InvalidInput(f"ncu value {text!r} is not a number") from None
    if match is None:
        raise InvalidInput(f"ncu unit {unit!r} is unknown: bytes and sectors are expected")
    return number * _PREFIXES[match[1]] * _UNITS[match[2]]
