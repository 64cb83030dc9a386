"""Options that commands share, defined once: the problem axes, and how values and errors are printed."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import typer

from attnprof.core.axes import AxisTexts

_PANEL = "Problem"


def _option(flag: str, help_text: str, kind: type = str) -> Any:
    return Annotated[
        kind | None, typer.Option(flag, help=help_text, rich_help_panel=_PANEL, show_default=False)
    ]


_PROBLEM_OPTIONS: dict[str, Any] = {
    "seq_lens": _option("--seq-lens", "Query and key lengths: 64:2048:x2, 1,4,8 or 64:256:64."),
    "q_lens": _option("--q-lens", "Query lengths, with --kv-lens."),
    "kv_lens": _option("--kv-lens", "Key lengths, with --q-lens."),
    "batch": _option("--batch", "Batch sizes (1)."),
    "heads": _option("--heads", "Query heads (12)."),
    "kv_heads": _option("--kv-heads", "KV heads (as many as query heads)."),
    "head_dim": _option("--head-dim", "Head dim of q, k and v (64)."),
    "v_dim": _option("--v-dim", "Head dim of v, where it differs."),
    "dtype": _option("--dtype", "Element types: float32, float16, bfloat16, float64."),
    "mask": _option("--mask", "full, causal, causal:bottom_right, window:LEFT:RIGHT (causal)."),
    "direction": _option("--direction", "fwd, bwd or fwd_bwd (fwd)."),
    "scale": _option("--scale", "Factor on QK^T (1/sqrt(head_dim)).", float),
    "dropout": _option("--dropout", "Dropout probability (0).", float),
}


def with_problem_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the problem options; it receives them as one value, its parameter `texts: AxisTexts`.

    Typer reads options from a signature, and eight commands share these thirteen: the signature is built here so
    that they are written once.
    """
    own = inspect.signature(command, eval_str=True).parameters
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=None)
        for name, kind in _PROBLEM_OPTIONS.items()
    ]

    @functools.wraps(command)
    def wrapper(**given: Any) -> Any:
        texts = AxisTexts(**{name: given.pop(name) for name in _PROBLEM_OPTIONS})
        return command(texts=texts, **given)

    keep = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, p in own.items() if name != "texts"]
    wrapper.__signature__ = inspect.Signature(keep + shared)  # type: ignore[attr-defined]  # what inspect and Typer read
    wrapper.__annotations__ = {p.name: p.annotation for p in keep + shared}
    return wrapper


JsonFlag = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout; progress goes to stderr.")
]


def print_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
