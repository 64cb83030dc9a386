"""The laboratory's scripts: right results, bytes to 0.1% of theory, traps by their terms, and they run on their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from attnprof.lab import derive_bytes, measure_bytes
from attnprof.lab.measure_bytes import CAPACITY, attn_flash_reference_cpu, attn_naive_cpu, measure

BAR = 0.001


@pytest.mark.parametrize("function", [attn_naive_cpu, attn_flash_reference_cpu])
def test_both_functions_are_attention(function):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 100, 16) for _ in range(3))
    torch.testing.assert_close(function(q, k, v), scaled_dot_product_attention(q, k, v), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("N", [64, 256, 512, 1024])
@pytest.mark.parametrize("method", ["naive", "flash"])
def test_measured_bytes_are_those_of_theory(method, N):
    (row,) = measure(method, N)
    assert row.fits == (N == 64)
    assert abs(row.deviation) <= BAR
    if N == 1024:
        assert row.total_bytes == {"naive": 17_825_792, "flash": 8_912_896}[method]


def test_at_64_flash_wins_nothing():
    totals = {method: measure(method, 64)[0].total_bytes for method in ("naive", "flash")}
    assert totals == {"naive": 65_536, "flash": 65_536}


def test_softmax_in_fp32_moves_sixteen_bytes_a_score_more():
    (plain,) = measure("naive", 1024, dtype="float16")
    (upcast,) = measure("naive", 1024, dtype="float16", function=measure_bytes.attn_naive_fp32_softmax)
    assert abs(plain.deviation) <= BAR
    assert upcast.total_bytes - plain.total_bytes == 16 * 1024**2


def test_larger_and_smaller_memories():
    small, usual, large = measure("flash", 512, capacities=(32 * 1024, CAPACITY, 64 * 1024**2))
    assert small.total_bytes > usual.total_bytes > large.total_bytes == large.compulsory_bytes


def test_profiler_sees_allocations_only():
    view = measure_bytes.profiler_view("naive", 128)
    scores = 128 * 128 * 4
    assert view["aten::baddbmm"] == view["aten::_softmax"] == scores
    assert sum(view.values()) < measure("naive", 128)[0].operand_bytes


def test_derive_bytes_runs_alone(tmp_path):
    script = tmp_path / "derive_bytes.py"
    script.write_bytes(Path(derive_bytes.__file__).read_bytes())
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "1,086,324,736    1,082,130,432       1.0039" in done.stdout
    assert "flash wins nothing" in " ".join(done.stdout.split())
