"""Masks: every count against brute force, cases from public reports, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnprof.core.errors import InvalidProblem
from attnprof.core.mask import Align, Causal, Dense, Full, Lengths, Window, count, parse_mask

BR = Align.BOTTOM_RIGHT
sizes = st.integers(0, 17)
aligns = st.sampled_from(list(Align))


def visible(mask, batch, q_len, kv_len):
    """The mask as a table of booleans per batch element, straight from its definition."""
    if isinstance(mask, Dense):
        rows = list(mask.rows())
        b, h, n = (1, 1, mask.shape[0]) if len(mask.shape) == 2 else mask.shape[:3]

        def head(e, g):
            stored = [rows[((e % b) * h + g) * n + i % n] for i in range(q_len)]
            return [[bit == "1" for bit in row] for row in stored]

        return [[head(e, g) for g in range(h)] for e in range(batch)]
    return [[table(mask, element, q_len, kv_len)] for element in range(batch)]


def table(mask, element, q_len, kv_len):
    if isinstance(mask, Lengths):
        real_q, real_k = mask.q_lens[element], mask.kv_lens[element]
        inner = table(mask.causal or Full(), 0, real_q, real_k)
        return [[i < real_q and j < real_k and inner[i][j] for j in range(kv_len)] for i in range(q_len)]
    shift = kv_len - q_len if getattr(mask, "align", None) is BR else 0
    return [[sees(mask, i + shift, j) for j in range(kv_len)] for i in range(q_len)]


def sees(mask, i, j):
    if isinstance(mask, Full):
        return True
    if isinstance(mask, Causal):
        return j <= i
    return (mask.left < 0 or j >= i - mask.left) and (mask.right < 0 or j <= i + mask.right)


def brute_force(mask, batch, q_heads, q_len, kv_len):
    elements = visible(mask, batch, q_len, kv_len)
    heads = [[tables[h % len(tables)] for h in range(q_heads)] for tables in elements]
    pairs = sum(sum(map(sum, rows)) for element in heads for rows in element)
    empty = sum(not any(row) for element in heads for rows in element for row in rows)
    keys = sum(any(row[j] for rows in element for row in rows) for element in heads for j in range(kv_len))
    return pairs, empty, keys


@st.composite
def masks(draw):
    """(mask, batch, q_heads, q_len, kv_len)"""
    batch, heads, q_len, kv_len = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(sizes), draw(sizes)
    kind = draw(st.sampled_from(["full", "causal", "window", "lengths", "dense2", "dense4"]))
    reach = st.integers(-1, 20)
    if kind == "full":
        mask = Full()
    elif kind == "causal":
        mask = Causal(draw(aligns))
    elif kind == "window":
        mask = Window(draw(reach), draw(reach), draw(aligns))
    elif kind == "lengths":
        each = st.tuples(st.integers(0, q_len), st.integers(0, kv_len))
        lens = draw(st.lists(each, min_size=batch, max_size=batch))
        causal = draw(st.sampled_from([None, Causal(), Causal(BR)]))
        mask = Lengths([q for q, _ in lens], [k for _, k in lens], causal)
    else:
        q_len, kv_len = max(q_len, 1), max(kv_len, 1)
        shape = (
            (1, 1)
            if kind == "dense2"
            else (draw(st.sampled_from([1, batch])), draw(st.sampled_from([1, heads])))
        )
        bits = st.lists(st.booleans(), min_size=kv_len, max_size=kv_len)
        rows = st.lists(bits, min_size=q_len, max_size=q_len)
        made = [[draw(rows) for _ in range(shape[1])] for _ in range(shape[0])]
        mask = Dense(made[0][0] if kind == "dense2" else made)
    return mask, batch, heads, q_len, kv_len


@settings(max_examples=500, deadline=None)
@given(masks())
def test_counts_equal_brute_force(drawn):
    mask, batch, heads, q_len, kv_len = drawn
    found = count(mask, batch=batch, q_heads=heads, q_len=q_len, kv_len=kv_len)
    assert (found.pairs, found.empty_rows, found.visible_keys) == brute_force(*drawn)


@settings(max_examples=200, deadline=None)
@given(
    st.builds(Causal, aligns) | st.builds(Window, st.integers(-1, 20), st.integers(-1, 20), aligns),
    sizes,
    sizes,
)
def test_spans_are_the_rows_of_the_mask(mask, q_len, kv_len):
    ((_, band),) = mask.bands(1, q_len, kv_len)
    for i, row in enumerate(table(mask, 0, q_len, kv_len)):
        start, stop = band.span(i)
        assert [start <= j < stop for j in range(kv_len)] == row


@pytest.mark.parametrize(
    ("mask", "pairs", "last_row_keys"),
    [
        (Window(2, 0), 21, 3), (Window(3, 0), 26, 4), (Window(3, 3), 44, 4), (Window(7, 0), 36, 8),
        (Window(8, 0), 36, 8), (Window(-1, 0), 36, 8), (Causal(), 36, 8), (Window(-1, -1), 64, 8),
        (Window(0, 0), 8, 1), (Full(), 64, 8),
    ],
)  # fmt: skip
def test_c08_sliding_windows(mask, pairs, last_row_keys):
    assert count(mask, batch=1, q_heads=1, q_len=8, kv_len=8).pairs == pairs
    start, stop = mask.bands(1, 8, 8)[0][1].span(7)
    assert stop - start == last_row_keys


@pytest.mark.parametrize("bad", [-4, -2, 1.5, "3", None])
def test_c08_other_negatives_are_refused(bad):
    with pytest.raises(InvalidProblem, match=r"-1 for unlimited"):
        Window(bad, 0)
    with pytest.raises(InvalidProblem, match="right="):
        Window(0, bad)


@pytest.mark.parametrize(
    ("q_len", "kv_len", "mask", "pairs", "empty"),
    [
        (5, 9, Causal(), 15, 0), (5, 9, Causal(BR), 35, 0), (5, 9, Full(), 45, 0),  # C01
        (9, 5, Causal(), 35, 0), (9, 5, Causal(BR), 15, 4),  # C02
        (1, 16, Causal(), 1, 0), (1, 16, Causal(BR), 16, 0),  # C03
        (4, 10, Causal(BR), 34, 0),  # C12
        (64, 64, Causal(), 2080, 0),  # C09
        (4096, 4096, Causal(BR), 8_390_656, 0), (1024, 8192, Causal(BR), 7_864_832, 0),
        (8192, 8192, Window(1023, 0, BR), 7_864_832, 0), (8192, 1024, Causal(BR), 524_800, 7168),
    ],
)  # fmt: skip
def test_pairs_of_known_calls(q_len, kv_len, mask, pairs, empty):
    found = count(mask, batch=1, q_heads=1, q_len=q_len, kv_len=kv_len)
    assert (found.pairs, found.empty_rows) == (pairs, empty)


def test_c06_a_dense_mask_and_causal_are_intersected():
    open_but_first = Dense([[j > 0 for j in range(16)] for _ in range(16)])
    both = open_but_first.intersect(Causal(), 16, 16)
    found = count(both, batch=1, q_heads=4, q_len=16, kv_len=16)
    assert (found.pairs, found.empty_rows) == (4 * 120, 4)
    bottom_right = Dense([[1] * 4] * 2).intersect(Causal(BR), 2, 4)
    assert bottom_right.array == "11101111"


def test_a_dense_mask_of_four_axes_is_repeated_over_what_it_lacks():
    mask = Dense([[[[1, 0, 1]]]])
    found = count(mask, batch=2, q_heads=3, q_len=5, kv_len=3)
    assert (found.pairs, found.empty_rows, found.visible_keys) == (60, 0, 4)


def test_a_dense_mask_is_a_value():
    one, other = Dense([[1, 0]]), Dense([[True, False]])
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == str(other)
    assert str(one) != str(Dense([[0, 1]]))
    assert str(one).startswith("dense:1x2:")


def test_a_dense_mask_reads_arrays():
    numpy = pytest.importorskip("numpy")
    assert Dense(numpy.array([[True, False]])) == Dense([[1, 0]])


@pytest.mark.parametrize("array", [[1, 0], [[[1]]], [[1, 0], [1]], 1])
def test_dense_masks_of_no_shape_are_refused(array):
    with pytest.raises(InvalidProblem, match="mask array"):
        Dense(array)


@pytest.mark.parametrize("shape", [(3, 4), (2, 5), (4, 1, 3, 5), (1, 4, 3, 5)])
def test_dense_masks_that_do_not_fit_are_refused(shape):
    def filled(axes):
        return [filled(axes[1:]) for _ in range(axes[0])] if axes else 1

    with pytest.raises(InvalidProblem, match="does not broadcast"):
        count(Dense(filled(shape)), batch=2, q_heads=2, q_len=3, kv_len=5)


def test_dense_masks_of_no_keys_see_nothing():
    found = count(Dense([[], []]), batch=2, q_heads=3, q_len=2, kv_len=0)
    assert (found.pairs, found.empty_rows, found.visible_keys) == (0, 12, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Lengths([1, 2], [1]),
        lambda: Lengths([-1], [1]),
        lambda: Lengths([1], [1]).bands(2, 4, 4),
        lambda: Lengths([5], [1]).bands(1, 4, 4),
        lambda: Lengths([1], [5]).bands(1, 4, 4),
    ],
)
def test_lengths_that_do_not_fit_are_refused(make):
    with pytest.raises(InvalidProblem, match="lengths q_lens"):
        make()


def test_lengths_take_a_boolean_for_causal():
    assert Lengths([2], [2], True).causal == Causal()
    assert Lengths([2], [2], False).causal is None
    assert str(Lengths([2, 1], [3, 3], Causal(BR))) == "lengths:2,1:3,3:causal:bottom_right"


@pytest.mark.parametrize(
    "text",
    ["full", "causal", "causal:bottom_right", "window:127:0", "window:-1:3:bottom_right", "window:0:0"],
)
def test_a_parsed_mask_prints_as_it_was_written(text):
    assert str(parse_mask(text)) == text


def test_top_left_is_the_default_and_may_be_named():
    assert parse_mask("causal:top_left") == Causal()


@pytest.mark.parametrize(
    "text",
    ["", "causual", "full:1", "causal:left", "causal:a:b", "window", "window:1", "window:x:0", "window:1:2:3:4",
     "window:1:0:middle", "window:-4:0"],
)  # fmt: skip
def test_masks_that_cannot_be_read_are_refused(text):
    with pytest.raises(InvalidProblem, match=r"mask|window"):
        parse_mask(text)


def test_an_unknown_alignment_names_the_known_ones():
    with pytest.raises(InvalidProblem, match=r"top_left.*bottom_right"):
        Causal("middle")
