"""The walls of the house: imports run one way, and the quick commands start without torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "attnprof"
WINGS = (
    "core",
    "variants",
    "kernels",
    "explain",
    "bench",
    "trace",
    "predict",
    "store",
    "report",
    "lab",
    "cli",
)
MAY_IMPORT = {
    "core": set(),
    "kernels": {"core"},
    "variants": {"core", "kernels"},
    "explain": {"core", "variants", "store", "predict"},
    "store": {"core"},
    "bench": {"core", "variants", "explain", "store"},
    "trace": {"core", "variants", "explain", "bench"},  # it makes the inputs that the bench makes
    "predict": {"core", "variants", "store", "explain"},  # which backend PyTorch picks; inside a function
    "report": {"core", "variants", "store", "predict", "explain"},
    "lab": {"core", "variants", "trace", "predict", "store", "bench"},
    "cli": set(WINGS),
}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("wing", [w for w in WINGS if (ROOT / w).is_dir()])
def test_imports_run_one_way(wing):
    allowed = MAY_IMPORT[wing] | {wing}
    for path in (ROOT / wing).rglob("*.py"):
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] == "attnprof" and len(parts) > 1 and parts[1] in WINGS:
                assert parts[1] in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_core_needs_the_standard_library_and_the_codec_only():
    allowed = {"attnprof", "msgspec", "sympy", *sys.stdlib_module_names}
    for path in (ROOT / "core").rglob("*.py"):
        type_only = {"torch"}
        for name in imports_of(path):
            assert name.split(".")[0] in allowed | type_only, f"{path.name} imports {name}"


@pytest.mark.parametrize(
    "code", ["import attnprof", "import attnprof.cli.main as m; m._register()", "import attnprof.core.axes"]
)
def test_torch_is_not_imported_on_start(code):
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('torch' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "False"


def test_function_names_survive_imports_of_their_subpackages():
    import attnprof.trace.api
    import attnprof.variants.catalog  # noqa: F401  # a subpackage must not take the name of its function
    from attnprof import predict, profile, trace, variants

    assert all(callable(f) for f in (predict, profile, trace, variants))
    assert "naive" in variants()
