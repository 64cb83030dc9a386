"""Facts about the host: its name, its caches, the memory it can still give, the libraries that compute."""

from __future__ import annotations

import os
import platform
import re
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attnprof.core.record import Weather
from attnprof.core.units import KIB, MIB

ROOT = Path("/")


def read_text(path: Path) -> str:
    """The file's text without surrounding blanks; empty when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def cpu_name(root: Path = ROOT) -> str:
    """Model name with family and model number, since virtual machines often hide the rest."""
    info = dict(re.findall(r"^([^\t:]+?)\s*:\s*(.*)$", read_text(root / "proc/cpuinfo"), re.MULTILINE))
    name = info.get("model name") or platform.processor() or platform.machine()
    keys = {"family": "cpu family", "model": "model"}
    numbers = [f"{word} {info[key]}" for word, key in keys.items() if key in info]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def cache_sizes(root: Path = ROOT) -> dict[str, int]:
    """Bytes of each data or unified cache that the first core sees, as {"L1": .., "L2": .., "L3": ..}."""
    sizes: dict[str, int] = {}
    for index in sorted((root / "sys/devices/system/cpu/cpu0/cache").glob("index*")):
        match = re.fullmatch(r"(\d+)([KM]?)", read_text(index / "size"))
        if match and read_text(index / "type") != "Instruction":
            unit = {"": 1, "K": KIB, "M": MIB}[match[2]]
            sizes[f"L{read_text(index / 'level')}"] = int(match[1]) * unit
    return sizes


def available_memory(root: Path = ROOT) -> int:
    """Bytes that can still be taken: the system's, cut by the limit of the process's control group."""
    import psutil

    free = int(psutil.virtual_memory().available)
    return min([free, *_cgroup_headroom(root)])


def total_memory(root: Path = ROOT) -> int:
    """Bytes of memory of this machine or of its control group, whichever is smaller."""
    import psutil

    total = int(psutil.virtual_memory().total)
    return min([total, *(limit for limit, _ in _cgroup_limits(root))])


def _cgroup_headroom(root: Path) -> list[int]:
    return [max(0, limit - used) for limit, used in _cgroup_limits(root)]


def _cgroup_limits(root: Path) -> list[tuple[int, int]]:
    """(limit, memory in use that cannot be reclaimed) of every control group that encloses this process."""
    found = []
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            names, base = ("memory.max", "memory.current", "inactive_file"), root / "sys/fs/cgroup"
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            base = root / "sys/fs/cgroup/memory"
        else:
            continue
        leaf = base / path.lstrip("/")
        folders = [f for f in (leaf, *leaf.parents) if f.is_relative_to(base)]
        found += [pair for folder in folders if (pair := _cgroup_folder(folder, *names))]
    return found


def _cgroup_folder(folder: Path, limit_file: str, usage_file: str, cached: str) -> tuple[int, int] | None:
    limit, usage = read_text(folder / limit_file), read_text(folder / usage_file)
    if not (limit.isdigit() and usage.isdigit()):
        return None
    match = re.search(rf"^{cached} (\d+)$", read_text(folder / "memory.stat"), re.MULTILINE)
    return int(limit), max(0, int(usage) - int(match[1] if match else 0))


def host_weather(root: Path = ROOT) -> Weather:
    """Governor, load and clock resolution of this moment."""
    return Weather(
        governor=read_text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load_1min=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        clock_resolution_s=time.get_clock_info("perf_counter").resolution,
    )


def library_versions() -> dict[str, str]:
    """Versions of what decides a kernel's speed here: Python, PyTorch, its math libraries, Triton."""
    import torch

    config = torch.__config__.show()
    patterns = {
        "mkl": r"Math Kernel Library Version ([\w.]+)",
        "onednn": r"MKL-DNN v([\w.]+)",
        "openmp": r"OpenMP (\d+)",
        "cpu_capability": r"CPU capability usage: (\S+)",
    }
    found = {name: m[1] for name, pattern in patterns.items() if (m := re.search(pattern, config))}
    base = {"python": platform.python_version(), "torch": str(torch.__version__)}
    return {**base, **found, **_triton_version()}


def _triton_version() -> dict[str, str]:
    try:
        return {"triton": version("triton")}
    except PackageNotFoundError:
        return {}
