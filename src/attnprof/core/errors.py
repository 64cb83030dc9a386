"""Every error that attnprof raises on purpose: what is wrong, the value, the rule, the way out."""

from __future__ import annotations


class AttnprofError(Exception):
    """Base of all errors; `exit_code` is what the command line returns for it."""

    exit_code = 1


class UsageError(AttnprofError):
    """The caller asked for something that cannot be meant; nothing was run."""

    exit_code = 2


class InvalidProblem(UsageError):
    """Sizes, mask, dtype or direction do not form an attention problem."""


class InvalidSweep(UsageError):
    """A sweep's axes or its TOML file cannot be read."""


class UnknownName(UsageError):
    """A variant, device, dtype or kernel name that attnprof does not know."""


class InvalidInput(UsageError):
    """A file or tensor given by the user does not have the required form."""


class StoreError(UsageError):
    """An output directory or run file cannot be used as asked."""


class KernelError(AttnprofError):
    """A kernel failed while it was running."""


def nearest(name: str, known: list[str]) -> str:
    """The way out of an unknown name: the nearest known ones, then all of them.

    >>> nearest("naiv", ["naive", "flex"])
    'did you mean naive? Known: flex, naive'
    """
    import difflib

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{hint}Known: {', '.join(sorted(known))}"
