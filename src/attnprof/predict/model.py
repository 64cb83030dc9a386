"""The time model of one attention kernel on one chip, vectorised over cases.

A fused kernel computes tiles of 128 queries by 128 keys. One pair of a tile costs matmul cycles and softmax cycles of
its streaming multiprocessor (SM); a kernel overlaps the two more or less (`_OVERLAP`). A tile row also pays a
prologue, counted in tiles, and a grid that does not fill its last wave waits for it. The chip needs the slowest of
that core time, shared-memory bytes, L2 bytes and DRAM bytes (DRAM joined by a 3-norm, as it overlaps imperfectly),
after the launch. An unfused kernel pays matmuls, whole passes over the score matrix through DRAM, and its launches,
one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from attnprof.predict.cases import Bools, Columns, Floats
from attnprof.predict.kernels import Family

TILE = 128.0
DECODE_TILE_ROWS = 64.0
L2_USABLE_SHARE = 0.8
L2_BYTES_PER_CYCLE = 64.0  # an SM's port to L2
JOIN = 3.0  # exponent of the norm over resources
USUAL_EXP_PER_CYCLE = 16.0
EXP_SHARE = (
    0.5  # of the softmax cycles on a chip with the usual exponential units; the rest is other arithmetic
)
WAVE_SHARE = 0.6  # how much of an unfilled last wave is lost; the rest is hidden by uneven tiles

# Exponent of the norm over matmul and softmax: 1 = one after the other, large = the slower of the two.
_OVERLAP = {
    Family.FA1: 1.0, Family.MEMEFF: 1.0, Family.MEMEFF_WIDE: 1.0, Family.FA2: 1.2, Family.TRITON: 1.5,
    Family.QUANTISED: 1.5, Family.FA3: 2.5, Family.NATIVE: 2.5,
}  # fmt: skip
_USUAL_OVERLAP = 2.0


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What a kernel family costs. Units: cycles of one SM, tiles, FLOP/cycle/SM, seconds; costs are multiples.

    `matmul_cost` multiplies the ideal matmul cycles; `softmax_cycles` are per pair, on a chip with 16 exponentials
    a cycle; `prologue_tiles` per tile row;
    `matmul_ceiling` is the FLOP/cycle that the kernel's matmul instruction can reach, whatever the chip offers;
    `dram_cost` multiplies the ideal DRAM time; `launch_s` is paid once a pass.
    """

    matmul_cost: float = 1.15
    matmul_cost_bwd: float = 1.35
    softmax_cycles: float = 0.08
    softmax_cycles_bwd: float = 0.16
    prologue_tiles: float = 0.7
    prologue_tiles_bwd: float = 1.2
    matmul_ceiling: float = 1e4
    dram_cost: float = 1.2
    launch_s: float = 12e-6


CONSTANT_NAMES = tuple(Constants.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Seconds of each resource on its own, and the total; one value a case."""

    matmul_s: Floats
    softmax_s: Floats
    shared_memory_s: Floats
    l2_s: Floats
    dram_s: Floats
    launch_s: Floats
    total_s: Floats


def evaluate(columns: Columns, constants: Mapping[str, Floats]) -> Resources:
    """Time of every case; `constants` holds one value a case under each name of `Constants`.

    Units: seconds.
    """
    c = _picked(columns, constants)
    pairs, rows = executed_pairs(columns)
    hertz = columns.chip("sm_count") * columns.chip("clock_hz")
    matmul, softmax = _pair_cycles(columns, c)
    work = (pairs + np.where(columns.decode, 0.0, c["prologue_tiles"] * TILE * TILE * rows)) / hertz
    overlap = np.array([_OVERLAP.get(family, _USUAL_OVERLAP) for family in columns.families])
    waves = _wave_factor(columns, rows)
    core = (matmul**overlap + softmax**overlap) ** (1 / overlap) * work * waves
    shared, l2 = _on_chip_s(columns, pairs, hertz)
    dram = dram_bytes(columns) / columns.chip("dram_bytes_per_s") * c["dram_cost"]
    launch = c["launch_s"] * np.where(columns.both, 2.0, 1.0)
    fused = _joined(core, shared, l2, dram) + launch
    eager = _eager(columns, c, matmul, hertz)
    e = columns.eager
    return Resources(
        matmul_s=np.where(e, eager.matmul_s, matmul * work), softmax_s=np.where(e, 0.0, softmax * work),
        shared_memory_s=np.where(e, 0.0, shared), l2_s=np.where(e, 0.0, l2), dram_s=np.where(e, eager.dram_s, dram),
        launch_s=np.where(e, eager.launch_s, launch), total_s=np.where(e, eager.total_s, fused),
    )  # fmt: skip


def executed_pairs(columns: Columns) -> tuple[Floats, Floats]:
    """Pairs that the tiles really compute over batch and heads, and tile rows (thread blocks)."""
    n = columns.numbers
    q_tiles, k_tiles = np.ceil(n["q_len"] / TILE), np.ceil(n["kv_len"] / TILE)
    diagonal = np.where(n["causal"] > 0, np.minimum(n["q_len"], n["kv_len"]) * TILE / 2, 0.0)
    diagonal = np.where(n["windowed"] > 0, n["q_len"] * TILE, diagonal)
    padding = q_tiles * TILE / np.maximum(n["q_len"], 1) * k_tiles * TILE / np.maximum(n["kv_len"], 1)
    tiled = np.minimum((n["pairs"] + diagonal) * padding, q_tiles * k_tiles * TILE * TILE)
    sharing = np.where(n["latent"] > 0, n["q_heads"], n["q_heads"] / n["kv_heads"])
    packed = np.ceil(sharing * n["q_len"] / DECODE_TILE_ROWS)
    streamed = packed * DECODE_TILE_ROWS * n["pairs"] / np.maximum(n["q_len"], 1)
    heads = np.where(columns.decode, n["q_heads"] / sharing, n["q_heads"]) * n["batch"]
    return np.where(columns.decode, streamed, tiled) * heads, np.where(
        columns.decode, packed, q_tiles
    ) * heads


def dram_bytes(columns: Columns) -> Floats:
    """Predicted DRAM bytes of a fused kernel: compulsory, and K and V once per wave where they overflow the L2."""
    n = columns.numbers
    q_and_o, kv = _stored_bytes(columns)
    heads_active = np.ceil(columns.chip("sm_count") / np.ceil(np.maximum(n["q_len"], 1) / TILE))
    live = heads_active * n["kv_len"] * (n["qk_dim"] + n["v_dim"]) * n["kv_element_bytes"]
    waves = np.ceil(np.ceil(n["q_len"] / TILE) / columns.chip("sm_count"))
    overflow = (live > L2_USABLE_SHARE * columns.chip("l2_bytes")) & ~columns.decode
    forward = q_and_o + kv * np.where(overflow, np.maximum(waves, 1.0), 1.0)
    return forward * np.where(columns.both, 3.5, np.where(columns.backward, 2.5, 1.0))


def _stored_bytes(columns: Columns) -> tuple[Floats, Floats]:
    n = columns.numbers
    dims = n["qk_dim"] + n["v_dim"]
    q_and_o = n["batch"] * n["q_heads"] * n["q_len"] * dims * n["q_element_bytes"]
    separate = n["batch"] * n["kv_heads"] * n["kv_len"] * dims * n["kv_element_bytes"]
    latent = n["batch"] * n["kv_len"] * n["qk_dim"] * n["kv_element_bytes"]
    return q_and_o, np.where(n["latent"] > 0, latent, separate)


def _picked(columns: Columns, constants: Mapping[str, Floats]) -> dict[str, Floats]:
    """Constants with those of the backward in place where a case runs one."""
    picked = {name: value for name, value in constants.items() if not name.endswith("_bwd")}
    for name in ("matmul_cost", "softmax_cycles", "prologue_tiles"):
        picked[name] = np.where(columns.backward, constants[f"{name}_bwd"], constants[name])
    return picked


def _pair_cycles(columns: Columns, c: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Matmul and softmax cycles per pair, all passes of the case."""
    n = columns.numbers
    base = columns.matmul_rate("qk_base")
    qk, pv = (_inverse_rate(columns.matmul_rate(p), base, c["matmul_ceiling"]) for p in ("qk", "pv"))
    forward = 2 * (n["qk_dim"] * qk + n["v_dim"] * pv)
    backward = 2 * (3 * n["qk_dim"] * qk + 2 * n["v_dim"] * pv)
    matmul = np.where(columns.both, forward + backward, np.where(columns.backward, backward, forward))
    units = 1 - EXP_SHARE + EXP_SHARE * USUAL_EXP_PER_CYCLE / columns.chip("exp_per_cycle")
    softmax = c["softmax_cycles"] * units * np.where(columns.both, 1.3, 1.0)
    return matmul * c["matmul_cost"], softmax


def _inverse_rate(rate: Floats, base: Floats, ceiling: Floats) -> Floats:
    """Cycles per FLOP; the kernel's own ceiling bounds 16-bit and wider types only."""
    return np.where(rate > 1.5 * base, 1 / rate, (rate**-4.0 + ceiling**-4.0) ** 0.25)


def _wave_factor(columns: Columns, rows: Floats) -> Floats:
    """Time over the time of a full last wave; causal grids are uneven anyway, and split-KV grids fill the chip."""
    waves = np.maximum(rows, 1.0) / columns.chip("sm_count")
    exempt = columns.decode | columns.eager | (columns.numbers["causal"] > 0)
    return np.where(exempt, 1.0, 1 + WAVE_SHARE * (np.ceil(waves) / waves - 1))


def _on_chip_s(columns: Columns, pairs: Floats, hertz: Floats) -> tuple[Floats, Floats]:
    """Shared-memory and L2 seconds of the tiles.

    Source: FlashAttention-4 (arXiv 2603.05451): shared-memory cycles of a 128-row tile at 128 B/cycle, forward and
    backward; K and V come from L2 once per tile row.
    """
    n = columns.numbers
    d, scale = n["qk_dim"], n["kv_element_bytes"] / 2
    forward = 3 * d / 8192 * scale
    backward = (896 * d * scale / 2**20) + 2 / 64 + d * scale / 2048
    cycles = np.where(columns.both, forward + backward, np.where(columns.backward, backward, forward))
    l2 = (n["qk_dim"] + n["v_dim"]) * n["kv_element_bytes"] / TILE / L2_BYTES_PER_CYCLE
    l2 = l2 * np.where(columns.both, 3.5, np.where(columns.backward, 2.5, 1.0))
    none: Bools = columns.decode
    return np.where(none, 0.0, cycles * pairs / hertz), np.where(none, 0.0, l2 * pairs / hertz)


def _joined(core: Floats, shared: Floats, l2: Floats, dram: Floats) -> Floats:
    """The slowest resource, rounded: on-chip bytes only bind where they exceed the core's own time."""
    on_chip = np.maximum(core, np.maximum(shared, l2))
    return np.asarray((on_chip**JOIN + dram**JOIN) ** (1 / JOIN))


def _eager(columns: Columns, c: Mapping[str, Floats], matmul_cycles: Floats, hertz: Floats) -> Resources:
    """An unfused kernel: whole matmuls, passes over the scores, launches."""
    n = columns.numbers
    whole = n["batch"] * n["q_heads"] * n["q_len"] * n["kv_len"]
    matmul = whole * matmul_cycles / hertz
    q_and_o, kv = _stored_bytes(columns)
    scores = whole * n["q_element_bytes"] * score_passes(columns)
    linear = (q_and_o + kv) * np.where(columns.both, 3.5, np.where(columns.backward, 2.5, 1.0))
    dram = (scores + linear) / columns.chip("dram_bytes_per_s") * c["dram_cost"]
    launch = c["launch_s"] * np.where(columns.both, 2.5, np.where(columns.backward, 1.5, 1.0))
    zero = np.zeros_like(dram)
    return Resources(matmul_s=matmul, softmax_s=zero, shared_memory_s=zero, l2_s=zero, dram_s=dram, launch_s=launch,
                     total_s=matmul + dram + launch)  # fmt: skip


def score_passes(columns: Columns) -> Floats:
    """How often an unfused kernel reads or writes the score matrix.

    Forward: written, read and written by scale and softmax, read: 6 (8 with a mask); backward 10, both 16.
    """
    n = columns.numbers
    base = np.where(columns.both, 16.0, np.where(columns.backward, 10.0, 6.0))
    causal = n["causal"] * np.where(columns.both, 4.0, 2.0)
    extra = (2 * n["explicit_mask"] + 2.5 * n["dropout"]) * np.where(columns.backward, 2.0, 1.0)
    return np.asarray(base + causal + extra)
