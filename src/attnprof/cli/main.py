"""The command line: collects the commands, turns errors into messages and exit codes."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from attnprof import __version__
from attnprof.core.errors import AttnprofError

app = typer.Typer(
    name="attnprof",
    help="Predict and measure attention kernels: FLOPs, bytes, time, memory and error, in one row.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

COMMANDS = (
    "list", "run", "derive", "trace", "ceilings", "predict", "validate", "report", "compare", "explain", "lab",
)  # fmt: skip


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"attnprof {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # its callback does the work
        bool,
        typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Options of the program itself."""


def _register() -> None:
    for name in COMMANDS:
        module = import_module(f"attnprof.cli.{name}")
        app.command(name)(getattr(module, f"{name}_command"))


def main() -> None:
    """Entry point of `attnprof`."""
    _register()
    try:
        app()
    except AttnprofError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
