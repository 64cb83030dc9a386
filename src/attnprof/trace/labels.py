"""What a temporary holds (S, P, dS, ...), from the operator that made it and what that operator read."""

from __future__ import annotations

from collections.abc import Sequence

TEMPORARY = "temporaries"
STATISTICS = "row statistics"
MASK = "mask"

_PRODUCTS = {
    frozenset({"Q", "K"}): "S",
    frozenset({"P", "V"}): "O partial",
    frozenset({"dO", "V"}): "dP",
    frozenset({"P", "dO"}): "dV partial",
    frozenset({"dS", "K"}): "dQ partial",
    frozenset({"dS", "Q"}): "dK partial",
}
_TENSORS = frozenset(
    {"Q", "K", "V", "O", "dO"}
)  # what is made out of one of them is its copy (cast, scaled, expanded)
_EXPONENTIALS = frozenset({"exp", "exp_", "exp2", "exp2_", "_softmax", "_safe_softmax"})
_REDUCTIONS = frozenset({"amax", "sum", "max", "logsumexp", "mean", "any", "all", "prod", "norm"})
_SOFTMAX_BACKWARD = frozenset({"_softmax_backward_data", "_safe_softmax_backward_data"})
_CREATIONS = frozenset(
    {"zeros", "full", "arange", "zeros_like", "full_like", "ones", "new_zeros", "scalar_tensor"}
)


def result_label(op: str, sources: Sequence[str], matmul: bool, boolean: bool) -> str:
    """The label of what `op` makes out of storages labelled `sources`."""
    if boolean:
        return MASK
    real = [label for label in sources if label not in {MASK, STATISTICS, TEMPORARY, "captured"}]
    if matmul:
        return _PRODUCTS.get(frozenset(_original(label) for label in real), TEMPORARY)
    if op in _REDUCTIONS:
        return STATISTICS
    return _elementwise(op, sources, real)


def _elementwise(op: str, sources: Sequence[str], real: Sequence[str]) -> str:
    if op in _SOFTMAX_BACKWARD or ("dP" in real and "P" in real):
        return "dS"
    if op in _CREATIONS or not sources:
        return TEMPORARY
    if not real:
        return STATISTICS if STATISTICS in sources else TEMPORARY
    if op in _EXPONENTIALS and real[0] == "S":
        return "P"
    if len(set(real)) > 1:
        return TEMPORARY
    return f"{_original(real[0])} copy" if _original(real[0]) in _TENSORS else real[0]


def _original(label: str) -> str:
    return label.removesuffix(" copy")
