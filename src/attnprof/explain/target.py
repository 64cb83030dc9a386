"""The device and PyTorch build that a question is about: here, or by name from the hardware catalogue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from attnprof.core.errors import UnknownName
from attnprof.explain.rules.ruleset import Capability
from attnprof.variants._packages import installed

if TYPE_CHECKING:
    from attnprof.core.ceilings import Chip


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call would run. `kind` is cpu, cuda, rocm or other; `here` when it is this machine's own device."""

    name: str
    kind: str
    torch_version: str
    capability: Capability | None = None
    arch: str = ""
    cudnn_version: int | None = None
    bandwidth_bytes_per_s: float | None = None
    here: bool = False

    @property
    def title(self) -> str:
        """Name with compute capability or architecture."""
        detail = self.arch or (".".join(map(str, self.capability)) if self.capability else "")
        return (
            f"{self.name} (compute capability {detail})"
            if self.capability
            else f"{self.name} {detail}".strip()
        )

    @property
    def sm(self) -> Capability:
        """Compute capability, (0, 0) where there is none."""
        return self.capability or (0, 0)


def find_target(name: str = "cpu", torch_version: str = "") -> Target:
    """The target that a device name means: cpu, cuda (here), an architecture such as sm_90 or gfx942, or a chip.

    Raises: UnknownName with the catalogue's nearest names.

    >>> find_target("sm_75").capability
    (7, 5)
    """
    torch_version = torch_version or installed_torch()
    kind = name.partition(":")[0].lower()
    if kind == "cpu":
        return Target(name="CPU", kind="cpu", torch_version=torch_version, here=True)
    if kind == "cuda":
        return _cuda_here(name, torch_version)
    bare = re.fullmatch(r"(?:sm_?|cc)?(\d{1,2})\.?(\d)", kind)
    if bare:
        return Target(
            name=name, kind="cuda", torch_version=torch_version, capability=(int(bare[1]), int(bare[2]))
        )
    if re.fullmatch(r"gfx[0-9a-f]+", kind):
        return Target(name=name, kind="rocm", torch_version=torch_version, arch=kind)
    return _catalogue_target(name, torch_version)


def installed_torch() -> str:
    """Version of the installed PyTorch, without importing it."""
    return installed("torch") or ""


def _cuda_here(name: str, torch_version: str) -> Target:
    import torch

    if not torch.cuda.is_available():
        raise UnknownName(
            f"device {name!r}: no CUDA device is here; name the device that you mean, such as --device T4 or sm_90"
        )
    cudnn: Any = torch.backends.cudnn
    properties = torch.cuda.get_device_properties(name)
    arch = str(getattr(properties, "gcnArchName", "")).partition(":")[0] if torch.version.hip else ""
    return Target(
        name=properties.name,
        kind="rocm" if arch else "cuda",
        torch_version=torch_version,
        capability=None if arch else (properties.major, properties.minor),
        arch=arch,
        cudnn_version=None if arch else cudnn.version(),
        here=True,
    )


def _catalogue_target(name: str, torch_version: str) -> Target:
    # The catalogue is a room of its own; it is asked only when a device is named that is not here.
    from attnprof.store.machines import chips, find_chip

    try:
        chip = find_chip(name)
    except UnknownName:
        prefix = name.strip().lower()
        family = [c for key, c in chips().items() if key.lower().startswith(prefix)]
        if len({c.compute_capability for c in family}) != 1:
            raise
        chip = family[0]
        return _chip_target(name, chip, torch_version, bandwidth=None)
    return _chip_target(chip.name, chip, torch_version, chip.bandwidth_bytes_per_s)


def _chip_target(name: str, chip: Chip, torch_version: str, bandwidth: float | None) -> Target:
    code = chip.compute_capability
    capability = re.fullmatch(r"(\d+)\.(\d+)", code)
    kind = "cuda" if capability else "rocm" if code.startswith("gfx") else "other"
    return Target(
        name=name,
        kind=kind,
        torch_version=torch_version,
        capability=(int(capability[1]), int(capability[2])) if capability else None,
        arch=code if kind == "rocm" else "",
        bandwidth_bytes_per_s=bandwidth,
    )
