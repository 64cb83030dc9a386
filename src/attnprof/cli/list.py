"""`attnprof list`: the variants, what each needs, whether it can run here and why not."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from attnprof.cli.options import JsonFlag, print_json


def list_command(
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    json_output: JsonFlag = False,
) -> None:
    """Variants: what each needs, whether it can run here and why not.

    Example: attnprof list --device cpu
    """
    from attnprof.bench.devices import open_device

    open_device(device)  # a device that is not here is refused before anything is said about it
    rows = _rows(device)
    if json_output:
        print_json({"device": device, "variants": rows})
        return
    _print(rows, device)


def _rows(device: str) -> list[dict[str, Any]]:
    from attnprof.variants.catalog import variants

    return [
        {
            "name": variant.name, "title": variant.title, "runs_here": (reason := variant.unavailable(device)) is None,
            "reason": reason or "", "install": variant.install or "", "preset": variant.preset is not None,
            "devices": sorted(variant.limits.devices), "dtypes": sorted(variant.limits.dtypes),
            "masks": [kind.__name__.lower() for kind in variant.limits.masks],
            "directions": sorted(variant.limits.directions),
        }
        for variant in variants().values()
    ]  # fmt: skip


def _print(rows: list[dict[str, Any]], device: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"Variants on {device}", title_justify="left", box=None, pad_edge=False)
    for heading in ("variant", "runs", "what it is, or why it cannot run here"):
        table.add_column(heading, overflow="fold")
    for row in sorted(rows, key=lambda r: (not r["runs_here"], r["name"])):
        install = f" ({row['install']})" if row["install"] and not row["runs_here"] else ""
        text = row["title"] if row["runs_here"] else row["reason"] + install
        table.add_row(escape(row["name"]), "yes" if row["runs_here"] else "no", escape(text))
    Console().print(table)
