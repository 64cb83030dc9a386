"""`attnprof trace`: figures beside the model, the curve, JSON, and refusals."""

from __future__ import annotations

import json

import pytest

SMALL = ("--seq-lens", "256", "--heads", "1", "--mask", "full")


def test_table_shows_traced_beside_logical(run_cli):
    ran = run_cli("trace", "flash_tiled", *SMALL, "--capacity", "160KiB,32MiB")
    assert ran.code == 0, ran.err
    first, second = (line for line in ran.out.splitlines() if line.startswith(("160 KiB", "32 MiB")))
    assert first.split() == ["160", "KiB", "589,824", "65,536", "655,360", "+0.000%"]
    assert second.split() == ["32", "MiB", "196,608", "65,536", "262,144", "-60.000%"]
    assert "compulsory 262,144" in ran.out
    assert "LRU, no-fetch, freed storage: drop" in ran.out


def test_tables_fit_80_columns(run_cli):
    ran = run_cli("trace", "naive", *SMALL)
    tables = [line for line in ran.out.splitlines() if line.startswith(("S ", "P ", "_softmax", "32 KiB"))]
    assert len(tables) >= 4
    assert max(map(len, tables)) <= 80


def test_json_is_one_document_with_splits(run_cli):
    ran = run_cli("trace", "naive", *SMALL, "--capacity", "160KiB", "--json")
    (entry,) = json.loads(ran.out)["traces"]
    (point,) = entry["points"]
    assert point["kind"] == "traced"
    assert point["total_bytes"] == entry["logical"]["total_bytes"] == 16 * 256 * 64 + 24 * 256**2
    assert point["relative_error"] == 0
    assert sum(t["read_bytes"] for t in point["by_operator"]) == point["read_bytes"]
    assert {t["name"] for t in point["terms"]} == {"Q", "K", "V", "S", "P", "O"}


def test_curve_is_drawn_and_names_the_working_set(run_cli, tmp_path):
    ran = run_cli(
        "trace", "flash_tiled", *SMALL, "--capacity", "160KiB", "--curve", "--out", tmp_path, "--json"
    )
    (entry,) = json.loads(ran.out)["traces"]
    curve = entry["curve"]
    totals = [p["read_bytes"] + p["write_bytes"] for p in curve["points"]]
    assert len(totals) == 29
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] == entry["floor_bytes"] == entry["compulsory_bytes"]
    assert curve["largest_above_floor_bytes"] < curve["falls_to_floor_from_bytes"]
    assert {"H100 SXM L2", "H100 SXM shared memory"} <= {mark["name"] for mark in curve["marks"]}
    assert (tmp_path / "capacity_curve.png").read_bytes().startswith(b"\x89PNG")
    assert "capacity of the memory" in (tmp_path / "capacity_curve.svg").read_text()


def test_own_function_has_no_closed_form(run_cli):
    ran = run_cli("trace", "torch.nn.functional:scaled_dot_product_attention", *SMALL, "--capacity", "1MiB")
    assert ran.code == 0, ran.err
    assert "logical n/a" in ran.out
    assert "played as the CPU kernel's own tiles" in " ".join(ran.out.split())
    assert max(map(len, ran.out.splitlines())) <= 80


def test_block_sets_the_tiles(run_cli):
    ran = run_cli("trace", "flash_tiled", *SMALL, "--block", "32x128", "--capacity", "160KiB", "--json")
    (entry,) = json.loads(ran.out)["traces"]
    assert entry["variant"] == "flash_tiled_32x128"
    assert entry["points"][0]["relative_error"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("naive", "--capacity", "0"), "capacity '0' is 0 bytes"),
        (("naive", "--capacity", "many"), "capacity 'many' cannot be read"),
        (("naive", "--capacity", "32"), "a memory must hold at least one line of 64 bytes"),
        (("flash_tiled", "--block", "0x64"), "tile size B_r=0"),
        (("flash_tiled", "--block", "-8"), "tile size B_r=-8"),
        (("naive", "--block", "64x64"), "naive has none to set"),
        (("naive", "--freed", "melt"), "'melt' is not one of drop, reuse, never"),
        (("naive", "--out", "x"), "--out needs --curve"),
        (("naiv",), "did you mean naive"),
        (("naive", "--line", "7"), "line_bytes=7: a line is a power of two"),
    ],
)
def test_wrong_use_is_refused(run_cli, arguments, message):
    ran = run_cli("trace", *arguments[:1], "--seq-lens", "8", *arguments[1:])
    assert ran.code == 2
    assert message in ran.err


def test_simulation_that_cannot_be_says_why(run_cli):
    ran = run_cli("trace", "naive", "--seq-lens", "64", "--heads", "1", "--capacity", "160KiB", "--simulate")
    assert ran.code == 0, ran.err
    assert "last level 160 KiB: n/a: callgrind's last level is shared" in " ".join(ran.out.split())


def test_failure_of_the_users_function_exits_with_1(run_cli):
    ran = run_cli("trace", "torch:matmul", "--seq-lens", "64", "--heads", "1", "--json")
    assert ran.code == 1
    assert ran.out == ""
    assert "matmul failed before its first operator" in ran.err


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_folder_that_cannot_be_is_refused_before_running(run_cli, tmp_path, inside):
    file = tmp_path / "README.md"
    file.write_text("kept")
    # the function would fail with exit code 1 if it ran
    ran = run_cli("trace", "torch:matmul", "--seq-lens", "64", "--curve", "--out", file / inside)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "README.md" in ran.err
    assert "name another folder" in ran.err
    assert file.read_text() == "kept"
