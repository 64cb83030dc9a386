"""`attnprof trace`: the bytes that a real run moves across the boundary of a memory, beside the model's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnprof.cli import _trace_files
from attnprof.cli.options import JsonFlag, print_json, with_problem_options
from attnprof.core.axes import AxisTexts, parse_names
from attnprof.core.errors import InvalidInput, UsageError
from attnprof.core.units import parse_bytes

if TYPE_CHECKING:
    from attnprof.core.problem import Problem
    from attnprof.core.traffic import Cost, Traffic
    from attnprof.core.variant import Variant
    from attnprof.trace.points import TracePoint
    from attnprof.trace.policy import Policy

DEFAULT_CAPACITY = "32KiB,160KiB,1MiB,32MiB"
DEFAULT_LENGTH = "1024"


@with_problem_options
def trace_command(
    texts: AxisTexts,
    variant: Annotated[str, typer.Argument(help="A variant's name, or your own as module:function.")],
    capacity: Annotated[
        str, typer.Option("--capacity", help="Memories to trace, such as 32KiB,1MiB.")
    ] = DEFAULT_CAPACITY,
    block: Annotated[
        str | None, typer.Option("--block", help="Tiles B_r x B_c of flash_tiled and fa1_tiled.")
    ] = None,
    line: Annotated[
        int, typer.Option("--line", help="Bytes of a line: 64 for CPUs, 32 for GPU sectors.")
    ] = 64,
    freed: Annotated[str, typer.Option("--freed", help="Freed storage: drop, reuse or never.")] = "drop",
    write_miss: Annotated[
        str, typer.Option("--write-miss", help="Written lines: no-fetch (GPU) or write-allocate (CPU).")
    ] = "no-fetch",
    curve: Annotated[bool, typer.Option("--curve", help="Also 29 capacities from 4 KiB to 64 MiB.")] = False,
    gpu: Annotated[
        str, typer.Option("--gpu", help="Chip whose memories are marked on the curve.")
    ] = "H100 SXM",
    simulate: Annotated[
        bool,
        typer.Option("--simulate", help="Also under valgrind's cache simulator (about 20 s a capacity)."),
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the curve's PNG and SVG.")] = None,
    json_output: JsonFlag = False,
) -> None:
    """Bytes that a real run moves across the boundary of a memory, beside the model's.

    Example: attnprof trace flash_tiled --seq-lens 1024 --heads 1 --mask full --capacity 160KiB,32MiB
    """
    from attnprof.trace.policy import Freed, Policy, WriteMiss

    capacities = [parse_bytes(text) for text in parse_names(capacity)]
    policy = Policy(
        freed=Freed(_checked(freed, Freed)), write_miss=WriteMiss(_checked(write_miss, WriteMiss))
    )
    problems = texts.problems(seq_lens=DEFAULT_LENGTH)
    if out is not None and not curve:
        raise UsageError("--out needs --curve: the capacity curve is what is drawn")
    chosen = _variant(variant, block)
    if out is not None:
        _trace_files.make_folder(out)
    entries = [
        _entry(chosen, problem, capacities, line, policy, curve=curve, gpu=gpu, simulate=simulate)
        for problem in problems
    ]
    if out is not None:
        _trace_files.draw(entries, out)
    if json_output:
        print_json({"variant": chosen.name, "traces": entries})
        return
    from attnprof.cli import _trace_text

    for entry in entries:
        _trace_text.show(entry)


def _checked(value: str, kind: Any) -> str:
    if value not in list(kind):
        raise InvalidInput(f"{value!r} is not one of {', '.join(kind)}")
    return value


def _variant(name: str, block: str | None) -> Variant:
    from attnprof.variants.catalog import find

    if block is None:
        return find(name)
    from attnprof.cli.derive import parse_block
    from attnprof.variants.fa1_tiled import fa1_tiled_with
    from attnprof.variants.flash_tiled import flash_tiled_with

    makers = {"flash_tiled": flash_tiled_with, "fa1_tiled": fa1_tiled_with}
    if name not in makers:
        raise UsageError(f"--block sets the tiles of {' and '.join(makers)}; {name} has none to set")
    return makers[name](*parse_block(block))


def _entry(
    variant: Variant,
    problem: Problem,
    capacities: list[int],
    line: int,
    policy: Policy,
    *,
    curve: bool,
    gpu: str,
    simulate: bool,
) -> dict[str, Any]:
    from attnprof.explain.gate import gate_problem
    from attnprof.trace.api import trace
    from attnprof.trace.curve import UNBOUNDED, curve_capacities

    more = [size for size in curve_capacities() if size >= line] if curve else []
    traced = trace(variant, problem, [*capacities, UNBOUNDED, *more], line_bytes=line, policy=policy)
    asked, floor, rest = traced[: len(capacities)], traced[len(capacities)], traced[len(capacities) + 1 :]
    computed = variant.problem_for(problem)
    cost = variant.cost(computed) if variant.cost else None
    entry: dict[str, Any] = {
        "variant": variant.name,
        "problem": computed,
        "description": str(computed),
        "line_bytes": line,
        "policy": str(policy),
        "flags": traced.flags,
        "judgments": gate_problem(computed, backend=variant.backend or ""),
        "line_accesses": traced.line_accesses,
        "compulsory_bytes": computed.compulsory_bytes,
        "floor_bytes": floor.total_bytes,
        "op_boundary": _table(traced.op_boundary),
        "logical": _table(cost.logical) if cost else None,
        "logical_reason": "" if cost else f"{variant.name} has no closed form",
        "points": [_point(point, cost) for point in asked],
    }
    if curve:
        entry["curve"] = _curve(rest, floor, gpu)
    if simulate:
        entry["simulated"] = _simulated(variant, problem, capacities)
    return entry


def _table(traffic: Traffic) -> dict[str, Any]:
    return {
        "kind": traffic.kind,
        "level": traffic.level,
        "policy": traffic.policy,
        "read_bytes": traffic.read_bytes,
        "write_bytes": traffic.write_bytes,
        "total_bytes": traffic.total_bytes,
        "terms": [
            {"name": t.tensor, "read_bytes": t.read_bytes, "write_bytes": t.write_bytes}
            for t in traffic.terms
        ],
    }


def _point(point: TracePoint, cost: Cost | None) -> dict[str, Any]:
    logical = cost.logical.total_bytes if cost else 0
    return {
        "capacity_bytes": point.capacity_bytes,
        **_table(point.traffic),
        "by_operator": [
            {"name": t.tensor, "read_bytes": t.read_bytes, "write_bytes": t.write_bytes}
            for t in point.by_operator
        ],
        "relative_error": point.total_bytes / logical - 1 if logical else None,
    }


def _curve(points: Any, floor: TracePoint, gpu: str) -> dict[str, Any]:
    from attnprof.trace.curve import working_set

    above, enough = working_set(points, floor.total_bytes)
    return {
        "points": [
            {"capacity_bytes": p.capacity_bytes, "read_bytes": p.read_bytes, "write_bytes": p.write_bytes}
            for p in points
        ],
        "largest_above_floor_bytes": above,
        "falls_to_floor_from_bytes": enough,
        "marks": [{"name": name, "capacity_bytes": size} for name, size in _marks(gpu)],
    }


def _marks(gpu: str) -> list[tuple[str, int]]:
    """This machine's caches, and a GPU's shared memory and L2."""
    from attnprof.bench.devices.host import cache_sizes
    from attnprof.store.machines import find_chip

    chip = find_chip(gpu)
    sizes = {f"{chip.name} shared memory": chip.smem_per_sm_bytes, f"{chip.name} L2": chip.l2_bytes}
    return [(f"this CPU's {name}", size) for name, size in cache_sizes().items()] + [
        (name, size) for name, size in sizes.items() if size
    ]


def _simulated(variant: Variant, problem: Problem, capacities: list[int]) -> list[dict[str, Any]]:
    import msgspec

    from attnprof.trace.callgrind import refuse, simulate

    rows: list[dict[str, Any]] = []
    for capacity in capacities:
        if reason := refuse(variant, problem, capacity):
            rows.append({"kind": "simulated", "capacity_bytes": capacity, "reason": reason})
            continue
        typer.echo(f"simulating a last level of {capacity} bytes under callgrind", err=True)
        done = simulate(variant, problem, capacity)
        rows.append(
            {
                "kind": "simulated",
                **msgspec.structs.asdict(done),
                "relative_error": done.relative_error,
                "reason": "",
            }
        )
    return rows
