"""The answer in words: what a reader is told before any chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from attnprof.report.answers import Answer, Crossover, Series, crossovers, distrusted, labels
from attnprof.report.paired import MIN_SAMPLES
from attnprof.report.row import Row
from attnprof.report.table import counted, number

MAX_SERIES = 8
MAX_NAMES = 6


class Paragraph(msgspec.Struct, frozen=True, kw_only=True):
    """A heading with its sentences; `alarm` marks what a reader must not miss."""

    heading: str
    sentences: tuple[str, ...]
    alarm: bool = False


def story(
    found: Sequence[Answer], made: Sequence[Row], damaged: Sequence[str] = (), no_ceilings: str = ""
) -> tuple[Paragraph, ...]:
    """Paragraphs in the order in which they matter; empty ones are left out.

    `no_ceilings` is the reason why no row could be placed under a roof, where there is one.
    """
    parts = (
        Paragraph(heading="Fastest correct kernel", sentences=_fastest(found)),
        Paragraph(heading="Crossover with naive", sentences=_crossovers(found)),
        Paragraph(heading="Distance to the ceiling", sentences=_ceiling(found, no_ceilings)),
        Paragraph(
            heading="What to distrust", sentences=(*_damage(damaged), *_distrust(made)), alarm=bool(damaged)
        ),
        Paragraph(heading="Not measured", sentences=_not_measured(made)),
        Paragraph(heading="Another function", sentences=_presets(made)),
    )
    return tuple(part for part in parts if part.sentences)


def by_series(found: Sequence[Answer]) -> dict[Series, list[Answer]]:
    """Answers grouped by series, in their order."""
    groups: dict[Series, list[Answer]] = {}
    for answer in found:
        groups.setdefault(answer.series, []).append(answer)
    return groups


def _fastest(found: Sequence[Answer]) -> tuple[str, ...]:
    groups = by_series(found)
    common, own = labels(groups)
    shared = (f"All series: {common}.",) if common else ()
    sentences = [f"{own[key]}: {_spans(group)}." for key, group in list(groups.items())[:MAX_SERIES]]
    return (*shared, *sentences, *_more(len(groups), "series; the map and the tables show all"))


def _more(total: int, text: str) -> tuple[str, ...]:
    return (f"… and {total - MAX_SERIES} more {text}.",) if total > MAX_SERIES else ()


def _spans(group: Sequence[Answer]) -> str:
    """`256: naive; 512 to 2048: sdpa_flash (up to 6.7 times naive)`: equal neighbours are joined."""
    spans: list[list[Answer]] = []
    for answer in group:
        if spans and _winner(spans[-1][-1]) == _winner(answer):
            spans[-1].append(answer)
        else:
            spans.append([answer])
    return "; ".join(_span(span) for span in spans)


def best_text(answer: Answer) -> str:
    """The fastest correct kernel of a length, and what it is not told apart from.

    Fewer than six samples allow no claim: then only whose median is lowest is said.
    """
    return f"{_winner(answer)}{_ties([answer])}"


def _winner(answer: Answer) -> str:
    if answer.best is None:
        return f"n/a ({answer.reason})"
    name = answer.best.variant
    return f"no claim below {MIN_SAMPLES} samples (lowest median: {name})" if answer.few else name


def _span(span: Sequence[Answer]) -> str:
    first, last = span[0].length, span[-1].length
    return f"{_reach(first, last)}: {_winner(span[0])}{_gain(span)}{_ties(span)}"


def _gain(span: Sequence[Answer]) -> str:
    """The largest speed-up over naive of those whose interval lies above 1."""
    bests = [answer.best for answer in span if answer.best and not answer.few]
    speedups = [row.speedup_vs_naive or 0.0 for row in bests if (row.speedup_low or 0.0) > 1]
    return f", {number(max(speedups), 3)} times naive at best" if speedups else ""


def _ties(span: Sequence[Answer]) -> str:
    """Where the order is not certain, as ` (not told apart from naive at N = 64, 128)`."""
    unsure = [answer for answer in span if answer.tied and not answer.few]
    if not unsure:
        return ""
    others = names([name for answer in unsure for name in answer.tied])
    where = "" if len(unsure) == len(span) else f" at N = {_listed([answer.length for answer in unsure])}"
    return f" (not told apart from {others}{where})"


def _crossovers(found: Sequence[Answer]) -> tuple[str, ...]:
    own = labels(answer.series for answer in found)[1]
    merged: dict[Series, list[Crossover]] = {}
    for crossing in crossovers(found):
        merged.setdefault(crossing.series, []).append(crossing)
    first = list(merged.items())[:MAX_SERIES]
    sentences = [f"{own[key]}: {'; '.join(_all_crossings(group))}." for key, group in first]
    return (*sentences, *_more(len(merged), "series"))


def _all_crossings(group: Sequence[Crossover]) -> Iterator[str]:
    """Each variant's crossover; those of which nothing is shown are named together."""
    unclear: dict[str, list[str]] = {}
    for each in group:
        text = _nothing_shown(each)
        if text:
            unclear.setdefault(text, []).append(each.variant)
        else:
            yield f"{each.variant} {_beats(each, each.lengths[0], each.lengths[-1])}{_doubts(each)}"
    for text, variants in unclear.items():
        yield f"{text}: {names(variants)}"


def _nothing_shown(crossing: Crossover) -> str:
    """Why a variant is neither faster nor slower than naive at any length; empty when it is somewhere."""
    where = _reach(crossing.lengths[0], crossing.lengths[-1])
    if crossing.unclear == crossing.lengths:
        return f"no difference from naive shown ({where})"
    if crossing.unknown == crossing.lengths:
        return f"no claim, fewer than {MIN_SAMPLES} rounds shared with naive ({where})"
    return ""


def _beats(crossing: Crossover, first: int, last: int) -> str:
    if crossing.length is not None:
        if crossing.length == first:
            return f"beats naive at every length measured, from N = {first}"
        return f"beats naive from N = {crossing.length} on"
    if crossing.faster:
        return f"beats naive at N = {_listed(crossing.faster)}, but is not shown to at N = {last}"
    return f"does not beat naive up to N = {last}"


def _doubts(crossing: Crossover) -> str:
    """At which lengths nothing is shown, in brackets."""
    told = {
        "no difference shown": crossing.unclear,
        f"below {MIN_SAMPLES} shared rounds, no claim": crossing.unknown,
    }
    parts = [f"{text} at N = {_listed(lengths)}" for text, lengths in told.items() if lengths]
    return f" ({'; '.join(parts)})" if parts else ""


def _reach(first: int, last: int) -> str:
    return f"N = {first}" if first == last else f"N = {first} to {last}"


def _listed(lengths: Sequence[int]) -> str:
    return names([str(length) for length in lengths])


def _ceiling(found: Sequence[Answer], no_ceilings: str) -> tuple[str, ...]:
    """Per series, the fastest correct kernel at the longest length: how far from its bound, and what binds."""
    if found and no_ceilings:
        return (f"n/a: {no_ceilings}.",)
    sentences = []
    groups = by_series(found)
    own = labels(groups)[1]
    for key, group in list(groups.items())[:MAX_SERIES]:
        last = next((answer for answer in reversed(group) if answer.best and answer.best.times_bound), None)
        if last is not None and last.best is not None:
            sentences.append(f"{own[key]}: {_distance(last.best, last.length)}.")
    return (*sentences, *_more(len(groups), "series"))


def _distance(row: Row, length: int) -> str:
    """`sdpa_flash at N = 2048 takes 3.4 times ...; matmul binds, 29% of its measured ceiling reached`."""
    shares = {"matmul": row.matmul_share, "exp": row.exp_share, f"{row.memory_level} bytes": row.memory_share}
    reached = shares.get(row.binding or "")
    percent = f", {reached:.0%} of its {row.ceilings_basis} ceiling reached" if reached is not None else ""
    return (
        f"{row.variant} at N = {length} takes {number(row.times_bound, 3)} times the least time that the "
        f"ceilings allow ({number(row.bound_us, 3)} µs); {row.binding} binds{percent}"
    )


def _damage(damaged: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"Could not be read and is left out: {text}." for text in damaged[:MAX_NAMES]) + (
        (f"… and {counted(len(damaged) - MAX_NAMES, 'more damaged line')}.",)
        if len(damaged) > MAX_NAMES
        else ()
    )


def _distrust(made: Sequence[Row]) -> tuple[str, ...]:
    sentences = []
    for judgment, fallen in distrusted(made):
        which = names([row.variant for row in fallen])
        example = f"{judgment.message}" if len(fallen) == 1 else f"for example: {judgment.message}"
        remedy = f" Remedy: {judgment.remedy}." if judgment.remedy else ""
        sentences.append(
            f"{judgment.code} on {len(fallen)} of {counted(len(made), 'row')} ({which}); {example}.{remedy}"
        )
    return tuple(sentences)


def names(every: Sequence[str]) -> str:
    """Names without repeats, at most six.

    >>> names(["a", "b", "a"])
    'a, b'
    """
    unique = list(dict.fromkeys(every))
    more = f" and {len(unique) - MAX_NAMES} more" if len(unique) > MAX_NAMES else ""
    return ", ".join(unique[:MAX_NAMES]) + more


def _not_measured(made: Sequence[Row]) -> tuple[str, ...]:
    counts = Counter((row.outcome, row.variant, row.reason) for row in made if row.outcome != "measured")
    lines = [
        f"{variant}, {counted(count, 'row')} {outcome}: {reason}."
        for (outcome, variant, reason), count in counts.items()
    ]
    return (*lines[:MAX_SERIES], *_more(len(lines), "reasons; the table shows all"))


def _presets(made: Sequence[Row]) -> tuple[str, ...]:
    others = names([row.variant for row in made if not row.same_function])
    if not others:
        return ()
    return (
        f"{others}: the function differs from the one asked for, so these are never called fastest correct kernel.",
    )
