"""The process that runs under callgrind: prepares one call, warms its code, and counts one call on cold data.

Run as a module with three arguments: the shared library of client requests, a variant's name, a problem as JSON.
"""

from __future__ import annotations

import ctypes
import sys

import msgspec


def main(library: str, name: str, problem_json: str) -> None:
    """Make the call once on other inputs, uncounted, then once counted."""
    import torch

    from attnprof.bench.inputs import make_inputs
    from attnprof.core.problem import Problem
    from attnprof.core.variant import Setting
    from attnprof.variants.catalog import find

    torch.set_num_threads(1)
    requests = ctypes.CDLL(library)
    variant = find(name)
    problem = variant.problem_for(msgspec.json.decode(problem_json, type=Problem))
    setting = Setting(device="cpu")
    kernel = variant.prepare(problem, setting)
    warm, cold = (make_inputs(problem, "cpu", seed).tensors for seed in (1, 0))
    with variant.entered(setting), torch.no_grad():
        kernel(*warm)
        requests.counting_starts()
        result = kernel(*cold)
        requests.counting_stops()
    del result


if __name__ == "__main__":
    main(*sys.argv[1:])
