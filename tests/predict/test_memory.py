"""Peak memory against the published profiles."""

from __future__ import annotations

import pytest

from attnprof.core.units import MIB
from attnprof.predict.memory import library_workspace_bytes, published_peak_bytes
from attnprof.predict.published import packaged_text, parse_rows

ROWS = [row for row in parse_rows(packaged_text())[0] if row.metric == "peak_mem"]


def test_all_six_values_of_the_rtx_2070_within_five_percent():
    profile = [row for row in ROWS if row.gpu == "RTX 2070"]
    assert len(profile) == 6
    for row in profile:
        assert published_peak_bytes(row) == pytest.approx(row.value, rel=0.05)


def test_training_step_of_the_flash_attention_paper_to_the_megabyte():
    long = [row for row in ROWS if row.gpu != "RTX 2070" and row.case.q_len >= 1024]
    assert len(long) > 10
    for row in long:
        assert published_peak_bytes(row) == pytest.approx(row.value, rel=1e-3)


def test_cublas_workspace_by_generation():
    assert library_workspace_bytes(7.5) == 8_519_680
    assert library_workspace_bytes(9.0) == 32 * MIB
    assert library_workspace_bytes(None) == 0
