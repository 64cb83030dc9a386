"""Starts the tests that need Triton's interpreter in a process of their own: it is chosen when triton is imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORWARD_CASES, BACKWARD_CASES = 150, 60  # at least so many shape, mask and dtype combinations


def interpreted(*args: str) -> str:
    """Output of pytest over `args` under the interpreter; fails with it when a test fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist", *args]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def passed(output: str) -> int:
    return int(re.search(r"(\d+) passed", output).group(1))


@pytest.mark.triton
@pytest.mark.slow
def test_forward_against_float64():
    assert passed(interpreted("tests/triton/interpreted/test_forward.py")) >= FORWARD_CASES


@pytest.mark.triton
@pytest.mark.slow
def test_backward_against_float64():
    assert passed(interpreted("tests/triton/interpreted/test_backward.py")) >= BACKWARD_CASES


@pytest.mark.triton
@pytest.mark.slow
def test_operator_and_counted_bytes():
    assert passed(interpreted("tests/triton/interpreted/test_operator.py")) > 0


@pytest.mark.triton
@pytest.mark.slow
def test_contract_of_the_variant():
    assert passed(interpreted("tests/test_contract.py", "-k", "triton_flash")) >= 6
