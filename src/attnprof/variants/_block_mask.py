"""Block masks for FlexAttention from a problem's mask, without a matrix of N x N for the banded ones."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from attnprof.core.mask import Band, Dense
from attnprof.core.problem import Problem
from attnprof.variants._tensors import mask_tensor

BLOCK = 128
EVERY = 2**30  # a limit that no key reaches
Visible = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def block_mask(problem: Problem, device: str) -> BlockMask:
    """Which blocks of 128 x 128 are computed whole, which with the mask, and which not at all."""
    if isinstance(problem.mask, Dense):
        partial, whole, visible = _of_tensor(problem, device)
    else:
        bands = problem.mask.bands(problem.batch, problem.q_len, problem.kv_len)
        per_element = [band for count, band in bands for _ in range(count if len(bands) > 1 else 1)]
        blocks = [_of_band(band, problem) for band in per_element]
        partial, whole = (torch.stack(x)[:, None].to(device) for x in zip(*blocks, strict=True))
        visible = _banded(per_element, device)
    return BlockMask.from_kv_blocks(
        *_listed(partial),
        *_listed(whole),
        BLOCK_SIZE=BLOCK,
        mask_mod=visible,
        seq_lengths=(problem.q_len, problem.kv_len),
    )


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """(how many, which first) per row of blocks, as FlexAttention lists them."""
    order = blocks.to(torch.int32).argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(dim=-1, dtype=torch.int32), order.to(torch.int32)


def _of_band(band: Band, problem: Problem) -> tuple[Tensor, Tensor]:
    """(partly visible, wholly visible) of each block, (query blocks, key blocks)."""
    rows = torch.arange(0, problem.q_len, BLOCK)
    last_row = torch.clamp(rows + BLOCK, max=band.q_len) - 1
    first_key = torch.arange(0, problem.kv_len, BLOCK)
    stop_key = torch.clamp(first_key + BLOCK, max=band.kv_len)
    low, high = _limits(band)
    real = (last_row >= rows)[:, None] & (stop_key > first_key)[None, :]
    some = (
        real
        & (stop_key[None, :] > (rows + low)[:, None])
        & (first_key[None, :] <= (last_row + high)[:, None])
    )
    inside = (first_key[None, :] >= (last_row + low)[:, None]) & (
        stop_key[None, :] - 1 <= (rows + high)[:, None]
    )
    complete = (last_row == rows + BLOCK - 1)[:, None] & (stop_key == first_key + BLOCK)[None, :]
    whole = some & inside & complete
    return some & ~whole, whole


def _banded(bands: list[Band], device: str) -> Visible:
    """The mask of each pair, for the blocks that are partly visible."""
    if len(bands) == 1:
        (band,) = bands
        low, high = _limits(band)
        return lambda b, h, i, j: (j >= i + low) & (j <= i + high)  # noqa: ARG005  # FlexAttention's four arguments
    rows = [(band.q_len, band.kv_len, *_limits(band)) for band in bands]
    q_lens, kv_lens, lows, highs = (
        torch.tensor(column, dtype=torch.int32, device=device) for column in zip(*rows, strict=True)
    )

    def visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:  # noqa: ARG001  # FlexAttention's four
        return (i < q_lens[b]) & (j < kv_lens[b]) & (j >= i + lows[b]) & (j <= i + highs[b])

    return visible


def _limits(band: Band) -> tuple[int, int]:
    return -EVERY if band.low is None else band.low, EVERY if band.high is None else band.high


def _of_tensor(problem: Problem, device: str) -> tuple[Tensor, Tensor, Visible]:
    mask = mask_tensor(problem, device)
    assert mask is not None
    mask = (mask if mask.dim() == 4 else mask[None, None]).expand(-1, -1, problem.q_len, -1).contiguous()
    pad = (-problem.kv_len % BLOCK, -problem.q_len % BLOCK)
    padded = torch.nn.functional.pad(mask, (0, pad[0], 0, pad[1]))
    blocks = padded.reshape(*mask.shape[:2], padded.shape[2] // BLOCK, BLOCK, -1, BLOCK)
    seen = blocks.sum(dim=(-3, -1))
    whole = seen == BLOCK * BLOCK
    batches, heads = mask.shape[:2]

    def visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return mask[b if batches > 1 else 0, h if heads > 1 else 0, i, j]

    return (seen > 0) & ~whole, whole, visible
