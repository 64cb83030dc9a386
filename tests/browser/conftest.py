"""A headless Chromium without a network, and a report for it to open."""

from __future__ import annotations

import shutil

import pytest
from tests.report.factory import HOSTILE, manifest, measured, problem, record, sweep

from attnprof.core.record import Accuracy, Memory, Run, Unsupported, Verdict
from attnprof.core.units import MIB
from attnprof.report.build import build, write_report
from attnprof.report.load import Results

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _records():
    """Two batches, six variants: one wrong and hostile, one unsupported, one of another function."""
    wrong = Accuracy(verdict=Verdict.WRONG, reason="error 3 > 1e-6", max_abs_error=3.0, floor=3e-8)
    made = list(sweep())
    for length in (256, 512, 1024, 2048):
        scale = length / 256
        heavy = Memory(peak_bytes=int(2 * MIB * scale**2), output_bytes=9, method="x")
        grouped = problem(length, kv_heads=3)
        double = problem(length, batch=2)
        made += [
            record("sdpa_math", length, measured(150 * scale**2, memory=heavy)),
            record("gqa_4kv", length, measured(90 * scale**1.5), problem=grouped),
            record(HOSTILE, length, measured(70 * scale, accuracy=wrong)),
            record("flex", length, Unsupported(reason="needs a GPU <b>now</b>")),
            record("naive", asked=double, outcome=measured(200 * scale**2)),
            record("sdpa_flash", asked=double, outcome=measured(170 * scale)),
        ]
    return tuple(made)


@pytest.fixture(scope="session")
def report_page(tmp_path_factory):
    """report.html in a path with a space."""
    out = tmp_path_factory.mktemp("browser") / "a report"
    results = Results(run=Run(manifest=manifest(), records=_records(), damaged=("run.jsonl line 9: torn",)))
    write_report(results, build(results, HOSTILE), out)
    return out / "report.html"


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Chromium under WebDriver; skipped where it is not installed."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver_path = shutil.which("chromedriver")
    if binary is None or driver_path is None:
        pytest.skip("Chromium or chromedriver is not installed (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("profile")
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
                 "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
                 f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver_path))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()
