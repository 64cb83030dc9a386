"""`attnprof derive`: numbers, formulas, the O mismatch, width, and that torch is not needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from attnprof.cli.derive import parse_block
from attnprof.core.errors import InvalidInput
from attnprof.core.problem import Problem
from attnprof.core.schedules import fa2_cost, naive_cost


def test_tables_fit_80_columns_and_say_the_o_mismatch(run_cli):
    ran = run_cli("derive", "--heads", "1", "--mask", "full")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    words = " ".join(ran.out.split())
    assert "The textbook's flash form counts the output O (written once), its naive form does not." in words
    assert "add N*d*e bytes to naive, or subtract them from flash" in words
    assert "…" not in ran.out


def test_json_is_one_document_with_the_closed_forms(run_cli):
    ran = run_cli(
        "derive", "--heads", "1", "--mask", "full", "--seq-lens", "1024,8192", "--head-dim", "128", "--json"
    )
    document = json.loads(ran.out)
    second = document["problems"][1]
    problem = Problem(q_len=8192, head_dim=128)
    assert second["methods"]["naive"]["logical"]["total_bytes"] == naive_cost(problem).logical.total_bytes
    assert second["methods"]["flash"]["logical"]["read_bytes"] == fa2_cost(problem).logical.read_bytes
    assert (second["textbook"]["naive_bytes"], second["textbook"]["flash_bytes"]) == (1086324736, 1082130432)
    assert second["textbook"]["ratio"] == pytest.approx(1.0039, abs=5e-5)
    assert "O (written once)" in document["notes"][0]


def test_formulas_term_by_term_in_text_and_latex(run_cli):
    options = ("derive", "--seq-lens", "1024", "--mask", "full", "--heads", "1", "--symbolic")
    text = run_cli(*options).out
    assert "(12*N*d + 16*N**2) * e/4" in text
    assert "H_q  query heads" in text
    shown = json.loads(run_cli(*options, "--json").out)["problems"][0]["methods"]["flash"]["logical"][
        "symbolic"
    ]
    by_tensor = {line["tensor"]: line for line in shown["terms"]}
    assert by_tensor["K"]["read"] == "B*H_q*N_k*d*e*ceiling(N_q/B_r)"
    assert r"\left\lceil{\frac{N_{q}}{B_{r}}}\right\rceil" in by_tensor["K"]["read_latex"]
    assert by_tensor["O"]["write"] == "B*H_q*N_q*d_v*e"
    assert shown["symbols"]["B_r"] == "query rows per tile"


def test_dram_bytes_behind_a_cache(run_cli):
    """N = 8192, d = 128, fp16 behind 50 MiB: naive pays all its passes, flash only what it must."""
    options = (
        "derive",
        "--seq-lens",
        "8192",
        "--head-dim",
        "128",
        "--heads",
        "1",
        "--mask",
        "full",
        "--dtype",
        "fp16",
    )
    memory = ("--cache", "50MiB", "--resident", "132")
    methods = json.loads(run_cli(*options, *memory, "--json").out)["problems"][0]["methods"]
    assert methods["flash"]["dram"]["value_bytes"] == methods["flash"]["dram"]["low_bytes"] == 8_388_608
    assert methods["naive"]["dram"]["value_bytes"] == methods["naive"]["logical"]["total_bytes"]
    text = run_cli(*options, *memory).out
    assert "DRAM bytes predicted at N = 8192, cache 50 MiB, 132 tiles at a time" in text
    assert max(map(len, text.splitlines())) <= 80
    near = run_cli(*options, "--cache", "5MiB").out
    assert "bracket only" in near
    assert run_cli(*options, "--cache", "0").code == 2


def test_counts_behind_a_mask_s_symbols(run_cli):
    ran = run_cli("derive", "--seq-lens", "128", "--heads", "1", "--symbolic")
    assert "Counted at 64x64: L = 192, R = 192, R_0 = 128, W = 128" in ran.out
    assert "I/O lower bound at the last N" in ran.out


def test_what_the_textbook_does_not_cover_is_na(run_cli):
    ran = run_cli("derive", "--q-lens", "1", "--kv-lens", "4096", "--heads", "8")
    assert "n/a here" in ran.out
    zero = run_cli("derive", "--q-lens", "16", "--kv-lens", "0", "--heads", "1")
    assert zero.code == 0


@pytest.mark.parametrize("block", ["0x64", "64x-1", "abc", "64x64x64", ""])
def test_blocks_that_cannot_be_meant(run_cli, block):
    with pytest.raises(InvalidInput):
        parse_block(block)
    ran = run_cli("derive", f"--block={block}")
    assert ran.code == 2
    assert ran.err.startswith("error: ")


def test_starts_without_torch():
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['attnprof', 'derive', '--symbolic']; " \
        "from attnprof.cli.main import main; main()"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Textbook forms" in done.stdout
