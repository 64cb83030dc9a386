"""`attnprof predict`: what a call would cost on a device that is not here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnprof.cli.options import JsonFlag, print_json, with_problem_options
from attnprof.core.axes import AxisTexts, parse_names
from attnprof.core.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from attnprof.core.problem import Problem
    from attnprof.predict.api import Prediction

_NONE = "n/a"


@with_problem_options
def predict_command(
    texts: AxisTexts,
    device: Annotated[
        str, typer.Option(help="A chip by any usual name; cpu: this one, by its ceilings.")
    ] = "H100 SXM",
    variants: Annotated[
        str | None, typer.Option(help="Variants, or kernels such as FlashAttention-3.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Every resource's time, the bare roofline.")
    ] = False,
    calibrate: Annotated[Path | None, typer.Option(help="A run of the device to fit.")] = None,
    json_output: JsonFlag = False,
) -> None:
    """Time with its 80% interval, memory and bytes on any device; nothing runs and no device is needed.

    With --calibrate the device is the one of that run: about 20 measured rows give its constants.

    Example: attnprof predict --seq-lens 8192 --heads 16 --head-dim 128 --dtype bfloat16 --device "H100 SXM" --explain
    """
    names = parse_names(variants) if variants else None
    problems = texts.problems()
    if calibrate is not None:
        from attnprof.predict.local import calibrate_directory

        local = calibrate_directory(calibrate)
        rows = [row for problem in problems for row in local.predict(problem, names)]
    elif device in {"cpu", "cuda"}:
        rows = [row for problem in problems for row in _from_ceilings(problem, device, names)]
    else:
        from attnprof.predict.api import predict

        _warn_of_unknown(device)
        rows = [row for problem in problems for row in predict(problem, device, names)]
    if json_output:
        print_json({"predictions": rows})
    else:
        _print(rows, explain)


def _warn_of_unknown(device: str) -> None:
    """One line on stderr where the device is not known: every time below is then n/a."""
    from attnprof.core.errors import UnknownName
    from attnprof.store.machines import find_chip

    try:
        find_chip(device)
    except UnknownName as error:
        typer.echo(f"no time is predicted: {error}", err=True)


def _from_ceilings(problem: Problem, device: str, names: Sequence[str] | None) -> list[Prediction]:
    """This machine's device, by the ceilings that were measured on it."""
    from attnprof.bench.devices import open_device
    from attnprof.predict.local import model_of_ceilings
    from attnprof.store.ceilings import ceilings_for

    ceilings = ceilings_for(open_device(device).identity())
    return model_of_ceilings(ceilings, problem.dtype, names).predict(problem, names)


def _print(rows: Sequence[Prediction], explain: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for problem in dict.fromkeys(row.problem for row in rows):
        mine = [row for row in rows if row.problem == problem]
        _print_table(console, f"{problem} on {mine[0].device}", mine)
        for row in mine if explain else ():
            _print_explanation(console, row)
        for text in dict.fromkeys(f"{row.variant}: {row.reason}" for row in mine if row.reason):
            console.print(f"  {_NONE} {text}", markup=False)
        assumed = dict.fromkeys(text for row in mine for text in row.assumptions)
        if assumed:
            console.print(f"  assumed: {'; '.join(assumed)}", markup=False)


def _print_table(console: Console, title: str, rows: Sequence[Prediction]) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("variant", overflow="fold")
    for heading in ("time", "80% interval", "binding", "TFLOP/s", "peak", "logical", "DRAM"):
        table.add_column(heading, justify="left" if heading == "binding" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)


def _cells(row: Prediction) -> tuple[str, ...]:
    rate = f"{row.flops_per_s / 1e12:.3g}" if row.flops_per_s else _NONE
    return (row.variant, _time(row.time_s), _interval(row), row.binding or _NONE, rate, _bytes(row.peak_bytes),
            _bytes(row.logical_bytes), _bytes(row.dram_bytes))  # fmt: skip


def _interval(row: Prediction) -> str:
    """Both ends in the upper end's unit: `30.2..70.9 us`."""
    if row.low_s is None or row.high_s is None:
        return _NONE
    number, unit = format_seconds(row.high_s).split()
    return f"{row.low_s * float(number) / row.high_s:.3g}..{number} {unit}"


def _print_explanation(console: Console, row: Prediction) -> None:
    if row.time_s is None:
        return
    if row.library_workspace_bytes:
        library = format_bytes(row.library_workspace_bytes)
        console.print(f"  {row.variant}: {library} of the peak are library workspace (cuBLAS)", markup=False)
    parts = ", ".join(f"{name} {format_seconds(s)}" for name, s in row.resources_s.items() if s > 0)
    console.print(f"  {row.variant}, each resource alone: {parts}", markup=False)
    bare = row.ceilings
    if bare is None:
        return
    share = (
        f" (exp takes {bare.exp_share_of_matmul:.0%} of the matmul time)" if bare.exp_share_of_matmul else ""
    )
    intensity = f"{bare.intensity_flop_per_byte:.4g}" if bare.intensity_flop_per_byte else _NONE
    console.print(
        f"    at datasheet rates: matmul {format_seconds(bare.matmul_s)}, exp {format_seconds(bare.exp_s)}{share}, "
        f"DRAM {format_seconds(bare.dram_s)}; {intensity} FLOP/byte, ridge {bare.ridge_flop_per_byte:.4g}: "
        f"bound by {bare.bound}; predicted {row.time_s / max(bare.matmul_s, bare.dram_s, bare.exp_s):.2f}x that bound",
        markup=False,
    )  # fmt: skip


def _time(seconds: float | None) -> str:
    return _NONE if seconds is None else format_seconds(seconds)


def _bytes(value: int | None) -> str:
    return _NONE if value is None else format_bytes(value, digits=3)
