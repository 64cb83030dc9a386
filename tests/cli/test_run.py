"""`attnprof run` as a person uses it: rows survive whatever a kernel does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnprof.core.record import Failed, FailureKind, Measured, Skipped, Unsupported, Verdict
from attnprof.store.runs import load_run

QUICK = ("--heads", "4", "--head-dim", "16", "--min-rounds", "5", "--max-rounds", "5")
TESTS = Path(__file__).parent.parent


def outcomes(out):
    return {(r.variant, r.asked.kv_len): r.outcome for r in load_run(out).records}


def test_a_sweep_measures_checks_and_saves(run_cli, tmp_path):
    ran = run_cli("run", *QUICK, "--seq-lens", "16,33", "--out", tmp_path)
    assert ran.code == 0
    assert max(len(line) for line in ran.out.splitlines()[:-1]) <= 80  # the last is the path
    assert "sdpa_default" in ran.out
    found = outcomes(tmp_path)
    assert len(found) == 14
    assert isinstance(found["sdpa_memeff", 16], Unsupported)
    for (name, _), outcome in found.items():
        if name != "sdpa_memeff":
            assert isinstance(outcome, Measured), (name, outcome)
            assert outcome.accuracy.verdict is Verdict.PASS
            assert len(outcome.samples_s) == 5
            assert outcome.memory.peak_bytes > 0
            assert outcome.first_call_s > 0
            assert outcome.warmup_calls >= 2
            assert outcome.backend
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["identity"]["versions"]["torch"]
    assert manifest["weather"]["finished_at"] >= manifest["weather"]["started_at"]
    header = (tmp_path / "results.csv").read_text().splitlines()[0]
    assert header.startswith(
        "variant,batch,q_heads,kv_heads,q_len,kv_len,head_dim,v_dim,dtype,mask,direction,outcome,reason,"
        "time_median_us,time_p20_us,time_p80_us,speedup_vs_naive,peak_mib,useful_flops,tflop_per_s"
    )


def test_whatever_a_kernel_does_costs_its_own_row_only(run_cli, tmp_path):
    bad = [
        "raises",
        "out_of_memory",
        "killed",
        "hangs",
        "wrong_shape",
        "writes_into_q",
        "returns_lse_too",
        "leaves",
    ]
    other = ["good", "ignores_mask", "prints"]
    names = ",".join(["naive", *(f"kernels_for_tests:{name}" for name in bad + other)])
    ran = run_cli(
        "run", *QUICK, "--seq-lens", "16", "--variants", names, "--out", tmp_path, "--timeout-s", "4"
    )
    assert ran.code == 1
    found = {name.split(":")[-1]: outcome for (name, _), outcome in outcomes(tmp_path).items()}
    kinds = {name: o.kind for name, o in found.items() if isinstance(o, Failed)}
    assert kinds == {
        "raises": FailureKind.EXCEPTION, "wrong_shape": FailureKind.EXCEPTION, "leaves": FailureKind.EXCEPTION,
        "writes_into_q": FailureKind.EXCEPTION, "returns_lse_too": FailureKind.EXCEPTION,
        "out_of_memory": FailureKind.OUT_OF_MEMORY, "killed": FailureKind.KILLED, "hangs": FailureKind.TIMEOUT,
    }  # fmt: skip
    assert "boom" in found["raises"].message
    assert "changed its input q" in found["writes_into_q"].message
    assert "a tuple of 2" in found["returns_lse_too"].message
    assert "SIGKILL" in found["killed"].message
    assert "4 s" in found["hangs"].message
    assert found["good"].accuracy.verdict is Verdict.PASS
    assert found["naive"].accuracy.verdict is Verdict.PASS
    assert found["ignores_mask"].accuracy.verdict is Verdict.WRONG  # it was asked for causal
    assert found["prints"].accuracy.verdict is Verdict.WRONG


def test_rows_without_keys_are_flagged_in_a_textbook_softmax(run_cli, tmp_path):
    ran = run_cli("run", *QUICK, "--q-lens", "9", "--kv-lens", "5", "--mask", "causal:bottom_right", "--batch", "1",
                  "--variants", "naive,kernels_for_tests:textbook", "--out", tmp_path)  # fmt: skip
    found = {name.split(":")[-1]: o.accuracy for (name, _), o in outcomes(tmp_path).items()}
    assert found["naive"].verdict is Verdict.PASS
    assert (found["textbook"].verdict, found["textbook"].nan_rows) == (Verdict.NAN, 16)
    assert "16 empty rows" in ran.out


def test_what_cannot_fit_is_skipped_with_the_figure_and_the_rest_measured(run_cli, tmp_path):
    ran = run_cli("run", "--heads", "1", "--seq-lens", "64,200000", "--variants", "naive", "--min-rounds", "5",
                  "--max-rounds", "5", "--out", tmp_path)  # fmt: skip
    assert ran.code == 1  # partial
    found = outcomes(tmp_path)
    assert isinstance(found["naive", 64], Measured)
    assert isinstance(found["naive", 200_000], Skipped)
    assert "149 GiB x2" in found["naive", 200_000].reason
    assert "> available" in found["naive", 200_000].reason


@pytest.mark.parametrize(
    "sizes",
    [
        ("--batch", "0", "--seq-lens", "16"),
        ("--q-lens", "16", "--kv-lens", "0"),
        ("--q-lens", "0", "--kv-lens", "16"),
    ],
)
def test_zero_sizes_have_no_rates(run_cli, tmp_path, sizes):
    ran = run_cli(
        "run",
        *QUICK,
        *sizes,
        "--mask",
        "full",
        "--variants",
        "naive,sdpa_default",
        "--out",
        tmp_path,
        "--json",
    )
    assert ran.code == 0, ran.err
    for row in json.loads(ran.out)["rows"]:
        assert row["outcome"] == "measured", row["reason"]
        assert row["useful_flops"] == 0
        assert row["tflop_per_s"] is None


def test_resume_runs_what_is_missing_and_nothing_twice(run_cli, tmp_path):
    first = run_cli("run", *QUICK, "--seq-lens", "16", "--variants", "naive", "--out", tmp_path)
    again = run_cli("run", *QUICK, "--seq-lens", "16", "--variants", "naive", "--out", tmp_path)
    more = run_cli(
        "run", *QUICK, "--seq-lens", "16", "--variants", "naive,sdpa_math", "--out", tmp_path, "--resume"
    )
    assert (first.code, again.code, more.code) == (0, 2, 0)
    assert "--resume" in again.err
    lines = (tmp_path / "run.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["variant"] for line in lines] == ["naive", "sdpa_math"]


def test_resume_refuses_another_environment(run_cli, tmp_path):
    run_cli("run", *QUICK, "--seq-lens", "16", "--variants", "naive", "--out", tmp_path)
    path = tmp_path / "manifest.json"
    changed = json.loads(path.read_text())
    changed["identity"]["threads"] = 64
    path.write_text(json.dumps(changed))
    ran = run_cli("run", *QUICK, "--seq-lens", "32", "--variants", "naive", "--out", tmp_path, "--resume")
    assert ran.code == 2
    assert "threads: 64 -> " in ran.err


def test_kill_9_in_the_middle_then_resume(tmp_path):
    command = [
        sys.executable, "-m", "attnprof", "run", "--heads", "4", "--seq-lens", "64:512:x2", "--variants",
        "naive,sdpa_math", "--min-rounds", "20", "--out", str(tmp_path),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    path = tmp_path / "run.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (path.exists() and path.read_bytes().count(b"\n") >= 2):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = path.read_bytes().splitlines()
    assert 2 <= len(kept) < 8
    finished = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    lines = path.read_bytes().splitlines()
    assert lines[: len(kept) - 1] == kept[:-1]
    keys = [(json.loads(line)["variant"], json.loads(line)["asked"]["q_len"]) for line in lines]
    assert len(keys) == len(set(keys)) == 8


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--variants", "naiv"), "did you mean naive"),
        (("--variants", "no_such_module:f"), "no_such_module"),
        (("--variants", "kernels_for_tests:nothing"), "has no 'nothing'"),
        (("--heads", "12", "--kv-heads", "5"), "does not divide"),
        (("--batch", "-1"), "batch=-1"),
        (("--heads", "0"), "q_heads=0"),
        (("--dtype", "float99"), "float99"),
        (("--seq-lens", "64:x"), "64:x"),
        (("--device", "tpu"), "tpu"),
        (("--mask", "ring"), "ring"),
        (("--precision", "0"), "precision=0"),
        (("--budget-s", "nan"), "budget_s=nan"),
        (("--threads", "100000"), "threads=100000"),
        (("missing.toml",), "missing.toml"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_wrong_use_is_refused_before_anything_runs(run_cli, tmp_path, args, message):
    ran = run_cli("run", *args, "--out", tmp_path / "out")
    assert ran.code == 2
    assert message in ran.err + ran.out
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out").exists()


def test_unwritable_output(run_cli, tmp_path):
    (tmp_path / "file").write_text("")
    ran = run_cli("run", *QUICK, "--seq-lens", "16", "--out", tmp_path / "file")
    assert ran.code == 2
    assert "cannot be written" in ran.err


def test_list_names_every_variant_and_the_reason(run_cli):
    ran = run_cli("list")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "no memory-efficient kernel for the CPU" in " ".join(ran.out.split())
    rows = json.loads(run_cli("list", "--json").out)["variants"]
    assert {"naive", "sdpa_default", "gqa_4kv"} <= {row["name"] for row in rows}


def test_help_starts_without_torch():
    code = (
        "import sys, attnprof.cli.main as m; sys.argv = ['attnprof', '--help']\n"
        "try: m.main()\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip().endswith("False")
