"""What a tiled loop visits under a mask: keys streamed per query tile, rows per key tile, tiles computed."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import msgspec

from attnprof.core.errors import InvalidInput
from attnprof.core.mask import Band, Dense, Full
from attnprof.core.problem import Problem
from attnprof.core.schedules.formula import Number


class Visits(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one head, summed over batch: `keys` streamed by query tiles (L), `rows` by key tiles (R).

    `tiles` are those computed; `pairs` their real (ragged) elements, `padded_pairs` tiles times B_r times
    B_c; `rows_met` are query rows in at least one computed tile, `keys_met` likewise.
    """

    keys: Number
    rows: Number
    rows_met: Number
    keys_met: Number
    tiles: Number
    pairs: Number
    padded_pairs: Number


def check_tiles(**sizes: int) -> None:
    """Raises: InvalidInput for a tile size below 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise InvalidInput(f"tile size {name}={size}: it must be a whole number above 0, such as 64")


def visits(problem: Problem, rows: int, cols: int, *, skip: bool = True) -> Visits:
    """What tiles of `rows` queries by `cols` keys visit; `skip` leaves out tiles that the mask hides wholly.

    An explicit (Dense) mask is skipped by block only where its blocks are known beforehand: `block_visits`.
    """
    check_tiles(B_r=rows, B_c=cols)
    if not skip or isinstance(problem.mask, Full | Dense):
        whole = Band(q_len=problem.q_len, kv_len=problem.kv_len)
        return _sum([(problem.batch, _band_visits(whole, rows, cols))])
    bands = problem.mask.bands(problem.batch, problem.q_len, problem.kv_len)
    return _sum([(count, _band_visits(band, rows, cols)) for count, band in bands])


def _sum(parts: list[tuple[Number, Visits]]) -> Visits:
    """Counts added with their weights; whole sums are ints."""
    totals = {n: sum(Fraction(w) * getattr(part, n) for w, part in parts) for n in Visits.__struct_fields__}
    return Visits(**{n: int(total) if total == int(total) else total for n, total in totals.items()})


def tile_spans(band: Band, rows: int, cols: int) -> Iterator[tuple[int, int, int]]:
    """Per query tile that sees a key: (its real rows, first key tile, end of key tiles)."""
    for start in range(0, band.q_len, rows):
        height = min(rows, band.q_len - start)
        first, last = band.span(start)[0], band.span(start + height - 1)[1]
        if last > first:
            yield height, first // cols, -(-last // cols)


@lru_cache(maxsize=4096)
def _band_visits(band: Band, rows: int, cols: int) -> Visits:
    spans = list(tile_spans(band, rows, cols))
    keys = [min(stop * cols, band.kv_len) - first * cols for _, first, stop in spans]
    tiles = sum(stop - first for _, first, stop in spans)
    return Visits(
        keys=sum(keys),
        rows=sum(height * (stop - first) for height, first, stop in spans),
        rows_met=sum(height for height, _, _ in spans),
        keys_met=_covered(band, spans, cols),
        tiles=tiles,
        pairs=sum(height * n for (height, _, _), n in zip(spans, keys, strict=True)),
        padded_pairs=tiles * rows * cols,
    )


def _covered(band: Band, spans: list[tuple[int, int, int]], cols: int) -> int:
    """Keys in at least one computed tile: spans move monotonically, so their union is counted in one pass."""
    total, reached = 0, 0
    for _, first, stop in spans:
        begin = max(first * cols, reached)
        reached = max(reached, min(stop * cols, band.kv_len))
        total += max(0, reached - begin)
    return total


def block_visits(problem: Problem, rows: int, cols: int) -> Visits:
    """Like `visits`, and for an explicit mask only the blocks in which it shows a pair (a block mask)."""
    if not isinstance(problem.mask, Dense):
        return visits(problem, rows, cols)
    check_tiles(B_r=rows, B_c=cols)
    batch, heads = (1, 1) if len(problem.mask.shape) == 2 else problem.mask.shape[:2]
    matrices = max(batch * heads, 1)
    stored = list(problem.mask.rows())
    per = len(stored) // matrices
    weight = Fraction(
        problem.batch, matrices
    )  # counts are of one head: the mean over heads where they differ
    parts = [_dense_visits(stored[i * per : (i + 1) * per], problem, rows, cols) for i in range(matrices)]
    return _sum([(weight, part) for part in parts])


def _dense_visits(stored: list[str], problem: Problem, rows: int, cols: int) -> Visits:
    """Blocks of one batch element in which a stored row shows a key."""
    lines = stored * (problem.q_len if len(stored) == 1 else 1)
    tops, lefts = range(0, problem.q_len, rows), range(0, problem.kv_len, cols)
    heights = [min(rows, problem.q_len - top) for top in tops]
    widths = [min(cols, problem.kv_len - left) for left in lefts]
    shown = [[_shows(lines[top : top + rows], left, left + cols) for left in lefts] for top in tops]
    keys = [sum(w for w, yes in zip(widths, line, strict=True) if yes) for line in shown]
    tiles = [sum(line) for line in shown]
    met = [any(line[i] for line in shown) for i in range(len(widths))]
    return Visits(
        keys=sum(keys),
        rows=sum(h * n for h, n in zip(heights, tiles, strict=True)),
        rows_met=sum(h for h, n in zip(heights, tiles, strict=True) if n),
        keys_met=sum(w for w, yes in zip(widths, met, strict=True) if yes),
        tiles=sum(tiles),
        pairs=sum(h * n for h, n in zip(heights, keys, strict=True)),
        padded_pairs=sum(tiles) * rows * cols,
    )


def _shows(lines: list[str], start: int, stop: int) -> bool:
    return any("1" in line[start:stop] for line in lines)
