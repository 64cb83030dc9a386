"""Simulated bytes: the call's own instructions through callgrind's last-level cache, beside the traced bytes.

It sees inside fused CPU kernels, where the recorder sees one operator. Opt-in: a call takes 15 s and more.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from attnprof.core.errors import InvalidInput, KernelError
from attnprof.core.problem import Direction, Problem
from attnprof.core.units import MIB, format_bytes
from attnprof.core.variant import Variant
from attnprof.trace.api import trace
from attnprof.trace.policy import Freed, Policy, WriteMiss

LINE_BYTES = 64
SMALLEST = MIB  # the cache is shared with instructions: below, the interpreter's own fill it
TIME_LIMIT_S = 900.0
LIKE_A_CPU = Policy(freed=Freed.REUSE, write_miss=WriteMiss.ALLOCATE, flush=False)


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """Last-level traffic of one call, simulated and traced with the policy `LIKE_A_CPU`."""

    capacity_bytes: int
    fill_bytes: int
    write_back_bytes: int
    traced_fill_bytes: int
    traced_write_back_bytes: int

    @property
    def relative_error(self) -> float:
        """Simulated over traced fills, minus 1."""
        return self.fill_bytes / self.traced_fill_bytes - 1


def unavailable() -> str | None:
    """Why calls cannot be simulated here; None when they can."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed (apt install valgrind)"
    if _compiler() is None:
        return "no C compiler found (cc, gcc or clang) for the client requests"
    return None


def refuse(variant: Variant, problem: Problem, capacity_bytes: int) -> str | None:
    """Why this call is not simulated; None when it is."""
    from attnprof.variants.catalog import variants

    if capacity_bytes < SMALLEST:
        return (
            f"callgrind's last level is shared with instructions; below {format_bytes(SMALLEST)} they fill it"
        )
    if variant.name not in variants() and ":" not in variant.name:
        return f"{variant.name} is not in the catalogue, and the simulated process finds variants there"
    if problem.direction is not Direction.FWD:
        return "only the forward is simulated"
    return unavailable()


def simulate(variant: Variant, problem: Problem, capacity_bytes: int) -> Simulated:
    """Run one call under callgrind with a 16-way last level of `capacity_bytes`, and trace the same call.

    Raises: InvalidInput when `refuse` has a reason; KernelError when the simulated process fails.
    """
    reason = refuse(variant, problem, capacity_bytes)
    if reason:
        raise InvalidInput(f"cannot simulate {variant.name} at {format_bytes(capacity_bytes)}: {reason}")
    with tempfile.TemporaryDirectory() as folder:
        counts = _run(variant.name, problem, capacity_bytes, Path(folder))
    (point,) = trace(variant, problem, [capacity_bytes], line_bytes=LINE_BYTES, policy=LIKE_A_CPU)
    return Simulated(
        capacity_bytes=capacity_bytes,
        fill_bytes=LINE_BYTES * (counts["DLmr"] + counts["DLmw"]),
        write_back_bytes=LINE_BYTES * (counts["ILdmr"] + counts["DLdmr"] + counts["DLdmw"]),
        traced_fill_bytes=point.read_bytes,
        traced_write_back_bytes=point.write_bytes,
    )


def _compiler() -> str | None:
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def _run(name: str, problem: Problem, capacity_bytes: int, folder: Path) -> dict[str, int]:
    library, counts = folder / "requests.so", folder / "callgrind.out"
    with as_file(files("attnprof.trace") / "client_request.c") as source:
        _checked([str(_compiler()), "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], "compiler")
    command = [
        "valgrind", "--tool=callgrind", "--instr-atstart=no", "--cache-sim=yes", "--simulate-wb=yes",
        "--I1=32768,8,64", "--D1=32768,8,64", f"--LL={capacity_bytes},16,{LINE_BYTES}",
        f"--callgrind-out-file={counts}", sys.executable, "-m", "attnprof.trace.simulated_call",
        str(library), name, msgspec.json.encode(problem).decode(),
    ]  # fmt: skip
    _checked(command, "callgrind")
    return parse_counts(counts.read_text(encoding="utf-8"))


def _checked(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise KernelError(f"{what} took more than {TIME_LIMIT_S:.0f} s: simulate a shorter problem") from None
    if done.returncode:
        raise KernelError(f"{what} failed with code {done.returncode}: {done.stderr.strip()[-800:]}")


def parse_counts(text: str) -> dict[str, int]:
    """Totals of a callgrind output file by event name.

    >>> parse_counts("events: Ir DLmr DLmw\\nsummary: 7 2 3\\n")
    {'Ir': 7, 'DLmr': 2, 'DLmw': 3}
    """
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)
    totals = re.findall(r"^(?:summary|totals): (.*)$", text, re.MULTILINE)
    if events is None or not totals:
        raise KernelError(
            "callgrind wrote no totals: the call was not counted (did it reach its client requests?)"
        )
    names, numbers = events[1].split(), [int(number) for number in totals[-1].split()]
    return dict(zip(names, numbers + [0] * (len(names) - len(numbers)), strict=True))
