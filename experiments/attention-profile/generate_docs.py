"""Writes the study's README.md and DESIGN.md from its results: no number in them is typed by hand.

python generate_docs.py
"""

# ruff: noqa: E501  # a sentence of the document stays on one line

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from analyze_attention import analyze, analyze_published, table
from design_doc import design
from oddities import oddities
from study import (
    CSV_FILES,
    HEAD_DIM,
    HEADS,
    HERE,
    KV_GROUP,
    LENGTHS,
    V1_VARIANTS,
    V2_BATCHES,
    V2_VARIANTS,
    published_table,
    results,
    write_csv,
)

from attnprof.core.mask import Causal
from attnprof.core.problem import Problem
from attnprof.core.record import Manifest, Severity
from attnprof.core.units import format_bytes
from attnprof.report.answers import Answer
from attnprof.report.compare_text import escape
from attnprof.report.load import Results
from attnprof.report.markdown import escaped
from attnprof.report.words import best_text
from attnprof.store.machines import find_chip
from attnprof.variants.catalog import find

NA = "n/a"
TOLERATED_SHARE = 0.25  # of rows whose time is uncertain, before the page says so at its top


def grid(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; numbers are right-aligned."""
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in body)])


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table cell, or n/a."""
    return NA if value is None else f"{value:,.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def by_length(found: dict[str, dict[int, float]]) -> str:
    """Variants against lengths."""
    lengths = sorted({length for points in found.values() for length in points})
    body = [[f"`{name}`", *(number(points.get(n)) for n in lengths)] for name, points in found.items()]
    return grid(["variant", *map(str, lengths)], body)


def growth_table(found: dict[str, dict[str, Any]], unit: str) -> str:
    """First and last value, ratio and exponent of each variant."""
    head = ["variant", "lengths", f"first ({unit})", f"last ({unit})", "ratio", "exponent a of O(n^a)"]
    body = [
        [f"`{name}`", f"{g['from_length']} → {g['to_length']}", number(g["from"]), number(g["to"]), number(g["ratio"]),
         number(g["exponent"])]
        for name, g in found.items()
    ]  # fmt: skip
    return grid(head, body)


# --- README -------------------------------------------------------------------------------------------------


def readme(v1: Results, v2: Results) -> str:
    """What was found."""
    one = analyze(v1.rows)
    batch1 = one["batches"]["1"]
    parts = [
        "# Attention-kernel profile",
        "Written by `python generate_docs.py` from `results/`; `make study` in the project's root makes everything.",
        f"Seven ways to compute attention, {HEADS} heads, head_dim {HEAD_DIM}, causal, lengths {LENGTHS[0]} to "
        f"{LENGTHS[-1]}: time, peak memory and FLOP rate, each row checked against float64. Two data sets stand beside each "
        "other: this machine, measured here, and an RTX 2070, as published.",
        noise_warning(v1, v2),
        "## Hardware", hardware(v1.manifest),
        "## Variants", variants_table(),
        "## Findings on this machine (v1, batch 1)", "\n".join(f"- {line}" for line in findings(v1, batch1)),
        "Median time of one call, us:", by_length(table(v1.rows, "time_median_us", 1)),
        "Speed-up over naive:", by_length(batch1["speedup_vs_naive"]),
        PRESET_NOTE,
        "Peak memory of one call, inputs excluded, MiB, and its growth:", growth_table(batch1["peak_mib"], "MiB"),
        "Growth of time:", growth_table(batch1["time_us"], "us"),
        "Useful TFLOP/s (allowed pairs only):", by_length(table(v1.rows, "tflop_per_s", 1)),
        "![time](plots/v1_time_b1.png)", "![memory](plots/v1_memory_b1.png)",
        "### Rows without a number", missing(one["without_numbers"]),
        f"## Batch sizes (v2, {' and '.join(map(str, V2_BATCHES))})", batches(v2),
        "## The published RTX 2070 figures", published_part(),
        "## KV cache and grouped heads", kv_cache(),
        "## How sure are these times", trust(v1, v2),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


PRESET_NOTE = (
    "`sliding_w128` and `gqa_4kv` compute another function than the rest (a window of 128 tokens; 3 KV heads). Their "
    "speed-up is shown as the study shows it, but they are never the fastest *correct* kernel of the causal problem."
)


def hardware(manifest: Manifest | None) -> str:
    """This machine and the published one."""
    chip = find_chip("RTX 2070")
    published = (
        f"RTX 2070 ({chip.architecture}, sm{chip.compute_capability.replace('.', '')}): {chip.sm_count} SMs, fp32 "
        f"{(chip.fp32_flops_per_s or 0) / 1e12:.1f} TFLOP/s, fp16 tensor {(chip.fp16_flops_per_s or 0) / 1e12:.1f} TFLOP/s "
        f"with fp32 accumulation, {(chip.bandwidth_bytes_per_s or 0) / 1e9:.0f} GB/s. No FlashAttention: PyTorch takes its "
        "memory-efficient kernel."
    )
    if manifest is None:
        return f"- here: unknown, the manifest cannot be read\n- published: {published}"
    me = manifest.identity
    caches = ", ".join(f"{name} {format_bytes(size)}" for name, size in me.caches_bytes.items())
    versions = ", ".join(
        f"{name} {version}" for name, version in sorted(me.versions.items()) if name in ("python", "torch")
    )
    here = (
        f"{escape(me.device_name)}, {me.threads} threads, {format_bytes(me.memory_bytes)} memory; {caches or 'caches unknown'}; "
        f"{versions}; measured {manifest.weather.started_at[:10]}"
    )
    return f"- here: {here}\n- published: {published}"


def variants_table() -> str:
    """Names and titles from the catalogue, with what each computes when the causal problem is asked for."""
    asked = Problem(q_heads=HEADS, q_len=LENGTHS[-1], head_dim=HEAD_DIM, mask=Causal())
    body = []
    for name in V1_VARIANTS:
        variant = find(name)
        problem = variant.problem_for(asked)
        body.append([f"`{name}`", variant.title, f"{problem.mask}, {problem.kv_heads} KV heads"])
    return grid(["variant", "what it is", "computes"], body).replace("---:", "---")


def findings(run: Results, batch1: dict[str, Any]) -> Iterator[str]:
    """Sentences with the run's own numbers."""
    answers = [answer for answer in run.answers if answer.series.batch == 1]
    yield "Fastest correct kernel by length: " + ", ".join(_winner(answer) for answer in answers) + "."
    ran = {row.variant: row.backend for row in run.rows if row.backend}
    yield (
        "Kernels that really ran: "
        + ", ".join(f"`{name}`: {escape(kernel)}" for name, kernel in ran.items())
        + "."
    )
    if ran.get("sdpa_default") == ran.get("sdpa_flash"):
        yield "`sdpa_default` and `sdpa_flash` ran the same kernel here: which of the two is named fastest is noise."
    for name, points in batch1["speedup_vs_naive"].items():
        if name in ("sdpa_default", "sdpa_math"):
            last = max(points)
            yield f"`{name}` is {number(points[last])} times as fast as naive at N = {last}, {number(points[min(points)])} at {min(points)}."
    memory = batch1["peak_mib"]
    if {"naive", "sdpa_default"} <= memory.keys():
        naive, default = memory["naive"], memory["sdpa_default"]
        yield (
            f"Naive's peak grows x{number(naive['ratio'])} from {naive['from_length']} to {naive['to_length']} "
            f"(O(n^{number(naive['exponent'])})), the default's x{number(default['ratio'])} (O(n^{number(default['exponent'])})): "
            f"{number(naive['to'])} against {number(default['to'])} MiB at the end."
        )
    yield from _presets(batch1["time_us"])


def _winner(answer: Answer) -> str:
    return f"{answer.length}: {escaped(best_text(answer))}"


def _presets(times: dict[str, dict[str, Any]]) -> Iterator[str]:
    if {"naive", "sliding_w128"} <= times.keys():
        last = times["naive"]["to_length"]
        share = times["sliding_w128"]["to"] / times["naive"]["to"]
        asked = Problem(q_heads=HEADS, q_len=last, head_dim=HEAD_DIM, mask=Causal())
        pairs = find("sliding_w128").problem_for(asked).total_pairs / asked.total_pairs
        yield (
            f"`sliding_w128` takes {number(share)} of naive's time at N = {last} for {pairs:.1%} of its pairs: a window as a full "
            "masked matrix saves nothing. A kernel that computes only the window is `sliding_window_true` of the catalogue."
        )
    if {"sdpa_default", "gqa_4kv"} <= times.keys():
        share = times["gqa_4kv"]["to"] / times["sdpa_default"]["to"]
        yield (
            f"`gqa_4kv` takes {number(share)} of the default's time at N = {times['gqa_4kv']['to_length']}: the same FLOPs, and the "
            "expansion of K and V on top. `gqa_native` does without it."
        )


def missing(without: dict[str, str]) -> str:
    """Rows that have a reason in place of numbers."""
    return "\n".join(f"- `{name}`: {escape(reason)}" for name, reason in without.items()) or "none"


def batches(run: Results) -> str:
    """Time per batch element and growth at each batch size."""
    analysis = analyze(run.rows)["batches"]
    last = LENGTHS[-1]
    body = []
    for name in V2_VARIANTS:
        points = {b: table(run.rows, "time_median_us", b).get(name, {}).get(last) for b in V2_BATCHES}
        first = points[V2_BATCHES[0]]
        cells = [number(points[b]) for b in V2_BATCHES]
        ratios = [number(points[b] / first) if first and points[b] else NA for b in V2_BATCHES[1:]]
        body.append([f"`{name}`", *cells, *ratios])
    heads = [f"b{b}, us" for b in V2_BATCHES] + [f"b{b} / b{V2_BATCHES[0]}" for b in V2_BATCHES[1:]]
    parts = [f"Median time at N = {last}:", grid(["variant", *heads], body)]
    for batch, found in analysis.items():
        parts += [f"Speed-up over naive, batch {batch}:", by_length(found["speedup_vs_naive"])]
    return "\n\n".join(parts)


def published_part() -> str:
    """Tables, recomputed speed-ups and oddities of the second data set."""
    analysis = analyze_published()
    parts = [
        "Batch 1, us, as published (`data/rtx2070.csv`):", by_length(published_table("time_us")),
        "Speed-up over naive, recomputed from these times:", by_length(analysis["speedup_vs_naive"]),
        "Peak memory, MB, as published, and its growth:", growth_table(analysis["peak_mb"], "MB"),
        "![time](plots/rtx2070_time_us.png)",
        "Odd in these figures:", "\n".join(f"- {line}" for line in oddities()),
    ]  # fmt: skip
    return "\n\n".join(parts)


def kv_cache() -> str:
    """What K and V of one layer weigh, for full and grouped heads, and what one decoded token must read."""
    body = []
    for length in (LENGTHS[-1], 8192, 32768):
        sizes = {"q_heads": HEADS, "q_len": 1, "kv_len": length, "head_dim": HEAD_DIM, "dtype": "float16"}
        full, grouped = Problem(**sizes), Problem(**sizes, kv_heads=HEADS // KV_GROUP)
        body.append(
            [length]
            + [format_bytes(p.k_bytes + p.v_bytes) for p in (full, grouped)]
            + [f"{p.useful_flops / p.compulsory_bytes:.2f}" for p in (full, grouped)]
        )
    one, less = f"{HEADS} KV heads", f"{HEADS // KV_GROUP} KV heads"
    head = ["keys", f"K+V, {one}", f"K+V, {less}", f"FLOP/byte, {one}", f"FLOP/byte, {less}"]
    return (
        "K and V of one layer and sequence in fp16, and the arithmetic intensity of one decoded token (every key is "
        "read for it once):\n\n"
        + grid(head, body)
        + "\n\nThe cache grows with length, batch and layers, and decoding "
        f"is bound by reading it. Groups of {KV_GROUP} divide the bytes by {KV_GROUP} and multiply the intensity as much, but only for a kernel that reads "
        "each KV head once: expanding it first, as `gqa_4kv` does, brings the bytes back."
    )


def trust(*runs: Results) -> str:
    """How many rows carry which warning."""
    rows = [row for run in runs for row in run.rows]
    counts: dict[str, int] = {}
    for row in rows:
        for code in {j.code for j in row.judgments if j.severity is not Severity.NOTE}:
            counts[code] = counts.get(code, 0) + 1
    timed = sum(row.time_median_us is not None for row in rows)
    wrong = sum(row.wrong for row in rows)
    told = ", ".join(f"{code}: {n}" for code, n in sorted(counts.items())) or "none"
    return (
        f"{timed} rows have a time; {wrong} of them gave a wrong result. Warnings (rows): {told}. Each row's own are in "
        "the CSV's last column; its interval is in `time_ci_low_us` and `time_ci_high_us`."
    )


def noise_warning(*runs: Results) -> str:
    """A warning ahead of everything when many times are uncertain; empty otherwise."""
    timed = [row for run in runs for row in run.rows if row.time_median_us is not None]
    noisy = sum(any(j.code in ("noisy", "drift", "too_few_samples") for j in row.judgments) for row in timed)
    if noisy <= TOLERATED_SHARE * len(timed):
        return ""
    return (
        f"**These times are uncertain:** {noisy} of {len(timed)} rows drifted, are noisy or have too few samples, as on a "
        "machine with other work. Speed-ups of small problems mean little here; memory, FLOPs and verdicts do not depend on it."
    )


def main() -> None:
    """Write both documents, and the CSV files anew: what attnprof derives on reading may have grown."""
    for name in CSV_FILES:
        write_csv(name)
    v1, v2 = results("v1"), results("v2")
    (HERE / "README.md").write_text(readme(v1, v2), encoding="utf-8")
    (HERE / "DESIGN.md").write_text(design(v1, v2), encoding="utf-8")
    print("wrote README.md and DESIGN.md")


if __name__ == "__main__":
    main()
