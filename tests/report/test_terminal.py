"""What a person sees at 80 columns."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.report.factory import HOSTILE, measured, problem, record, sweep

from attnprof.core.mask import Causal
from attnprof.core.record import Accuracy, Failed, FailureKind, Skipped, Unsupported, Verdict
from attnprof.report.metrics import rows
from attnprof.report.table import number, percent_width, printable
from attnprof.report.terminal import print_run, print_story
from attnprof.report.words import Paragraph


def show(records, *, terminal=False, **options):
    """The text that print_run writes."""
    out = io.StringIO()
    print_run(records, Console(file=out, width=80, force_terminal=terminal, color_system=None), **options)
    return out.getvalue()


def test_tables_fit_80_columns_and_are_ranked():
    text = show(sweep())
    assert max(map(len, text.splitlines())) <= 80
    table = text[text.index("N2048") :]
    assert table.index("|sdpa_flash") < table.index("|naive")
    assert "fastest correct kernel: naive" in text
    assert "1,000 " not in text.splitlines()[0]


def test_output_to_a_file_has_no_escapes_and_the_terminal_draws_rules():
    assert "\x1b" not in show(sweep())
    assert "─" in show(sweep(), terminal=True)


def test_every_other_outcome_keeps_its_reason():
    text = show([
        record("a", outcome=Skipped(reason="predicted 149.0 GiB x2 > available")),
        record("b", outcome=Unsupported(reason="needs sm80")),
        record("c", outcome=Failed(kind=FailureKind.TIMEOUT, message="30 s")),
    ])  # fmt: skip
    assert "note: a: skipped: predicted 149.0 GiB x2 > available" in text
    assert "note: b: unsupported: needs sm80" in text
    assert "ALARM: c: failed: timeout: 30 s" in text
    assert "fastest correct kernel: n/a (nothing was measured)" in text
    assert "0.00" not in text


def test_warnings_stand_below_with_their_remedy_once_for_all_variants():
    few = measured(samples_s=(1e-4,), rounds=(0,))
    text = show([record("naive", outcome=few), record("b", outcome=few)])
    assert text.count("too few") == 0
    assert text.count("1 sample") == 1
    assert "warning: naive, b: 1 sample" in text
    assert "remedy: allow more time per case" in text


def test_missing_baseline_and_empty_rows_are_said():
    asked = problem().replace(q_heads=4, kv_heads=4, q_len=9, kv_len=5, mask=Causal("bottom_right"))
    text = show([record("x", asked=asked)])
    assert "speed-up n/a: no measured naive for this problem" in text
    assert "16 empty rows" in text


@pytest.mark.parametrize("name", [HOSTILE, "[bold red]x[/]", "[/]", "a\x1b[2Jb", "\u202eabc", "ünï 漢字 🚀"])
def test_hostile_names_are_shown_as_text(name):
    bad = Accuracy(verdict=Verdict.WRONG, reason=name)
    text = show([record(name, outcome=measured(accuracy=bad)), record("naive")], terminal=True)
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    flat = "".join(text.split())
    assert "".join(printable(name).split()) in flat


def test_an_empty_run_and_a_long_one_say_so():
    assert show([]) == "no rows\n"
    text = show(sweep(), limit=1)
    assert text.count("fastest correct") == 1
    assert "3 more problems are in results.csv" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (0.0, "0.0000"),
        (1234567.0, "1,234,567"),
        (-3.14159, "-3.142"),
        (0.5, "0.5000"),
        (2e12, "2e+12"),
        (99.99999, "100.0"),
        (0.099999, "0.1000"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert number(value) == text


def test_the_width_of_a_row_without_a_time_is_not_available():
    made = rows([record(outcome=Skipped(reason="x")), record(outcome=measured(samples_s=(0.0,) * 9))])
    assert [percent_width(row) for row in made] == ["n/a", "n/a"]
    assert percent_width(rows([record()])[0]) == "1.2"


def test_the_answer_in_words_is_shown_as_text():
    out = io.StringIO()
    part = Paragraph(heading="[b]Fastest[/b]", sentences=("\x1b[2Jx", HOSTILE))
    print_story((part,), Console(file=out, width=80))
    assert out.getvalue() == f"[b]Fastest[/b]\n  \\x1b[2Jx\n  {HOSTILE}\n"


def test_an_uncertain_order_is_said():
    later = measured(99, rounds=tuple(range(100, 109)))
    text = show([record("naive"), record("a", outcome=later)])
    assert "fastest correct kernel: a (not told apart from naive)" in text
    assert "note: a: speed-up is a ratio of medians: no sampling round is shared with" in text


def test_too_few_samples_are_no_claim_and_have_no_width():
    few = record(outcome=measured(samples_s=(1e-4,) * 5, rounds=tuple(range(5))))
    assert percent_width(rows([few])[0]) == "n/a"
    assert "fastest correct kernel: no claim below 6 samples (lowest median: naive)" in show([few])
