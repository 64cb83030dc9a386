"""`attnprof explain`: text, Markdown, JSON, exit codes."""

import json


def test_text_names_the_choice_and_fits_the_terminal(run_cli):
    ran = run_cli("explain", "--seq-lens", "512", "--heads", "4")
    assert ran.code == 0
    assert "chosen   flash (PyTorch's dispatcher here agrees)" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert ran.err == ""


def test_json_is_one_document(run_cli):
    ran = run_cli(
        "explain", "--seq-lens", "512", "--dtype", "float16", "--kv-heads", "4", "--device", "T4", "--json"
    )
    data = json.loads(ran.out)
    assert data["chosen"] == "math"
    flash = next(b for b in data["backends"] if b["name"] == "flash")
    assert flash["status"] == "rejected"
    assert flash["rejections"][0]["rule"] == "compute capability"
    many = json.loads(run_cli("explain", "--seq-lens", "64,128", "--json").out)
    assert [e["chosen"] for e in many] == ["flash", "flash"]


def test_markdown_can_be_pasted(run_cli):
    ran = run_cli("explain", "--seq-lens", "512", "--mask", "window:127:0", "--device", "A100", "--markdown")
    assert "| backend | verdict |" in ran.out
    assert "**Chosen: memory-efficient" in ran.out


def test_nothing_runs_is_exit_code_one(run_cli):
    ran = run_cli("explain", "--seq-lens", "512", "--force", "cudnn")
    assert ran.code == 1
    assert "chosen   none. PyTorch raises" in ran.out
    assert "not available on CPU" in " ".join(ran.out.split())


def test_wrong_use_is_exit_code_two(run_cli):
    assert run_cli("explain", "--device", "H1000").code == 2
    wrong = run_cli("explain", "--force", "flsh")
    assert wrong.code == 2
    assert "did you mean flash" in wrong.err


def test_rules_of_another_version(run_cli):
    args = ("explain", "--seq-lens", "512", "--kv-heads", "4", "--device", "T4", "--json")
    assert json.loads(run_cli(*args, "--torch", "2.14").out)["chosen"] == "mem_efficient"


def test_a_version_that_is_none_is_wrong_use(run_cli):
    wrong = run_cli("explain", "--seq-lens", "64", "--torch", "abc")
    assert (wrong.code, wrong.out) == (2, "")
    assert "PyTorch version 'abc' cannot be read" in wrong.err


def test_a_version_older_than_the_rules_is_noted(run_cli):
    old = run_cli("explain", "--seq-lens", "64", "--torch", "1.0")
    assert old.code == 0
    assert "!!       no rules for PyTorch 1.0" in old.out


def test_a_trace_says_what_the_gate_says(run_cli):
    args = ("trace", "naive", "--q-lens", "1", "--kv-lens", "16", "--heads", "2", "--capacity", "32KiB")
    assert "1 of 16 keys visible; is_causal is top-left" in run_cli(*args).out
    codes = [j["code"] for j in json.loads(run_cli(*args, "--json").out)["traces"][0]["judgments"]]
    assert codes == ["causal-top-left"]


def test_help_has_an_example(run_cli):
    assert "attnprof explain --seq-lens" in " ".join(run_cli("explain", "--help").out.split())
