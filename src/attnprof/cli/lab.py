"""`attnprof lab`: the laboratory on bytes moved by naive and flash attention, reproduced and explained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from attnprof.cli.options import JsonFlag, print_json

DEFAULT_OUT = Path("27-flash-vs-naive-bytes")


def lab_command(
    out: Annotated[
        Path, typer.Option("--out", help="Folder that the six files are written to.")
    ] = DEFAULT_OUT,
    lang: Annotated[
        str, typer.Option("--lang", help="Language of README.md and the plots: en or es.")
    ] = "en",
    json_output: JsonFlag = False,
) -> None:
    """Derive, measure, plot and explain the bytes moved by naive and flash attention on this machine's CPU.

    Writes derive_bytes.py, measure_bytes.py, bytes_vs_n.png, intensity_ratio.png, manifest.json and README.md.
    Takes about two minutes on two cores.

    Example: attnprof lab --out 27-flash-vs-naive-bytes --lang es
    """
    from attnprof.lab.write import FILES, run_lab

    data = run_lab(out, lang, progress=lambda step: print(step, file=sys.stderr))
    if json_output:
        names = ("N", "method", "expected_bytes", "total_bytes", "deviation")
        measured = [{name: getattr(row, name) for name in names} for row in data.measured]
        print_json(
            {
                "out": str(out), "files": FILES, "seconds": data.seconds, "worst_deviation": data.worst_deviation,
                "measured": measured, "ratio_n8192_d128": data.question_2.ratio, "wins_from_n": data.wins_from,
            }
        )  # fmt: skip
        return
    print(f"{len(FILES)} files in {out}/: {', '.join(FILES)}")
    print(
        f"Largest deviation of a measurement from theory: {data.worst_deviation:.4%} ({data.seconds:.0f} s)."
    )
