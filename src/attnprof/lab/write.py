"""The laboratory's six files, written from one run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from attnprof.core.dtypes import DType
from attnprof.core.errors import StoreError, UnknownName
from attnprof.core.mask import Causal
from attnprof.core.problem import Problem
from attnprof.core.schedules import fa2_cost, naive_cost
from attnprof.core.units import format_bytes, format_seconds, format_si
from attnprof.lab import collect, plots
from attnprof.lab.collect import ROOFLINE_N, Data
from attnprof.lab.measure_bytes import CAPACITIES, CAPACITY, LENGTHS, D, Measured, working_set
from attnprof.lab.words import LANGUAGES, PLOTS

FOLDER = "27-flash-vs-naive-bytes"
SCRIPTS = ("derive_bytes.py", "measure_bytes.py")
FILES = (*SCRIPTS, "bytes_vs_n.png", "intensity_ratio.png", "manifest.json", "README.md")
STUDIED_SPEEDUP = 7.0  # published profile of an RTX 2070, batch 1, 12 heads, causal, N = 2048: 4947 / 707 us


def run_lab(
    out: Path,
    lang: str = "en",
    *,
    lengths: tuple[int, ...] = LENGTHS,
    progress: Callable[[str], None] = lambda _: None,
) -> Data:
    """Derive, measure, plot and explain; the six files go to `out`.

    Raises: UnknownName for a language there is none of; StoreError when the folder cannot be written.
    """
    if lang not in LANGUAGES:
        raise UnknownName(f"language {lang!r}: use {' or '.join(LANGUAGES)}")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"--out {str(out)!r} cannot be made a folder: {error.strerror}; choose another"
        ) from error
    from attnprof.bench.manifest import git_commit

    started = datetime.now(UTC).isoformat(timespec="seconds")
    data = collect.collect(progress, lengths=lengths, started_at=started, commit=git_commit())
    progress("plots and README")
    write_files(data, out, lang)
    return data


def write_files(data: Data, out: Path, lang: str) -> None:
    """All six files from gathered data."""
    package = files("attnprof.lab")
    for name in SCRIPTS:
        (out / name).write_bytes(package.joinpath(name).read_bytes())
    plots.save(plots.bytes_chart(data, PLOTS[lang]), out / "bytes_vs_n.png")
    plots.save(plots.ratio_chart(data, PLOTS[lang]), out / "intensity_ratio.png")
    (out / "README.md").write_text(readme(data, lang), encoding="utf-8")
    manifest = msgspec.json.format(msgspec.json.encode(_manifest(data, lang)), indent=2)
    (out / "manifest.json").write_bytes(manifest + b"\n")


def _manifest(data: Data, lang: str) -> dict[str, Any]:
    """How the run came to be, and every number that it gave."""
    from attnprof import __version__

    return {
        "attnprof_version": __version__,
        "command": ["attnprof", *sys.argv[1:]],
        "lang": lang,
        "files": FILES,
        **msgspec.to_builtins(data),
    }


def readme(data: Data, lang: str) -> str:
    """README.md: the template of a language, filled with the run's own numbers."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip  # Markdown, from our own numbers
    environment.filters |= {
        "size": format_bytes, "n": lambda value: f"{value:,.0f}", "us": lambda value: f"{value * 1e6:.3g}",
        "si": format_si, "time": format_seconds, "r": lambda value, digits=3: f"{value:.{digits}g}",
        "pct": lambda value: f"{value:.4%}",
    }  # fmt: skip
    return environment.get_template(f"README.{lang}.md.jinja").render(**_facts(data))


def _template(name: str) -> str:
    return files("attnprof.lab").joinpath("templates", name).read_text(encoding="utf-8")


def _facts(data: Data) -> dict[str, Any]:
    """What the templates speak of, computed from the data."""
    much_better, l2 = plots.much_better(data)
    naive, flash = (data.at(name, ROOFLINE_N) for name in ("naive", "flash"))
    times = {timing.name: timing for timing in data.timings}
    half, half_fp32 = data.half
    eager_factor, causal_share = profiled_factors()
    last = data.gpus[-1]
    return {
        "data": data, "q2": data.question_2, "capacity": CAPACITY, "much_better": much_better, "l2": l2,
        "naive": naive, "flash": flash, "half": half, "half_fp32": half_fp32, "roof": data.roof,
        "times": times, "speedup": times["naive"].time_s / times["sdpa_flash"].time_s,
        "predicted": cpu_prediction(data), "studied": STUDIED_SPEEDUP, "rn": ROOFLINE_N,
        "deviations": [text for row in data.measured for text in term_deviations(row)],
        "loses": [pair for pair in _pairs(data) if pair[2] > pair[1]],
        "levels": [(m, data.level("naive", m), data.level("flash", m)) for m in CAPACITIES],
        "machine": f"{data.identity.device_name}, {data.identity.threads} threads",
        "tiles": working_set("flash", ROOFLINE_N, flash.d, 4) - 2 * ROOFLINE_N * flash.d * 4,
        "kv": 2 * ROOFLINE_N * flash.d * 4, "eager_factor": eager_factor, "causal_share": causal_share,
        "profiled": [value * eager_factor / causal_share for value in (last.roofline, last.serial)],
    }  # fmt: skip


def _pairs(data: Data) -> list[tuple[int, int, int]]:
    """(N, naive, flash) of the scan."""
    flash = {row.N: row.total_bytes for row in data.scanned if row.method == "flash"}
    return [(row.N, row.total_bytes, flash[row.N]) for row in data.scanned if row.method == "naive"]


def term_deviations(row: Measured) -> list[str]:
    """The terms in which a measurement differs from its form, each with its bytes; empty where it agrees."""
    problem = Problem(q_len=row.N, head_dim=row.d, dtype=DType.FLOAT32)
    cost = naive_cost(problem, scale_pass=False) if row.method == "naive" else fa2_cost(problem, lse=False)
    traffic = cost.compulsory if row.fits else cost.logical
    form = {term.tensor: (term.read_bytes, term.write_bytes) for term in traffic.terms}
    found = []
    for tensor in dict.fromkeys([*form, *row.terms]):
        said, seen = form.get(tensor, (0, 0)), row.terms.get(tensor, (0, 0))
        for what, expected, moved in zip(("read", "written"), said, seen, strict=True):
            if expected != moved:
                found.append(f"{row.method}, N = {row.N}: {tensor} {what} {moved - expected:+,}")
    return found


def profiled_factors() -> tuple[float, float]:
    """Of a causal eager call: its bytes over the textbook's, and the share of tiles that a flash kernel computes."""
    problem = Problem(q_len=ROOFLINE_N, head_dim=D, dtype=DType.FLOAT16)
    causal = problem.replace(mask=Causal())
    bytes_ratio = (
        naive_cost(causal).logical.total_bytes / naive_cost(problem, scale_pass=False).logical.total_bytes
    )
    return bytes_ratio, fa2_cost(causal).exp_ops / fa2_cost(problem).exp_ops


def cpu_prediction(data: Data) -> dict[str, float]:
    """Times of this machine's roofline at N = 2048: the slower of matmul and bytes, for naive and flash.

    Naive's score matrices do not fit the caches, so its bytes come from main memory; flash's K and V do.
    """
    c = next(c for c in data.plotted if c.N == ROOFLINE_N)
    roof = data.roof
    memory = roof.main_memory.bytes_per_s
    near = roof.holding(int(c.flash_dram_bytes)).bytes_per_s
    assert roof.flops_per_s is not None
    assert memory is not None
    assert near is not None
    matmul = c.flops / roof.flops_per_s
    naive, flash = c.naive_with_o_bytes / memory, c.flash_bytes / near
    return {
        "matmul_s": matmul, "naive_bytes_s": naive, "flash_bytes_s": flash,
        "overlapped": max(matmul, naive) / max(matmul, flash), "serial": (matmul + naive) / (matmul + flash),
        "bytes_only": naive / flash,
    }  # fmt: skip
