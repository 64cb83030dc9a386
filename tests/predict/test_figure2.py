"""The counts that docs/figure2.md discusses, made anew from the cost tables."""

from __future__ import annotations

from attnprof import Full, Problem
from attnprof.core.schedules.eager import naive_cost
from attnprof.core.schedules.flash import fa1_cost

FIGURE = Problem(
    batch=64, q_heads=16, q_len=1024, head_dim=64, dtype="float16", mask=Full(), direction="fwd_bwd"
)


def test_the_papers_algorithms_move_eleven_matrices_and_twelve_tensors():
    matrix, linear = FIGURE.score_bytes, FIGURE.q_bytes
    assert naive_cost(FIGURE, scale_pass=False).logical.total_bytes == 11 * matrix + 12 * linear


def test_printed_flops_are_no_count_of_the_shape():
    assert naive_cost(FIGURE).useful_flops / 1e9 > 10 * 66.6
    assert fa1_cost(FIGURE, rows=64, cols=256).useful_flops / 1e9 > 10 * 75.2


def test_flash_bytes_are_bracketed_by_tiles_of_384_and_512_keys():
    wide, wider = (fa1_cost(FIGURE, rows=64, cols=cols).logical.total_bytes for cols in (384, 512))
    assert wider < 4.4e9 < wide
