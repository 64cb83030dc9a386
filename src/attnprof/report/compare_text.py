"""A comparison as Markdown for a pull request, and as the lines that the terminal prints."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from attnprof.core.units import format_seconds
from attnprof.report.compare import Case, CaseVerdict, Comparison, by_verdict
from attnprof.report.export import NOT_AVAILABLE
from attnprof.report.table import printable

HEADER = ("case", "verdict", "B / A", "interval", "as timed", "A", "B")
_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")


def headline(result: Comparison) -> str:
    """The answer in one sentence."""
    worse = len(result.regressions)
    counts = [(result.count(verdict), str(verdict)) for verdict in CaseVerdict]
    told = ", ".join(f"{number} {verdict}" for number, verdict in counts if number) or "none"
    lead = f"{worse} regression{'s' if worse > 1 else ''}" if worse else "no regression"
    return f"{lead} in {len(result.cases)} cases in common ({told}); threshold {result.threshold:.3g}"


def preamble(result: Comparison) -> Iterator[tuple[str, Sequence[str]]]:
    """What is to be known before the cases, most important first: (heading, lines)."""
    yield "environment differs: times are not judged", result.environment
    yield "versions differ", result.versions
    yield "conditions differ", result.weather
    yield "could not be read", result.damaged
    yield "the machine", tuple(_machine(result))


def _machine(result: Comparison) -> Iterator[str]:
    if result.common_ratio is not None and abs(result.common_ratio - 1) > result.threshold / 2:
        yield f"the median case took {result.common_ratio:.3f} times as long in B"
    if result.environment:
        return
    alone = sum(case.judged == "as timed" for case in result.cases)
    if alone:
        yield (
            f"{alone} cases are judged as timed: with three other variants at the same problem in both runs, "
            "what the machine does to all of them is taken out"
        )
    blunt = [case for case in result.cases if (case.resolution or 0) > 2 * result.threshold]
    if blunt:
        worst = max(case.resolution or 0 for case in blunt)
        yield (
            f"{len(blunt)} cases could not have shown a change of {result.threshold:.1%} (the worst needs "
            f"{worst:.0%}): take more samples on a quieter machine"
        )


def cells(case: Case) -> tuple[str, ...]:
    """A case under `HEADER`; its first cell names the whole case."""
    verdict = f"{case.verdict}: {case.reason}" if case.reason else str(case.verdict)
    interval = NOT_AVAILABLE if case.ratio is None else f"{case.ratio_low:.3f} .. {case.ratio_high:.3f}"
    texts = (case.key, verdict, _ratio(case.ratio), interval, _ratio(case.ratio_as_timed))
    return (*texts, _time(case.median_a_s), _time(case.median_b_s))


def _ratio(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:.3f}"


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
