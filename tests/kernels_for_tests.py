"""Kernels that misbehave in known ways, for `module:function` names in tests."""

from __future__ import annotations

import os
import signal
import time


def good(q, k, v, *, problem):
    from torch.nn.functional import scaled_dot_product_attention

    from attnprof.variants._tensors import mask_tensor

    return scaled_dot_product_attention(
        q, k, v, attn_mask=mask_tensor(problem, "cpu"), scale=problem.effective_scale
    )


def ignores_mask(q, k, v):
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(q, k, v)


def textbook(q, k, v, *, problem):
    """Softmax without care for rows that see no key: NaN there."""
    from attnprof.variants._tensors import mask_tensor

    scores = (q @ k.transpose(-2, -1)) * problem.effective_scale
    return scores.masked_fill(~mask_tensor(problem, "cpu"), float("-inf")).softmax(-1) @ v


def raises(q, k, v):
    raise RuntimeError("boom: this kernel always fails")


def out_of_memory(q, k, v):
    import torch

    return torch.empty(2**50)


def killed(q, k, v):
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(q, k, v):
    time.sleep(3600)


def prints(q, k, v):
    print("noise on stdout that must not reach the event stream")
    return ignores_mask(q, k, v)


def writes_into_q(q, k, v):
    result = ignores_mask(q, k, v)
    q.zero_()
    return result


def returns_lse_too(q, k, v):
    return ignores_mask(q, k, v), q[..., 0]


def leaves(q, k, v):
    raise SystemExit(3)


def wrong_shape(q, k, v):
    return ignores_mask(q, k, v)[..., :-1]
