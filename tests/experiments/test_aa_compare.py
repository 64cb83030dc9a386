"""The A/A benchmark counts what it says, and its page has a row per machine."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def aa():
    spec = importlib.util.spec_from_file_location("aa_compare", ROOT / "benchmarks" / "aa_compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_scores_count_pairs_and_cases(aa):
    rng = random.Random(0)
    quiet = aa.MACHINES[0]
    runs = [aa.simulated_run(rng, quiet, factor, aa.VARIANTS) for factor in (1.0, 1.0, 1.0, 1.3)]
    found = aa.score("x", [(runs[0], runs[1])], [(runs[2], runs[3])])
    assert (found.pairs, found.clean_runs, found.cases, found.clean_cases) == (1, 1, 28, 28)
    assert (found.found, found.searched, found.blamed, found.others) == (4, 4, 0, 24)
    as_a_pair = aa.score("x", [(runs[2], runs[3])], [])
    assert (as_a_pair.clean_runs, as_a_pair.clean_cases) == (0, 24)


def test_a_slow_down_is_put_into_one_variant_only(aa):
    run = aa.simulated_run(random.Random(0), aa.MACHINES[0], 1.0, aa.VARIANTS)
    for before, after in zip(run.records, aa.slowed(run, 2.0).records, strict=True):
        ratio = after.outcome.samples_s[0] / before.outcome.samples_s[0]
        assert ratio == pytest.approx(2.0 if before.variant == aa.VICTIM else 1.0)


def test_the_page_has_every_machine(aa):
    page = (ROOT / "docs" / "results" / "aa.md").read_text(encoding="utf-8")
    assert page.startswith(aa.PAGE)
    for machine in aa.MACHINES:
        assert f"| {machine.name} | " in page
        assert f"| {machine.name}, one variant alone | " in page
