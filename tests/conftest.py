"""Fixtures that many tests use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `attnprof ARGS` in this process, from the folder of the tests, 80 columns wide."""

    def run(*args: str) -> Ran:
        from attnprof.cli.main import main

        monkeypatch.chdir(Path(__file__).parent)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(sys, "argv", ["attnprof", *map(str, args)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        out, err = capfd.readouterr()
        return Ran(int(exit_info.value.code or 0), out, err)

    return run
