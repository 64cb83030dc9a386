"""Every closed form against a slow, obvious simulation of the loops, over random shapes and masks."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from attnprof.core.mask import Align, Causal, Dense, Full, Lengths, Window
from attnprof.core.problem import Problem
from attnprof.core.schedules import (
    chunked_cost,
    fa1_cost,
    fa2_cost,
    flex_cost,
    split_kv_cost,
    torch_cpu_flash_cost,
)
from attnprof.core.schedules.tiling import block_visits, visits

limits = st.integers(-1, 12)
aligns = st.sampled_from(list(Align))
banded = st.one_of(
    st.just(Full()), st.builds(Causal, aligns), st.builds(Window, left=limits, right=limits, align=aligns)
)


@st.composite
def problems(draw, directions=("fwd",)):
    batch, q_len, kv_len = draw(st.integers(1, 2)), draw(st.integers(1, 40)), draw(st.integers(1, 40))
    mask = draw(banded)
    if draw(st.booleans()):
        lengths = [tuple(draw(st.integers(0, n)) for _ in range(batch)) for n in (q_len, kv_len)]
        mask = Lengths(*lengths, draw(st.sampled_from([None, Causal(), Causal("bottom_right")])))
    return Problem(
        batch=batch, q_heads=4, kv_heads=draw(st.sampled_from([1, 2, 4])), q_len=q_len, kv_len=kv_len,
        qk_dim=draw(st.sampled_from([8, 24])), v_dim=draw(st.sampled_from([8, 16])), mask=mask,
        dtype=draw(st.sampled_from(["float32", "float16"])), direction=draw(st.sampled_from(directions)),
    )  # fmt: skip


tile = st.integers(1, 17)


def shown(problem: Problem, element: int, i: int, j: int) -> bool:
    """Whether query i sees key j: the masks' definitions, pair by pair."""
    mask, q_len, kv_len = problem.mask, problem.q_len, problem.kv_len
    if isinstance(mask, Lengths):
        q_len, kv_len = mask.q_lens[element], mask.kv_lens[element]
        if i >= q_len or j >= kv_len:
            return False
        mask = mask.causal or Full()
    if isinstance(mask, Full):
        return True
    i += kv_len - q_len if mask.align is Align.BOTTOM_RIGHT else 0
    if isinstance(mask, Causal):
        return j <= i
    return (mask.left < 0 or j >= i - mask.left) and (mask.right < 0 or j <= i + mask.right)


def spans(length: int, step: int) -> list[range]:
    return [range(at, min(at + step, length)) for at in range(0, length, step)]


def tiles(problem: Problem, element: int, rows: int, cols: int) -> list[tuple[range, range]]:
    """The tiles in which the mask shows at least one pair. Padding of an element is not tiled."""
    q_len, kv_len = problem.q_len, problem.kv_len
    if isinstance(problem.mask, Lengths):
        q_len, kv_len = problem.mask.q_lens[element], problem.mask.kv_lens[element]
    return [
        (r, c) for r in spans(q_len, rows) for c in spans(kv_len, cols)
        if any(shown(problem, element, i, j) for i in r for j in c)
    ]  # fmt: skip


def simulate_fa2(problem: Problem, rows: int, cols: int) -> Counter[str]:
    moved: Counter[str] = Counter()
    e, d, d_v = problem.dtype.bits // 8, problem.qk_dim, problem.v_dim
    for element in range(problem.batch):
        for _ in range(problem.q_heads):
            for _ in range(problem.q_len):
                moved["Q"] += d * e
                moved["O"] += d_v * e
                moved["LSE"] += 4
            for _, keys in tiles(problem, element, rows, cols):
                moved["K"] += len(keys) * d * e
                moved["V"] += len(keys) * d_v * e
    return moved


def simulate_fa1(problem: Problem, rows: int, cols: int, first_pass: bool) -> Counter[str]:
    moved: Counter[str] = Counter()
    e, d, d_v = problem.dtype.bits // 8, problem.qk_dim, problem.v_dim
    for element in range(problem.batch):
        for _ in range(problem.q_heads):
            met, loaded = set(), set()
            todo = sorted(tiles(problem, element, rows, cols), key=lambda t: (t[1].start, t[0].start))
            if first_pass:
                moved["O, max, sum set to 0"] += problem.q_len * (d_v * e + 8)
            for queries, keys in todo:
                if keys.start not in loaded:
                    moved["K"] += len(keys) * d * e
                    moved["V"] += len(keys) * d_v * e
                    loaded.add(keys.start)
                for i in queries:
                    moved["Q"] += d * e
                    back = first_pass or i in met
                    moved["O"] += (1 + back) * d_v * e
                    moved["row max, sum"] += (1 + back) * 8
                    met.add(i)
            unmet = problem.q_len - len(met)
            moved["Q"] += unmet * d * e
            if not first_pass:
                moved["O"] += unmet * d_v * e
                moved["row max, sum"] += unmet * 8
    return moved


def moved(cost) -> dict[str, int]:
    return {
        t.tensor: t.read_bytes + t.write_bytes for t in cost.logical.terms if t.read_bytes + t.write_bytes
    }


@given(problems(), tile, tile)
@settings(max_examples=150, deadline=None)
def test_fa2_and_its_executed_tiles(problem, rows, cols):
    cost = fa2_cost(problem, rows=rows, cols=cols)
    assert moved(cost) == +simulate_fa2(problem, rows, cols)
    count = sum(len(tiles(problem, b, rows, cols)) for b in range(problem.batch))
    assert cost.exp_ops == problem.q_heads * count * rows * cols


@given(problems(), tile, tile, st.booleans())
@settings(max_examples=100, deadline=None)
def test_fa1(problem, rows, cols, first_pass):
    cost = fa1_cost(problem, rows=rows, cols=cols, first_pass=first_pass)
    assert moved(cost) == +simulate_fa1(problem, rows, cols, first_pass)


@given(problems(), tile, tile)
@settings(max_examples=100, deadline=None)
def test_counts_of_visited_tiles(problem, rows, cols):
    seen = visits(problem, rows, cols)
    per = [tiles(problem, b, rows, cols) for b in range(problem.batch)]
    assert seen.pairs == sum(len(r) * len(c) for part in per for r, c in part)
    assert seen.rows == sum(len(r) for part in per for r, _ in part)
    assert seen.rows_met == sum(len({i for r, _ in part for i in r}) for part in per)
    assert seen.keys_met == sum(len({j for _, c in part for j in c}) for part in per)


@given(problems(directions=("bwd",)), tile, tile)
@settings(max_examples=60, deadline=None)
def test_recomputing_backward(problem, rows, cols):
    """Algorithm 4 of FlashAttention with D computed first: keys outside, queries inside, dQ summed in fp32."""
    e, d, d_v = problem.dtype.bits // 8, problem.qk_dim, problem.v_dim
    total = 0
    for element in range(problem.batch):
        for _ in range(problem.q_heads):
            total += problem.q_len * (2 * d_v * e + 4)  # D = rowsum(dO * O)
            total += problem.q_len * (4 * d)  # dQ set to 0
            total += problem.kv_len * (d + d_v) * e  # K, V
            for queries, _ in tiles(problem, element, rows, cols):
                total += len(queries) * ((d + d_v) * e + 8 + 2 * 4 * d)  # Q, dO, LSE, D; dQ read and written
            total += problem.q_len * d * (4 + e)  # dQ to the element type
            if problem.group > 1:
                total += 2 * problem.kv_len * (d + d_v) * e  # dK, dV by query head, summed by another pass
        total += problem.kv_heads * problem.kv_len * (d + d_v) * e
    cost = fa1_cost(problem, rows=rows, cols=cols)
    assert fa2_cost(problem, rows=rows, cols=cols).logical.total_bytes == cost.logical.total_bytes == total
    in_fp32 = sum(t.read_bytes + t.write_bytes for t in cost.logical.terms if t.tensor.startswith("dQ"))
    visited: Counter[tuple[int, int, int]] = Counter(
        (b, h, i)
        for b in range(problem.batch)
        for h in range(problem.q_heads)
        for queries, _ in tiles(problem, b, rows, cols)
        for i in queries
    )
    rows_in_all = problem.batch * problem.q_heads * problem.q_len
    touched = (
        2 * sum(visited.values()) - len(visited) + (rows_in_all - len(visited))
    )  # nothing read back at first
    literal = fa1_cost(problem, rows=rows, cols=cols, dq_fp32=False).logical.total_bytes
    assert literal == total - in_fp32 + touched * d * e


@given(problems(), tile, tile, st.integers(2, 5))
@settings(max_examples=60, deadline=None)
def test_split_kv(problem, rows, cols, splits):
    moved_once = simulate_fa2(problem, rows, cols)
    partials = splits * problem.batch * problem.q_heads * problem.q_len * (problem.v_dim + 1) * 4
    expected = sum(moved_once.values()) + (splits - 1) * problem.q_bytes + 2 * partials
    assert (
        split_kv_cost(problem, rows=rows, cols=cols, splits=splits, packed=False).logical.total_bytes
        == expected
    )


@given(problems(), tile, tile)
@settings(max_examples=60, deadline=None)
def test_chunks(problem, rows, cols):
    e, d, d_v = problem.dtype.bits // 8, problem.qk_dim, problem.v_dim
    masked = not isinstance(problem.mask, Full)
    total = 0
    for _ in range(problem.batch * problem.q_heads):
        for queries in spans(problem.q_len, rows):
            n = len(queries)
            for keys in spans(problem.kv_len, cols):
                pairs = n * len(keys)
                total += n * d * e + len(keys) * (d + d_v) * e  # Q, K, V
                total += pairs * e + 2 * pairs * e  # QK^T; scale
                total += masked * pairs * (2 * e + 1)  # mask, a byte a pair
                total += pairs * e + 2 * pairs * e + 2 * pairs * e  # maximum; subtraction; exp
                total += pairs * e + pairs * e  # PV; sum
                total += n * d_v * e * 6  # values written, stacked, weighted, summed
            total += n * d_v * e * 5  # sum written, divided, joined
    assert chunked_cost(problem, rows=rows, cols=cols).logical.total_bytes == total


@given(st.integers(1, 30), st.integers(1, 30), tile, tile, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_blocks_of_an_explicit_mask(q_len, kv_len, rows, cols, random):
    array = [[int(random.random() < 0.1) for _ in range(kv_len)] for _ in range(q_len)]
    problem = Problem(q_len=q_len, kv_len=kv_len, mask=Dense(array))
    blocks = [
        (r, c)
        for r in spans(q_len, rows)
        for c in spans(kv_len, cols)
        if any(array[i][j] for i in r for j in c)
    ]
    seen = block_visits(problem, rows, cols)
    assert seen.keys == sum(len(c) for _, c in blocks)
    assert seen.rows == sum(len(r) for r, _ in blocks)
    assert flex_cost(problem, rows=rows, cols=cols).exp_ops == len(blocks) * rows * cols


@given(st.integers(1, 900), st.integers(1, 1300), st.booleans())
@settings(max_examples=40, deadline=None)
def test_cpu_kernel(q_len, kv_len, causal):
    """The loop of PyTorch's kernel: keys up to the end of the query tile, in whole parts of 512."""
    problem = Problem(q_len=q_len, kv_len=kv_len, head_dim=8, mask=Causal() if causal else Full())
    split = 256 if q_len >= 768 else 64 if q_len >= 192 else 32
    keys = pairs = 0
    for start in range(0, q_len, split):
        height = min(split, q_len - start)
        stop = min(start + height, kv_len) if causal else kv_len
        for at in range(0, stop, 512):
            keys += min(512, kv_len - at)
            pairs += height * min(512, kv_len - at)
    cost = torch_cpu_flash_cost(problem)
    assert sum(t.read_bytes for t in cost.logical.terms if t.tensor in "KV") == keys * 16 * 4
    assert cost.exp_ops == pairs
