"""Everything that needs a GPU, in one command of under ten minutes, with a report under results/<gpu>/.

    python benchmarks/gpu_check.py                 # or: make gpu-check
    python benchmarks/gpu_check.py --device cpu --quick    # the same steps where they exist on a CPU

Steps: ceilings, the tests marked gpu, a forward and a backward sweep with a cold L2, hardware counters against the
byte models, launch cost against CUDA graphs, the report. A step that cannot run says why; the others go on.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from attnprof.bench.devices import open_device
from attnprof.core.errors import UsageError
from gpu_steps import TOTAL_S, Check, ceilings, counters, launches, sweep, tests

STEPS: tuple[tuple[str, Callable[[Check, float], None], float], ...] = (
    ("ceilings", ceilings, 90), ("sweep fwd", sweep("fwd"), 150), ("counters", counters, 120),
    ("launches", launches, 60), ("sweep bwd", sweep("bwd"), 90), ("tests", tests, 120),
)  # fmt: skip


def report(check: Check) -> str:
    """The report as Markdown."""
    identity = check.device.identity()
    versions = ", ".join(f"{name} {number}" for name, number in identity.versions.items())
    lines = [
        f"# GPU check: {identity.device_name}",
        "",
        versions,
        "",
        "| step | outcome | seconds |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {status} | {seconds:.0f} |" for name, status, seconds in check.steps]
    for title, text in check.sections.items():
        lines += ["", f"## {title}", "", text]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--quick", action="store_true", help="small problems, for a trial")
    given = parser.parse_args(arguments)
    try:
        device = open_device(given.device)
    except UsageError as error:
        print(f"gpu-check skipped: {error}")
        return 0
    slug = re.sub(r"[^a-z0-9]+", "-", device.identity().device_name.lower()).strip("-")
    check = Check(device=device, out=given.out / slug, quick=given.quick)
    check.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + TOTAL_S
    for name, step, limit_s in STEPS:
        check.run(name, step, min(limit_s, until - time.monotonic()))
    (check.out / "REPORT.md").write_text(report(check))
    (check.out / "steps.json").write_bytes(msgspec.json.encode(check.steps) + b"\n")
    print(f"written to {check.out / 'REPORT.md'}")
    return int(any(status.startswith("failed") for _, status, _ in check.steps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
