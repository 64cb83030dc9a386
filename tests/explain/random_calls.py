"""Random calls of scaled_dot_product_attention, most of them odd in one way or another."""

import random

from attnprof.explain.call import Call, TensorSpec, contiguous

DTYPES = ("float32", "float32", "float16", "bfloat16", "float64")


def random_calls(count, seed=0):
    """`count` calls; a given seed gives the same calls everywhere."""
    rng = random.Random(seed)
    return [_call(rng) for _ in range(count)]


def _odd(rng, usual, *others, share=0.12):
    """The usual value, or now and then another one."""
    return rng.choice(others) if rng.random() < share else usual


def _call(rng):
    batch, heads = rng.choice((1, 2, 3)), rng.choice((1, 2, 4, 8))
    q_len, kv_len = rng.choice((1, 5, 16)), rng.choice((1, 7, 16))
    dim = rng.choice((8, 16, 63, 64))
    dtype = rng.choice(DTYPES)
    kv_heads = _odd(rng, heads, 1, 2, 3)
    kv_batch = _odd(rng, batch, 1)
    q = _tensor(rng, (batch, heads, _odd(rng, q_len, 0, share=0.03), dim), dtype)
    k = _tensor(
        rng,
        (kv_batch, kv_heads, kv_len, _odd(rng, dim, 32, share=0.04)),
        _odd(rng, dtype, "float64", share=0.04),
    )
    v = _tensor(rng, (kv_batch, kv_heads, kv_len, _odd(rng, dim, 32)), dtype)
    rank = rng.random()
    if rank < 0.06:
        q, k, v = (contiguous(t.shape[1:], t.dtype) for t in (q, k, v))
    elif rank < 0.1:
        q, k, v = (contiguous((1, *t.shape), t.dtype) for t in (q, k, v))
    return Call(
        q=q, k=k, v=v, attn_mask=_mask(rng, batch, heads, q.shape[-2], kv_len, dtype), is_causal=rng.random() < 0.3,
        dropout_p=_odd(rng, 0.0, 0.1, 0.5), enable_gqa=rng.random() < 0.3, grad_enabled=rng.random() < 0.9,
        scale=_odd(rng, None, 1.0),
    )  # fmt: skip


def _tensor(rng, shape, dtype):
    spec = contiguous(shape, dtype, requires_grad=rng.random() < 0.15)
    kind = rng.random()
    if kind < 0.2:  # a (B, N, H, d) tensor seen as (B, H, N, d)
        b, h, n, d = shape
        strides = contiguous((b, n, h, d), dtype).strides
        return TensorSpec(
            shape=shape, strides=(strides[0], strides[2], strides[1], strides[3]), dtype=dtype,
            requires_grad=spec.requires_grad,
        )  # fmt: skip
    if kind < 0.26:  # every second element
        return TensorSpec(
            shape=shape,
            strides=tuple(2 * s for s in spec.strides),
            dtype=dtype,
            requires_grad=spec.requires_grad,
        )
    return spec


def _mask(rng, batch, heads, q_len, kv_len, dtype):
    if rng.random() < 0.55:
        return None
    shape = rng.choice(
        (
            (q_len, kv_len),
            (batch, heads, q_len, kv_len),
            (1, 1, 1, kv_len),
            (batch, 1, q_len, kv_len),
            (q_len, 1),
            (heads, q_len, kv_len),
            (1, kv_len),
        )
    )
    kind = rng.choice(("bool", "bool", dtype, "float32"))
    return contiguous(shape, kind, requires_grad=kind != "bool" and rng.random() < 0.15)
