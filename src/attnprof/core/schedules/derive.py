"""Every method's closed form for one problem, side by side: what `attnprof derive` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from attnprof.core.problem import Problem
from attnprof.core.schedules.blocks import flex_cost
from attnprof.core.schedules.eager import math_cost, naive_cost
from attnprof.core.schedules.flash import fa1_cost, fa2_cost, tile_capacity_bytes
from attnprof.core.schedules.formula import GLOSSARY, Number, as_latex, as_text, names_in, total_formula
from attnprof.core.schedules.tiling import visits
from attnprof.core.schedules.torch_cpu import torch_cpu_flash_cost
from attnprof.core.traffic import Cost, Term

Build = Callable[[Problem, int, int], Cost]

# name -> its cost from a problem and the tile sizes asked for (B_r, B_c); some kernels have their own tiles.
METHODS: Mapping[str, Build] = MappingProxyType(
    {
        "naive": lambda problem, rows, cols: naive_cost(problem),  # noqa: ARG005
        "math": lambda problem, rows, cols: math_cost(problem),  # noqa: ARG005
        "flash": lambda problem, rows, cols: fa2_cost(problem, rows=rows, cols=cols),
        "flash_v1": lambda problem, rows, cols: fa1_cost(problem, rows=rows, cols=cols),
        "flex": lambda problem, rows, cols: flex_cost(problem),  # noqa: ARG005
        "torch_cpu": lambda problem, rows, cols: torch_cpu_flash_cost(problem),  # noqa: ARG005
    }
)
TITLES: Mapping[str, str] = MappingProxyType(
    {
        "naive": "eager operators: QK^T, scale, mask, softmax, PV",
        "math": "PyTorch's MATH path",
        "flash": "FlashAttention-2, outer loop over queries",
        "flash_v1": "FlashAttention-1, outer loop over keys",
        "flex": "FlexAttention, blocks of 128",
        "torch_cpu": "PyTorch's CPU flash kernel, its own tiles",
    }
)


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """One method on one problem.

    `form_from_bytes` is the on-chip memory from which the closed form holds (0: any), `compulsory_from_bytes` the
    memory from which the traffic falls to the compulsory bytes; `intensity` counts useful FLOPs, None without bytes.
    """

    method: str
    cost: Cost
    form_from_bytes: int
    compulsory_from_bytes: int
    intensity_flop_per_byte: float | None


def forms(problem: Problem, rows: int, cols: int, methods: Iterable[str] = METHODS) -> tuple[Form, ...]:
    """The methods' forms. Raises: InvalidInput for a tile size below 1."""
    return tuple(_form(name, problem, METHODS[name](problem, rows, cols)) for name in methods)


def _form(name: str, problem: Problem, cost: Cost) -> Form:
    total = cost.logical.total_bytes
    tiles = cost.tiles
    on_chip = 0 if tiles is None else tile_capacity_bytes(problem, tiles.rows, tiles.cols)
    if tiles is None:
        everything = problem.compulsory_read_bytes + cost.peak_bytes
    else:
        everything = on_chip + problem.storage(
            problem.kv_len, problem.qk_dim + problem.v_dim
        )  # K, V of a head stay
    return Form(
        method=name,
        cost=cost,
        form_from_bytes=on_chip,
        compulsory_from_bytes=everything,
        intensity_flop_per_byte=cost.useful_flops / total if total else None,
    )


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One term in symbols; `latex` is empty where it was not asked for."""

    tensor: str
    read: str
    write: str
    read_latex: str = ""
    write_latex: str = ""


def lines(terms: tuple[Term, ...], *, latex: bool = False) -> tuple[Line, ...]:
    """The terms as formulas; an empty text where nothing is read or written."""
    return tuple(
        Line(
            tensor=t.tensor,
            read=_if_any(t.read_formula, as_text),
            write=_if_any(t.write_formula, as_text),
            read_latex=_if_any(t.read_formula, as_latex) if latex else "",
            write_latex=_if_any(t.write_formula, as_latex) if latex else "",
        )
        for t in terms
    )


def _if_any(formula: str, shown: Callable[[str], str]) -> str:
    return shown(formula) if formula else ""


def counted(problem: Problem, rows: int, cols: int) -> dict[str, Number]:
    """The counts behind the symbols of a masked schedule, for tiles of `rows` by `cols`."""
    seen = visits(problem, rows, cols)
    return {"L": seen.keys, "R": seen.rows, "R_0": seen.rows_met, "W": seen.keys_met}


def total_text(terms: tuple[Term, ...]) -> str:
    """Reads and writes of all terms in one expression."""
    return as_text(total_formula(terms))


def total_latex(terms: tuple[Term, ...]) -> str:
    """The same in LaTeX."""
    return as_latex(total_formula(terms))


def glossary(*tables: tuple[Term, ...]) -> dict[str, str]:
    """What the symbols in these tables mean."""
    used = {name for terms in tables for name in names_in(total_formula(terms))}
    return {name: meaning for name, meaning in GLOSSARY.items() if name in used}
