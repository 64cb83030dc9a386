"""One call of scaled_dot_product_attention as a value: shapes, strides, dtypes, mask, flags; no data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from attnprof.core.dtypes import DType
from attnprof.core.errors import InvalidInput
from attnprof.core.mask import Align, Causal, Dense, Full, Lengths
from attnprof.core.problem import Direction, Problem

if TYPE_CHECKING:
    from torch import Tensor

_ITEM_BYTES = {"bool": 1, "int8": 1, "uint8": 1, "int32": 4, "int64": 8}


def known_dtype(name: str) -> DType | None:
    """The element type of that name, where attnprof has one."""
    return next((dtype for dtype in DType if dtype == name), None)


class TensorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor without its data. `storage_offset` and `strides` count elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    requires_grad: bool = False
    storage_offset: int = 0

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements by shape."""
        return math.prod(self.shape)

    @property
    def item_bytes(self) -> float:
        """Storage of one element."""
        known = known_dtype(self.dtype)
        return known.bytes if known else _ITEM_BYTES.get(self.dtype, 8)

    @property
    def shape_bytes(self) -> int:
        """Bytes of a contiguous copy."""
        return math.ceil(self.numel * self.item_bytes)


def contiguous(shape: tuple[int, ...], dtype: str, *, requires_grad: bool = False) -> TensorSpec:
    """A contiguous tensor of `shape`.

    >>> contiguous((2, 3), "float32").strides
    (3, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return TensorSpec(shape=shape, strides=tuple(reversed(strides)), dtype=dtype, requires_grad=requires_grad)


def spec_of(tensor: Tensor) -> TensorSpec:
    """The specification of a strided PyTorch tensor.

    Raises: InvalidInput for a nested or sparse tensor, whose dispatch follows other rules.
    """
    import torch

    if tensor.is_nested or tensor.layout != torch.strided:
        kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        raise InvalidInput(
            f"a tensor is {kind}: only strided tensors are explained; pad it to (B, H, N, d) and use a Lengths mask"
        )
    return TensorSpec(
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        dtype=str(tensor.dtype).removeprefix("torch."),
        requires_grad=tensor.requires_grad,
        storage_offset=int(tensor.storage_offset()),
    )


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of one call. Shapes: q (B, H_q, N_q, d), k (B, H_k, N_k, d), v (B, H_k, N_k, d_v), or other ranks.

    `grad_enabled` is the grad mode; `training` the module's mode where it is known.
    """

    q: TensorSpec
    k: TensorSpec
    v: TensorSpec
    attn_mask: TensorSpec | None = None
    is_causal: bool = False
    dropout_p: float = 0.0
    scale: float | None = None
    enable_gqa: bool = False
    grad_enabled: bool = True
    training: bool | None = None
    device: str = "cpu"

    @classmethod
    def from_tensors(
        cls,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
        training: bool | None = None,
    ) -> Call:
        """The call that these arguments of scaled_dot_product_attention make now (grad mode included)."""
        import torch

        return cls(
            q=spec_of(q),
            k=spec_of(k),
            v=spec_of(v),
            attn_mask=None if attn_mask is None else spec_of(attn_mask),
            is_causal=is_causal,
            dropout_p=dropout_p,
            scale=scale,
            enable_gqa=enable_gqa,
            grad_enabled=torch.is_grad_enabled(),
            training=training,
            device=q.device.type,
        )

    @classmethod
    def from_problem(cls, problem: Problem, device: str = "cpu") -> Call:
        """The call that PyTorch users write for `problem`: contiguous (B, H, N, D), is_causal where it means the mask.

        A mask that `is_causal` does not mean becomes a boolean tensor; a backward makes q, k and v require
        gradients; grouped heads set enable_gqa.
        """
        grad = problem.direction is not Direction.FWD
        causal = is_plain_causal(problem)
        kv = (problem.batch, problem.kv_heads, problem.kv_len)
        q_shape = (problem.batch, problem.q_heads, problem.q_len, problem.qk_dim)
        return cls(
            q=contiguous(q_shape, problem.dtype, requires_grad=grad),
            k=contiguous((*kv, problem.qk_dim), problem.dtype, requires_grad=grad),
            v=contiguous((*kv, problem.v_dim), problem.dtype, requires_grad=grad),
            attn_mask=None if causal else _mask_spec(problem),
            is_causal=causal,
            dropout_p=problem.dropout,
            scale=problem.scale,
            enable_gqa=problem.group > 1,
            device=device.partition(":")[0],
        )

    @property
    def tensors(self) -> tuple[tuple[str, TensorSpec], ...]:
        """q, k and v with their names."""
        return (("q", self.q), ("k", self.k), ("v", self.v))

    @property
    def needs_grad(self) -> bool:
        """Whether autograd will record q, k or v."""
        return self.grad_enabled and any(t.requires_grad for _, t in self.tensors)

    @property
    def is_4d(self) -> bool:
        """Whether q, k and v have four dimensions each."""
        return all(t.ndim == 4 for _, t in self.tensors)

    @property
    def sizes(self) -> Problem | None:
        """The sizes as a problem without a mask; None where they form none."""
        if not self.is_4d or not self.k.shape[1] or self.q.shape[1] % self.k.shape[1]:
            return None
        batch, q_heads, q_len, qk_dim = self.q.shape
        if min(q_heads, qk_dim, self.v.shape[3]) < 1:
            return None
        return Problem(
            batch=batch, q_heads=q_heads, kv_heads=self.k.shape[1], q_len=q_len, kv_len=self.k.shape[2],
            qk_dim=qk_dim, v_dim=self.v.shape[3], dtype=known_dtype(self.q.dtype) or DType.FLOAT32,
        )  # fmt: skip

    def __str__(self) -> str:
        grad = ", grad" if self.needs_grad else ""
        shapes = " ".join(f"{name}{list(t.shape)}" for name, t in self.tensors)
        mask = f" mask{list(self.attn_mask.shape)} {self.attn_mask.dtype}" if self.attn_mask else ""
        flags = "".join(
            f" {text}"
            for text, is_set in (
                ("is_causal", self.is_causal),
                (f"dropout={self.dropout_p:g}", self.dropout_p > 0),
                ("enable_gqa", self.enable_gqa),
                (f"scale={self.scale}", self.scale is not None),
            )
            if is_set
        )
        return f"{shapes} {self.q.dtype}{mask}{flags}{grad}"


def is_plain_causal(problem: Problem) -> bool:
    """Whether is_causal means the problem's mask: causal, and top-left or on equal lengths."""
    mask = problem.mask
    return isinstance(mask, Causal) and (mask.align is Align.TOP_LEFT or problem.q_len == problem.kv_len)


def _mask_spec(problem: Problem) -> TensorSpec | None:
    mask = problem.mask
    if isinstance(mask, Full):
        return None
    if isinstance(mask, Dense):
        return contiguous(mask.shape, "bool")
    pair = (problem.q_len, problem.kv_len)
    return contiguous((problem.batch, 1, *pair) if isinstance(mask, Lengths) else pair, "bool")
