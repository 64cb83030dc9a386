"""The gate: what must be said, or refused, before a kernel runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from attnprof.core.errors import InvalidProblem
from attnprof.core.problem import Problem
from attnprof.core.record import Judgment, Severity
from attnprof.explain import problem_checks as checks
from attnprof.explain.call import Call
from attnprof.explain.call_checks import check_both_set, check_labels, check_shapes
from attnprof.explain.cpu import cpu_flags, emulated_judgment
from attnprof.explain.observed import backend_name

if TYPE_CHECKING:
    from torch import Tensor


def gate_problem(
    problem: Problem, device: str = "cpu", *, backend: str = "", flags: frozenset[str] | None = None
) -> tuple[Judgment, ...]:
    """Judgments on a problem before it runs; pure arithmetic, no tensor is made.

    `backend` is the kernel that a variant asks for, by PyTorch's name or attnprof's, where it asks for one;
    `flags` replaces this CPU's feature flags.

    >>> from attnprof.core.mask import Causal
    >>> p = Problem(q_heads=4, q_len=1, kv_len=16, mask=Causal())
    >>> gate_problem(p)[0].message
    '1 of 16 keys visible; is_causal is top-left'
    """
    found = [
        *checks.check_alignment(problem),
        *checks.check_empty_rows(problem),
        *checks.check_mask_is_rule(problem),
        *checks.check_index_limits(problem, backend_name(backend)),
        *checks.check_grid(problem, device),
        *checks.check_dropout(problem),
        *checks.check_layout(problem),
        *checks.check_math_memory(problem, backend_name(backend)),
    ]
    if device.partition(":")[0] == "cpu":
        emulated = emulated_judgment(problem.dtype, cpu_flags() if flags is None else flags)
        found += [emulated] if emulated else []
    return tuple(found)


def judge_tensors(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    dropout_p: float = 0.0,
    enable_gqa: bool = False,
    training: bool | None = None,
) -> tuple[Judgment, ...]:
    """Judgments on one call's tensors; an alarm is a call that PyTorch runs wrongly, silently or not at all.

    Shapes: q (B, H_q, N_q, d), k (B, H_k, N_k, d), v (B, H_k, N_k, d_v), or without B and H.
    """
    from attnprof.explain import mask_checks

    call = Call.from_tensors(
        q, k, v, attn_mask, dropout_p, is_causal, enable_gqa=enable_gqa, training=training
    )
    shapes = tuple(check_shapes(call))
    if shapes:
        return shapes
    return (
        *check_both_set(call, mask_checks.meaning_of_both(q, k, attn_mask) if is_causal else ""),
        *mask_checks.check_float_mask(attn_mask),
        *mask_checks.check_mask_rule(q, k, attn_mask, is_causal),
        *mask_checks.check_empty_rows(q, k, attn_mask, is_causal),
        *mask_checks.check_hidden_values(q, k, v, attn_mask, is_causal),
        *check_labels(call),
    )


def gate_tensors(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    dropout_p: float = 0.0,
    enable_gqa: bool = False,
    training: bool | None = None,
    allow: Collection[str] = (),
) -> tuple[Judgment, ...]:
    """Refuse a dangerous call; the judgments on any other.

    `allow` names codes (such as `float-01-mask`) that are meant so and only labelled.
    Raises: InvalidProblem with the value, the rule and the way out.
    """
    found = judge_tensors(
        q, k, v, attn_mask, is_causal=is_causal, dropout_p=dropout_p, enable_gqa=enable_gqa, training=training
    )
    refuse(found, allow)
    return found


def refuse(judgments: Collection[Judgment], allow: Collection[str] = ()) -> None:
    """Raise InvalidProblem for the first alarm whose code is not in `allow`."""
    for judgment in judgments:
        if judgment.severity is Severity.ALARM and judgment.code not in allow:
            raise InvalidProblem(f"{judgment.message}: {judgment.remedy} [{judgment.code}]")
