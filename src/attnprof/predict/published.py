"""Rows of published measurements: read, checked, and turned into cases with a measured time."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from attnprof.core.dtypes import DType
from attnprof.core.errors import AttnprofError, InvalidInput
from attnprof.core.mask import Align, Causal, Full, Mask, Window
from attnprof.core.problem import Direction, Problem
from attnprof.predict.cases import Case
from attnprof.predict.chips import ChipModel, chip_model
from attnprof.predict.conventions import DTYPES, PASSES, UNITS, conventional_flops, stored_bytes, variation
from attnprof.predict.kernels import SPLIT_KV, Family, family_of

COLUMNS = (
    "source_id", "address", "gpu", "kernel", "kernel_version", "dtype", "batch", "heads_q", "heads_kv", "seqlen_q",
    "seqlen_k", "head_dim", "causal", "pass", "metric", "value", "unit", "note",
)  # fmt: skip
_OPTIONAL = frozenset({"address", "kernel_version", "note"})
# A row that names no dtype is taken as 16 bits, which its throughput implies.
_UNNAMED_DTYPE = "fp16"
_LATENT_ROPE_DIM = 64
# What a source means that names no variant: the one that most servers have.
_USUAL_CHIP = {"a100": "A100 SXM 80GB", "v100": "V100 SXM2", "gh200": "GH200 96GB", "h800": "H800 SXM"}
_LARGEST = {"batch": 10**6, "heads_q": 10**5, "seqlen_q": 10**8, "seqlen_k": 10**8, "head_dim": 8192}
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


@dataclass(frozen=True, kw_only=True)
class PublishedRow:
    """One published measurement as a case. `value` is in SI units of its metric; `seconds` is the time it states or
    implies, None for memory; `flops` and `stored_bytes` are those of the source's convention."""

    number: int
    source: str
    address: str
    gpu: str
    kernel: str
    metric: str
    value: float
    seconds: float | None
    flops: float
    stored_bytes: float
    case: Case
    setup: str
    note: str
    problem: Problem


@dataclass(frozen=True, kw_only=True)
class SkippedRow:
    """A row that cannot be predicted: `reason` counts in tables, `detail` names the row's own trouble."""

    number: int
    source: str
    reason: str
    detail: str


def packaged_text() -> str:
    """The published measurements that the shipped constants were fitted on."""
    return files("attnprof.predict").joinpath("data", "published.csv").read_text(encoding="utf-8")


def read_text(path: Path | str) -> str:
    """Text of a CSV file. Raises: InvalidInput when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{str(path)!r} cannot be read as UTF-8 text: {error}") from None


def parse_rows(text: str) -> tuple[list[PublishedRow], list[SkippedRow]]:
    """Every row as a case, or the reason why not; row numbers are line numbers with the header as 1.

    Raises: InvalidInput when the header lacks a column.
    """
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ()) and name not in _OPTIONAL]
    if missing:
        raise InvalidInput(f"the CSV lacks the column(s) {', '.join(missing)}; it needs {', '.join(COLUMNS)}")
    rows: list[PublishedRow] = []
    skipped: list[SkippedRow] = []
    for number, raw in enumerate(reader, start=2):
        cells = {name: (raw.get(name) or "").strip() for name in COLUMNS}
        try:
            rows.append(_parse(number, cells))
        except _Skip as skip:
            skipped.append(
                SkippedRow(number=number, source=cells["source_id"], reason=skip.reason, detail=skip.detail)
            )
    return rows, skipped


class _Skip(Exception):
    """Why a row is left out."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def _parse(number: int, cells: Mapping[str, str]) -> PublishedRow:
    note = cells["note"]
    if "random" in note and "lens" in note:
        raise _Skip("lengths are random", "only maximum lengths are given, so the work is not known")
    metric, value = _value(cells)
    chip = _chip(cells["gpu"])
    problem = _problem(cells, _direction(cells["pass"]))
    family = _family(cells["kernel"], chip, problem)
    if "bottom-right" in note or family in SPLIT_KV:
        problem = _bottom_right(problem)
    case = _case(cells, problem, family, chip)
    flops, stored = conventional_flops(case), stored_bytes(case)
    seconds = {"time": value, "tflops": flops / value, "hbm_bw": stored / value}.get(metric)
    return PublishedRow(
        number=number, source=cells["source_id"], address=cells["address"], gpu=cells["gpu"],
        kernel=cells["kernel"], metric=metric, value=value,
        seconds=seconds, flops=flops, stored_bytes=stored, case=case, note=note, problem=problem,
        setup="|".join((cells["kernel"], cells["kernel_version"], cells["gpu"], cells["pass"], cells["dtype"],
                        variation(note))),
    )  # fmt: skip


def _value(cells: Mapping[str, str]) -> tuple[str, float]:
    metric, unit = cells["metric"], cells["unit"]
    if metric not in UNITS:
        raise _Skip("unknown metric", f"metric {metric!r} is not one of {', '.join(UNITS)}")
    if unit not in UNITS[metric]:
        raise _Skip(
            "missing or unknown unit", f"unit {unit!r} of {metric} is not one of {', '.join(UNITS[metric])}"
        )
    value = _number(cells["value"], "value")
    if value is None or not 0 < value < 1e12:
        raise _Skip("value is nonsense", f"value {cells['value']!r} is not a positive finite number")
    return metric, value * UNITS[metric][unit]


def _number(text: str, name: str) -> float | None:
    """A number, or None for an empty cell."""
    if text.lower() in {"", "nan", "na", "n/a", "none"}:
        return None
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return float(text)
    except ValueError:
        raise _Skip(f"{name} is not a number", f"{name} {text!r} is not a number") from None


def _chip(gpu: str) -> ChipModel:
    if " or " in gpu:
        raise _Skip("GPU is ambiguous", f"{gpu!r} names more than one chip")
    name = re.sub(r"\(variant not stated\)|nvidia", "", gpu, flags=re.IGNORECASE).strip()
    try:
        return chip_model(_USUAL_CHIP.get(name.lower(), name))
    except InvalidInput as error:
        raise _Skip("chip lacks figures", str(error)) from None
    except AttnprofError as error:
        raise _Skip("unknown GPU", str(error)) from None


def _direction(text: str) -> Direction:
    if text.lower() not in PASSES:
        raise _Skip("unknown pass", f"pass {text!r} is not one of {', '.join(PASSES)}")
    return PASSES[text.lower()]


def _problem(cells: Mapping[str, str], direction: Direction) -> Problem:
    sizes = {name: _size(cells, name) for name in ("batch", "heads_q", "seqlen_q", "seqlen_k", "head_dim")}
    kv_heads = _number(cells["heads_kv"], "heads_kv") or sizes["heads_q"]
    note = cells["note"]
    if cells["kernel"] == "gqa_4kv":
        kv_heads = sizes["heads_q"] // 4  # its 4 is the group size, whatever a table says
    qk_dim, v_dim = sizes["head_dim"], _noted(note, "head_dim_v") or sizes["head_dim"]
    if "MLA ckv" in note:
        qk_dim += _LATENT_ROPE_DIM
    try:
        return Problem(
            batch=sizes["batch"], q_heads=sizes["heads_q"], kv_heads=int(kv_heads), q_len=sizes["seqlen_q"],
            kv_len=sizes["seqlen_k"], qk_dim=qk_dim, v_dim=v_dim, dtype=_storage(cells["dtype"]),
            mask=_mask(cells, note), direction=direction,
        )  # fmt: skip
    except AttnprofError as error:
        raise _Skip("not an attention problem", str(error)) from None


def _storage(dtype: str) -> DType:
    return {4.0: DType.FLOAT32, 1.0: DType.FLOAT8}.get(_precisions(dtype)[3], DType.FLOAT16)


def _size(cells: Mapping[str, str], name: str) -> int:
    value = _number(cells[name], name)
    if value is None:
        raise _Skip("batch, heads or lengths are not given", f"{name} is empty")
    if not 1 <= value <= _LARGEST[name] or value != int(value):
        limits = f"a whole number from 1 to {_LARGEST[name]:,}"
        raise _Skip("size is nonsense", f"{name}={cells[name]} is not {limits}")
    return int(value)


def _noted(note: str, name: str) -> int | None:
    found = re.search(rf"{name}=(\d+)", note)
    return int(found.group(1)) if found else None


def _mask(cells: Mapping[str, str], note: str) -> Mask:
    window = _noted(note, "sliding_window")
    if window:
        return Window(left=window - 1, right=0)
    causal = _number(cells["causal"], "causal")
    profile = "seed table" in note and causal is None  # the profile's kernels are causal
    return Causal() if causal or profile else Full()


def _bottom_right(problem: Problem) -> Problem:
    return problem.replace(mask=Causal(Align.BOTTOM_RIGHT)) if isinstance(problem.mask, Causal) else problem


def _family(kernel: str, chip: ChipModel, problem: Problem) -> Family:
    try:
        return family_of(kernel, compute_capability=chip.capability, head_dim=max(problem.qk_dim, problem.v_dim)
                         if "MLA" not in kernel else 128, q_len=problem.q_len, vendor=chip.vendor)  # fmt: skip
    except AttnprofError as error:
        raise _Skip("unknown kernel", str(error)) from None


def _precisions(dtype: str) -> tuple[str, str, float, float]:
    key = dtype.lower() or _UNNAMED_DTYPE
    if key not in DTYPES:
        raise _Skip("unknown dtype", f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    return DTYPES[key]


def _case(cells: Mapping[str, str], problem: Problem, family: Family, chip: ChipModel) -> Case:
    qk, pv, q_bytes, kv_bytes = _precisions(cells["dtype"])
    if "fp16 acc" in cells["kernel"] and pv == "fp8":
        pv = "fp8acc16"
    note = cells["note"]
    try:
        chip.peak(qk), chip.peak(pv)
    except InvalidInput as error:
        raise _Skip("chip lacks figures", str(error)) from None
    heads = problem.batch * problem.q_heads
    return Case(
        family=family, chip=chip, batch=problem.batch, q_heads=problem.q_heads, kv_heads=problem.kv_heads,
        q_len=problem.q_len, kv_len=problem.kv_len, qk_dim=problem.qk_dim, v_dim=problem.v_dim,
        pairs=problem.total_pairs / heads, causal=not isinstance(problem.mask, Full),
        windowed=isinstance(problem.mask, Window), direction=problem.direction, qk=qk, pv=pv,
        q_element_bytes=q_bytes, kv_element_bytes=kv_bytes, latent="MLA" in note,
        explicit_mask=re.search(r"variant: (dropout\+)?masking|attn-mask", note) is not None,
        dropout=re.search(r"variant: dropout|case dropout", note) is not None,
        deterministic="deterministic" in note,
    )  # fmt: skip
