"""The accounting table: exact pairs for all four problems, and the page is what the command writes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def accounting():
    spec = importlib.util.spec_from_file_location(
        "accounting_table", ROOT / "benchmarks" / "accounting_table.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "pairs", "empty_rows"),
    [
        ("4096² causal", 4096 * 4097 // 2, 0),
        ("1024 × 8192 causal", 1024 * 7168 + 1024 * 1025 // 2, 0),
        ("8192² causal, window 1024", 8192 * 1024 - 1024 * 1023 // 2, 0),
        ("8192 × 1024 causal", 1024 * 1025 // 2, 7168),
    ],
)
def test_pairs_are_exact(accounting, name, pairs, empty_rows):
    problem = accounting.PROBLEMS[name]
    assert (
        problem.pairs == accounting.brute_force_pairs(problem) == accounting.counted_pairs(problem) == pairs
    )
    assert problem.empty_rows == empty_rows


def test_attnprof_counts_exactly_and_comes_last(accounting):
    assert accounting.rows()[-1] == ("attnprof", (1.0, 1.0, 1.0, 1.0))


def test_torch_counts_every_pair(accounting):
    ratios = [accounting.dense_pairs(p) / p.pairs for p in accounting.PROBLEMS.values()]
    assert accounting.OTHERS["torch FlopCounterMode"] == tuple(round(ratio, 2) for ratio in ratios)


def test_torch_itself_counts_so_where_it_counts_at_all(accounting):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    problem = accounting.PROBLEMS["4096² causal"]
    q = torch.empty(1, 1, 4096, 128, device="meta")
    counter = FlopCounterMode(display=False)
    with counter:
        q @ q.transpose(-2, -1) @ q
    assert counter.get_total_flops() / problem.useful_flops == pytest.approx(2.0, abs=0.01)


def test_the_page_is_up_to_date(accounting):
    page = (ROOT / "docs" / "accounting.md").read_text(encoding="utf-8")
    assert accounting.page_with_table(page) == page
