"""Fit the shipped constants on the published measurements and write them, with their spreads, to the package.

Run: python benchmarks/fit_published.py
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from attnprof.predict.cases import Columns
from attnprof.predict.fit import DEFAULT_SPREAD, Fit, Spread, predicted_s
from attnprof.predict.leaving_out import fit_rows, packaged_rows
from attnprof.predict.published import PublishedRow

TARGET = Path(__file__).parent.parent / "src/attnprof/predict/data/fit.json"


def main() -> None:
    """Write fit.json."""
    rows = packaged_rows()
    fit = fit_rows(rows, measured_spread(rows))
    rounded = msgspec.structs.replace(
        fit, constants=_rounded(fit.constants), adjustments=_rounded(fit.adjustments)
    )
    TARGET.write_bytes(msgspec.json.format(msgspec.json.encode(rounded), indent=1) + b"\n")
    print(f"{fit.rows} rows of {len(fit.sources)} sources -> {TARGET}; {fit.spread}")


def measured_spread(rows: tuple[PublishedRow, ...]) -> Spread:
    """Half-widths that held 80% of the rows of left-out sources, each source counting alike."""
    errors: dict[str, list[tuple[float, float]]] = {"known": [], "new": [], "loose": []}
    for source in sorted({row.source for row in rows}):
        fit = fit_rows([row for row in rows if row.source != source])
        mine = [row for row in rows if row.source == source]
        columns = Columns([row.case for row in mine])
        log_error = np.abs(np.log(predicted_s(columns, fit)) - np.log([row.seconds for row in mine]))
        for kind, error in zip(_kinds(columns, fit), log_error, strict=True):
            errors[kind].append((float(error), len(mine) ** -0.5))
    return Spread(known=_quantile(errors["known"]), family_new_on_generation=_quantile(errors["new"]),
                  decode_or_eager=_quantile(errors["loose"]))  # fmt: skip


def _kinds(columns: Columns, fit: Fit) -> list[str]:
    seen = fit.adjustments["family*generation"]
    labels = columns.labels("family", "generation")
    loose = columns.decode | columns.eager
    kinds = ["known" if label in seen else "new" for label in labels]
    return ["loose" if is_loose else kind for kind, is_loose in zip(kinds, loose, strict=True)]


def _quantile(errors: list[tuple[float, float]], share: float = 0.8) -> float:
    """Weighted quantile."""
    if not errors:
        return DEFAULT_SPREAD.known
    values, weights = np.array(sorted(errors)).T
    return round(float(values[np.searchsorted(np.cumsum(weights), share * weights.sum())]), 3)


def _rounded(table: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {key: {name: float(f"{value:.4g}") for name, value in row.items()} for key, row in table.items()}


if __name__ == "__main__":
    main()
