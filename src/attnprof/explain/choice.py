"""What PyTorch picks for a problem on a named device: the rules alone, for those who need no explanation."""

from __future__ import annotations

import msgspec

from attnprof.core.problem import Problem
from attnprof.explain.backends import TITLES, decide
from attnprof.explain.call import Call
from attnprof.explain.reason import Situation
from attnprof.explain.rules.ruleset import rules_for
from attnprof.explain.switches import Switches, environment_now
from attnprof.explain.target import find_target

VARIANTS = {"flash": "sdpa_flash", "mem_efficient": "sdpa_memeff", "cudnn": "sdpa_cudnn", "math": "sdpa_math"}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The variant that forces the chosen backend, and the backend's title; both empty where PyTorch raises `error`."""

    variant: str = ""
    title: str = ""
    error: str = ""


def sdpa_choice(problem: Problem, device: str) -> Choice | None:
    """The backend that `explain` names for a problem on another device; None for one without dispatch rules.

    Raises: UnknownName for a device that is not known.

    >>> sdpa_choice(Problem(q_heads=4, q_len=16), "T4").title
    'memory-efficient'
    """
    target = find_target(device)
    if target.kind not in {"cuda", "rocm"}:
        return None
    rules, _ = rules_for(target.torch_version)
    switches = Switches(environment=environment_now())
    call = Call.from_problem(problem, target.kind)
    decision = decide(Situation(call=call, target=target, switches=switches, rules=rules))
    if decision.chosen is None:
        return Choice(error=decision.error)
    return Choice(variant=VARIANTS[decision.chosen], title=TITLES[decision.chosen])
