"""Checks on a mask's values: what it means together with is_causal, and what it hides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attnprof.core.record import Judgment, Severity
from attnprof.explain.call_checks import alarm

if TYPE_CHECKING:
    from torch import Tensor


def meaning_of_both(q: Tensor, k: Tensor, attn_mask: Tensor | None) -> str:
    """What a mask and is_causal together let through."""
    if attn_mask is None:
        return ""
    both = visible(q, k, attn_mask, is_causal=True)
    return f"{int(both.sum())} pairs and {int((~both.any(-1)).sum())} empty rows in {tuple(both.shape)}"


def check_float_mask(attn_mask: Tensor | None) -> Iterator[Judgment]:
    """A float mask of zeros and ones adds 1 to the visible scores and hides nothing."""
    if attn_mask is None or not attn_mask.dtype.is_floating_point or attn_mask.numel() == 0:
        return
    if bool(((attn_mask == 0) | (attn_mask == 1)).all()) and bool((attn_mask == 1).any()):
        yield alarm(
            "float-01-mask",
            "attn_mask is of a floating type with only 0 and 1: it is added to the scores and hides nothing",
            "pass mask.bool() (True = visible), or 0 and -inf; allow float-01-mask if the addition is meant",
        )
    if bool(attn_mask.isnan().any()):
        yield alarm(
            "nan-mask", "attn_mask holds NaN", "each row that it touches becomes NaN: -inf hides a key"
        )


def visible(q: Tensor, k: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Tensor:
    """Which pairs a call lets through, as a boolean tensor of the mask's own rank (2 at least)."""
    import torch

    q_len, kv_len = q.shape[-2], k.shape[-2]
    seen = torch.ones(q_len, kv_len, dtype=torch.bool, device=q.device)
    if is_causal:
        seen = seen.tril()
    if attn_mask is None:
        return seen
    passes = attn_mask if attn_mask.dtype == torch.bool else attn_mask != float("-inf")
    return passes & seen


def check_mask_rule(q: Tensor, k: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Iterator[Judgment]:
    """A mask tensor that says only full or causal."""
    import torch

    if attn_mask is None or is_causal or attn_mask.numel() == 0 or q.shape[-2] * k.shape[-2] == 0:
        return
    if attn_mask.dtype != torch.bool and bool(((attn_mask != 0) & (attn_mask != float("-inf"))).any()):
        return  # a bias, not a mask
    seen = visible(q, k, attn_mask, is_causal=False)
    q_len, kv_len = q.shape[-2], k.shape[-2]
    ones = torch.ones(q_len, kv_len, dtype=torch.bool, device=q.device)
    rules = {"full": ones, "causal": ones.tril(), "causal:bottom_right": ones.tril(kv_len - q_len)}
    for name, rule in rules.items():
        if bool((seen == rule).all()):
            fixes = {"full": "drop it", "causal": "pass is_causal=True"}
            remedy = fixes.get(name, "use causal_lower_right")
            yield Judgment(
                code=f"mask-equals-{name.partition(':')[0]}",
                message=f"attn_mask {tuple(attn_mask.shape)} equals {name}",
                remedy=f"{remedy}: CUDA flash takes no mask tensor, and a rule lets a kernel skip tiles",
                severity=Severity.NOTE,
            )
            return


def check_empty_rows(q: Tensor, k: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Iterator[Judgment]:
    """Queries that see no key, over all batch elements and heads."""
    if attn_mask is None or q.dim() < 2 or k.shape[-2] == 0:
        return
    empty = ~visible(q, k, attn_mask, is_causal).any(-1)
    rows = int(empty.expand(q.shape[:-1]).sum())
    if rows:
        yield Judgment(
            code="empty-rows",
            message=f"{rows} empty row{'s' * (rows != 1)}: queries that see no key",
            remedy="their output is 0 by definition; a textbook softmax gives NaN there",
            severity=Severity.NOTE,
        )


def check_hidden_values(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, is_causal: bool
) -> Iterator[Judgment]:
    """A weight of exactly 0 times inf or NaN is NaN: what a mask hides must still be finite."""
    if (attn_mask is None and not is_causal) or q.shape[-2] == 0 or not k.is_floating_point():
        return
    hidden = ~visible(q, k, attn_mask, is_causal)
    keys = hidden.any(dim=-2).flatten(0, -2).any(dim=0) if hidden.dim() > 2 else hidden.any(dim=-2)
    for name, tensor in (("k", k), ("v", v)):
        bad = ~tensor.isfinite().all(dim=-1)
        bad_keys = bad.flatten(0, -2).any(dim=0) if bad.dim() > 1 else bad
        where = (bad_keys & keys).nonzero()
        if len(where):
            yield alarm(
                "hidden-non-finite",
                f"{name} is not finite at key {int(where[0])}, which the mask hides from a query",
                "0 x inf and 0 x NaN are NaN and reach rows that do not see it: fill hidden k and v with 0",
            )
