"""The files of `attnprof trace --curve --out`: a folder that can be written, PNG and SVG of each curve."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from attnprof.core.errors import StoreError


def make_folder(out: Path) -> None:
    """Make the folder before anything runs. Raises: StoreError when it cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise StoreError(
            f"--out {out} is no folder that can be written ({error.strerror}): name another folder"
        ) from error


def draw(entries: list[dict[str, Any]], out: Path) -> None:
    """Draw the capacity curve of every trace; each entry is given the paths of its `files`."""
    import vl_convert

    from attnprof.report.charts_capacity import capacity_chart

    for number, entry in enumerate(entries, start=1):
        chart = capacity_chart(
            f"{entry['variant']}: {entry['description']}",
            [(p["capacity_bytes"], p["read_bytes"], p["write_bytes"]) for p in entry["curve"]["points"]],
            {"compulsory": entry["compulsory_bytes"]}
            | ({"logical": entry["logical"]["total_bytes"]} if entry["logical"] else {}),
            [(mark["name"], mark["capacity_bytes"]) for mark in entry["curve"]["marks"]],
            entry["policy"],
        )
        assert chart.spec is not None  # a curve always has points
        stem = out / (chart.name if len(entries) == 1 else f"{chart.name}_{number}")
        stem.with_suffix(".png").write_bytes(vl_convert.vegalite_to_png(chart.spec, scale=2))
        stem.with_suffix(".svg").write_text(vl_convert.vegalite_to_svg(chart.spec), encoding="utf-8")
        entry["files"] = [str(stem.with_suffix(".png")), str(stem.with_suffix(".svg"))]
