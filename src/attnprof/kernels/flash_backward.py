"""The backward of `triton_flash`: row sums, then K/V gradients by key tile, then Q gradients by query tile.

Scores are recomputed in both passes (7 matmuls of the forward's size for its 2, a factor of 3.5); no atomics, so
the result does not depend on the order in which programs run.
"""

from __future__ import annotations

import triton.language as tl

import triton
from attnprof.kernels.flash_forward import LOG2_E, band_of, key_span, product, put_tile, sees, tile

# A kernel takes four numbers a tensor: one argument a line would hide what it does.
# fmt: off


@triton.jit
def delta_kernel(
    o_ptr, grad_o_ptr, grad_lse_ptr, delta_ptr,
    o_batch, o_head, o_row, go_batch, go_head, go_row, q_heads, q_padded, v_dim,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr,
):
    """delta = sum(dO * O) - dLSE of each row. Grid: (query tiles, batch * q_heads)."""
    batch = (tl.program_id(1) // q_heads).to(tl.int64)
    head = (tl.program_id(1) % q_heads).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_V)
    o = tile(o_ptr + batch * o_batch + head * o_head, rows, o_row, q_padded, dims, v_dim)
    grad_o = tile(grad_o_ptr + batch * go_batch + head * go_head, rows, go_row, q_padded, dims, v_dim)
    place = tl.program_id(1).to(tl.int64) * q_padded + rows
    grad_lse = tl.load(grad_lse_ptr + place, mask=rows < q_padded, other=0.0)
    delta = tl.sum(o.to(tl.float32) * grad_o.to(tl.float32), 1) - grad_lse
    tl.store(delta_ptr + place, delta, mask=rows < q_padded)


@triton.jit
def weights_again(q, k, lse, rows, keys, q_len, kv_len, low, high, scale, WIDEN: tl.constexpr):
    """The forward's softmax weights of one tile, from the scores and the saved LSE."""
    scores = product(q, tl.trans(k), WIDEN) * (scale * LOG2_E)
    safe_lse = tl.where(lse == float("-inf"), 0.0, lse) * LOG2_E
    return tl.where(sees(rows, keys, q_len, kv_len, low, high), tl.exp2(scores - safe_lse[:, None]), 0.0)


@triton.jit
def key_gradient_kernel(
    q_ptr, k_ptr, v_ptr, grad_o_ptr, lse_ptr, delta_ptr, bands_ptr, grad_k_ptr, grad_v_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, go_batch, go_head, go_row,
    gk_batch, gk_head, gk_row, gv_batch, gv_head, gv_row,
    kv_heads, group, q_padded, kv_padded, qk_dim, v_dim, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_QK: tl.constexpr, BLOCK_V: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """dK and dV of one key tile, summed over the group's query heads. Grid: (key tiles, batch * kv_heads)."""
    first_key = tl.program_id(0) * BLOCK_N
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    q_len, kv_len, low, high = band_of(bands_ptr, batch)
    keys = first_key + tl.arange(0, BLOCK_N)
    qk_dims = tl.arange(0, BLOCK_QK)
    v_dims = tl.arange(0, BLOCK_V)
    last_key = tl.minimum(first_key + BLOCK_N, kv_len) - 1
    start, stop = key_span(first_key, last_key, q_len, -high, -low, BLOCK_M)  # rows that see the tile
    read_keys = tl.where(stop > start, kv_len, 0)  # keys that no row sees are not read
    k = tile(k_ptr + batch * k_batch + kv_head * k_head, keys, k_row, read_keys, qk_dims, qk_dim)
    v = tile(v_ptr + batch * v_batch + kv_head * v_head, keys, v_row, read_keys, v_dims, v_dim)
    grad_k = tl.zeros([BLOCK_N, BLOCK_QK], dtype=tl.float32)
    grad_v = tl.zeros([BLOCK_N, BLOCK_V], dtype=tl.float32)
    for member in range(0, group):
        head = kv_head * group + member
        q_base = q_ptr + batch * q_batch + head * q_head
        go_base = grad_o_ptr + batch * go_batch + head * go_head
        statistics = (batch * kv_heads * group + head) * q_padded
        for first in range(start, stop, BLOCK_M):
            rows = first + tl.arange(0, BLOCK_M)
            q = tile(q_base, rows, q_row, q_len, qk_dims, qk_dim)
            grad_o = tile(go_base, rows, go_row, q_len, v_dims, v_dim)
            lse = tl.load(lse_ptr + statistics + rows, mask=rows < q_len, other=0.0)
            delta = tl.load(delta_ptr + statistics + rows, mask=rows < q_len, other=0.0)
            weights = weights_again(q, k, lse, rows, keys, q_len, kv_len, low, high, scale, WIDEN)
            grad_v += product(tl.trans(weights.to(grad_o.dtype)), grad_o, WIDEN)
            grad_scores = weights * (product(grad_o, tl.trans(v), WIDEN) - delta[:, None])
            grad_k += product(tl.trans(grad_scores.to(q.dtype)), q, WIDEN)
    gk_base = grad_k_ptr + batch * gk_batch + kv_head * gk_head
    gv_base = grad_v_ptr + batch * gv_batch + kv_head * gv_head
    put_tile(gk_base, keys, gk_row, kv_padded, qk_dims, qk_dim, grad_k * scale)
    put_tile(gv_base, keys, gv_row, kv_padded, v_dims, v_dim, grad_v)


@triton.jit
def query_gradient_kernel(
    q_ptr, k_ptr, v_ptr, grad_o_ptr, lse_ptr, delta_ptr, bands_ptr, grad_q_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, go_batch, go_head, go_row,
    gq_batch, gq_head, gq_row,
    q_heads, group, q_padded, qk_dim, v_dim, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_QK: tl.constexpr, BLOCK_V: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """dQ of one query tile. Grid: (query tiles, batch * q_heads)."""
    first_row = tl.program_id(0) * BLOCK_M
    batch = (tl.program_id(1) // q_heads).to(tl.int64)
    head = (tl.program_id(1) % q_heads).to(tl.int64)
    q_len, kv_len, low, high = band_of(bands_ptr, batch)
    rows = first_row + tl.arange(0, BLOCK_M)
    qk_dims = tl.arange(0, BLOCK_QK)
    v_dims = tl.arange(0, BLOCK_V)
    last_row = tl.minimum(first_row + BLOCK_M, q_len) - 1
    start, stop = key_span(first_row, last_row, kv_len, low, high, BLOCK_N)
    read_rows = tl.where(stop > start, q_len, 0)
    q = tile(q_ptr + batch * q_batch + head * q_head, rows, q_row, read_rows, qk_dims, qk_dim)
    grad_o = tile(grad_o_ptr + batch * go_batch + head * go_head, rows, go_row, read_rows, v_dims, v_dim)
    statistics = tl.program_id(1).to(tl.int64) * q_padded + rows
    lse = tl.load(lse_ptr + statistics, mask=rows < read_rows, other=0.0)
    delta = tl.load(delta_ptr + statistics, mask=rows < read_rows, other=0.0)
    k_base = k_ptr + batch * k_batch + head // group * k_head
    v_base = v_ptr + batch * v_batch + head // group * v_head
    grad_q = tl.zeros([BLOCK_M, BLOCK_QK], dtype=tl.float32)
    for first in range(start, stop, BLOCK_N):
        keys = first + tl.arange(0, BLOCK_N)
        k = tile(k_base, keys, k_row, kv_len, qk_dims, qk_dim)
        v = tile(v_base, keys, v_row, kv_len, v_dims, v_dim)
        weights = weights_again(q, k, lse, rows, keys, q_len, kv_len, low, high, scale, WIDEN)
        grad_scores = weights * (product(grad_o, tl.trans(v), WIDEN) - delta[:, None])
        grad_q += product(grad_scores.to(k.dtype), k, WIDEN)
    gq_base = grad_q_ptr + batch * gq_batch + head * gq_head
    put_tile(gq_base, rows, gq_row, q_padded, qk_dims, qk_dim, grad_q * scale)
