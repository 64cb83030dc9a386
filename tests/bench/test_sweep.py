"""Sweeps from TOML and from options."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnprof.bench.sweep import DEFAULT_VARIANTS, default_dtype, sweep_from_toml, sweep_from_values
from attnprof.core.errors import InvalidSweep


def toml(tmp_path, text):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return path


def test_toml_and_its_overrides(tmp_path):
    path = toml(
        tmp_path,
        'seq-lens = "64:256:x2"\nbatch = [1, 4]\nheads = 8\nvariants = ["naive"]\nprecision = 0.05\n',
    )
    sweep = sweep_from_toml(path, {"heads": "2", "device": None})
    assert sweep.axes.q_lens == (64, 128, 256)
    assert (sweep.axes.batches, sweep.axes.q_heads) == ((1, 4), (2,))
    assert (sweep.variants, sweep.conditions.precision) == (("naive",), 0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seq_lens = [1,\n2\nbad", r"sweep.toml' is not TOML: .*line 3"),
        ('seqlens = "64"', r"sweep.toml: key 'seqlens' is unknown; did you mean seq_lens"),
        ('precision = "small"', "sweep.toml: .*precision"),
        ('seq_lens = "64-128"', "sweep.toml: --seq-lens '64-128'"),
        ('cache = "hot"', "cache 'hot'"),
        ("precision = 0.0", "precision=0"),
        ("min_rounds = 50\nmax_rounds = 5", "min_rounds=50, max_rounds=5"),
        ("threads = -1", "threads=-1"),
        ('variants = ""', "variants is empty"),
    ],
)
def test_bad_toml_names_file_and_key(tmp_path, text, message):
    with pytest.raises(InvalidSweep, match=message):
        sweep_from_toml(toml(tmp_path, text))


def test_missing_file():
    with pytest.raises(InvalidSweep, match="cannot be read"):
        sweep_from_toml(Path("nowhere/s.toml"))


def test_defaults_are_the_study():
    sweep = sweep_from_values({})
    assert sweep.variants == DEFAULT_VARIANTS
    assert [(p.q_len, p.q_heads, p.qk_dim, str(p.mask)) for p in sweep.problems()][-1] == (
        2048,
        12,
        64,
        "causal",
    )
    assert (default_dtype("cpu"), default_dtype("cuda:1")) == ("float32", "float16")
