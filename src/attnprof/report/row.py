"""The row of results.csv: its columns in their order, and why a number of it may be missing."""

from __future__ import annotations

import msgspec

from attnprof.core.record import Judgment, Verdict

BASELINE = "naive"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of results.csv; sizes and mask are of the problem that the variant really computed.

    Units: in the names; MiB is 2**20 bytes. `tflop_per_s` counts useful FLOPs, `executed_tflop_per_s` those
    of the tiles that are computed.
    """

    variant: str
    batch: int
    q_heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    v_dim: int
    dtype: str
    mask: str
    direction: str
    outcome: str
    reason: str | None = None
    time_median_us: float | None = None
    time_p20_us: float | None = None
    time_p80_us: float | None = None
    speedup_vs_naive: float | None = None
    peak_mib: float | None = None
    useful_flops: int
    tflop_per_s: float | None = None
    time_ci_low_us: float | None = None
    time_ci_high_us: float | None = None
    time_min_us: float | None = None
    n_samples: int | None = None
    calls_per_sample: int | None = None
    warmup_calls: int | None = None
    first_call_us: float | None = None
    compile_s: float | None = None
    recompiles: int | None = None
    floor_us: float | None = None
    stopped: str | None = None
    speedup_paired: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    executed_flops: int | None = None
    executed_tflop_per_s: float | None = None
    backward_factor: float | None = None
    exp_ops: int
    compulsory_bytes: int
    compulsory_read_bytes: int
    compulsory_write_bytes: int
    logical_bytes: int | None = None
    logical_read_bytes: int | None = None
    logical_write_bytes: int | None = None
    logical_level: str | None = None
    logical_policy: str | None = None
    op_boundary_bytes: int | None = None
    intensity_flop_per_byte: float | None = None
    logical_intensity_flop_per_byte: float | None = None
    output_mib: float | None = None
    workspace_mib: float | None = None
    allocator_mib: float | None = None
    memory_method: str | None = None
    predicted_peak_mib: float | None = None
    verdict: str | None = None
    verdict_reason: str | None = None
    max_abs_error: float | None = None
    rel_l2_error: float | None = None
    naive_error: float | None = None
    error_floor: float | None = None
    nan_rows: int | None = None
    empty_rows: int
    backend: str | None = None
    choice: str | None = None
    counted: str | None = None
    device: str
    cache: str
    scale: float
    dropout: float
    seed: int
    started_at: str | None = None
    asked: str
    same_function: bool
    note: str | None = None
    bound_us: float | None = None
    binding: str | None = None
    times_bound: float | None = None
    matmul_share: float | None = None
    exp_share: float | None = None
    memory_share: float | None = None
    memory_level: str | None = None
    ceilings_basis: str | None = None
    judgments: tuple[Judgment, ...] = ()

    @property
    def correct(self) -> bool:
        """Measured, checked against the reference, passed, and an answer to the problem as asked."""
        return self.verdict == Verdict.PASS and self.same_function and self.time_median_us is not None

    @property
    def wrong(self) -> bool:
        """Checked, and not right."""
        return self.verdict in (Verdict.WRONG, Verdict.NAN)


COLUMNS: tuple[str, ...] = Row.__struct_fields__


def why_missing(row: Row, column: str) -> str:
    """The reason why `column` of `row` holds no number."""
    no_cost = row.executed_flops is None
    rules: tuple[tuple[bool, str], ...] = (
        (no_cost and column in _NEEDS_COST, "the variant states no cost"),
        (column == "backward_factor", "forward only"),
        (column == "op_boundary_bytes", "the variant states no operators"),
        (column.endswith("flop_per_byte"), "no work or no bytes"),
        (column in ("reason", "note"), "nothing to say"),
        (column in _CEILINGS and row.ceilings_basis is None, "no ceilings known; run `attnprof ceilings`"),
        (row.outcome != "measured", f"{row.outcome}: {row.reason}"),
        (
            column.startswith("speedup") and row.speedup_vs_naive is None,
            f"no measured {BASELINE} for this problem",
        ),
        (
            column.startswith("speedup") and row.speedup_paired is None,
            f"no sampling round is shared with {BASELINE}",
        ),
        (column.startswith("speedup"), f"fewer than 6 sampling rounds are shared with {BASELINE}"),
        (column.startswith("time_ci") and bool(row.n_samples), "no 95% interval exists below 6 samples"),
        (column.startswith("time_"), "no samples"),
        (column.endswith("tflop_per_s"), "no work or no samples"),
        (column in _MEMORY, "peak memory was not measured"),
        (column in _ACCURACY, row.verdict_reason or "not checked against the reference"),
    )
    return next((text for holds, text in rules if holds), "not recorded")


_NEEDS_COST = frozenset({
    "executed_flops", "executed_tflop_per_s", "logical_bytes", "logical_read_bytes", "logical_write_bytes",
    "logical_level", "logical_policy", "op_boundary_bytes", "logical_intensity_flop_per_byte",
    "predicted_peak_mib",
})  # fmt: skip
_CEILINGS = frozenset({
    "bound_us", "binding", "times_bound", "matmul_share", "exp_share", "memory_share", "memory_level",
    "ceilings_basis",
})  # fmt: skip
_MEMORY = frozenset({"peak_mib", "output_mib", "workspace_mib", "allocator_mib", "memory_method"})
_ACCURACY = frozenset({
    "verdict", "verdict_reason", "max_abs_error", "rel_l2_error", "naive_error", "error_floor", "nan_rows",
})  # fmt: skip
