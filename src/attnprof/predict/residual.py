"""Calibration of a source by its own rows: what the shipped constants leave over, as a Gaussian process in log time.

Rows of one source share offsets (the source, its kernel, its device, both, the pass, the kernel's variation, the head
dim, the causal mask, the file that holds them), a smooth dependence on length within a head dim, and slopes over length
and over batch times heads. Fifteen spreads, set once for all sources; no row of another source has a say.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from attnprof.predict.cases import Floats
from attnprof.predict.kernels import EAGER, SPLIT_KV
from attnprof.predict.published import PublishedRow

# Spread in log time of each shared offset.
OFFSETS = {
    "source": 0.2, "kernel": 0.2, "device": 0.12, "kernel, device": 0.12, "setup": 0.15, "file": 0.1,
    "dim": 0.1, "group": 0.08, "causal": 0.05, "file, causal": 0.1,
}  # fmt: skip
SMOOTH_DIM, SMOOTH_CAUSAL, LENGTH_OCTAVES = 0.12, 0.06, 1.5
SLOPE_SETUP, SLOPE_CAUSAL, SLOPE_HEADS, SLOPE_QUERIES = 0.1, 0.05, 0.08, 0.03
NOISE, DECODE_NOISE = 0.03, 0.06
_LENGTH_AT, _HEADS_AT, _QUERIES_AT = 12.0, 6.0, 11.0  # log2 of the middle of what is published
_TAIL = 2.5  # residuals beyond so many noises are taken as outliers


Labels = npt.NDArray[np.intp]


class Rows:
    """Rows of one source as labels and coordinates, with their prior covariance."""

    def __init__(self, rows: Sequence[PublishedRow]) -> None:
        self.rows = rows
        self.length = np.log2([r.case.kv_len for r in rows]) - _LENGTH_AT
        self.heads = np.log2([r.case.batch * r.case.q_heads for r in rows]) - _HEADS_AT
        self.queries = np.log2([r.case.q_len for r in rows]) - _QUERIES_AT
        loose = EAGER | SPLIT_KV
        self.noise = np.array([DECODE_NOISE if r.case.family in loose else NOISE for r in rows])

    @cached_property
    def labels(self) -> dict[str, Labels]:
        """The label that each offset is shared by, numbered."""
        texts = [_labels(row) for row in self.rows]
        return {name: np.unique([text[name] for text in texts], return_inverse=True)[1] for name in texts[0]}

    @cached_property
    def covariance(self) -> Floats:
        """Prior covariance of the left-over log time."""

        def same(name: str) -> Floats:
            return np.asarray(self.labels[name][:, None] == self.labels[name][None, :], dtype=np.float64)

        smooth = np.exp(-0.5 * ((self.length[:, None] - self.length[None, :]) / LENGTH_OCTAVES) ** 2)
        total: Floats = np.zeros((len(self.rows), len(self.rows)))
        for name, spread in OFFSETS.items():
            total = total + spread**2 * same(name)
        total = total + smooth * (SMOOTH_DIM**2 * same("dim") + SMOOTH_CAUSAL**2 * same("causal"))
        slopes = SLOPE_SETUP**2 * np.outer(self.length, self.length)
        slopes = slopes + SLOPE_HEADS**2 * np.outer(self.heads, self.heads)
        slopes = slopes + SLOPE_QUERIES**2 * np.outer(self.queries, self.queries)
        steeper = SLOPE_CAUSAL**2 * np.outer(self.length, self.length)
        return np.asarray(total + slopes * same("setup") + steeper * same("setup, causal"))


def calibrate(rows: Rows, left_over: Floats, known: Labels, wanted: Labels) -> tuple[Floats, Floats]:
    """Expected left-over log time of the `wanted` rows, and its standard deviation, from that of the `known` rows.

    A measurement far off the rest counts less: its noise is raised until the fit no longer bends to it.
    """
    prior = rows.covariance[np.ix_(known, known)]
    usual = rows.noise[known]
    noise = usual**2
    for _ in range(3):
        weights = np.linalg.solve(prior + np.diag(noise), left_over[known])
        noise = usual**2 * np.maximum(1.0, np.abs(noise * weights) / (_TAIL * usual))
    across = rows.covariance[np.ix_(wanted, known)]
    solved = np.linalg.solve(prior + np.diag(noise), np.column_stack([left_over[known], across.T]))
    explained = np.sum(across * solved[:, 1:].T, axis=1)
    own = rows.covariance[wanted, wanted]
    return across @ solved[:, 0], np.sqrt(np.maximum(own - explained, 0.0) + rows.noise[wanted] ** 2)


def _labels(row: PublishedRow) -> dict[str, str]:
    case = row.case
    setup = f"{row.setup}|{case.windowed}"
    file, dim = f"{setup}|{row.address}", f"{setup}|{case.qk_dim}|{case.v_dim}"
    return {
        "source": row.source, "kernel": row.kernel, "device": row.gpu, "kernel, device": f"{row.kernel}|{row.gpu}",
        "setup": setup, "file": file, "dim": dim, "causal": f"{dim}|{case.causal}",
        "group": f"{file}|{case.q_heads // case.kv_heads}", "file, causal": f"{file}|{case.causal}",
        "setup, causal": f"{setup}|{case.causal}",
    }  # fmt: skip
