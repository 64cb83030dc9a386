"""Peak memory of a call on a device: inputs, outputs, temporaries, and the libraries' own workspace, term by term."""

from __future__ import annotations

from attnprof.core.errors import AttnprofError
from attnprof.core.problem import Direction, Problem
from attnprof.core.traffic import Cost
from attnprof.core.units import KIB, MIB
from attnprof.predict.costs import cost_on_gpu
from attnprof.predict.kernels import Family
from attnprof.predict.published import PublishedRow

HOPPER = 9.0
_FIRST_WITH_32_MIB = HOPPER
_STATISTIC_BYTES = 4


def library_workspace_bytes(compute_capability: float | None) -> int:
    """What PyTorch keeps for cuBLAS from the first matmul of a process on; 0 off NVIDIA.

    8 MiB + 128 KiB (two buffers of 4096 KiB, eight of 16 KiB), 32 MiB from sm90 on.
    Source: PyTorch's default of CUBLAS_WORKSPACE_CONFIG.

    >>> library_workspace_bytes(7.5) / MIB
    8.125
    """
    if compute_capability is None:
        return 0
    return 32 * MIB if compute_capability >= _FIRST_WITH_32_MIB else 2 * 4096 * KIB + 8 * 16 * KIB


def input_bytes(problem: Problem) -> int:
    """q, k, v and an explicit mask; for a backward the output's gradient too."""
    gradient = 0 if problem.direction is Direction.FWD else problem.o_bytes
    return problem.q_bytes + problem.k_bytes + problem.v_bytes + problem.mask_bytes + gradient


def peak_bytes(problem: Problem, cost: Cost, compute_capability: float | None) -> int:
    """Peak of the allocator: inputs, outputs, temporaries and library workspace."""
    return input_bytes(problem) + cost.peak_bytes + library_workspace_bytes(compute_capability)


def published_peak_bytes(row: PublishedRow) -> float | None:
    """Peak memory of a published row in the accounting of its source; None where none is known.

    The RTX 2070 profile counts a whole process (inputs and cuBLAS workspace included) and prints MiB as MB: stated
    numbers are read as MiB. FlashAttention's table counts the tensors of a training step alone.
    """
    if row.case.direction is Direction.FWD:
        try:
            cost = cost_on_gpu(row.kernel, row.problem, row.case.family)
        except AttnprofError:
            return None
        return peak_bytes(row.problem, cost, row.case.chip.capability) * 1e6 / MIB
    if row.case.direction is Direction.FWD_BWD:
        return _training_bytes(row.problem, row.case.family)
    return None


def _training_bytes(problem: Problem, family: Family) -> float | None:
    """Tensors of one forward and backward in the FlashAttention paper's accounting, as it prints them (MiB as MB).

    Unfused: four score matrices (S, P and their gradients or the mask's copy) and ten linear tensors (q, k, v, o, the
    four gradients, two copies). FlashAttention-1: thirteen linear tensors (those, dQ accumulated in fp32, one copy
    more) and two rows of fp32 statistics. Both match the paper's table to the megabyte from length 512 on.
    """
    linear = problem.q_bytes
    statistics = problem.batch * problem.q_heads * problem.q_len * _STATISTIC_BYTES
    if family in {Family.NAIVE, Family.FUSED_SOFTMAX}:
        total = 4 * problem.score_bytes + 10 * linear
    elif family is Family.FA1:
        total = 13 * linear + 2 * statistics
    else:
        return None
    return total * 1e6 / MIB
