"""The process that runs under callgrind: prepares one call, warms code and interpreter, counts it on cold data.

Run as a module with three arguments: the shared library of client requests, a variant's name, a problem as JSON.
"""

from __future__ import annotations

import ctypes
import sys

import msgspec

from attnprof.core.mask import Causal, Full, Window
from attnprof.core.problem import Problem

SHORT = 64


def main(library: str, name: str, problem_json: str) -> None:
    """Call once uncounted, once on a short problem (the simulated cache then holds the interpreter), once counted."""
    import torch

    from attnprof.bench.inputs import make_inputs
    from attnprof.core.variant import Setting
    from attnprof.variants.catalog import find

    torch.set_num_threads(1)
    requests = ctypes.CDLL(library)
    variant = find(name)
    problem = variant.problem_for(msgspec.json.decode(problem_json, type=Problem))
    setting = Setting(device="cpu")
    kernel = variant.prepare(problem, setting)
    warm, cold = (make_inputs(problem, "cpu", seed).tensors for seed in (1, 0))
    short = _short(problem)
    with variant.entered(setting), torch.no_grad():
        kernel(*warm)
        kernel_of_short = variant.prepare(short, setting)
        short_inputs = make_inputs(short, "cpu", 2).tensors
        requests.counting_starts()
        kernel_of_short(*short_inputs)
        requests.counting_starts()  # the counts start again, the cache keeps what it holds
        result = kernel(*cold)
        requests.counting_stops()
    del result


def _short(problem: Problem) -> Problem:
    """The same call on few queries and keys; the problem itself where its mask fixes the lengths."""
    if isinstance(problem.mask, Full | Causal | Window):
        return problem.replace(q_len=min(problem.q_len, SHORT), kv_len=min(problem.kv_len, SHORT))
    return problem


if __name__ == "__main__":
    main(*sys.argv[1:])
