"""Writes what the documentation takes from the program: the help of every command and the table of variants.

python docs/generate.py           write
python docs/generate.py --check   exit 1 when a file on disk differs
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from attnprof.cli.main import COMMANDS
from attnprof.variants.catalog import variants

DOCS = Path(__file__).parent


def help_text(*words: str) -> str:
    """`attnprof WORDS --help` as a person sees it at 80 columns without colour."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    ran = subprocess.run(
        [sys.executable, "-m", "attnprof", *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return "\n".join(
        line.rstrip() for line in ran.stdout.strip().replace("python -m attnprof", "attnprof").splitlines()
    )


def commands_page() -> str:
    """docs/commands.md."""
    parts = ["# Commands\n\nMade by `python docs/generate.py` from the program's own help.\n"]
    for name in COMMANDS:
        page = DOCS / f"{name}.md"
        more = f"More: [{name}.md]({name}.md).\n\n" if page.exists() else ""
        parts.append(f"## attnprof {name}\n\n{more}```text\n{help_text(name)}\n```\n")
    return "\n".join(parts)


def variants_page() -> str:
    """docs/variant-table.md."""
    rows = ["| variant | what it is | devices | masks | directions |", "|---|---|---|---|---|"]
    for v in sorted(variants().values(), key=lambda v: v.name):
        masks = ", ".join(kind.__name__.lower() for kind in v.limits.masks)
        directions = ", ".join(d.value for d in sorted(v.limits.directions))
        title = v.title + (f" (install: `{v.install}`)" if v.install else "")
        rows.append(
            f"| `{v.name}` | {title} | {', '.join(sorted(v.limits.devices))} | {masks} | {directions} |"
        )
    return "# Variants\n\nMade by `python docs/generate.py` from the catalogue.\n\n" + "\n".join(rows) + "\n"


PAGES = {"commands.md": commands_page, "variant-table.md": variants_page}


def main() -> int:
    """Write or check every page; the number of pages that differ."""
    stale = 0
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if "--check" in sys.argv:
            print(f"{path} is stale: run python docs/generate.py")
            stale += 1
        else:
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
