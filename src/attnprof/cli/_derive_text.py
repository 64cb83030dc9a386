"""The tables of `attnprof derive`, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnprof.cli.derive import IO_BOUND_MEMORY_BYTES, Memory, textbook_entry
from attnprof.core.problem import Problem
from attnprof.core.schedules import derive
from attnprof.core.schedules.common import compulsory
from attnprof.core.schedules.derive import Form
from attnprof.core.schedules.dram import predict_dram
from attnprof.core.units import format_bytes, format_si
from attnprof.textbook import TEXTBOOK_FLASH, TEXTBOOK_NAIVE

NOT_A_NUMBER = "n/a"


def show(
    problems: Sequence[Problem],
    rows: int,
    cols: int,
    *,
    symbolic: bool,
    notes: tuple[str, str],
    memory: Memory | None,
) -> None:
    """Print all tables: work, bytes by method, textbook, on-chip capacities; formulas if asked."""
    console = Console(highlight=False)
    if not problems:
        return
    every = [(problem, derive.forms(problem, rows, cols)) for problem in problems]
    label = _labels(problems)
    console.print(escape(_shared(problems)), soft_wrap=True)
    _put(console, _work(every, label))
    _put(console, _bytes(every, label, rows, cols))
    _print_textbook(console, problems, label, (rows, cols), notes)
    _put(console, _capacities(every[-1]))
    if memory is not None:
        _put(console, _dram(every[-1], memory))
    if len(every) == 1:
        for form in every[0][1][:3:2]:  # naive and flash, term by term
            _put(console, _terms(form))
    if symbolic:
        _print_formulas(console, every[-1])
        values = derive.counted(problems[-1], rows, cols)
        shown = ", ".join(f"{name} = {value:,}" for name, value in values.items())
        console.print(escape(f"Counted at {rows}x{cols}: {shown}"))


def _labels(problems: Sequence[Problem]) -> dict[Problem, str]:
    """A row's name: what differs between the problems."""
    names = (
        "batch",
        "q_heads",
        "kv_heads",
        "q_len",
        "kv_len",
        "qk_dim",
        "v_dim",
        "dtype",
        "mask",
        "direction",
    )
    varying = [n for n in names if len({str(getattr(p, n)) for p in problems}) > 1] or ["q_len"]
    if "q_len" in varying and "kv_len" in varying and all(p.q_len == p.kv_len for p in problems):
        varying.remove("kv_len")
    short = {
        "batch": "B",
        "q_heads": "H",
        "kv_heads": "Hk",
        "q_len": "",
        "kv_len": "x",
        "qk_dim": "d",
        "v_dim": "dv",
    }
    if all(p.qk_dim == p.v_dim for p in problems) and "v_dim" in varying:
        varying.remove("v_dim")
    return {p: " ".join(f"{short.get(n, '')}{getattr(p, n)}" for n in varying) for p in problems}


def _shared(problems: Sequence[Problem]) -> str:
    first = problems[0]
    if len(problems) == 1:
        return str(first)
    heads = f"{first.q_heads}" if first.group == 1 else f"{first.q_heads}/{first.kv_heads}"
    sizes = f"B{first.batch} H{heads} N{first.q_len} d{first.qk_dim} {first.dtype} {first.mask}"
    return f"{len(problems)} problems; the first: {sizes}"


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1))
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index == 0 else "right", no_wrap=index > 0)
    return table


def _put(console: Console, table: Table) -> None:
    """Print a table under its title; rich would wrap the title to the table's width."""
    title, table.title = table.title, None
    console.print(f"\n{escape(str(title))}", style="bold")
    console.print(table)


def _ratio(numerator: float, denominator: float) -> str:
    return f"{numerator / denominator:.4g}" if denominator else NOT_A_NUMBER


def _work(every: Sequence[tuple[Problem, tuple[Form, ...]]], label: dict[Problem, str]) -> Table:
    table = _table(
        "Work (FLOPs: multiply and add are two; exact pairs)",
        "N", "pairs", "useful", "naive\nexecutes", "flash\nexecutes", "flex\nexecutes", "exp", "least\nbytes", "FLOP/B",
    )  # fmt: skip
    for problem, forms in every:
        executed = {form.method: form.cost.executed_flops for form in forms}
        table.add_row(
            label[problem], f"{problem.pairs}", _flops(forms[0].cost.useful_flops),
            *(_flops(executed[name]) for name in ("naive", "flash", "flex")), _flops(problem.exp_ops),
            format_bytes(problem.compulsory_bytes), _ratio(problem.useful_flops, problem.compulsory_bytes),
        )  # fmt: skip
    return table


def _flops(value: float) -> str:
    return format_si(value, "", digits=4).strip()


def _bytes(
    every: Sequence[tuple[Problem, tuple[Form, ...]]], label: dict[Problem, str], rows: int, cols: int
) -> Table:
    table = _table(
        f"Logical bytes, no cache beyond the tile (flash: {rows}x{cols}), O counted by all",
        "N", *derive.METHODS, "naive/\nflash",
    )  # fmt: skip
    for problem, forms in every:
        total = {form.method: form.cost.logical.total_bytes for form in forms}
        table.add_row(
            label[problem], *map(format_bytes, total.values()), _ratio(total["naive"], total["flash"])
        )
    table.add_row("FLOP/B")
    for problem, forms in every:
        values = [form.intensity_flop_per_byte for form in forms]
        table.add_row(label[problem], *(NOT_A_NUMBER if not v else f"{v:.4g}" for v in values))
    return table


def _print_textbook(
    console: Console, problems: Sequence[Problem], label: dict[Problem, str], block: tuple[int, int],
    notes: tuple[str, str],
) -> None:  # fmt: skip
    entries = [(p, entry) for p in problems if (entry := textbook_entry(p, *block)) is not None]
    if not entries:
        console.print("\nThe textbook's forms are for a square forward with one head dim: n/a here.")
        return
    table = _table(
        "Textbook forms, one head, no mask",
        "N", "naive", "flash", "O", "naive/\nflash", "O in\nboth", "O in\nnone", "limit", "DRAM/\nDRAM",
    )  # fmt: skip
    for problem, entry in entries:
        table.add_row(label[problem], *_textbook_cells(entry))
    _put(console, table)
    last = entries[-1][1]
    bound, least = format_bytes(last["io_lower_bound_order_bytes"]), format_bytes(IO_BOUND_MEMORY_BYTES)
    console.print(f"I/O lower bound at the last N, on-chip memory {least}: order of {bound} (no constant).")
    for note in notes:
        console.print(escape(note))


def _textbook_cells(entry: dict[str, Any]) -> list[str]:
    sizes = [format_bytes(entry[name]) for name in ("naive_bytes", "flash_bytes", "o_bytes")]
    names = ("ratio", "ratio_with_o", "ratio_without_o", "ratio_limit", "dram_ratio")
    return sizes + [f"{entry[name]:.4g}" for name in names]


def _capacities(last: tuple[Problem, tuple[Form, ...]]) -> Table:
    problem, forms = last
    table = _table(
        f"On-chip memory at N = {problem.q_len}: from where a form holds, and all is compulsory",
        "method", "tiles", "form holds from", "compulsory from", "peak memory",
    )  # fmt: skip
    for form in forms:
        tiles = form.cost.tiles
        table.add_row(
            form.method,
            f"{tiles.rows}x{tiles.cols}" if tiles else "whole",
            format_bytes(form.form_from_bytes) if form.form_from_bytes else "any",
            format_bytes(form.compulsory_from_bytes),
            format_bytes(form.cost.peak_bytes),
        )
    return table


def _dram(last: tuple[Problem, tuple[Form, ...]], memory: Memory) -> Table:
    problem, forms = last
    table = _table(
        f"DRAM bytes predicted at N = {problem.q_len}, cache {format_bytes(memory.llc_bytes)}, "
        f"{memory.resident} tiles at a time",
        "method", "predicted", "at least", "at most", "working set",
    )  # fmt: skip
    for form in forms:
        found = predict_dram(problem, form.cost, **memory._asdict())
        value = format_bytes(found.value_bytes) if found.claimed else "bracket only"
        bracket = (format_bytes(found.low_bytes), format_bytes(found.high_bytes))
        table.add_row(form.method, value, *bracket, f"{format_bytes(found.active_bytes)}, {found.regime}")
    return table


def _terms(form: Form) -> Table:
    table = _table(
        f"{form.method}: {form.cost.logical.policy} ({form.cost.logical.level})", "tensor", "read", "write"
    )
    for term in form.cost.logical.terms:
        table.add_row(term.tensor, f"{term.read_bytes:,}", f"{term.write_bytes:,}")
    logical = form.cost.logical
    table.add_row("sum", f"{logical.read_bytes:,}", f"{logical.write_bytes:,}")
    return table


def _print_formulas(console: Console, last: tuple[Problem, tuple[Form, ...]]) -> None:
    problem, forms = last
    tables = [("compulsory", compulsory(problem).terms)]
    tables += [(form.method, form.cost.logical.terms) for form in forms]
    for name, terms in tables:
        table = _table(
            f"{name}: {derive.TITLES.get(name, 'each storage once')}",
            "tensor",
            "bytes read",
            "bytes written",
        )
        for line in derive.lines(terms):
            table.add_row(line.tensor, escape(line.read), escape(line.write))
        _put(console, table)
        console.print(escape(f"sum = {derive.total_text(terms)}"))
    console.print("\ntextbook, one head (FLOPs 4*N*N*d)")
    console.print(f"  naive = {TEXTBOOK_NAIVE}   (O left out)\n  flash = {TEXTBOOK_FLASH}   (O counted)")
    console.print("  ratio tends to 2*B_r/d\n\nSymbols")
    for name, meaning in derive.glossary(*(terms for _, terms in tables)).items():
        console.print(escape(f"  {name:<4} {meaning}"))
