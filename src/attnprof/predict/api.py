"""`predict`: time, memory and bytes of any attention call on a device that is not here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from attnprof.core.errors import AttnprofError, UnknownName
from attnprof.core.mask import Full
from attnprof.core.problem import Problem
from attnprof.core.traffic import Cost
from attnprof.predict.cases import Case, Columns, case_of
from attnprof.predict.chips import ChipModel, chip_model
from attnprof.predict.costs import cost_on_gpu
from attnprof.predict.fit import adjustment, half_width, resources, shipped
from attnprof.predict.kernels import EAGER, Family, family_of
from attnprof.predict.memory import input_bytes, library_workspace_bytes
from attnprof.predict.model import dram_bytes
from attnprof.predict.running import masked_by_tensor, picked, refusal

DEFAULT_VARIANTS = ("naive", "sdpa_default", "sdpa_flash", "sdpa_memeff", "sdpa_math", "sdpa_cudnn")
RESOURCES = ("matmul", "softmax", "shared_memory", "l2", "dram", "launch")


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """The bare roofline of the call: what the useful work takes at datasheet rates, each resource alone.

    `exp_share_of_matmul` is the exponentials' time over the matmuls' (FlashAttention-3's argument). Units: seconds,
    FLOP/byte.
    """

    matmul_s: float
    exp_s: float
    dram_s: float
    exp_share_of_matmul: float | None
    intensity_flop_per_byte: float | None
    ridge_flop_per_byte: float
    bound: str


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What one variant is expected to need. None stands where nothing can be said, and `reason` says why.

    `low_s` to `high_s` is the 80% interval; `resources_s` is each resource's modelled time with the kernel's fitted
    constants; `peak_bytes` counts inputs, outputs, the kernel's temporaries and the libraries' workspace.
    """

    variant: str
    device: str
    problem: Problem
    reason: str = ""
    family: str = ""
    time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    binding: str | None = None
    resources_s: dict[str, float] = {}
    ceilings: Ceilings | None = None
    useful_flops: int
    executed_flops: int | None = None
    exp_ops: int | None = None
    compulsory_bytes: int
    logical_bytes: int | None = None
    dram_bytes: int | None = None
    input_bytes: int
    output_bytes: int | None = None
    workspace_bytes: int | None = None
    library_workspace_bytes: int | None = None
    peak_bytes: int | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """`predicted`, or `n/a`."""
        return "n/a" if self.time_s is None else "predicted"

    @property
    def flops_per_s(self) -> float | None:
        """Useful rate at the predicted time; None without a time or without work."""
        return self.useful_flops / self.time_s if self.time_s and self.useful_flops else None


def predict(
    problem: Problem, device: str = "H100 SXM", variants: Sequence[str] | None = None
) -> tuple[Prediction, ...]:
    """Predicted time, memory and bytes of a problem on a device, one value a variant; nothing runs.

    `variants` are names of the catalogue or published kernels such as FlashAttention-3; sdpa_default is the backend
    that `explain` names for the device. An unknown device has no time: its rows say so and name the nearest known ones.
    Raises: UnknownName for a kernel of no known family.
    """
    chip = _chip(device)
    return tuple(_predict(problem, name, device, chip) for name in variants or DEFAULT_VARIANTS)


def _chip(device: str) -> ChipModel | str:
    """The chip, or why there is none."""
    try:
        return chip_model(device)
    except AttnprofError as error:
        return str(error)


def _predict(asked: Problem, name: str, device: str, chip: ChipModel | str) -> Prediction:
    problem, notes = _really_computed(asked, name)
    choice = picked(name, problem, chip)
    kernel = (choice.variant if choice else "") or name
    notes += (f"{name}: PyTorch picks {choice.title} here",) if choice and choice.variant else ()
    try:
        family = _family(problem, kernel, chip)
    except UnknownName as error:
        return _unmodelled(problem, name, device, error)
    bare = Prediction(variant=name, device=chip.name if isinstance(chip, ChipModel) else device, problem=problem,
                      family=str(family), useful_flops=problem.useful_flops, compulsory_bytes=problem.compulsory_bytes,
                      input_bytes=input_bytes(problem), assumptions=notes)  # fmt: skip
    by_tensor = masked_by_tensor(name, problem)
    executed = problem.replace(mask=Full()) if by_tensor else problem
    try:
        expanded = name == "gqa_4kv" and family not in EAGER
        cost = cost_on_gpu(name if expanded else kernel, executed, family)
    except AttnprofError as error:
        return msgspec.structs.replace(bare, reason=str(error))
    costed = _with_cost(bare, cost)
    if by_tensor:
        useful = problem.flops(cost.backward_factor or 0.0)
        note = "the mask is a tensor: no tile is skipped"
        costed = msgspec.structs.replace(costed, useful_flops=useful, assumptions=(*bare.assumptions, note))
    if isinstance(chip, str):
        return msgspec.structs.replace(costed, reason=chip)
    refused = choice.error if choice else refusal(name, problem, chip)
    if refused or not problem.total_pairs:
        return msgspec.structs.replace(costed, reason=refused or "no visible pair: nothing to compute")
    return _with_time(costed, replace(case_of(executed, family, chip), explicit_mask=by_tensor), cost)


def _unmodelled(problem: Problem, name: str, device: str, error: UnknownName) -> Prediction:
    """A variant of the catalogue of whose kind no GPU measurement is published. Raises: `error` for another name."""
    from attnprof.variants.catalog import variants

    if name not in variants():
        raise error
    return Prediction(variant=name, device=device, problem=problem, useful_flops=problem.useful_flops,
                      compulsory_bytes=problem.compulsory_bytes, input_bytes=input_bytes(problem),
                      reason="no GPU measurement of its kind is published, so its time is not modelled")  # fmt: skip


def _really_computed(asked: Problem, name: str) -> tuple[Problem, tuple[str, ...]]:
    """The problem after a preset's change, with a note where it differs."""
    from attnprof.variants.catalog import variants

    known = variants().get(name)
    problem = known.problem_for(asked) if known else asked
    note = f"{name} computes another function: {problem}"
    return problem, (note,) if problem != asked else ()


def _family(problem: Problem, name: str, chip: ChipModel | str) -> Family:
    if masked_by_tensor(name, problem) and name not in {"sdpa_math", "sdpa_cudnn"}:
        name = "sdpa_memeff"
    capability = chip.capability if isinstance(chip, ChipModel) else None
    vendor = chip.vendor if isinstance(chip, ChipModel) else "NVIDIA"
    return family_of(name, compute_capability=capability, head_dim=max(problem.qk_dim, problem.v_dim),
                     q_len=problem.q_len, vendor=vendor, sixteen_bit=problem.dtype.bits <= 16)  # fmt: skip


def _with_cost(bare: Prediction, cost: Cost) -> Prediction:
    return msgspec.structs.replace(
        bare, useful_flops=cost.useful_flops, executed_flops=cost.executed_flops, exp_ops=cost.exp_ops,
        logical_bytes=cost.logical.total_bytes, output_bytes=cost.output_bytes, workspace_bytes=cost.workspace_bytes,
    )  # fmt: skip


def _with_time(costed: Prediction, case: Case, cost: Cost) -> Prediction:
    columns, fit = Columns([case]), shipped()
    try:
        modelled, ceilings = resources(columns, fit), _ceilings(case, costed)
    except AttnprofError as error:
        return msgspec.structs.replace(costed, reason=str(error))
    factor = float(np.exp(adjustment(columns, fit)[0]))
    seconds = float(modelled.total_s[0]) * factor
    spread = float(np.exp(half_width(columns, fit)[0]))
    parts = {name: float(getattr(modelled, f"{name}_s")[0]) * factor for name in RESOURCES}
    library = library_workspace_bytes(case.chip.capability)
    eager = bool(columns.eager[0])
    return msgspec.structs.replace(
        costed, time_s=seconds, low_s=seconds / spread, high_s=seconds * spread,
        binding=max(parts, key=lambda name: parts[name]), resources_s=parts, ceilings=ceilings,
        dram_bytes=cost.logical.total_bytes if eager else round(float(dram_bytes(columns)[0])),
        library_workspace_bytes=library, peak_bytes=costed.input_bytes + cost.peak_bytes + library,
        assumptions=(*costed.assumptions, *case.chip.assumed),
    )  # fmt: skip


def _ceilings(case: Case, costed: Prediction) -> Ceilings:
    chip, problem = case.chip, costed.problem
    rate = chip.peak(case.qk)
    matmul, dram = costed.useful_flops / rate, costed.compulsory_bytes / chip.dram_bytes_per_s
    exponentials = problem.exp_ops / chip.exp_per_s
    times = {"matmul": matmul, "exp": exponentials, "DRAM": dram}
    return Ceilings(
        matmul_s=matmul, exp_s=exponentials, dram_s=dram,
        exp_share_of_matmul=exponentials / (problem.forward_flops / rate) if problem.forward_flops else None,
        intensity_flop_per_byte=costed.useful_flops / costed.compulsory_bytes if costed.compulsory_bytes else None,
        ridge_flop_per_byte=rate / chip.dram_bytes_per_s, bound=max(times, key=lambda name: times[name]),
    )  # fmt: skip
