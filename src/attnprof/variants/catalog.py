"""The catalogue: gathers the variants of this package, of other packages, and of the user's own modules."""

from __future__ import annotations

import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from attnprof.core.errors import UnknownName, nearest
from attnprof.core.problem import Problem
from attnprof.core.variant import Kernel, Setting, Variant

ENTRY_POINTS = "attnprof.variants"


@cache
def variants() -> Mapping[str, Variant]:
    """Every known variant by name: one per file of `attnprof.variants`, then those that other packages offer."""
    found: dict[str, Variant] = {}
    for module in pkgutil.iter_modules(import_module("attnprof.variants").__path__):
        if not module.name.startswith("_") and module.name != "catalog":
            loaded = import_module(f"attnprof.variants.{module.name}")
            found.update({v.name: v for v in vars(loaded).values() if isinstance(v, Variant)})
    for point in entry_points(group=ENTRY_POINTS):
        found[point.name] = as_variant(point.load(), name=point.name)
    return MappingProxyType(found)


def find(name: str) -> Variant:
    """A variant by its name, or the user's own as `module:function`.

    Raises: UnknownName with the nearest known names.
    """
    if name in variants():
        return variants()[name]
    if ":" in name:
        return _load(name)
    raise UnknownName(f"variant {name!r} is unknown; {nearest(name, list(variants()))}; or module:function")


def as_variant(function: Any, name: str | None = None) -> Variant:
    """A variant from a user's callable f(q, k, v); keywords `problem`, `is_causal`, `scale` are passed if it has them.

    Without such keywords the function is taken at its word: the accuracy check tells whether it computes the
    problem's mask.
    """
    if isinstance(function, Variant):
        return function
    if not callable(function):
        raise UnknownName(f"{name or function!r} is neither a Variant nor a callable f(q, k, v)")
    label = name or str(getattr(function, "__name__", type(function).__name__))
    return Variant(
        name=label,
        title=f"user's own {label}",
        prepare=_prepare(function),
        note=(function.__doc__ or "").strip(),
    )


def _prepare(function: Callable[..., Any]) -> Callable[[Problem, Setting], Kernel]:
    try:
        accepted = inspect.signature(function).parameters.keys()
    except (TypeError, ValueError):  # a builtin without a signature
        accepted = {}.keys()

    def prepare(problem: Problem, setting: Setting) -> Kernel:  # noqa: ARG001  # the protocol's two arguments
        from attnprof.core.mask import Causal

        offered = {
            "problem": problem,
            "is_causal": isinstance(problem.mask, Causal),
            "scale": problem.effective_scale,
        }
        options = {key: value for key, value in offered.items() if key in accepted}
        return lambda q, k, v: function(q, k, v, **options)

    return prepare


def _load(name: str) -> Variant:
    module_name, _, attribute = name.partition(":")
    if (
        os.getcwd() not in sys.path
    ):  # a console script's path lacks the working directory, where users' modules are
        sys.path.insert(0, os.getcwd())
    try:
        return as_variant(getattr(import_module(module_name), attribute), name)
    except ModuleNotFoundError as error:
        raise UnknownName(
            f"variant {name!r}: module {error.name!r} is not found; run from its folder or set PYTHONPATH"
        ) from error
    except AttributeError:
        raise UnknownName(f"variant {name!r}: module {module_name!r} has no {attribute!r}") from None
