"""The study's DESIGN.md: what was measured, how, and why so, from the sweeps and the runs."""

# ruff: noqa: E501  # a sentence of the document stays on one line

from __future__ import annotations

from study import (
    HEAD_DIM,
    HEADS,
    LENGTHS,
    SAMPLING,
    V1_BATCH4_VARIANTS,
    V1_VARIANTS,
    V2_BATCHES,
    V2_VARIANTS,
)

from attnprof.report.compare_text import escape
from attnprof.report.load import Results


def design(v1: Results, v2: Results) -> str:
    """The document."""
    parts = [
        "# Design of the attention-kernel profile",
        "Written by `python generate_docs.py`.",
        "## Question",
        "Which way of computing causal attention is fastest at which length, what does each need in memory, and how do "
        "both grow? Seven variants, one shape, one machine; a published run on an RTX 2070 beside it.",
        "## Files", FILES,
        "## Rows", rows_text(v1, v2),
        "## Measuring", measuring(v1),
        "## Two of the seven are presets", PRESETS,
        "## Kernels that cannot run", CANNOT_RUN,
        "## Growth", GROWTH,
        "## Related questions", RELATED,
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


FILES = """| file | what it does |
|---|---|
| `study.py` | sweeps, places of files, reading |
| `profile_attention.py` | v1 → `results/attention_profile.csv` |
| `profile_attention_v2.py` | v2 → `results/attention_profile_v2.csv` |
| `plot_attention.py` | `plots/` |
| `analyze_attention.py` | speed-ups, growth, exponents → `results/analysis.json` |
| `oddities.py` | arithmetic on the published figures |
| `generate_docs.py`, `design_doc.py` | `README.md` and this page |
| `results/run-v1`, `results/run-v2` | raw samples; `attnprof report results/run-v2` makes a page of them |
| `data/rtx2070.csv` | the published figures with their source |"""

PRESETS = """`sliding_w128` replaces the causal mask by a window of 128 tokens, `gqa_4kv` the 12 KV heads by 3. They are other
functions, so a time beside the rest's is a comparison of work, not of kernels for one job. Their rows carry their own mask and
heads, their useful FLOPs count their own pairs, and they are never ranked as the fastest correct kernel."""

CANNOT_RUN = """A variant that cannot run keeps its rows, with the reason in place of numbers: on a CPU PyTorch has no
memory-efficient kernel; on a GPU below sm80 the forced flash kernel does not exist, the row falls back to the default
choice and says so."""

GROWTH = """Exponents are least-squares slopes in log-log over all lengths of a row. Small lengths are dominated by call
overhead, and peaks by fixed workspaces, so an exponent below the work's own is expected; the ratio from first to last
length stands beside it."""

RELATED = """- **KV cache.** Its bytes and the intensity of a decoded token are in README.md; `attnprof run --q-lens 1 --kv-lens
  8192 --variants gqa_4kv,gqa_native` measures both ways of reading it.
- **A true window.** `sliding_window_true` computes only the window; `attnprof run --variants
  sliding_w128,sliding_window_true --mask window:127:0 --seq-lens 2048:16384:x2` measures the difference.
- **Another GPU.** `attnprof predict --device "RTX 2070"` predicts the same rows without one; the scripts take `--device cuda`."""


def rows_text(v1: Results, v2: Results) -> str:
    """How the rows come about."""
    n = len(LENGTHS)
    return (
        f"Shape: {HEADS} heads, head_dim {HEAD_DIM}, causal (top-left), lengths {', '.join(map(str, LENGTHS))}.\n\n"
        f"**v1, {len(v1.records)} rows.** The study states 60 rows and not their composition; this one is ours: "
        f"{len(V1_VARIANTS)} variants x {n} lengths at batch 1 = {len(V1_VARIANTS) * n}, and "
        f"{', '.join(V1_BATCH4_VARIANTS)} x {n} lengths at batch 4 = {len(V1_BATCH4_VARIANTS) * n}: the baseline, the choice "
        "that a model gets by default, and the one with grouped heads, which are those that a batch decides between.\n\n"
        f"**v2, {len(v2.records)} rows.** {len(V2_VARIANTS)} variants ({', '.join(V2_VARIANTS)}) x {n} lengths x "
        f"{len(V2_BATCHES)} batches ({', '.join(map(str, V2_BATCHES))}). `sdpa_flash` is left out: on a CPU the default choice is "
        "that kernel, and below sm80 it falls back to the default."
    )


def measuring(v1: Results) -> str:
    """Conditions, from the run's own manifest."""
    words = v1.manifest.command if v1.manifest else ()
    sampling = [f"{name} {words[words.index(name) + 1]}" for name in SAMPLING[::2] if name in words]
    command = f"`attnprof run ... {' '.join(sampling)}`"
    seen = sorted({row.dtype for row in v1.rows})
    device = escape(v1.manifest.identity.device_name) if v1.manifest else "unknown"
    return (
        f"Both runs are {command} on {device}, dtype {', '.join(seen)}. Variants of one problem are sampled in turn, in rotating "
        "order, so that a speed-up is a ratio of neighbours in time; the reported time is the median with its 95% "
        "interval. First call, compilation and preparation are apart. Peak memory is that of one call minus its inputs. "
        "Each result is checked against float64 attention on the same inputs. The columns are those of `attnprof run`'s "
        "`results.csv`; TFLOP/s counts allowed pairs only."
    )
