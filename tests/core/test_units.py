"""Units as they are read and printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnprof.core.errors import InvalidInput
from attnprof.core.units import (
    format_bytes,
    format_seconds,
    format_si,
    parse_bytes,
    parse_share,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("160KiB", 163_840), ("1MiB", 2**20), ("32 MiB", 2**25), ("65536", 65_536), ("2.5 GB", 2_500_000_000),
        ("1gib", 2**30), ("7B", 7), ("3 kb", 3000), (" 4 MB ", 4_000_000), (".5KiB", 512),
    ],
)  # fmt: skip
def test_capacities_are_read(text, value):
    assert parse_bytes(text) == value


@pytest.mark.parametrize("text", ["", "KiB", "1 TiB", "-1KiB", "1e3", "1,5MiB", "one", "nan", "0x10"])
def test_capacities_that_cannot_be_read_are_refused(text):
    with pytest.raises(InvalidInput, match="KiB"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["0", "0.0001", "0KiB"])
def test_a_memory_holds_something(text):
    with pytest.raises(InvalidInput, match="at least 1 byte"):
        parse_bytes(text)


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("0.05", 0.05), ("0", 0.0), ("12.5 %", 0.125)])
def test_shares_are_read(text, value):
    assert parse_share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", "100%", "-1%", "five", "", "%", "nan", "inf"])
def test_shares_outside_0_to_1_are_refused(text):
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        parse_share(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (163_840, "160 KiB"),
        (2**20, "1 MiB"),
        (3 * 2**30, "3 GiB"),
    ],
)
def test_bytes_are_printed(value, text):
    assert format_bytes(value) == text


@given(st.integers(1, 2**40))
def test_printed_bytes_are_read_back(value):
    assert parse_bytes(format_bytes(value)) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (989.4e12, "989.4 TFLOP/s"),
        (3.35e12, "3.35 TFLOP/s"),
        (1.0, "1 FLOP/s"),
        (2e-12, "2e-12 FLOP/s"),
        (0, "0 FLOP/s"),
    ],
)
def test_si_prefixes(value, text):
    assert format_si(value, "FLOP/s") == text


@pytest.mark.parametrize(
    ("value", "text"), [(5.013e-6, "5.01 us"), (1.5, "1.5 s"), (0.0123, "12.3 ms"), (40e-9, "40 ns")]
)
def test_durations(value, text):
    assert format_seconds(value) == text
