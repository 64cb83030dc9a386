"""Accuracy: a chunked float64 reference on the same (cast) inputs, and the verdict against naive's own error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from attnprof.bench.inputs import Inputs
from attnprof.core.errors import KernelError
from attnprof.core.problem import Direction, Problem
from attnprof.core.record import Accuracy, Verdict

if TYPE_CHECKING:
    from torch import Tensor

CHUNK_BYTES = 64 * 2**20  # of one float64 score block
REFERENCE_ULPS = 64  # what the float64 reference itself may be off, in units of its own rounding


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The float64 results of a problem, naive's error in the problem's dtype, and the error of rounding alone."""

    results: tuple[Tensor, ...]
    naive_error: float
    floor: float


def make_reference(problem: Problem, inputs: Inputs) -> Reference:
    """Compute the problem in float64 and, in the same chunks, in its own dtype."""
    import torch

    exact = attention_chunked(problem, inputs, torch.float64)
    dtype = getattr(torch, problem.dtype)
    naive = exact if dtype == torch.float64 else attention_chunked(problem, inputs, dtype)
    rounding = max(_max_abs(r.to(dtype).double() - r) for r in exact)
    own = REFERENCE_ULPS * 2.0**-53 * max(_max_abs(r) for r in exact)
    naive_error = max(_max_abs(n.double() - r) for n, r in zip(naive, exact, strict=True))
    return Reference(results=exact, naive_error=naive_error, floor=max(rounding, own))


def attention_chunked(problem: Problem, inputs: Inputs, dtype: object) -> tuple[Tensor, ...]:
    """Textbook attention by blocks of query rows: (o,), or gradients (dq, dk, dv), or both, by direction."""
    import torch

    q, k, v = (x.detach().to(dtype) for x in inputs.tensors)  # type: ignore[call-overload]  # a torch dtype
    if problem.direction is Direction.FWD:
        parts = [_rows_forward(problem, q[:, :, a:b], k, v, (a, b)) for a, b in _row_blocks(problem)]
        return (
            torch.cat(parts, dim=2)
            if parts
            else q.new_zeros(problem.batch, problem.q_heads, 0, problem.v_dim),
        )
    assert inputs.grad is not None
    grad = inputs.grad.to(dtype)  # type: ignore[call-overload]  # likewise
    return _with_gradients(problem, q, k, v, grad)


def _with_gradients(problem: Problem, q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
    import torch

    outputs, dq = [], []
    dk, dv = torch.zeros_like(k), torch.zeros_like(v)
    for start, stop in _row_blocks(problem):
        leaves = [x.clone().requires_grad_() for x in (q[:, :, start:stop], k, v)]
        with torch.enable_grad():
            block = _rows_forward(problem, leaves[0], leaves[1], leaves[2], (start, stop))
        part_q, part_k, part_v = torch.autograd.grad(block, leaves, grad[:, :, start:stop])
        outputs.append(block.detach())
        dq.append(part_q)
        dk += part_k
        dv += part_v
    gradients = (torch.cat(dq, dim=2), dk, dv)
    return gradients if problem.direction is Direction.BWD else (torch.cat(outputs, dim=2), *gradients)


def _row_blocks(problem: Problem) -> Iterator[tuple[int, int]]:
    row_bytes = 8 * max(problem.batch * problem.q_heads * problem.kv_len, 1)
    block = max(1, CHUNK_BYTES // row_bytes)
    for start in range(0, problem.q_len, block):
        yield start, min(start + block, problem.q_len)


def _rows_forward(problem: Problem, q: Tensor, k: Tensor, v: Tensor, rows: tuple[int, int]) -> Tensor:
    """Output of the query rows [start, stop); `q` holds just those."""
    from attnprof.variants._tensors import mask_tensor

    start, stop = rows
    shape = (problem.batch, problem.kv_heads, problem.group, stop - start)
    scores = (q.reshape(*shape, problem.qk_dim) @ k.unsqueeze(2).transpose(-2, -1)) * problem.effective_scale
    scores = scores.reshape(problem.batch, problem.q_heads, stop - start, problem.kv_len)
    mask = mask_tensor(problem, str(q.device), rows=rows)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # a row without keys is 0, not NaN
    grouped = weights.reshape(*shape, problem.kv_len) @ v.unsqueeze(2)
    return grouped.reshape(problem.batch, problem.q_heads, stop - start, problem.v_dim)


def judge(problem: Problem, results: tuple[Tensor, ...], reference: Reference | None) -> Accuracy:
    """Compare a kernel's results with the reference; a result of another dtype than the problem's is wrong.

    Raises: KernelError when a result has another shape than the problem's.
    """
    if reference is None or problem.dropout:
        reason = "dropout: two runs differ" if problem.dropout else "the check was switched off"
        return Accuracy(verdict=Verdict.NOT_APPLICABLE, reason=reason)
    _require_shapes(results, reference.results)
    nan_count = sum(int(r.isnan().sum()) for r in results)
    inf_count = sum(int(r.isinf().sum()) for r in results)
    if nan_count or inf_count:
        nan_rows = sum(int(r.isnan().any(dim=-1).sum()) for r in results)
        reason = f"{nan_rows} NaN row{'s' * (nan_rows != 1)}" if nan_rows else f"{inf_count} infinite values"
        return Accuracy(
            verdict=Verdict.NAN, reason=reason, nan_count=nan_count, inf_count=inf_count, nan_rows=nan_rows,
            naive_error=reference.naive_error, floor=reference.floor,
        )  # fmt: skip
    found = _judge_error(results, reference)
    other = _other_dtype(problem, results)
    return msgspec.structs.replace(found, verdict=Verdict.WRONG, reason=other) if other else found


def _other_dtype(problem: Problem, results: tuple[Tensor, ...]) -> str:
    """Which result has another dtype than the problem, in words; empty when none has."""
    import torch

    want = getattr(torch, problem.dtype)
    got = next((r.dtype for r in results if r.dtype != want), None)
    return "" if got is None else f"result is {got}, the problem's dtype is {want}".replace("torch.", "")


def _judge_error(results: tuple[Tensor, ...], reference: Reference) -> Accuracy:
    pairs = [(r.double() - e, e) for r, e in zip(results, reference.results, strict=True)]
    error = max(_max_abs(difference) for difference, _ in pairs)
    norm = sum(float(e.square().sum()) for _, e in pairs) ** 0.5
    rel_l2 = sum(float(d.square().sum()) for d, _ in pairs) ** 0.5 / norm if norm else None
    allowed = 2 * reference.naive_error + reference.floor
    wrong = error > allowed
    return Accuracy(
        verdict=Verdict.WRONG if wrong else Verdict.PASS,
        reason=f"error {error:.2g} is above 2 x naive + rounding = {allowed:.2g}" if wrong else "",
        max_abs_error=error, rel_l2_error=rel_l2, naive_error=reference.naive_error, floor=reference.floor,
    )  # fmt: skip


def _require_shapes(results: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    for got, want in zip(results, expected, strict=True):
        if got.shape != want.shape:
            raise KernelError(
                f"the kernel returned shape {tuple(got.shape)}, the problem's result is {tuple(want.shape)} "
                "(batch, heads, length, dim)"
            )


def _max_abs(x: Tensor) -> float:
    return float(x.abs().max()) if x.numel() else 0.0
