"""`attnprof ceilings`: measure what this device can do at most, and keep it for `run` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from attnprof.cli.options import JsonFlag, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from attnprof.bench.devices import Device
    from attnprof.core.ceilings import Ceilings

BUDGET_S = 40.0
MOST_LOAD_PER_THREAD = 1.2  # the probes themselves load one per thread


def ceilings_command(
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:1.")] = "cpu",
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write (one per device in the user's cache).")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="CPU threads (PyTorch's choice).")
    ] = None,
    budget_s: Annotated[float, typer.Option("--budget-s", min=1, help="Seconds in all, about.")] = BUDGET_S,
    json_output: JsonFlag = False,
) -> None:
    """Measure this device's ceilings: matmul and exp rates, bandwidth of each level of memory, cost of a call.

    Run it on an idle machine: what else runs lowers the figures. `run` and `report` use the file until device,
    threads or library versions change.

    Example: attnprof ceilings --device cpu
    """
    from attnprof.bench.devices import open_device
    from attnprof.store.ceilings import save_ceilings

    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    ceilings = _measure(open_device(device), budget_s)
    path = save_ceilings(ceilings, out)
    if json_output:
        print_json({"file": str(path), "warnings": warnings(ceilings), **msgspec.to_builtins(ceilings)})
    else:
        _print(ceilings, path)


def _measure(device: Device, budget_s: float) -> Ceilings:
    """With a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from attnprof.bench.probes.measure import measure, probes_of

    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("ceilings")

        def show(done: int, total: int, title: str) -> None:
            bar.update(task, completed=done, total=total, description=title)

        return measure(device, probes_of(device), budget_s=budget_s, progress=show)


def _print(ceilings: Ceilings, path: Path) -> None:
    from rich.console import Console

    console = Console()
    console.print(_rates_table(ceilings), _bandwidth_table(ceilings))
    for name, reason in ceilings.unavailable.items():
        console.print(f"n/a {name}: {reason}", markup=False)
    for line in warnings(ceilings):
        console.print(f"warning: {line}", markup=False)
    console.print(f"written to {path}", markup=False, soft_wrap=True)


def warnings(ceilings: Ceilings) -> list[str]:
    """What makes these ceilings doubtful, with the remedy."""
    found = []
    load, threads = ceilings.weather.load_1min, ceilings.identity.threads
    if load is not None and load > MOST_LOAD_PER_THREAD * threads:
        found.append(
            f"load {load:.1f} on {threads} threads: other work lowered the figures; repeat on an idle machine"
        )
    flops = ceilings.flops
    if "float16" in flops and "float32" in flops and flops["float16"].best < flops["float32"].best / 4:
        found.append("float16 matmuls are emulated on this device: prefer float32 or bfloat16")
    return found


def _rates_table(ceilings: Ceilings) -> Table:
    from rich.table import Table

    from attnprof.core.units import format_seconds, format_si

    table = Table(title=f"{ceilings.identity.device_name}, {ceilings.identity.threads} threads")
    for column in ("ceiling", "best", "spread", "conditions"):
        table.add_column(column)
    for dtype, rate in ceilings.flops.items():
        table.add_row(
            f"matmul {dtype}", format_si(rate.best, "FLOP/s"), f"{rate.spread:.0%}", rate.conditions
        )
    for dtype, rate in ceilings.exp.items():
        table.add_row(f"exp {dtype}", format_si(rate.best, "exp/s"), f"{rate.spread:.0%}", rate.conditions)
    floor = ceilings.floor_s
    table.add_row("empty call", format_seconds(floor.best), f"{floor.spread:.0%}", floor.conditions)
    return table


def _bandwidth_table(ceilings: Ceilings) -> Table:
    """Levels by kernels, for all threads and for one."""
    from rich.table import Table

    from attnprof.core.units import format_bytes

    table = Table(title="bandwidth, GB/s (spread of the samples below the best)")
    kernels = list(next(iter(ceilings.bandwidth.values()), {}))
    for column in ("level", "size", "threads", *kernels):
        table.add_column(column, justify="left" if column == "level" else "right")
    groups = ((str(ceilings.identity.threads), ceilings.bandwidth), ("1", ceilings.core_bandwidth))
    for threads, levels in groups:
        for level, rates in levels.items():
            size = ceilings.capacities_bytes.get(level)
            cells = (
                f"{rates[k].best / 1e9:.4g} ({rates[k].spread:.0%})" if k in rates else "n/a" for k in kernels
            )
            table.add_row(level, format_bytes(size) if size else "", threads, *cells)
    return table
