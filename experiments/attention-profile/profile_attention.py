"""v1: seven variants at batch 1, three of them at batch 4 too: 60 rows in results/attention_profile.csv.

    python profile_attention.py [--device cpu|cuda]

The composition of the study's 60 rows is not known; this one is ours: 7 variants x 6 lengths at batch 1 (42), and
naive, sdpa_default and gqa_4kv x 6 lengths at batch 4 (18).
"""

from __future__ import annotations

import argparse

from study import V1_BATCH4_VARIANTS, V1_VARIANTS, run, write_csv


def main() -> None:
    """Measure and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    run("v1", V1_VARIANTS, (1,), first=True, device=device)
    run("v1", V1_BATCH4_VARIANTS, (4,), first=False, device=device)
    rows = write_csv("v1")
    print(f"{rows} rows in results/attention_profile.csv")


if __name__ == "__main__":
    main()
