"""Code in the documentation runs and says what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnprof import Causal, Full, Problem
from attnprof.core.record import Verdict
from attnprof.core.variant import Variant

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_problem_of_the_definitions():
    (code,) = blocks("definitions.md")
    scope = {}
    exec(code, scope)
    p = scope["p"]
    printed = code.strip().splitlines()[-1].removeprefix("# ")
    assert str((p.pairs, p.empty_rows, p.useful_flops, p.compulsory_bytes)) == printed


@pytest.mark.parametrize("number", [0, 1])
def test_the_variants_of_add_a_variant_are_right(number):
    from attnprof import profile
    from attnprof.bench.sweep import Conditions

    scope = {}
    code = blocks("add-a-variant.md")[number]
    exec(re.sub(r"\nprofile\(.*", "", code), scope)
    mask = Causal() if number == 0 else Full()
    problem = Problem(q_heads=2, q_len=16, head_dim=16, mask=mask)
    record = profile(scope["mine"], problem, conditions=Conditions(min_rounds=2, max_rounds=2, budget_s=0.01))
    assert isinstance(scope["mine"], Variant) is (number == 1)
    assert record.outcome.accuracy.verdict is Verdict.PASS
    if number == 1:
        assert "mask causal" in scope["mine"].refuse(problem.replace(mask=Causal()))
