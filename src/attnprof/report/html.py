"""report.html: one file that needs no network; text is escaped by Jinja, data by `json_for_script`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from attnprof.core.record import Manifest
from attnprof.report.charts_base import Chart
from attnprof.report.html_table import table_data
from attnprof.report.method import METHOD, environment
from attnprof.report.row import Row
from attnprof.report.words import Paragraph

if TYPE_CHECKING:
    from jinja2 import Template

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The charts of one choice of the page's selector."""

    label: str
    charts: tuple[Chart, ...]
    left_out: str = ""


def template(name: str) -> Template:
    """A template of this package; every value put into it is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("attnprof.report", "templates")
    made = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return made.get_template(name)


def json_for_script(value: Any) -> str:
    """JSON that may stand inside a <script> element: no character of it can end or open one.

    >>> json_for_script("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return "".join(_UNSAFE.get(character, character) for character in text) if _needs_escape(text) else text


def _needs_escape(text: str) -> bool:
    return any(character in text for character in _UNSAFE)


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, from vl-convert; safe inside a <script> element."""
    import vl_convert

    script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def report_html(
    title: str,
    story: Sequence[Paragraph],
    fixed: Sequence[Chart],
    figures: Sequence[Figures],
    made: Sequence[Row],
    manifest: Manifest | None,
) -> str:
    """The whole page: answer, charts, table, method and environment."""
    data = {
        "fixed": [_chart(chart) for chart in fixed],
        "figures": [
            {
                "label": each.label,
                "left_out": each.left_out,
                "charts": [_chart(chart) for chart in each.charts],
            }
            for each in figures
        ],
        "table": table_data(made),
    }
    return template("report.html.jinja").render(
        title=title,
        story=story,
        fixed=fixed,
        figures=figures,
        n_rows=len(made),
        method=METHOD,
        environment=environment(manifest),
        data=json_for_script(data),
        bundle=vega_bundle(),
    )


def _chart(chart: Chart) -> dict[str, Any]:
    return msgspec.structs.asdict(chart)
