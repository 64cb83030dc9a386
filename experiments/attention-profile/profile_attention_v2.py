"""v2: 6 variants x 6 lengths x 3 batches: 108 rows in results/attention_profile_v2.csv.

    python profile_attention_v2.py [--device cpu|cuda]

sdpa_flash is left out: on a CPU the default choice already is the flash kernel, and below sm80 it falls back to it.
"""

from __future__ import annotations

import argparse

from study import V2_BATCHES, V2_VARIANTS, run, write_csv


def main() -> None:
    """Measure and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    run("v2", V2_VARIANTS, V2_BATCHES, first=True, device=device)
    rows = write_csv("v2")
    print(f"{rows} rows in results/attention_profile_v2.csv")


if __name__ == "__main__":
    main()
