"""`attnprof derive`: bytes, FLOPs and intensity of every method in closed form; nothing is run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from attnprof.cli.options import JsonFlag, print_json, with_problem_options
from attnprof.core.axes import AxisTexts
from attnprof.core.errors import InvalidInput
from attnprof.core.units import parse_bytes

if TYPE_CHECKING:
    from attnprof.core.problem import Problem
    from attnprof.core.schedules.derive import Form

IO_BOUND_MEMORY_BYTES = 160 * 1024  # about one core's on-chip memory


class Memory(NamedTuple):
    """A last-level cache, and the tiles that run at a time in front of it."""

    llc_bytes: int
    resident: int


O_NOTE = (
    "The textbook's flash form counts the output O (written once), its naive form does not. Like for like, add "
    "N*d*e bytes to naive, or subtract them from flash: both are shown."
)
LEVEL_NOTE = (
    "naive/flash compares naive's DRAM traffic with flash's on-chip traffic (tiles ask L2). The last column compares "
    "DRAM with DRAM, for a head whose K and V stay in the last-level cache."
)


@with_problem_options
def derive_command(
    texts: AxisTexts,
    block: Annotated[str, typer.Option("--block", help="Tile sizes B_r x B_c.")] = "64x64",
    symbolic: Annotated[bool, typer.Option("--symbolic", help="Print the formulas, term by term.")] = False,
    cache: Annotated[
        str | None,
        typer.Option("--cache", help="Predict DRAM bytes behind a last-level cache, such as 50MiB."),
    ] = None,
    resident: Annotated[
        int,
        typer.Option(
            "--resident", min=1, help="Tiles that run at a time (SMs x blocks per SM), with --cache."
        ),
    ] = 1,
    json_output: JsonFlag = False,
) -> None:
    """Bytes, FLOPs and intensity of every method in closed form; nothing is run.

    Example: attnprof derive --seq-lens 1024,8192 --heads 1 --head-dim 128 --mask full --symbolic
    """
    rows, cols = parse_block(block)
    problems = texts.problems()
    memory = None if cache is None else Memory(parse_bytes(cache), resident)
    if json_output:
        print_json(_document(problems, (rows, cols), symbolic, memory))
        return
    from attnprof.cli import _derive_text

    _derive_text.show(problems, rows, cols, symbolic=symbolic, notes=(O_NOTE, LEVEL_NOTE), memory=memory)


def parse_block(text: str) -> tuple[int, int]:
    """Tile sizes from `B_rxB_c`, or one number for both.

    Raises: InvalidInput when it cannot be read, or a size is below 1.

    >>> parse_block("128x64"), parse_block("64")
    ((128, 64), (64, 64))
    """
    match = re.fullmatch(r"\s*(-?\d+)(?:\s*[xX]\s*(-?\d+))?\s*", text)
    if match is None:
        raise InvalidInput(f"--block {text!r} cannot be read: write B_rxB_c, such as 64x64 or 128x64")
    rows = int(match[1])
    cols = int(match[2]) if match[2] is not None else rows
    from attnprof.core.schedules.tiling import check_tiles

    check_tiles(B_r=rows, B_c=cols)
    return rows, cols


def _document(
    problems: tuple[Problem, ...], block: tuple[int, int], symbolic: bool, memory: Memory | None
) -> dict[str, Any]:
    rows, cols = block
    return {
        "block": {"B_r": rows, "B_c": cols},
        "notes": [O_NOTE, LEVEL_NOTE],
        "problems": [_entry(problem, block, symbolic, memory) for problem in problems],
    }


def _entry(problem: Problem, block: tuple[int, int], symbolic: bool, memory: Memory | None) -> dict[str, Any]:
    from attnprof.core.schedules.common import compulsory
    from attnprof.core.schedules.derive import counted, forms

    rows, cols = block
    pairs = problem.pairs
    return {
        "problem": problem,
        "pairs_per_head": pairs if isinstance(pairs, int) else float(pairs),
        "useful_flops": problem.useful_flops,
        "exp_ops": problem.exp_ops,
        "compulsory": _table(compulsory(problem), symbolic),
        "methods": {
            form.method: _method(problem, form, symbolic, memory) for form in forms(problem, rows, cols)
        },
        "counted": counted(problem, rows, cols),
        "textbook": textbook_entry(problem, rows, cols),
    }


def _method(problem: Problem, form: Form, symbolic: bool, memory: Memory | None) -> dict[str, Any]:
    from attnprof.core.schedules.dram import predict_dram

    cost = form.cost
    dram = None if memory is None else predict_dram(problem, cost, **memory._asdict())
    return {
        "tiles": cost.tiles,
        "useful_flops": cost.useful_flops,
        "executed_flops": cost.executed_flops,
        "backward_factor": cost.backward_factor,
        "exp_ops": cost.exp_ops,
        "logical": _table(cost.logical, symbolic),
        "op_boundary": None if cost.op_boundary is None else _table(cost.op_boundary, symbolic),
        "dram": dram and {**msgspec.to_builtins(dram), "claimed": dram.claimed},
        "intensity_flop_per_byte": form.intensity_flop_per_byte,
        "output_bytes": cost.output_bytes,
        "workspace_bytes": cost.workspace_bytes,
        "form_from_bytes": form.form_from_bytes,
        "compulsory_from_bytes": form.compulsory_from_bytes,
    }


def _table(traffic: Any, symbolic: bool) -> dict[str, Any]:
    from attnprof.core.schedules import derive

    shown: dict[str, Any] = msgspec.to_builtins(traffic)
    shown |= {
        "read_bytes": traffic.read_bytes, "write_bytes": traffic.write_bytes, "total_bytes": traffic.total_bytes,
    }  # fmt: skip
    if symbolic:
        shown["symbolic"] = {
            "terms": derive.lines(traffic.terms, latex=True),
            "total": derive.total_text(traffic.terms),
            "total_latex": derive.total_latex(traffic.terms),
            "symbols": derive.glossary(traffic.terms),
        }
    return shown


def textbook_entry(problem: Problem, rows: int, cols: int) -> dict[str, Any] | None:
    """The textbook's forms for one head of the problem's length and head dim; None where they say nothing."""
    from attnprof.textbook import compare, crossover, io_lower_bound

    if not textbook_applies(problem):
        return None
    c = compare(problem.q_len, problem.qk_dim, rows, cols, problem.dtype.bytes)
    return {
        **msgspec.to_builtins(c),
        "naive_with_o_bytes": c.naive_with_o_bytes,
        "flash_without_o_bytes": c.flash_without_o_bytes,
        "ratio": c.ratio,
        "ratio_with_o": c.ratio_with_o,
        "ratio_without_o": c.ratio_without_o,
        "naive_intensity": c.naive_intensity,
        "flash_intensity": c.flash_intensity,
        "flash_dram_bytes": c.flash_dram_bytes,
        "dram_ratio": c.dram_ratio,
        "naive_fewer_bytes_from_N": crossover(c.d, c.B_r),
        "io_lower_bound_order_bytes": io_lower_bound(c.N, c.d, IO_BOUND_MEMORY_BYTES, c.dtype_bytes),
    }


def textbook_applies(problem: Problem) -> bool:
    """Square, equal head dims, forward: what the textbook's forms speak of (masks are not in them)."""
    square = problem.q_len == problem.kv_len > 0 and problem.qk_dim == problem.v_dim
    return square and problem.direction == "fwd"
