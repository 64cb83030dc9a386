"""Formulas: one text from which a number, a sympy expression, plain text and LaTeX are all derived.

A formula is Python arithmetic (`+ - *` and `cdiv`) over the symbols below, so that a term of a table cannot
say one thing and count another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from types import CodeType, MappingProxyType
from typing import Any

from attnprof.core.problem import Problem
from attnprof.core.traffic import Term

GLOSSARY: Mapping[str, str] = MappingProxyType(
    {
        "B": "batch",
        "H_q": "query heads",
        "H_k": "KV heads",
        "g": "query heads per KV head, H_q / H_k",
        "N_q": "query length",
        "N_k": "key length",
        "d": "head dim of q and k",
        "d_v": "head dim of v and o",
        "e": "bytes per element",
        "c": "bytes per element that the method computes in",
        "B_r": "query rows per tile",
        "B_c": "keys per tile",
        "L": "keys streamed by the query tiles of one head, hidden tiles skipped, summed over batch",
        "R": "query rows streamed by the key tiles of one head, hidden tiles skipped, summed over batch",
        "R_0": "query rows met by at least one key tile, per head, summed over batch",
        "K_0": "keys met by at least one query tile, per head, summed over batch",
        "A": "elements of the boolean mask tensor",
        "A_r": "rows of the boolean mask tensor",
        "W": "visible keys of one head, summed over batch",
        "s": "parts that the keys are split into",
        "t": "threads",
        "n_b": "blocks of the block mask",
    }
)

Number = int | Fraction
Symbols = Mapping[str, Number]


def cdiv(a: Number, b: Number) -> int:
    """Quotient rounded up."""
    return -(-a // b)


def symbols_of(problem: Problem, **more: Number) -> dict[str, Number]:
    """The symbols that every problem has, and `more` of the method's own (tile sizes, streamed keys)."""
    element = Fraction(problem.dtype.bits, 8)
    return {
        "B": problem.batch, "H_q": problem.q_heads, "H_k": problem.kv_heads, "g": problem.group,
        "N_q": problem.q_len, "N_k": problem.kv_len, "d": problem.qk_dim, "d_v": problem.v_dim,
        "e": element.numerator if element.denominator == 1 else element, **more,
    }  # fmt: skip


def evaluate(formula: str, symbols: Symbols) -> int:
    """The number of a formula, rounded up to whole bytes.

    >>> evaluate("B*cdiv(N_q, B_r)*N_k", {"B": 2, "N_q": 100, "B_r": 64, "N_k": 10})
    40
    """
    if not formula:
        return 0
    return math.ceil(exact_value(formula, symbols))


def exact_value(formula: str, symbols: Symbols) -> Number:
    """The number of a formula, exact."""
    value: Number = eval(
        _code(formula), {"__builtins__": {}, "cdiv": cdiv}, dict(symbols)
    )  # our own texts only
    return value


@lru_cache(maxsize=1024)
def _code(formula: str) -> CodeType:
    return compile(formula, "<formula>", "eval")


def names_in(formula: str) -> frozenset[str]:
    """The symbols of a formula."""
    return frozenset(_code(formula).co_names) - {"cdiv"}


def make_term(symbols: Symbols, tensor: str, *, read: str = "", write: str = "", note: str = "") -> Term:
    """A table line whose numbers are those of its formulas."""
    return Term(
        tensor=tensor,
        read_bytes=evaluate(read, symbols),
        write_bytes=evaluate(write, symbols),
        read_formula=read,
        write_formula=write,
        note=note,
    )


def total_formula(terms: tuple[Term, ...]) -> str:
    """The sum of all reads and writes of a table."""
    return " + ".join(f"({part})" for t in terms for part in (t.read_formula, t.write_formula) if part) or "0"


def expression(formula: str) -> Any:
    """The formula as a sympy expression over positive integer symbols; `cdiv` becomes a ceiling."""
    import sympy

    names: dict[str, Any] = {name: sympy.Symbol(name, positive=True, integer=True) for name in GLOSSARY}
    return sympy.sympify(formula, locals={**names, "cdiv": lambda a, b: sympy.ceiling(a / b)})


def simplified(formula: str) -> Any:
    """The formula in sympy's collected form, common factors in front."""
    import sympy

    return sympy.factor_terms(sympy.expand(expression(formula)))


def as_text(formula: str) -> str:
    """The formula as a line of text.

    >>> as_text("N_q*d*e + N_q*d*e")
    '2*N_q*d*e'
    """
    return str(simplified(formula)) if formula else "0"


def as_latex(formula: str) -> str:
    """The formula in LaTeX.

    >>> as_latex("B*N_q**2")
    'B N_{q}^{2}'
    """
    import sympy

    return str(sympy.latex(simplified(formula))) if formula else "0"
