"""The hardware catalogue: sources, known traps, and search by any usual name."""

from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest

from attnprof.core.ceilings import Chip
from attnprof.core.dtypes import DType
from attnprof.core.errors import UnknownName
from attnprof.store.machines import chips, find_chip, nearest_chips

TFLOPS, GB_PER_S = 1e12, 1e9
NUMBERS = [
    field.name for field in msgspec.structs.fields(Chip) if field.name not in ("name", "aliases", "year")
]


def test_the_catalogue_is_whole():
    assert len(chips()) == 76


@pytest.mark.parametrize("chip", chips().values(), ids=lambda chip: chip.name)
def test_every_entry_cites_a_source_and_its_date(chip):
    assert re.search(r"https?://|whitepaper|datasheet|product pages|README|torchtitan", chip.source), (
        chip.source
    )
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", chip.checked)


def test_no_two_entries_share_all_numbers():
    def numbers(chip):
        return tuple(v for name in NUMBERS if isinstance(v := getattr(chip, name), int | float))

    counted = Counter(numbers(chip) for chip in chips().values())
    assert [values for values, count in counted.items() if count > 1] == []


def test_derived_figures_say_so():
    for name in ("RTX 2070", "GB200", "B300", "GB300", "L20", "DGX Spark (GB10)", "RTX 5080"):
        assert "DERIVED" in chips()[name].note


@pytest.mark.parametrize(
    "name",
    ["RTX 2070", "RTX 2080 Ti", "RTX 3080", "RTX 3090", "RTX 3090 Ti", "RTX 4080", "RTX 4090", "RTX 5090"],
)
def test_geforce_halves_the_tensor_rate_with_float32_accumulation(name):
    chip = chips()[name]
    assert chip.fp16_flops_per_s == pytest.approx(chip.fp16_fp16acc_flops_per_s / 2, rel=0.005)


@pytest.mark.parametrize(
    "name", ["Quadro RTX 6000", "RTX A6000", "A40", "L40S", "H100 SXM", "A100 SXM 80GB", "T4"]
)
def test_professional_cards_do_not(name):
    assert chips()[name].fp16_flops_per_s == chips()[name].fp16_fp16acc_flops_per_s


def test_an_a10g_is_not_an_a10():
    a10, a10g = find_chip("A10"), find_chip("A10G")
    assert (a10.flops_per_s(DType.BFLOAT16), a10g.flops_per_s(DType.BFLOAT16)) == (125 * TFLOPS, 70 * TFLOPS)
    assert (a10.sm_count, a10g.sm_count) == (72, 80)


@pytest.mark.parametrize(
    ("name", "dtype", "tflops"),
    [
        ("H100 SXM", "bfloat16", 989.4),  # dense; the sparse 1979 is never used
        ("H100 SXM", "float8_e4m3fn", 1978.9),
        ("H100 SXM", "float32", 67),
        ("A100 SXM 80GB", "float16", 312),
        ("A100 SXM 80GB", "float32", 19.5),  # not the 156 of tf32
        ("L4", "float16", 121),
        ("RTX A6000", "bfloat16", 154.8),
        ("MI355X", "float8_e4m3fn", 5000),
        ("B200", "bfloat16", 2250),
    ],
)
def test_peaks_are_dense(name, dtype, tflops):
    assert chips()[name].flops_per_s(DType(dtype)) == pytest.approx(tflops * TFLOPS)


def test_bandwidths_that_are_often_copied_wrongly():
    expected = {"L4": 300, "H100 NVL": 3900, "B200": 7700, "V100 SXM2": 900, "H100 SXM": 3350}
    assert {name: chips()[name].bandwidth_bytes_per_s / GB_PER_S for name in expected} == pytest.approx(
        expected
    )


def test_a_volta_has_no_bfloat16():
    assert find_chip("V100 SXM2").flops_per_s(DType.BFLOAT16) is None


@pytest.mark.parametrize(
    ("name", "exp_tera_per_s"), [("H100 SXM", 3.865), ("A100 SXM 80GB", 2.436), ("GB300", 9.766)]
)
def test_exp_rate_comes_from_units_and_clock(name, exp_tera_per_s):
    assert chips()[name].exp_per_s == pytest.approx(exp_tera_per_s * 1e12, rel=1e-3)


@pytest.mark.parametrize(("name", "head_dim", "share"), [("H100 SXM", 128, 0.5), ("H100 SXM", 64, 1.0)])
def test_exp_takes_half_of_the_matmul_time_of_an_h100_at_128_and_all_of_it_at_64(name, head_dim, share):
    chip = chips()[name]
    matmul_s_per_pair = 4 * head_dim / chip.flops_per_s(DType.FLOAT16)
    assert 1 / chip.exp_per_s / matmul_s_per_pair == pytest.approx(share, rel=0.01)


def test_no_clock_no_exp_rate():
    assert chips()["A10G"].boost_clock_hz is None
    assert chips()["A10G"].exp_per_s is None
    assert chips()["A10G"].smem_bytes_per_s is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("H100", "H100 SXM"),
        ("h100-sxm", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("RTX2070", "RTX 2070"),
        ("NVIDIA GeForce RTX 2070", "RTX 2070"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("Tesla V100-SXM2-16GB", "V100 SXM2"),
        ("AMD Instinct MI300X", "MI300X"),
        ("GB10", "DGX Spark (GB10)"),
        ("h200", "H200 SXM"),
    ],
)
def test_usual_spellings_are_understood(name, found):
    assert find_chip(name).name == found


def test_an_ambiguous_name_gets_its_candidates():
    with pytest.raises(
        UnknownName, match=r"may mean A100 PCIe 40GB, A100 PCIe 80GB, A100 SXM 40GB, A100 SXM 80GB"
    ):
        find_chip("A100")


@pytest.mark.parametrize("name", ["RTX 9090", "", "TI-83", "RTX 5090 or DGX Spark (SM12x)"])
def test_an_unknown_name_gets_the_nearest(name):
    with pytest.raises(UnknownName, match="not in the hardware catalogue; nearest: "):
        find_chip(name)
    assert len(nearest_chips(name)) == 4


def test_the_nearest_names_look_like_the_asked_one():
    assert {"RTX 5090", "RTX 4090", "RTX 3090"} <= set(nearest_chips("RTX 9090"))


def test_every_alias_finds_its_chip():
    for chip in chips().values():
        for text in (chip.name, *chip.aliases, chip.name.replace(" ", "").lower()):
            assert find_chip(text) is chip


def test_a_chips_roof_has_the_levels_and_the_ridge():
    roof = find_chip("H100 SXM").roof(DType.BFLOAT16)
    assert roof.ridge_flops_per_byte == pytest.approx(295.34, abs=0.01)
    assert [level.name for level in roof.levels] == ["L2", "DRAM"]
    assert roof.holding(16 * 2**20).name == "L2"
    assert roof.holding(60 * 2**20).name == "DRAM"
