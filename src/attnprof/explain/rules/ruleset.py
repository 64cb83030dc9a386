"""Limits of each backend per PyTorch version, read from data files that name their sources."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import msgspec

from attnprof.core.errors import InvalidInput

Capability = tuple[int, int]


class Flash(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the CUDA flash backend. `train_gap_archs` cannot train head dims in (192, 224]."""

    min_capability: Capability
    max_capability: Capability
    max_head_dim: int
    dtypes: tuple[str, ...]
    train_gap_archs: tuple[Capability, ...]


class MemEfficient(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the CUDA memory-efficient backend."""

    min_capability: Capability
    max_capability: Capability
    dtypes: tuple[str, ...]
    dtypes_before_8_0: tuple[str, ...]
    gqa: bool
    checks_offset: bool


class HeadDims(msgspec.Struct, frozen=True, kw_only=True):
    """A head dim limit of cuDNN for some devices, from a cuDNN version on; `pair` is the one (d, d_v) it is for."""

    capabilities: tuple[Capability, ...]
    min_cudnn: int
    max_head_dim: int
    pair: tuple[int, int] | None = None


class Cudnn(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the cuDNN backend; `shipped` is the cuDNN of PyTorch's default wheel where it is known."""

    min_capability: Capability
    max_capability: Capability
    dtypes: tuple[str, ...]
    max_head_dim: int
    head_dims: tuple[HeadDims, ...]
    max_batch_or_heads: int | None
    dropout_sixteenths: bool
    d256_training: bool
    shipped: int
    preferred_from_cudnn: int
    preferred_majors: tuple[int, ...]
    deprioritize_env: str


class Rocm(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of flash and memory-efficient attention on AMD GPUs (AOTriton)."""

    archs: tuple[str, ...]
    experimental_archs: tuple[str, ...]
    experimental_env: str
    max_head_dim: int
    max_head_dim_by_arch: dict[str, int]
    flash_dtypes: tuple[str, ...]
    mem_efficient_dtypes: tuple[str, ...]


class RuleSet(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one range of PyTorch versions. `mqa` lets one KV head serve all queries without enable_gqa."""

    since: tuple[int, int]
    until: tuple[int, int]
    title: str
    evidence: str
    sources: dict[str, str]
    mqa: bool
    cpu_flash_dtypes: tuple[str, ...]
    flash: Flash
    mem_efficient: MemEfficient
    cudnn: Cudnn
    rocm: Rocm

    def cite(self, rule: str) -> str:
        """Where a rule was read: version, file, function."""
        source = self.sources.get(rule)
        return f"PyTorch {self.title}: {source}" if source else f"PyTorch {self.title}"


@cache
def rule_sets() -> tuple[RuleSet, ...]:
    """Every rule set of the data folder, oldest first."""
    folder = files("attnprof.explain.rules").joinpath("data")
    found = [
        msgspec.json.decode(path.read_bytes(), type=RuleSet)
        for path in folder.iterdir()
        if path.name.startswith("torch-") and path.name.endswith(".json")
    ]
    return tuple(sorted(found, key=lambda rules: rules.since))


def rules_for(torch_version: str) -> tuple[RuleSet, str]:
    """The rules of a PyTorch version, and a note where they were written for another one.

    >>> rules_for("2.13.0+cpu")[0].since
    (2, 10)
    """
    known = rule_sets()
    if not torch_version:
        return known[-1], f"PyTorch is not installed here: rules of {known[-1].title}"
    version = parse_version(torch_version)
    fitting = [rules for rules in known if rules.since <= version]
    if not fitting:
        oldest = known[0]
        return oldest, f"no rules for PyTorch {torch_version}: those of {oldest.title} are the nearest"
    rules = fitting[-1]
    later = f"rules are of PyTorch {rules.title}; {torch_version} is later and may differ"
    return rules, later if version > rules.until else ""


def parse_version(text: str) -> tuple[int, int]:
    """Major and minor of a version such as 2.13.0+cpu. Raises: InvalidInput for another text."""
    numbers = re.match(r"(\d+)\.(\d+)", text)
    if not numbers:
        raise InvalidInput(f"PyTorch version {text!r} cannot be read: write major.minor, such as 2.13")
    return int(numbers[1]), int(numbers[2])
