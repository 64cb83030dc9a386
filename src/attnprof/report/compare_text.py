"""A comparison as Markdown for a pull request, and as the lines that the terminal prints."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from attnprof.core.units import format_seconds
from attnprof.report.compare import Case, CaseVerdict, Comparison, by_verdict
from attnprof.report.export import NOT_AVAILABLE
from attnprof.report.table import counted, printable

HEADER = ("case", "verdict", "B / A", "interval", "as timed", "A", "B")
_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")


def headline(result: Comparison) -> str:
    """The answer in one sentence: judged cases are counted, the others named apart."""
    worse = len(result.regressions)
    parts = [f"{_lead(result, worse)}; threshold {percent(result.threshold)}"]
    apart = len(result.cases) - result.judged
    if apart and result.judged:
        parts.append(f"{counted(apart, 'case')} not comparable")
    if result.damaged:
        sides = " and ".join(
            side for side in "AB" if any(text.startswith(f"{side}:") for text in result.damaged)
        )
        parts.append(f"input DAMAGED: {counted(len(result.damaged), 'part')} of {sides} could not be read")
    return "; ".join(parts)


def _lead(result: Comparison, worse: int) -> str:
    told = f"{counted(worse, 'regression')}" if worse else "no regression"
    if not result.judged:
        none = f"no case was judged ({len(result.cases)} in common, all not comparable)"
        return f"{told}, and {none}" if worse else none
    judged = [verdict for verdict in CaseVerdict if verdict is not CaseVerdict.NOT_COMPARABLE]
    counts = ", ".join(f"{result.count(each)} {each}" for each in judged if result.count(each))
    return f"{told} in {counted(result.judged, 'judged case')} ({counts})"


def percent(share: float) -> str:
    """A share in percent with no more digits than it has.

    >>> percent(0.05), percent(0.125), percent(26665545.0)
    ('5%', '12.5%', 'more than 1,000%')
    """
    return f"{share * 100:.3g}%" if share <= 10 else "more than 1,000%"


def preamble(result: Comparison) -> Iterator[tuple[str, Sequence[str]]]:
    """What is to be known before the cases, most important first: (heading, lines)."""
    yield "environment differs: times are not judged", result.environment
    yield "versions differ", result.versions
    yield "conditions differ", result.weather
    yield "could not be read", result.damaged
    yield "the machine", tuple(_machine(result))


def _machine(result: Comparison) -> Iterator[str]:
    if result.common_ratio is not None and abs(result.common_ratio - 1) > result.threshold / 2:
        yield f"the median case took {_ratio(result.common_ratio)} times as long in B"
    if result.environment:
        return
    alone = sum(case.judged == "as timed" for case in result.cases)
    if alone:
        yield (
            f"{counted(alone, 'case')} judged as timed (fewer than three other variants, or --absolute): "
            "the machine's drift is NOT taken out"
        )
    blunt = [case for case in result.cases if (case.resolution or 0) > 2 * result.threshold]
    if blunt:
        worst = max(case.resolution or 0 for case in blunt)
        yield (
            f"{counted(len(blunt), 'case')} could not have shown a change of {percent(result.threshold)} (the worst "
            f"needs {percent(worst)}): take more samples on a quieter machine"
        )


def cells(case: Case) -> tuple[str, ...]:
    """A case under `HEADER`; its first cell names the whole case."""
    verdict = f"{case.verdict}: {case.reason}" if case.reason else str(case.verdict)
    interval = (
        NOT_AVAILABLE if case.ratio is None else f"{_ratio(case.ratio_low)} .. {_ratio(case.ratio_high)}"
    )
    texts = (case.key, verdict, _ratio(case.ratio), interval, _ratio(case.ratio_as_timed))
    return (*texts, _time(case.median_a_s), _time(case.median_b_s))


def _ratio(value: float | None) -> str:
    if value is None:
        return NOT_AVAILABLE
    return f"{value:.3f}" if 1e-3 <= value < 1e3 else f"{value:.1e}"


def _time(seconds: float | None) -> str:
    return NOT_AVAILABLE if seconds is None else format_seconds(seconds)


def change_lines(result: Comparison) -> tuple[str, ...]:
    """Changes of memory, error, backend and outcome; regressions are marked."""
    return tuple(
        f"{'REGRESSION: ' if change.regression else ''}{case.key}: {change.what} {change.text}"
        for case in result.cases
        for change in case.changes
    )


def only_lines(result: Comparison) -> tuple[str, ...]:
    """Cases that one run lacks."""
    sides = (("A", result.only_in_a), ("B", result.only_in_b))
    return tuple(f"only in {side}: {key}" for side, keys in sides for key in keys)


def by_question(result: Comparison) -> dict[str, list[Case]]:
    """Cases by the question that they answer, in the runs' order; inside it by weight."""
    groups: dict[str, list[Case]] = {_question(case): [] for case in result.cases}
    for case in shown(result):
        groups[_question(case)].append(case)
    return groups


def _question(case: Case) -> str:
    return case.key.removeprefix(f"{case.variant} | ")


def shown(result: Comparison) -> tuple[Case, ...]:
    """Cases in the order in which they matter: slower, faster, not comparable, no difference."""
    return tuple(case for group in by_verdict(result.cases).values() for case in group)


# --- Markdown -----------------------------------------------------------------------------------------------


def markdown(result: Comparison) -> str:
    """A comment for a pull request; unchanged cases are folded away."""
    parts = [f"### attnprof compare: {escape(headline(result))}"]
    parts += [_bullets(heading, lines) for heading, lines in preamble(result) if lines]
    groups = by_verdict(result.cases)
    unchanged = groups[CaseVerdict.SAME]
    told = [case for case in shown(result) if case.verdict is not CaseVerdict.SAME]
    if told:
        parts.append(_table(told))
    parts += [_bullets("also changed", change_lines(result)), _bullets("in one run only", only_lines(result))]
    if unchanged:
        summary = f"<details><summary>{len(unchanged)} without a difference</summary>"
        parts.append(f"{summary}\n\n{_table(unchanged)}\n\n</details>")
    return "\n\n".join(part for part in parts if part) + "\n"


def _bullets(heading: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return "\n".join([f"**{heading}**", "", *(f"- {escape(line)}" for line in lines)])


def _table(cases: Sequence[Case]) -> str:
    rule = "|" + "|".join("---" if name in HEADER[:2] else "---:" for name in HEADER) + "|"
    body = ["| " + " | ".join(escape(cell) for cell in cells(case)) + " |" for case in cases]
    return "\n".join(["| " + " | ".join(HEADER) + " |", rule, *body])


def escape(text: str) -> str:
    r"""Text that Markdown and HTML show as it is, on one line.

    >>> escape("<b>|a_b")
    '&lt;b&gt;\\|a\\_b'
    """
    return html.escape(_MARKDOWN.sub(r"\\\1", printable(text)), quote=False)
