"""These tests run where triton was imported with TRITON_INTERPRET=1; `tests/triton/test_interpreted.py` starts them."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["test_*.py"]
