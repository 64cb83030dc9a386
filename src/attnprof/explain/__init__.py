"""Which attention backend runs a call, why not the others, and the gate before every call."""

from attnprof.explain.call import Call
from attnprof.explain.explanation import Explanation, explain
from attnprof.explain.gate import gate_problem, gate_tensors

__all__ = ["Call", "Explanation", "explain", "gate_problem", "gate_tensors"]
