"""The report's files: complete, offline, and safe whatever a variant is called."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
from tests.report.factory import HOSTILE, manifest, measured, problem, record, sweep

from attnprof.core.errors import StoreError
from attnprof.core.record import Accuracy, Run, Skipped, Unsupported, Verdict
from attnprof.report.build import build, write_report
from attnprof.report.html import json_for_script, report_html, template
from attnprof.report.load import Results
from attnprof.report.markdown import escaped, results_md

CHARTS = ("time", "speedup", "memory", "tflops", "bytes", "error")


def results(records=None, damaged=(), how=None):
    """A run that was read."""
    run = Run(manifest=how, records=tuple(sweep() if records is None else records), damaged=tuple(damaged))
    return Results(run=run)


def page_data(page):
    """The JSON that the page's script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found.group(1))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report of a hostile run, in a path with spaces."""
    out = tmp_path_factory.mktemp("reports") / "a päth with spaces"
    wrong = Accuracy(verdict=Verdict.WRONG, reason=HOSTILE, max_abs_error=1.0)
    records = (
        *sweep(),
        record(HOSTILE, 512, measured(1, accuracy=wrong)),
        record("=cmd|' /C calc'!A0", 512, Unsupported(reason="</script><img src=x onerror=alert(2)>")),
    )
    read = results(records, damaged=["run.jsonl line 3: <i>torn</i>"], how=manifest())
    files = write_report(read, build(read, HOSTILE), out)
    return out, files


def test_every_file_is_written(written):
    out, files = written
    assert all(path.is_file() and path.stat().st_size > 0 for path in files)
    names = {path.relative_to(out).as_posix() for path in files}
    assert {"report.html", "RESULTS.md", "results.csv", "results.json", "results.parquet"} <= names
    assert {f"charts/{name}.{kind}" for name in CHARTS for kind in ("png", "svg")} <= names
    assert (out / "charts/time.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_parquet(out / "results.parquet")) == 10


def test_the_page_asks_no_host(written):
    page = (written[0] / "report.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "default-src 'none'" in page
    assert page.count("window.vegaEmbed=") == 1


def test_hostile_text_stays_text_in_the_page(written):
    page = (written[0] / "report.html").read_text(encoding="utf-8")
    assert HOSTILE not in page
    assert "<img src=x" not in page
    assert "<i>torn" not in page
    assert "&lt;i&gt;torn&lt;/i&gt;" in page
    assert "Zen &#34;4&#34; &lt;b&gt;" in page
    table = {column["name"]: column for column in page_data(page)["table"]}
    assert HOSTILE in table["variant"]["texts"]


def test_hostile_text_stays_text_in_markdown(written):
    text = (written[0] / "RESULTS.md").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "![Time against length, batch 1, 12 heads, head_dim 64, float32, causal," in text
    assert "](<charts/time.svg>)" in text


def test_hostile_text_stays_text_in_svg(written):
    svg = (written[0] / "charts" / "time.svg").read_text(encoding="utf-8")
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg


@pytest.mark.parametrize("text", ["</script>", "<!--", "a & b", "\u2028", "\u2029", "plain", "ünï"])
def test_json_in_a_script_is_the_same_value_and_ends_no_element(text):
    made = json_for_script({"x": text})
    assert json.loads(made) == {"x": text}
    assert not set("<>&\u2028\u2029") & set(made)


def test_the_answer_in_words():
    parts = {part.heading: part.sentences for part in build(results(), "t").story}
    assert parts["Fastest correct kernel"] == (
        "batch 1, 12 heads, head_dim 64, float32, causal, fwd, cpu, warm cache: N = 256: naive; "
        "N = 512 to 2048: sdpa_flash, 6.67 times naive at best.",
    )
    assert "sdpa_flash beats naive from N = 512 on" in parts["Crossover with naive"][0]


def told(records):
    """The sentences of the story by heading."""
    return {part.heading: part.sentences for part in build(results(records), "t").story}


def test_doubts_stand_beside_the_answer():
    spread = tuple(99e-6 * (1 + step / 10) for step in (0, 3, -3, 1, -1, 4, -4, 2, -2))
    rough = record("a", outcome=measured(samples_s=spread))
    parts = told([record("naive"), rough])
    assert "N = 1024: a (not told apart from naive)." in parts["Fastest correct kernel"][0]
    assert "no difference from naive shown (N = 1024): a." in parts["Crossover with naive"][0]
    parts = told([record("naive"), rough, record("naive", 2048), record("a", 2048, measured(50))])
    assert (
        "N = 1024 to 2048: a, 2.00 times naive at best (not told apart from naive at N = 1024)."
        in (parts["Fastest correct kernel"][0])
    )
    assert (
        "a beats naive from N = 2048 on (no difference shown at N = 1024)" in parts["Crossover with naive"][0]
    )


def test_few_samples_make_no_claim():
    few = measured(50, samples_s=(5e-5,) * 3, rounds=(0, 1, 2))
    parts = told([record("naive"), record("a", outcome=few)])
    assert "N = 1024: no claim below 6 samples (lowest median: a)." in parts["Fastest correct kernel"][0]
    assert (
        "no claim, fewer than 6 rounds shared with naive (N = 1024): a." in parts["Crossover with naive"][0]
    )


def test_a_lead_that_is_lost_again_is_no_crossover():
    records = [
        record(name, length, measured(time))
        for length, time in ((64, 50), (128, 200))
        for name, time in (("naive", 100), ("a", time))
    ]
    sentence = told(records)["Crossover with naive"][0]
    assert "a beats naive at N = 64, but is not shown to at N = 128" in sentence


def test_one_row_is_a_row():
    parts = told([record("naive"), record("a", outcome=Skipped(reason="x"))])
    assert parts["Not measured"] == ("a, 1 row skipped: x.",)


def test_growth_exponents_stand_in_the_memory_caption():
    figures = build(results(), "t").figures[0]
    (chart,) = [chart for chart in figures.charts if chart.name == "memory"]
    assert "naive N^2.00, sdpa_flash N^1.00" in chart.caption


def test_charts_without_data_say_why():
    bare = measured(memory=None, accuracy=None)
    made = build(results([record("x", outcome=bare)]), "t")
    reasons = {chart.name: chart.reason for chart in made.figures[0].charts if chart.spec is None}
    assert reasons == {
        "speedup": "naive was not measured in this series",
        "memory": "peak memory was not measured in this series",
        "error": "no row was checked, or every error is 0",
        "roofline": "the run's device is unknown",
    }
    assert made.fixed[0].reason == "no length has a correct, measured kernel"


def test_a_series_without_a_time_has_no_chart():
    made = build(results([record(outcome=Skipped(reason="x"))]), "t")
    assert {chart.spec for chart in made.figures[0].charts} == {None}


def test_zero_work_has_no_rate_chart():
    made = build(results([record(asked=problem().replace(batch=0), cost=None)]), "t")
    reasons = {chart.name: chart.reason for chart in made.figures[0].charts}
    assert reasons["tflops"] == "no row of this series has work and a time"
    assert reasons["bytes"] == "no row of this series moves a byte"


def test_an_empty_run_still_gives_a_page():
    made = build(results([]), "t")
    page = report_html("t", made.story, made.fixed, made.figures, (), None)
    assert "No row could be read." in page
    assert "no readable manifest.json" in page


def test_many_problems_are_cut_with_a_word():
    many = [record(length=length) for length in range(64, 64 + 61)]
    made = results(many)
    text = results_md(build(made, "t").story, made.answers, (), None)
    assert "1 more problems are in results.csv." in text
    assert text.count("\n### ") == 60
    (figures,) = build(made, "t").figures
    assert figures.left_out == "48 of 61 lengths are drawn"


def test_many_variants_are_cut_to_the_fastest_and_naive():
    many = [
        record("naive", outcome=measured(999)),
        *(record(f"v{i:02}", outcome=measured(10 + i)) for i in range(12)),
    ]
    (figures,) = build(results(many), "t").figures
    assert figures.left_out == "the 10 fastest of 13 variants are drawn"
    assert "naive" in json.dumps(figures.charts[0].spec)
    assert "v09" not in json.dumps(figures.charts[0].spec)


def test_series_beyond_the_selector_stay_in_words_and_rows():
    many = [record(asked=problem(batch=batch)) for batch in range(1, 15)]
    made = build(results(many), "t")
    assert len(made.figures) == 12
    assert made.story[0].sentences[-1] == "… and 6 more series; the map and the tables show all."


def test_images_are_of_up_to_three_series_or_of_the_first(tmp_path):
    for count, suffixes in ((2, {"time.png", "time-2.png"}), (4, {"time.png"})):
        read = results([record(asked=problem(batch=batch)) for batch in range(1, count + 1)])
        files = write_report(read, build(read, "t"), tmp_path / str(count))
        assert {
            path.name for path in files if path.name.startswith("time") and path.suffix == ".png"
        } == suffixes


def test_an_output_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another --out"):
        write_report(results(), build(results(), "t"), tmp_path / "file")


def test_the_notebook_shows_escaped_tables():
    text = results([record(HOSTILE), record("naive")], damaged=["line 1"])._repr_html_()
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert "could not be read: line 1" in text
    assert "font-weight: bold" in text
    many = results([record(length=length) for length in range(64, 85)])._repr_html_()
    assert "1 more problems" in many


def test_templates_escape_by_default():
    assert template("notebook.html.jinja").environment.autoescape is True
    assert escaped("a\nb\x1b") == "a\\\\nb\\\\x1b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[x](javascript:alert(1))", r"\[x\](javascript:alert(1))"),
        ("`a`", r"\`a\`"),
        ("*a*", r"\*a\*"),
        ("_a_ __init__ sdpa_math", r"\_a\_ \_\_init\_\_ sdpa_math"),
        ("a|b", r"a\|b"),
        ("~~a~~ $a$", r"\~\~a\~\~ \$a\$"),
        ("# a", r"\# a"),
        ("- a-b", r"\- a-b"),
        ("\\", "\\\\"),
    ],
)
def test_nothing_in_a_name_is_markdown(text, shown):
    assert escaped(text) == shown
