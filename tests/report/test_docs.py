"""docs/report.md names every column and every judgment that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnprof.report import judgments
from attnprof.report.row import COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_is_explained(column):
    assert f"`{column}`" in PAGE


def test_every_judgment_is_explained():
    codes = set(re.findall(r'code="(\w+)"', Path(judgments.__file__).read_text(encoding="utf-8")))
    assert len(codes) >= 9
    assert {code for code in codes if f"| `{code}` |" not in PAGE} == set()
