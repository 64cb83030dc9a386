"""Answers that a reader looks for: fastest correct kernel, crossover, growth of memory, what to distrust."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from attnprof.core.problem import Problem
from attnprof.core.record import Judgment, Measured, Record, Severity
from attnprof.core.stats import growth_exponent
from attnprof.report.paired import MIN_SAMPLES, paired
from attnprof.report.row import BASELINE, Row


class Series(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What stays fixed while the length grows: every axis of an asked problem but its lengths."""

    batch: int
    heads: str
    dim: str
    dtype: str
    mask: str
    direction: str
    queries: str  # "as keys", or the fixed number of queries
    other: str  # scale and dropout where they are not the usual ones
    device: str
    cache: str

    @property
    def parts(self) -> tuple[str, ...]:
        """What is fixed, in words; empty where it is the usual."""
        return (
            f"batch {self.batch}",
            f"{self.heads} heads",
            f"head_dim {self.dim}",
            "" if self.queries == "as keys" else f"q_len {self.queries}",
            self.dtype,
            self.mask,
            self.direction,
            self.other,
            self.device,
            f"{self.cache} cache",
        )

    def __str__(self) -> str:
        return ", ".join(filter(None, self.parts))


def series(record: Record) -> Series:
    """The series that a record's asked problem belongs to."""
    p = record.asked
    return Series(
        batch=p.batch,
        heads=_pair(p.q_heads, p.kv_heads),
        dim=_pair(p.qk_dim, p.v_dim),
        dtype=str(p.dtype),
        mask=mask_rule(p),
        direction=str(p.direction),
        queries="as keys" if p.q_len == p.kv_len else str(p.q_len),
        other=", ".join(_unusual(p)),
        device=record.device,
        cache=record.cache,
    )


def _unusual(problem: Problem) -> list[str]:
    """Scale and dropout, where they are not 1/sqrt(qk_dim) and 0."""
    scale = [] if problem.scale is None else [f"scale {problem.scale:g}"]
    return scale + ([f"dropout {problem.dropout:g}"] if problem.dropout else [])


def mask_rule(problem: Problem) -> str:
    """The mask's name; lengths and explicit arrays change with the sizes, so only their kind is named."""
    return (
        str(problem.mask).split(":", 1)[0]
        if str(problem.mask).startswith(("lengths", "dense"))
        else str(problem.mask)
    )


def _pair(first: int, second: int) -> str:
    return str(first) if first == second else f"{first}/{second}"


def labels(keys: Iterable[Series]) -> tuple[str, dict[Series, str]]:
    """What all series share, said once, and what tells each apart (its whole text when it is the only one)."""
    unique = list(dict.fromkeys(keys))
    if len(unique) < 2:
        return "", {key: str(key) for key in unique}
    columns = list(zip(*(key.parts for key in unique), strict=True))
    varies = [len(set(column)) > 1 for column in columns]
    common = ", ".join(
        column[0] for column, differs in zip(columns, varies, strict=True) if column[0] and not differs
    )
    own = {
        key: ", ".join(part for part, differs in zip(key.parts, varies, strict=True) if part and differs)
        for key in unique
    }
    return common, own


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One length of one series: its rows ranked by median, and the fastest that may be used."""

    series: Series
    length: int
    ranked: tuple[Row, ...]
    best: Row | None
    reason: str = ""  # why there is no best
    tied: tuple[str, ...] = ()  # correct variants that are not shown to be slower than the best one

    @property
    def few(self) -> bool:
        """Whether the best one has too few samples for a claim."""
        return self.best is not None and (self.best.n_samples or 0) < MIN_SAMPLES


def answers(records: Sequence[Record], made: Sequence[Row]) -> tuple[Answer, ...]:
    """An answer per asked problem, by series and then by length (kv_len)."""
    groups: dict[tuple[Series, int, str], list[tuple[Record, Row]]] = {}
    for record, row in zip(records, made, strict=True):
        groups.setdefault((series(record), record.asked.kv_len, row.asked), []).append((record, row))
    return tuple(_answer(*key[:2], groups[key]) for key in sorted(groups))


def _answer(key: Series, length: int, group: Sequence[tuple[Record, Row]]) -> Answer:
    ranked = rank(row for _, row in group)
    timed = {id(row): record.measured for record, row in group}
    best = next((row for row in ranked if row.correct), None)
    reason = "" if best else _why_no_best(ranked)
    tied = tuple(
        row.variant
        for row in ranked
        if best and row is not best and row.correct and not _apart(best, row, timed[id(best)], timed[id(row)])
    )
    return Answer(series=key, length=length, ranked=ranked, best=best, reason=reason, tied=tied)


def _apart(best: Row, other: Row, mine: Measured | None, theirs: Measured | None) -> bool:
    """Whether the interval of the paired ratio lies above 1; without shared rounds, whether the medians' are apart."""
    ratio = paired(theirs, mine) if mine and theirs else None
    if ratio is not None:
        return ratio.low is not None and ratio.low > 1
    if best.time_ci_high_us is None or other.time_ci_low_us is None:
        return False
    return other.time_ci_low_us > best.time_ci_high_us


def rank(group: Iterable[Row]) -> tuple[Row, ...]:
    """Rows by median time; those without a time last, in their order."""
    return tuple(sorted(group, key=lambda row: (row.time_median_us is None, row.time_median_us or 0.0)))


def _why_no_best(ranked: Sequence[Row]) -> str:
    timed = [row for row in ranked if row.time_median_us is not None]
    own = [row for row in timed if row.same_function]
    if not timed:
        return "nothing was measured"
    if not own:
        return "only kernels of another function were measured"
    return "every result is wrong" if all(row.wrong for row in own) else "no result was checked and passed"


class Crossover(msgspec.Struct, frozen=True, kw_only=True):
    """Where the interval of a variant's speed-up over naive lies above 1, contains 1, or does not exist.

    `length` is the smallest one from which on it lies above 1 everywhere; None when it does not at the end.
    """

    series: Series
    variant: str
    length: int | None
    lengths: tuple[int, ...]
    faster: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()  # fewer than six rounds are shared with naive


def crossovers(found: Sequence[Answer]) -> tuple[Crossover, ...]:
    """Per series and variant (correct, not naive itself), its crossover."""
    tables: dict[tuple[Series, str], dict[int, Row]] = {}
    for answer in found:
        for row in answer.ranked:
            if row.variant != BASELINE and row.correct and row.speedup_vs_naive is not None:
                tables.setdefault((answer.series, row.variant), {})[answer.length] = row
    return tuple(_crossover(key, variant, table) for (key, variant), table in tables.items())


def _crossover(key: Series, variant: str, table: dict[int, Row]) -> Crossover:
    signs = {length: _sign(table[length]) for length in sorted(table)}
    since: int | None = None
    for length, sign in signs.items():
        since = (since or length) if sign == 1 else None
    faster, unclear, unknown = (
        tuple(n for n, sign in signs.items() if sign == each) for each in (1, 0, None)
    )
    return Crossover(
        series=key, variant=variant, length=since, lengths=tuple(signs), faster=faster, unclear=unclear,
        unknown=unknown,
    )  # fmt: skip


def _sign(row: Row) -> int | None:
    """1 faster than naive, -1 slower, 0 no difference shown; None without an interval."""
    if row.speedup_low is None or row.speedup_high is None:
        return None
    return 1 if row.speedup_low > 1 else -1 if row.speedup_high < 1 else 0


def memory_growth(found: Sequence[Answer]) -> dict[tuple[Series, str], float | None]:
    """Exponent a of peak memory ~ length^a per series and variant; None below two lengths."""
    points: dict[tuple[Series, str], list[tuple[int, float]]] = {}
    for answer in found:
        for row in answer.ranked:
            if row.peak_mib:
                points.setdefault((answer.series, row.variant), []).append((answer.length, row.peak_mib))
    return {key: growth_exponent(*zip(*table, strict=True)) for key, table in points.items()}


def distrusted(made: Sequence[Row]) -> tuple[tuple[Judgment, tuple[Row, ...]], ...]:
    """Judgments above a note, the gravest first, each once per code with the rows that it falls on."""
    groups: dict[str, tuple[Judgment, list[Row]]] = {}
    for row in made:
        for judgment in row.judgments:
            if judgment.severity is not Severity.NOTE:
                groups.setdefault(judgment.code, (judgment, []))[1].append(row)
    ordered = sorted(
        groups.values(), key=lambda pair: (pair[0].severity is not Severity.ALARM, -len(pair[1]))
    )
    return tuple((judgment, tuple(fallen)) for judgment, fallen in ordered)
