"""Bytes that move: a table of terms, labelled with kind, level of memory and policy."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ByteKind(StrEnum):
    """How a byte figure was obtained; figures of different kinds are never compared."""

    COMPULSORY = "compulsory"
    OP_BOUNDARY = "op_boundary"
    LOGICAL = "logical"
    TRACED = "traced"
    SIMULATED = "simulated"
    COUNTED = "counted"
    DRAM_MODEL = "dram_model"


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor's share of the traffic: reads and writes, each with the formula that it was computed from.

    A formula is Python arithmetic over the symbols of the glossary in `core.schedules.formula`.
    """

    tensor: str
    read_bytes: int = 0
    write_bytes: int = 0
    read_formula: str = ""
    write_formula: str = ""
    note: str = ""


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes across one boundary, term by term, reads and writes apart."""

    kind: ByteKind
    level: str
    policy: str = ""
    terms: tuple[Term, ...] = ()

    @property
    def read_bytes(self) -> int:
        """Sum of reads."""
        return sum(term.read_bytes for term in self.terms)

    @property
    def write_bytes(self) -> int:
        """Sum of writes."""
        return sum(term.write_bytes for term in self.terms)

    @property
    def total_bytes(self) -> int:
        """Reads and writes."""
        return self.read_bytes + self.write_bytes


class Tiles(msgspec.Struct, frozen=True, kw_only=True):
    """Tiles of a blocked kernel: B_r query rows by B_c keys; `padded`: ragged tiles are computed whole."""

    rows: int
    cols: int
    padded: bool = True


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What one variant needs for one problem, before anything runs (all predicted).

    `executed_flops` counts the tiles that are really computed; `workspace_bytes` is the peak above inputs and
    outputs; `logical` is what the kernel asks of the next level of memory, `compulsory` the lower bound.
    """

    useful_flops: int
    executed_flops: int
    exp_ops: int
    backward_factor: float | None = None  # None for a forward
    compulsory: Traffic
    logical: Traffic
    op_boundary: Traffic | None = None
    output_bytes: int
    workspace_bytes: int
    tiles: Tiles | None = None

    @property
    def peak_bytes(self) -> int:
        """Predicted peak of one call minus inputs."""
        return self.output_bytes + self.workspace_bytes
