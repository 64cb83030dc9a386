"""A sweep: axes, variants, conditions; read from options or a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from attnprof.core.axes import Axes, AxisTexts, located, parse_names
from attnprof.core.errors import InvalidSweep, nearest
from attnprof.core.problem import Problem

DEFAULT_VARIANTS = (
    "naive", "sdpa_default", "sdpa_flash", "sdpa_math", "sdpa_memeff", "sliding_w128", "gqa_4kv",
)  # fmt: skip


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """How each case is measured. Times in seconds; `precision` is the relative half-width of the median's interval."""

    device: str = "cpu"
    cache: str = "warm"
    seed: int = 0
    precision: float = 0.02
    min_rounds: int = 10
    max_rounds: int = 300
    budget_s: float = 2.0  # sampling time per case, beyond min_rounds
    timeout_s: float = 180.0  # without a sign of life
    threads: int = 0  # 0: as many as PyTorch chooses
    check: bool = True

    def __post_init__(self) -> None:
        if self.cache not in ("warm", "cold"):
            raise InvalidSweep(f"cache {self.cache!r}: it must be warm or cold")
        for name in ("precision", "budget_s", "timeout_s"):
            if not getattr(self, name) > 0:
                raise InvalidSweep(f"{name}={getattr(self, name)}: it must be above 0")
        if self.threads < 0:
            raise InvalidSweep(f"threads={self.threads}: it must be 1 or more, or 0 for PyTorch's own choice")
        if not 1 <= self.min_rounds <= self.max_rounds:
            raise InvalidSweep(
                f"min_rounds={self.min_rounds}, max_rounds={self.max_rounds}: 1 <= min <= max is needed"
            )


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Every problem of the axes, by every variant, under one set of conditions."""

    axes: Axes
    variants: tuple[str, ...] = DEFAULT_VARIANTS
    conditions: Conditions = Conditions()

    def problems(self) -> tuple[Problem, ...]:
        """The problems asked for."""
        return self.axes.problems()


def default_dtype(device: str) -> str:
    """fp32 on a CPU, fp16 on CUDA."""
    return "float16" if device.startswith("cuda") else "float32"


def sweep_from_toml(path: Path, override: dict[str, Any] | None = None) -> Sweep:
    """A sweep from a TOML file: keys are the command's option names, with `_` or `-`; options override them.

    Raises: InvalidSweep with file, line and key.
    """
    values = _read_toml(path)
    values.update({key: value for key, value in (override or {}).items() if value is not None})
    return located(str(path), lambda: sweep_from_values(values))  # type: ignore[no-any-return]


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSweep(f"sweep file {str(path)!r} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSweep(f"sweep file {str(path)!r} is not TOML: {error}") from error
    return {key.replace("-", "_"): value for key, value in raw.items()}


def sweep_from_values(values: dict[str, Any]) -> Sweep:
    """A sweep from option names to values; lists and texts are both read.

    Raises: InvalidSweep naming the key.
    """
    axis_names, condition_names = AxisTexts.__struct_fields__, Conditions.__struct_fields__
    known = [*axis_names, *condition_names, "variants"]
    for key in values:
        if key not in known:
            raise InvalidSweep(f"key {key!r} is unknown; {nearest(key, known)}")
    given = {key: values[key] for key in condition_names if key in values}
    on_cuda = str(given.get("device", "")).startswith("cuda")
    conditions = _convert({"cache": "cold" if on_cuda else "warm", **given}, Conditions)
    texts = {key: _text(values[key]) for key in axis_names if key in values}
    axes = _convert(texts, AxisTexts).axes(dtype=default_dtype(conditions.device))
    names = parse_names(_text(values["variants"])) if "variants" in values else DEFAULT_VARIANTS
    if not names:
        raise InvalidSweep("variants is empty: name at least one")
    return Sweep(axes=axes, variants=tuple(dict.fromkeys(names)), conditions=conditions)


def _text(value: Any) -> Any:
    """Lists become the comma grammar; numbers that stand for text become text."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _convert(values: dict[str, Any], kind: Any) -> Any:
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSweep(f"{error}") from error
