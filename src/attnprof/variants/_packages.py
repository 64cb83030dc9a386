"""Whether an optional package is installed, from its metadata: nothing is imported to find out."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def missing(package: str) -> str | None:
    """Why a package cannot be used: it is not installed; None when it is."""
    return None if installed(package) else f"package {package} is not installed"


def installed(package: str) -> str | None:
    """The installed version of a package, None when it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
