"""What is odd in the published RTX 2070 figures, each with the arithmetic that shows it."""

# ruff: noqa: E501  # a sentence of the document stays on one line

from __future__ import annotations

from collections.abc import Iterator

from study import HEAD_DIM, HEADS, exponent, published_table

from attnprof.core.mask import Causal, Full
from attnprof.core.problem import Problem
from attnprof.core.units import MIB
from attnprof.store.machines import find_chip

CUBLAS_WORKSPACE_BYTES = 8.1 * MIB  # inside each of the published peaks
MB = 1e6


def oddities() -> Iterator[str]:
    """One sentence or two each."""
    times = published_table("time_us")
    yield from _same_kernel(times)
    yield _flash_without_flash(times)
    yield _dtype(times)
    yield _math(times)
    yield _overhead(times)
    yield _workspace()
    yield (
        "`gqa_4kv` carries a 4 in its name: it is the group size (12 query heads on 3 KV heads). One copy of the "
        "table lists 4 KV heads for it; the difference is in the label, not in the times."
    )


def _same_kernel(times: dict[str, dict[int, float]]) -> Iterator[str]:
    default, memeff = times["sdpa_default"], times["sdpa_memeff"]
    ratios = {n: memeff[n] / default[n] for n in default}
    worst = max(ratios, key=lambda n: abs(ratios[n] - 1))
    told = ", ".join(f"{n}: {ratio:.2f}" for n, ratio in ratios.items())
    yield (
        f"On sm75 PyTorch's default choice *is* the memory-efficient kernel, so `sdpa_memeff` over `sdpa_default` "
        f"should be 1; it is {told}. The differences are noise of that measurement: up to a factor "
        f"{ratios[worst]:.2f} (N = {worst})."
    )
    falling = [
        (a, b) for a, b in zip(sorted(memeff), sorted(memeff)[1:], strict=False) if memeff[b] < memeff[a]
    ]
    for a, b in falling:
        yield (
            f"`sdpa_memeff` takes {memeff[a]:.0f} us at N = {a} and {memeff[b]:.0f} us at N = {b}: four times the "
            "work in less time. One of the two is an outlier."
        )


def _flash_without_flash(times: dict[str, dict[int, float]]) -> str:
    speedup = published_table("speedup_vs_naive")["sdpa_flash"][2048]
    implied = times["naive"][2048] / speedup
    return (
        f"`sdpa_flash` is printed with a speed-up of {speedup:.2f} at N = 2048 (so {implied:.0f} us), but there is no "
        f"FlashAttention below sm80: the row fell back to the default kernel ({times['sdpa_default'][2048]:.0f} us). "
        "A forced backend that silently is another one is why a row here names the kernel that really ran."
    )


def _dtype(times: dict[str, dict[int, float]]) -> str:
    seconds = times["sdpa_default"][2048] * 1e-6
    sizes = {"q_heads": HEADS, "q_len": 2048, "head_dim": HEAD_DIM}
    full, causal = (Problem(mask=mask, **sizes).useful_flops / seconds / 1e12 for mask in (Full(), Causal()))
    chip = find_chip("RTX 2070")
    fp32, fp16 = chip.fp32_flops_per_s or 0, chip.fp16_flops_per_s or 0
    return (
        f"Dtype and mask are not printed. At N = 2048 the default kernel did {causal:.1f} TFLOP/s if only causal pairs "
        f"count and {full:.1f} if all do; the chip's fp32 peak is {fp32 / 1e12:.1f}, its fp16 tensor peak "
        f"{fp16 / 1e12:.1f}: it was fp16, and which of the two counts is meant cannot be told from the table."
    )


def _math(times: dict[str, dict[int, float]]) -> str:
    ratios = {n: times["sdpa_math"][n] / times["naive"][n] for n in times["naive"]}
    told = ", ".join(f"{n}: {ratio:.2f}" for n, ratio in ratios.items())
    return (
        f"`sdpa_math` is slower than naive at every length ({told} times): it computes 16-bit inputs in fp32, with "
        f"scores of twice the size. Its growth from 1024 to 2048, x{times['sdpa_math'][2048] / times['sdpa_math'][1024]:.2f}, "
        f"is far from naive's x{times['naive'][2048] / times['naive'][1024]:.2f}, so at least one of these times is off."
    )


def _overhead(times: dict[str, dict[int, float]]) -> str:
    naive, default = times["naive"], times["sdpa_default"]
    return (
        f"Time grows as O(n^{exponent(naive):.2f}) for naive and O(n^{exponent(default):.2f}) for default, below the 2 of "
        f"the work: at N = 256 both mostly pay for launches ({naive[256]:.0f} and {default[256]:.0f} us)."
    )


def _workspace() -> str:
    memory = published_table("peak_mb")
    problem = Problem(q_heads=HEADS, q_len=2048, head_dim=HEAD_DIM, dtype="float16", mask=Causal())
    mask_bytes = problem.q_len * problem.kv_len
    known = 2 * problem.score_bytes + problem.o_bytes + mask_bytes + CUBLAS_WORKSPACE_BYTES
    return (
        f"Every published peak holds {CUBLAS_WORKSPACE_BYTES / MIB:.1f} MiB of cuBLAS workspace, nearly all of the "
        f"{memory['naive'][64]:.1f} MB at N = 64, so a growth from 64 to 2048 understates the kernel's own. Naive at 2048: "
        f"two fp16 score matrices, output, a boolean mask and that workspace are {known / MB:.0f} MB; printed: "
        f"{memory['naive'][2048]:.0f}."
    )
