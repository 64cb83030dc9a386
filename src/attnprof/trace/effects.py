"""What an operator reads and writes, from its schema."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_OVERWRITES = frozenset({
    "copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "_foreach_copy_", "set_",
})  # fmt: skip
_METADATA = frozenset({
    "empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "resize_", "is_same_size",
    "_fused_sdp_choice", "record_stream", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset",
})  # fmt: skip
_SHAPE_ONLY = frozenset({"zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like"})
MATMULS = frozenset({"mm", "bmm", "addmm", "addmm_", "baddbmm", "baddbmm_", "mv", "addmv", "addmv_", "dot"})
_POINTWISE = frozenset({"copy_", "masked_fill", "masked_fill_"})  # what torch's own tag leaves out
_FUSED_MARKS = ("attention", "flash", "cudnn", "mkldnn", "lstm", "gru", "fused", "transformer_encoder")


@dataclass(frozen=True, kw_only=True)
class Effects:
    """How an operator treats its arguments."""

    name: str
    moves_data: bool
    reads_arguments: bool
    mutated: tuple[str, ...]
    overwritten: tuple[str, ...]
    matmul: bool
    pointwise: bool
    fused: bool


@cache
def effects(func: Any) -> Effects:
    """The effects of an `OpOverload` (or of a higher-order operator, which has no schema)."""
    import torch

    schema = getattr(func, "_schema", None)
    if schema is None:
        return Effects(
            name=str(func),
            moves_data=True,
            reads_arguments=True,
            mutated=(),
            overwritten=(),
            matmul=False,
            pointwise=False,
            fused=True,
        )
    namespace, _, full = schema.name.partition("::")
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    overwritten = [a.name for a in written if a.kwarg_only or full in _OVERWRITES]
    return Effects(
        name=full if namespace == "aten" else f"{namespace}.{full}",
        moves_data=full not in _METADATA,
        reads_arguments=full not in _SHAPE_ONLY and not full.startswith("new_"),
        mutated=tuple(a.name for a in written),
        overwritten=tuple(overwritten),
        matmul=full in MATMULS,
        pointwise=torch.Tag.pointwise in func.tags or full in _POINTWISE,
        fused=namespace not in {"aten", "prim", "prims"} or any(mark in full for mark in _FUSED_MARKS),
    )


def named_arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The call's arguments by name."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return {str(i): value for i, value in enumerate(args)} | kwargs
    return {a.name: value for a, value in zip(schema.arguments, args, strict=False)} | kwargs


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors in an argument or a result, also inside lists and tuples."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []
