"""The forward of `triton_flash`: one program per tile of queries, keys and values streamed past it."""

from __future__ import annotations

import triton.language as tl

import triton

LOG2_E = tl.constexpr(1.4426950408889634)

# A kernel takes four numbers a tensor: one argument a line would hide what it does.
# fmt: off


@triton.jit
def band_of(bands_ptr, batch):
    """q_len, kv_len, low and high of a batch element."""
    place = bands_ptr + batch * 4
    return tl.load(place), tl.load(place + 1), tl.load(place + 2), tl.load(place + 3)


@triton.jit
def whole_span(first_row, last_row, start, stop, kv_len, low, high, ragged, BLOCK_N: tl.constexpr):
    """Keys of the tiles that every row sees whole, from the last row's first key to the first row's last one.

    They need no mask. A ragged tile of rows has none.
    """
    begin = tl.cdiv(tl.minimum(tl.maximum(last_row + low, start), stop), BLOCK_N) * BLOCK_N
    end = tl.minimum(tl.maximum(first_row + high + 1, 0), kv_len) // BLOCK_N * BLOCK_N
    end = tl.minimum(tl.maximum(end, begin), stop)
    begin = tl.minimum(begin, stop)
    return begin, tl.where(ragged, begin, end)


@triton.jit
def key_span(first_row, last_row, kv_len, low, high, BLOCK_N: tl.constexpr):
    """Half-open range of keys that rows [first_row, last_row] see, its start at a tile's; start = stop if none."""
    start = tl.minimum(tl.maximum(first_row + low, 0), kv_len)
    stop = tl.minimum(tl.maximum(last_row + high + 1, 0), kv_len)
    stop = tl.where(last_row < first_row, 0, stop)
    return tl.where(start < stop, start // BLOCK_N * BLOCK_N, 0), tl.where(start < stop, stop, 0)


@triton.jit
def tile(base, rows, stride, row_limit, dims, dim_limit):
    """A (rows x dims) tile of a matrix whose last dim is contiguous; what is outside is 0 and is not read."""
    inside = (rows[:, None] < row_limit) & (dims[None, :] < dim_limit)
    return tl.load(base + rows[:, None] * stride + dims[None, :], mask=inside, other=0.0)


@triton.jit
def put_tile(base, rows, stride, row_limit, dims, dim_limit, value):
    """Writes a (rows x dims) tile, inside the limits only."""
    inside = (rows[:, None] < row_limit) & (dims[None, :] < dim_limit)
    place = base + rows[:, None].to(tl.int64) * stride + dims[None, :]
    tl.store(place, value.to(base.dtype.element_ty), mask=inside)


@triton.jit
def product(a, b, WIDEN: tl.constexpr):
    """Matrix product accumulated in float32; the interpreter cannot multiply bfloat16, so it widens first."""
    if WIDEN:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def sees(rows, keys, q_len, kv_len, low, high):
    """Which of a tile's (row, key) pairs the band lets through."""
    inside = (rows[:, None] < q_len) & (keys[None, :] < kv_len)
    return inside & (keys[None, :] >= rows[:, None] + low) & (keys[None, :] <= rows[:, None] + high)


@triton.jit
def stream_keys(
    accumulator, row_sum, row_max, q, rows, k_base, v_base, k_stride, v_stride, start, stop, q_len, kv_len, low,
    high, qk_dim, v_dim, scale_log2, BLOCK_N: tl.constexpr, BLOCK_QK: tl.constexpr, BLOCK_V: tl.constexpr,
    WIDEN: tl.constexpr, MASKED: tl.constexpr,
):
    """Online softmax over keys [start, stop); row maxima and sums are in powers of two."""
    qk_dims = tl.arange(0, BLOCK_QK)
    v_dims = tl.arange(0, BLOCK_V)
    for first in range(start, stop, BLOCK_N):
        keys = first + tl.arange(0, BLOCK_N)
        k = tile(k_base, keys, k_stride, kv_len, qk_dims, qk_dim)
        scores = product(q, tl.trans(k), WIDEN) * scale_log2
        if MASKED:
            scores = tl.where(sees(rows, keys, q_len, kv_len, low, high), scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        safe_max = tl.where(new_max == float("-inf"), 0.0, new_max)
        weights = tl.exp2(scores - safe_max[:, None])
        decay = tl.exp2(row_max - safe_max)
        row_sum = row_sum * decay + tl.sum(weights, 1)
        v = tile(v_base, keys, v_stride, kv_len, v_dims, v_dim)
        accumulator = accumulator * decay[:, None]
        accumulator += product(weights.to(v.dtype), v, WIDEN)
        row_max = new_max
    return accumulator, row_sum, row_max


@triton.jit
def forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, bands_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    q_heads, group, q_padded, qk_dim, v_dim, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_QK: tl.constexpr, BLOCK_V: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """Grid: (query tiles, batch * q_heads). `bands_ptr` holds q_len, kv_len, low, high of each batch element."""
    first_row = tl.program_id(0) * BLOCK_M
    batch = (tl.program_id(1) // q_heads).to(tl.int64)
    head = (tl.program_id(1) % q_heads).to(tl.int64)
    q_len, kv_len, low, high = band_of(bands_ptr, batch)
    rows = first_row + tl.arange(0, BLOCK_M)
    last_row = tl.minimum(first_row + BLOCK_M, q_len) - 1
    k_base = k_ptr + batch * k_batch + head // group * k_head
    v_base = v_ptr + batch * v_batch + head // group * v_head
    start, stop = key_span(first_row, last_row, kv_len, low, high, BLOCK_N)
    read_rows = tl.where(stop > start, q_len, 0)  # rows that see no key are not read
    q = tile(q_ptr + batch * q_batch + head * q_head, rows, q_row, read_rows, tl.arange(0, BLOCK_QK), qk_dim)
    ragged = last_row < first_row + BLOCK_M - 1
    whole_start, whole_stop = whole_span(first_row, last_row, start, stop, kv_len, low, high, ragged, BLOCK_N)
    accumulator = tl.zeros([BLOCK_M, BLOCK_V], dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    row_max = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    scale_log2 = scale * LOG2_E
    accumulator, row_sum, row_max = stream_keys(
        accumulator, row_sum, row_max, q, rows, k_base, v_base, k_row, v_row, start, whole_start, q_len, kv_len,
        low, high, qk_dim, v_dim, scale_log2, BLOCK_N, BLOCK_QK, BLOCK_V, WIDEN, True,
    )
    accumulator, row_sum, row_max = stream_keys(
        accumulator, row_sum, row_max, q, rows, k_base, v_base, k_row, v_row, whole_start, whole_stop, q_len,
        kv_len, low, high, qk_dim, v_dim, scale_log2, BLOCK_N, BLOCK_QK, BLOCK_V, WIDEN, False,
    )
    accumulator, row_sum, row_max = stream_keys(
        accumulator, row_sum, row_max, q, rows, k_base, v_base, k_row, v_row, whole_stop, stop, q_len, kv_len,
        low, high, qk_dim, v_dim, scale_log2, BLOCK_N, BLOCK_QK, BLOCK_V, WIDEN, True,
    )
    empty = row_sum == 0.0
    output = accumulator / tl.where(empty, 1.0, row_sum)[:, None]
    lse = tl.where(empty, float("-inf"), row_max / LOG2_E + tl.log(tl.where(empty, 1.0, row_sum)))
    o_base = o_ptr + batch * o_batch + head * o_head
    put_tile(o_base, rows, o_row, q_padded, tl.arange(0, BLOCK_V), v_dim, output)
    tl.store(lse_ptr + tl.program_id(1).to(tl.int64) * q_padded + rows, lse, mask=rows < q_padded)
