"""Optional attention packages: found by their metadata, never imported, and judged by their stated limits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import msgspec

from attnprof.explain.reason import Rejection, Rule, Situation
from attnprof.explain.rules import shared
from attnprof.explain.rules.ruleset import Capability
from attnprof.variants._packages import installed


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A package's limits as its own documentation states them."""

    distributions: tuple[str, ...]
    name: str
    capabilities: tuple[Capability, Capability]
    dtypes: tuple[str, ...]
    max_head_dim: int
    masks: bool
    dropout: bool
    backward: bool
    unequal_dims: bool
    note: str
    source: str

    @property
    def installed(self) -> str | None:
        """Version of the installed distribution, None when there is none."""
        return next((found for name in self.distributions if (found := _version(name))), None)


_version = cache(installed)


@cache
def packages() -> tuple[Package, ...]:
    """Every package of the data file."""
    data = files("attnprof.explain.rules").joinpath("data", "packages.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[Package, ...])


def refusals(s: Situation, package: Package) -> Iterator[Rejection]:
    """Why a package does not compute the call on the target."""
    for rejection in _refusals(s, package):
        yield msgspec.structs.replace(rejection, source=package.source)


def _refusals(s: Situation, package: Package) -> Iterator[Rejection]:
    low, high = package.capabilities
    if s.target.kind != "cuda" or not low <= s.target.sm <= high:
        yield s.reject(
            Rule.CAPABILITY, package.name, f"{s.target.name}: {package.name} runs on compute capability "
            f"{low[0]}.{low[1]} to {high[0]}.{high[1]}", "none on this device", cost="another device",
        )  # fmt: skip
    yield from shared.check_dtype(s, package.dtypes, package.name, package.name)
    widest = max(t.shape[-1] for _, t in s.call.tensors)
    qk, v = s.call.q.shape[-1], s.call.v.shape[-1]
    flags = (
        (Rule.HEAD_DIM, widest > package.max_head_dim, f"head dim {widest} is above {package.max_head_dim}"),
        (Rule.HEAD_DIM, qk != v and not package.unequal_dims, f"head dims differ: q {qk}, v {v}"),
        (Rule.MASK, s.call.attn_mask is not None and not package.masks, "it takes no mask tensor"),
        (Rule.DROPOUT, s.call.dropout_p > 0 and not package.dropout, "it has no dropout"),
        (Rule.GRAD, s.call.needs_grad and not package.backward, "it has no backward"),
    )
    for rule, broken, reason in flags:
        if broken:
            yield s.reject(rule, package.name, reason, "another kernel", cost="another kernel")
