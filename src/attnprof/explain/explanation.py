"""`explain`: one question, answered by the rules and checked against the dispatcher where it is here."""

from __future__ import annotations

import msgspec

from attnprof.core.problem import Problem
from attnprof.core.record import Judgment
from attnprof.explain.backends import BackendReport, Decision, decide
from attnprof.explain.call import Call
from attnprof.explain.call_checks import check_both_set, check_labels, check_shapes
from attnprof.explain.gate import gate_problem
from attnprof.explain.packages import packages
from attnprof.explain.predicted import with_times
from attnprof.explain.probe import NO_KERNEL, fused_choice
from attnprof.explain.reason import Situation
from attnprof.explain.rules.ruleset import rules_for
from attnprof.explain.switches import Switches, environment_now, switches_now
from attnprof.explain.target import Target, find_target, installed_torch


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Which backend runs a call on a device, and for every other one why not and the fix.

    `chosen` is None where the call raises, and `error` says why; `observed` is the answer of the dispatcher that
    is installed here (empty for another device), and `disagreements` where it differs from the rules.
    """

    call: Call
    text: str
    device: str
    torch_version: str
    rules: str
    evidence: str
    chosen: str | None
    dispatched: str | None
    order: tuple[str, ...]
    error: str
    backends: tuple[BackendReport, ...]
    not_installed: tuple[str, ...] = ()
    judgments: tuple[Judgment, ...] = ()
    observed: str = ""
    disagreements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def backend(self, name: str) -> BackendReport:
        """One backend's report: flash, mem_efficient, cudnn, math, flex, or an installed package."""
        return next(report for report in self.backends if report.name == name)

    @property
    def runnable(self) -> tuple[str, ...]:
        """Names of the backends of scaled_dot_product_attention that take the call."""
        sdpa = ("flash", "mem_efficient", "cudnn", "math")
        return tuple(b.name for b in self.backends if b.name in sdpa and b.status != "rejected")

    def to_markdown(self) -> str:
        """The explanation as Markdown, for a bug report."""
        from attnprof.explain.render import markdown

        return markdown(self)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def __str__(self) -> str:
        from attnprof.explain.render import text

        return text(self)


def explain(
    subject: Call | Problem,
    device: str | Target = "",
    *,
    torch_version: str = "",
    switches: Switches | None = None,
    force: str = "",
) -> Explanation:
    """Say which backend runs `subject` on `device`, and for every other one why not, with the fix and its cost.

    `device` is cpu, cuda, an architecture (sm_90, gfx942) or a chip's name (T4); a Call's own device by default.
    `force` asks for the inside of `sdpa_kernel(force)`; `switches` replaces this process's global switches.
    Raises: UnknownName for a device that is not known.

    >>> explain(Problem(q_heads=4, q_len=16), "T4", switches=Switches()).chosen
    'mem_efficient'
    """
    call = subject if isinstance(subject, Call) else None
    target = (
        device
        if isinstance(device, Target)
        else find_target(device or (call.device if call else "cpu"), torch_version)
    )
    call = call or Call.from_problem(subject, target.kind)  # type: ignore[arg-type]  # a Problem where it is no Call
    switches = _switches(target, switches, force)
    rules, rules_note = rules_for(target.torch_version)
    decision = decide(Situation(call=call, target=target, switches=switches, rules=rules))
    observed = _observed(call, target, force)
    return Explanation(
        call=call, text=str(call), device=target.title, torch_version=target.torch_version, rules=rules.title,
        evidence=rules.evidence, chosen=decision.chosen, dispatched=decision.dispatched, order=decision.order,
        error=decision.error, backends=with_times(decision.backends, subject, target),
        not_installed=tuple(p.name for p in packages() if not p.installed),
        judgments=_judgments(subject, call, target, decision), observed=observed,
        disagreements=_disagreements(observed, decision, target),
        notes=(rules_note,) if rules_note else (),
    )  # fmt: skip


def _switches(target: Target, given: Switches | None, force: str) -> Switches:
    if given is None:
        given = switches_now() if target.here else Switches(environment=environment_now())
    return given.only(force) if force else given


def _observed(call: Call, target: Target, force: str) -> str:
    """The installed dispatcher's answer, where the question is about this device and this PyTorch."""
    if not target.here or target.torch_version != installed_torch():
        return ""
    device = "cpu" if target.kind == "cpu" else "cuda"
    if not force:
        return fused_choice(call, device)
    from torch.nn.attention import SDPBackend, sdpa_kernel

    names = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "math": SDPBackend.MATH,
    }
    with sdpa_kernel(names[force]):
        return fused_choice(call, device)


def _disagreements(observed: str, decision: Decision, target: Target) -> tuple[str, ...]:
    expected = decision.dispatched or NO_KERNEL
    if not observed or observed == expected:
        return ()
    return (
        f"the rules say {expected}, PyTorch {target.torch_version} here picks {observed}: believe PyTorch, and report "
        "this call so that the rules are corrected",
    )


def _judgments(
    subject: Call | Problem, call: Call, target: Target, decision: Decision
) -> tuple[Judgment, ...]:
    if isinstance(subject, Problem):
        return gate_problem(subject, target.kind, backend=decision.chosen or "")
    shapes = tuple(check_shapes(call))
    return shapes or (*check_both_set(call), *check_labels(call))
