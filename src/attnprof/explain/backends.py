"""The decision: which backend is chosen, which others could run, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from attnprof.core.units import format_bytes
from attnprof.explain import packages
from attnprof.explain.reason import Rejection, Situation
from attnprof.explain.rules import cpu, cuda, cudnn, flex, math, rocm

Check = Callable[[Situation], Iterator[Rejection]]
BACKENDS = ("flash", "mem_efficient", "cudnn", "math")
TITLES = {
    "flash": "flash",
    "mem_efficient": "memory-efficient",
    "cudnn": "cuDNN",
    "math": "math",
    "flex": "FlexAttention",
}


class BackendReport(msgspec.Struct, frozen=True, kw_only=True):
    """One backend's answer: status is chosen, possible or rejected; a rejected one has a reason or more.

    `predicted_s` is the call's predicted time on a device of the catalogue.
    """

    name: str
    title: str
    status: str
    rejections: tuple[Rejection, ...] = ()
    note: str = ""
    predicted_s: float | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """`dispatched` is what the dispatcher picks, `chosen` what then runs; the two differ where the pick raises."""

    dispatched: str | None
    chosen: str | None
    order: tuple[str, ...]
    error: str
    backends: tuple[BackendReport, ...]


def decide(s: Situation) -> Decision:
    """Apply every rule of the situation's device and version."""
    order = order_of(s)
    found = {name: tuple(checks(s)[name](s)) for name in BACKENDS}
    dispatched = next((name for name in order if _taken(name, found, s)), None)
    wrong = math.invalid(s)
    raises = wrong or (dispatched == "math" and found["math"])
    chosen = None if raises else dispatched
    if wrong:
        found = {name: wrong + reasons for name, reasons in found.items()}
    reports = [_report(s, name, found[name], chosen, order) for name in BACKENDS]
    reports.append(_flex_report(s, wrong))
    reports += [_package_report(s, package, wrong) for package in packages.packages() if package.installed]
    return Decision(
        dispatched=dispatched,
        chosen=chosen,
        order=order,
        error=_error(found, dispatched, chosen),
        backends=tuple(reports),
    )


def checks(s: Situation) -> dict[str, Check]:
    """The checks of each backend on the situation's kind of device."""

    def not_on_cpu(name: str) -> Check:
        return lambda situation: cpu.unavailable(situation, TITLES[name])

    def unknown(situation: Situation) -> Iterator[Rejection]:
        yield flex.no_such_device(situation)

    if s.target.kind == "cpu":
        gpu_only = {name: not_on_cpu(name) for name in ("mem_efficient", "cudnn")}
        return {"flash": cpu.flash, **gpu_only, "math": math.math}
    if s.target.kind == "rocm":
        return {
            "flash": rocm.flash, "mem_efficient": rocm.mem_efficient, "cudnn": cudnn.no_cudnn, "math": math.math,
        }  # fmt: skip
    if s.target.kind == "cuda":
        return {
            "flash": cuda.flash, "mem_efficient": cuda.mem_efficient, "cudnn": cudnn.cudnn, "math": math.math,
        }  # fmt: skip
    return {"flash": unknown, "mem_efficient": unknown, "cudnn": unknown, "math": math.math}


def order_of(s: Situation) -> tuple[str, ...]:
    """The order in which the dispatcher tries its backends."""
    if s.target.kind == "cpu":
        return ("flash", "math")
    if s.switches.priority:
        return s.switches.priority
    if cudnn.is_preferred(s):
        return ("cudnn", "flash", "mem_efficient", "math")
    return ("flash", "mem_efficient", "math", "cudnn")


def _taken(name: str, found: dict[str, tuple[Rejection, ...]], s: Situation) -> bool:
    """Whether the dispatcher stops at a backend; it asks math for nothing but its switch."""
    return s.switches.math if name == "math" else not found[name]


def _report(
    s: Situation, name: str, reasons: tuple[Rejection, ...], chosen: str | None, order: tuple[str, ...]
) -> BackendReport:
    status = "chosen" if name == chosen else "rejected" if reasons else "possible"
    note = ""
    if status == "possible":
        note = f"not tried: {TITLES[chosen]} comes first" if chosen else "not tried"
        note += "" if name in order else "; not in the order"
    note += _mask_copy(s) if name == "flash" and status != "rejected" else ""
    if name == "math" and status != "rejected":
        scratch = math.scratch_bytes(s.call)
        note += f"{'; ' if note else ''}needs {format_bytes(scratch)} for scores" if scratch else ""
    return BackendReport(name=name, title=TITLES[name], status=status, rejections=reasons, note=note)


def _mask_copy(s: Situation) -> str:
    """PyTorch turns a boolean mask into an additive one of q's dtype before the CPU's flash reads it."""
    mask = s.call.attn_mask
    if s.target.kind != "cpu" or mask is None or mask.dtype != "bool":
        return ""
    return f"copies the boolean mask to {s.call.q.dtype}: {format_bytes(mask.numel * s.call.q.item_bytes)}"


def _flex_report(s: Situation, wrong: tuple[Rejection, ...]) -> BackendReport:
    reasons = wrong or tuple(flex.flex(s))
    return BackendReport(
        name="flex",
        title=TITLES["flex"],
        status="rejected" if reasons else "possible",
        rejections=reasons,
        note="" if reasons else flex.note(s),
    )


def _package_report(s: Situation, package: packages.Package, wrong: tuple[Rejection, ...]) -> BackendReport:
    reasons = wrong or tuple(packages.refusals(s, package))
    return BackendReport(
        name=package.name,
        title=f"{package.name} {package.installed}",
        status="rejected" if reasons else "possible",
        rejections=reasons,
        note=package.note,
    )


def _error(found: dict[str, tuple[Rejection, ...]], dispatched: str | None, chosen: str | None) -> str:
    if chosen:
        return ""
    if dispatched is None:
        off = [name for name in BACKENDS if any("switched off" in r.reason for r in found[name])]
        cause = f"switched off: {', '.join(off)}" if off else "no backend takes the call"
        return f"PyTorch raises: {cause}"
    reason = next(r.reason for r in (*found["math"], *found[dispatched]))
    if "keys, v has" in reason and dispatched == "flash":
        return f"refused ({reason}): PyTorch's flash would run it and read past the end"
    return f"PyTorch raises: {reason}"
