"""`attnprof explain`: chosen backend, and for every other one why not and the fix."""

from __future__ import annotations

from typing import Annotated

import typer

from attnprof.cli.options import JsonFlag, print_json, with_problem_options
from attnprof.core.axes import AxisTexts
from attnprof.core.errors import UnknownName, nearest

BACKENDS = ("flash", "mem_efficient", "cudnn", "math")


@with_problem_options
def explain_command(
    texts: AxisTexts,
    device: Annotated[
        str, typer.Option("--device", help="cpu, cuda, a chip such as T4, or sm_90, gfx942.")
    ] = "cpu",
    torch_version: Annotated[
        str, typer.Option("--torch", help="Rules of that PyTorch version (the installed one).")
    ] = "",
    force: Annotated[
        str, typer.Option("--force", help="As inside sdpa_kernel: flash, mem_efficient, cudnn or math.")
    ] = "",
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Markdown for a bug report.")] = False,
    json_output: JsonFlag = False,
) -> None:
    """Say which backend runs, and for every other one why not, the rule, the fix and its cost.

    Lengths default to 2048 and dtypes to float32 on a CPU, float16 elsewhere. Exit code 1 when nothing runs.

    Example: attnprof explain --seq-lens 4096 --dtype bfloat16 --mask window:127:0 --device T4
    """
    from attnprof.explain.explanation import explain

    if force and force not in BACKENDS:
        raise UnknownName(f"backend {force!r} is unknown; {nearest(force, list(BACKENDS))}")
    dtype = "float32" if device == "cpu" else "float16"
    problems = texts.problems(dtype=dtype, seq_lens="2048")
    found = [explain(problem, device, torch_version=torch_version, force=force) for problem in problems]
    if json_output:
        print_json(found[0] if len(found) == 1 else found)
    else:
        parts = [e.to_markdown() if as_markdown else str(e) for e in found]
        typer.echo("\n\n".join(parts))
    if any(e.chosen is None for e in found):
        raise typer.Exit(1)
