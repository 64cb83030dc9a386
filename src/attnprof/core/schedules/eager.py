"""Eager (unfused) attention: each operator reads and writes whole tensors."""

from __future__ import annotations

import math

import msgspec

from attnprof.core.mask import Causal, Dense, Full, Lengths
from attnprof.core.problem import BACKWARD_WITH_STORED_P, Direction, Problem
from attnprof.core.schedules.common import cost
from attnprof.core.schedules.formula import Number, symbols_of
from attnprof.core.schedules.program import Buffer, Program, Step
from attnprof.core.traffic import ByteKind, Cost

# Sizes in bytes, for elements of {e} bytes.
Q = "B*H_q*N_q*d*{e}"
K = "B*H_k*N_k*d*{e}"
KX = "B*H_q*N_k*d*{e}"
V = "B*H_k*N_k*d_v*{e}"
VX = "B*H_q*N_k*d_v*{e}"
OUT = "B*H_q*N_q*d_v*{e}"
S = "B*H_q*N_q*N_k*{e}"
PAIRS, ROWS = "B*H_q*N_q*N_k", "B*H_q*N_q"
INPUTS = frozenset({"q", "k", "v", "mask", "do"})


def naive_cost(problem: Problem, *, scale_pass: bool = True) -> Cost:
    """QK^T, scale, mask, softmax, PV as separate operators over score matrices; P stored for a backward.

    Without `scale_pass` the scale is a factor inside the matmuls, as textbooks count it.
    """
    forward, backward = _naive_forward(problem), _naive_backward(problem)
    if not scale_pass:
        forward, backward = _merged(forward, "s0", "s1"), _merged(backward, "ds0", _unscaled(problem))
    return _cost(problem, _program(problem, forward, backward))


def _unscaled(problem: Problem) -> str:
    """The gradient buffer that the backward's scale reads."""
    return "ds2" if isinstance(problem.mask, Full) else "ds1"


def _merged(steps: list[Step], one: str, other: str) -> list[Step]:
    """The steps without the scale's own, its result and its operand being one buffer."""

    def names(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(other if name == one else name for name in given)

    kept = [step for step in steps if step.op != "scale"]
    return [Step(s.op, names(s.reads), names(s.writes), names(s.frees), s.scratch) for s in kept]


def math_cost(problem: Problem) -> Cost:
    """PyTorch's MATH path: q and k each scaled by sqrt(scale), mask as floats, 16 bit computed in fp32."""
    return _cost(problem, _program(problem, _math_forward(problem), _math_backward(problem)))


def _cost(problem: Problem, program: Program) -> Cost:
    stored, rows = _mask_elements(problem)
    at = symbols_of(problem, A=stored, A_r=rows, c=max(4, problem.dtype.bits // 8))
    logical = program.traffic(ByteKind.LOGICAL, at, level="dram", policy="operators, no cache")
    boundary = program.traffic(ByteKind.OP_BOUNDARY, at, level="dram", policy="operands once per operator")
    return cost(
        problem,
        logical=logical,
        op_boundary=boundary,
        executed_pairs=problem.batch * problem.q_heads * problem.q_len * problem.kv_len,
        workspace_bytes=max(program.peak_bytes(at) - problem.compulsory_write_bytes, 0),
        backward_factor=BACKWARD_WITH_STORED_P,
    )


def _mask_elements(problem: Problem) -> tuple[Number, Number]:
    """Elements and rows of the boolean tensor that stands for the mask."""
    if isinstance(problem.mask, Full):
        return 0, 0
    if isinstance(problem.mask, Dense):
        return math.prod(problem.mask.shape), math.prod(problem.mask.shape[:-1])
    rows = problem.q_len * (problem.batch if isinstance(problem.mask, Lengths) else 1)
    return rows * problem.kv_len, rows


def _program(problem: Problem, forward: list[Step], backward: list[Step]) -> Program:
    both = _saving(forward, backward) + backward
    parts = {Direction.FWD: forward, Direction.BWD: backward, Direction.FWD_BWD: both}
    return Program(buffers=_buffers(), steps=tuple(parts[problem.direction]), kept=INPUTS)


def _saving(forward: list[Step], backward: list[Step]) -> list[Step]:
    """The forward of a training call: what the backward reads stays alive."""
    needed = {name for step in backward for name in step.reads}
    frees = [tuple(n for n in step.frees if n not in needed) for step in forward]
    return [Step(s.op, s.reads, s.writes, f, s.scratch) for s, f in zip(forward, frees, strict=True)]


def _buffers() -> dict[str, Buffer]:
    """Every storage of both methods; `e` is the input's element, `c` the computing element of MATH."""
    e, c = "e", "c"
    table = {
        "q": ("Q", Q, e), "v": ("V", V, e), "k": ("K", K, e), "o": ("O", OUT, e), "do": ("dO", OUT, e),
        "kx": ("K expanded", KX, e), "vx": ("V expanded", VX, e),
        "s0": ("S", S, e), "s1": ("S", S, e), "s2": ("S", S, e), "p0": ("P", S, e), "p": ("P", S, e),
        "dp0": ("dP", S, e), "dp": ("dP", S, e), "ds2": ("dS", S, e),
        "ds1": ("dS", S, e), "ds0": ("dS", S, e),
        "dq": ("dQ", Q, e), "dk": ("dK", K, e), "dv": ("dV", V, e),
        "dkx": ("dK expanded", KX, e), "dvx": ("dV expanded", VX, e),
        # MATH, in the computing type
        "q32": ("Q upcast", Q, c), "k32": ("K upcast", K, c), "v32": ("V upcast", V, c),
        "qs": ("Q scaled", Q, c), "kx32": ("K expanded", KX, c), "vx32": ("V expanded", VX, c),
        "ks": ("K scaled", KX, c),
        "S0": ("S", S, c), "S1": ("S", S, c), "P": ("P", S, c), "Pe": ("P downcast", S, e),
        "o32": ("O upcast", OUT, c),
        "do32": ("dO upcast", OUT, c), "dP": ("dP", S, c), "dS": ("dS", S, c),
        "dvx32": ("dV expanded", VX, c), "dv32": ("dV upcast", V, c), "dqs": ("dQ scaled", Q, c),
        "dq32": ("dQ upcast", Q, c), "dks": ("dK scaled", KX, c), "dkx32": ("dK expanded", KX, c),
        "dk32": ("dK upcast", K, c),
    }  # fmt: skip
    buffers = {n: Buffer(tensor=t, size=f.format(e=w)) for n, (t, f, w) in table.items()}
    masks = {
        "mask": ("A", ""), "seen_all": ("A", ""), "tril": ("A", ""),
        "hidden": ("A", PAIRS), "bias": ("A*e", PAIRS + "*e"), "bias32": ("A*c", PAIRS + "*c"),
        "seen": ("A_r", ""), "empty": ("A_r", ROWS),
    }  # fmt: skip
    buffers |= {n: Buffer(tensor="mask", size=size, asked=asked) for n, (size, asked) in masks.items()}
    for name in ("k", "v", "k32", "v32"):  # as the expansion reads them: g times
        buffers["g " + name] = msgspec.structs.replace(buffers[name], asked=f"g*{buffers[name].size}")
    return buffers


# --- naive, as variants/naive.py runs it --------------------------------------------------------------


def _naive_forward(problem: Problem) -> list[Step]:
    grouped, masked = problem.group > 1, not isinstance(problem.mask, Full)
    k, v = ("kx", "vx") if grouped else ("k", "v")
    steps = [Step("expand K", ("g k",), ("kx",)), Step("expand V", ("g v",), ("vx",))] if grouped else []
    steps += [Step("QK^T", ("q", k), ("s0",)), Step("scale", ("s0",), ("s1",), ("s0",))]
    scores = "s2" if masked else "s1"
    if masked:
        steps += [
            Step("not mask", ("mask",), ("hidden",)),
            Step("mask", ("s1", "hidden"), ("s2",), ("s1", "hidden")),
        ]
    if masked and problem.total_empty_rows:
        steps += [
            Step("softmax", (scores,), ("p0",)),
            Step("any key", ("mask",), ("seen",)),
            Step("not any", ("seen",), ("empty",), ("seen",)),
            Step("zero empty rows", ("p0", "empty"), ("p",), ("p0", "empty")),
        ]
    else:
        steps.append(Step("softmax", (scores,), ("p",)))
    return [*steps, Step("PV", ("p", v), ("o",), ("p", scores, "kx", "vx"))]


def _naive_backward(problem: Problem) -> list[Step]:
    grouped, masked = problem.group > 1, not isinstance(problem.mask, Full)
    k, v, dk, dv = ("kx", "vx", "dkx", "dvx") if grouped else ("k", "v", "dk", "dv")
    filled = masked and problem.total_empty_rows > 0
    softmax = "p0" if filled else "p"
    steps = [Step("dV", ("p", "do"), (dv,)), Step("dP", ("do", v), ("dp0",), ("p", v) if filled else (v,))]
    if filled:
        steps.append(Step("zero empty rows", ("dp0", "empty"), ("dp",), ("dp0", "empty")))
    gradient = "dp" if filled else "dp0"
    steps.append(Step("softmax backward", (gradient, softmax), ("ds2",), (gradient, softmax)))
    if masked:
        steps.append(Step("mask", ("ds2", "hidden"), ("ds1",), ("ds2", "hidden")))
    scores = "ds1" if masked else "ds2"
    steps += [
        Step("scale", (scores,), ("ds0",), (scores,)),
        Step("dK", ("q", "ds0"), (dk,)),
        Step("dQ", ("ds0", k), ("dq",), ("ds0",)),
    ]
    if grouped:
        steps += [Step("sum dK", ("dkx",), ("dk",), ("dkx",)), Step("sum dV", ("dvx",), ("dv",), ("dvx",))]
    return steps


# --- PyTorch's MATH path ------------------------------------------------------------------------------


def _computed_in_fp32(problem: Problem) -> bool:
    return problem.dtype.bits < 32


def _math_forward(problem: Problem) -> list[Step]:
    half, grouped = _computed_in_fp32(problem), problem.group > 1
    q, k, v = ("q32", "k32", "v32") if half else ("q", "k", "v")
    upcast = [Step("upcast", (n,), (n + "32",)) for n in ("q", "k", "v")] if half else []
    expand = (
        [Step("expand K", ("g " + k,), ("kx32",)), Step("expand V", ("g " + v,), ("vx32",))]
        if grouped
        else []
    )
    k, v = ("kx32", "vx32") if grouped else (k, v)
    steps = [
        *upcast, *_math_mask(problem), Step("scale Q", (q,), ("qs",)), *expand,
        Step("scale K", (k,), ("ks",)),
        Step("QK^T", ("qs", "ks"), ("S0",), ("ks",)),
    ]  # fmt: skip
    masked = not isinstance(problem.mask, Full)
    if masked:
        bias = "bias32" if _is_causal(problem) else "bias"
        steps.append(Step("add mask", ("S0", bias), ("S1",), ("S0",)))
    scores = "S1" if masked else "S0"
    steps.append(
        Step("softmax", (scores,), ("P",), (scores,), PAIRS)
    )  # scratch: a byte a pair finds empty rows
    if half:
        steps.append(Step("downcast P", ("P",), ("Pe",)))
    dead = ("P", "Pe", "qs", "bias", "bias32", "q32", "k32", "v32", "kx32", "vx32")
    if not half:
        return [*steps, Step("PV", ("P", v), ("o",), dead)]
    return [*steps, Step("PV", ("P", v), ("o32",)), Step("downcast O", ("o32",), ("o",), (*dead, "o32"))]


def _is_causal(problem: Problem) -> bool:
    """Whether the mask is handed over as PyTorch's `is_causal`."""
    square = problem.q_len == problem.kv_len
    return isinstance(problem.mask, Causal) and (square or problem.mask == Causal())


def _math_mask(problem: Problem) -> list[Step]:
    """The mask as a float tensor; PyTorch builds a causal one itself, from ones and tril."""
    if isinstance(problem.mask, Full):
        return []
    if not _is_causal(problem):
        return [Step("mask to float", ("mask",), ("bias",))]
    return [
        Step("ones", (), ("seen_all",)), Step("tril", ("seen_all",), ("tril",), ("seen_all",)),
        Step("mask to float", ("tril",), ("bias32",), ("tril",)),
    ]  # fmt: skip


def _math_backward(problem: Problem) -> list[Step]:
    half, grouped = _computed_in_fp32(problem), problem.group > 1
    do, v = ("do32" if half else "do"), ("vx32" if grouped else "v32" if half else "v")
    dv = "dvx32" if grouped else "dv32" if half else "dv"
    dkx = "dkx32" if grouped else "dk32" if half else "dk"
    dq = "dq32" if half else "dq"
    steps = [Step("upcast dO", ("do",), ("do32",))] if half else []
    steps += [
        Step("dV", ("P", do), (dv,)),
        Step("dP", (do, v), ("dP",), (do, v)),
        Step("softmax backward", ("dP", "P"), ("dS",), ("dP", "P")),
        Step("dK", ("qs", "dS"), ("dks",)),
        Step("dQ", ("dS", "ks"), ("dqs",), ("dS",)),
        Step("scale K", ("dks",), (dkx,), ("dks",)),
        Step("scale Q", ("dqs",), (dq,), ("dqs",)),
    ]
    if grouped:
        dk, dv = ("dk32", "dv32") if half else ("dk", "dv")
        steps += [Step("sum dK", (dkx,), (dk,), (dkx,)), Step("sum dV", ("dvx32",), (dv,), ("dvx32",))]
    if half:
        steps += [Step("downcast", (n + "32",), (n,), (n + "32",)) for n in ("dk", "dv", "dq")]
    return steps
