"""Blocks A and B of the laboratory: bytes and arithmetic intensity from the formulas.

Run it on its own: python derive_bytes.py
"""

from __future__ import annotations

from attnprof.textbook import Comparison, compare

SIZES = ((64, 64), (1024, 64), (2048, 64), (4096, 64), (8192, 128), (32768, 128))
B_r = B_c = 64
FP16, FP32 = 2, 4

NOTE = (
    "At N = 64 the N^2 = 4096 score matrix is 16 KiB in fp32, inside L1: it never leaves the chip, so flash wins "
    "nothing. It wins once N*N*dtype_bytes is larger than the on-chip memory (L2)."
)
O_NOTE = (
    "bytes_flash counts the output O, bytes_naive does not: for the clean comparison, add N*d*dtype_bytes to naive "
    "or subtract it from flash."
)


def derived(dtype_bytes: int = FP32) -> list[Comparison]:
    """Both forms at every size of the exercise."""
    return [compare(N, d, B_r, B_c, dtype_bytes) for N, d in SIZES]


def main() -> None:
    """Print Block A (bytes) and Block B (FLOPs and intensity)."""
    for dtype_bytes, name in ((FP32, "fp32"), (FP16, "fp16")):
        print(f"\nBlock A: bytes in {name}, B_r = B_c = {B_r}")
        print(f"{'N':>6} {'d':>4} {'naive':>16} {'flash':>16} {'naive/flash':>12} {'O in both':>10}")
        for c in derived(dtype_bytes):
            sizes = f"{c.N:>6} {c.d:>4} {c.naive_bytes:>16,} {c.flash_bytes:>16,}"
            print(f"{sizes} {c.ratio:>12.4f} {c.ratio_with_o:>10.4f}")
    print(f"\n{NOTE}\n{O_NOTE}")

    print("\nBlock B: FLOPs = 4*N*N*d and FLOP per byte, fp32")
    print(f"{'N':>6} {'d':>4} {'FLOPs':>20} {'naive':>9} {'flash':>9} {'flash in DRAM':>14}")
    for c in derived(FP32):
        in_dram = c.flops / c.flash_dram_bytes
        print(
            f"{c.N:>6} {c.d:>4} {c.flops:>20,} {c.naive_intensity:>9.2f} {c.flash_intensity:>9.2f} {in_dram:>14.1f}"
        )


if __name__ == "__main__":
    main()
