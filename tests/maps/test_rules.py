"""Each rule at its bound: just inside accepted, just outside refused with exactly that id, and mended by the fix that it proposes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oxidecopy.errors import DescriptorError, UsageError
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import RULES, compute_capability, validate
from oxidecopy.rules.descriptor import SOURCES

# Legal maps without any advice. f32 (64, 64) in 128-byte rows; f16 images; slices of 16 f16 channels; packed values.
TILED = MapParameters(
    dtype=7, global_address=0x1000, global_dim=(64, 64), global_strides=(256,), box_dim=(32, 32), element_strides=(1, 1), swizzle=3
)
IM2COL = MapParameters(
    kind="im2col",
    dtype=6,
    global_address=0x1000,
    global_dim=(4, 9, 10, 64),
    global_strides=(11520, 1280, 128),
    element_strides=(1, 1, 1, 1),
    swizzle=3,
    lower=(-1, -1),
    upper=(-1, -1),
    channels=64,
    pixels=32,
)
WIDE = replace(IM2COL, kind="im2col_wide", lower=(-1,), upper=(-1,))
SLICED = MapParameters(
    dtype=6,
    global_address=0x1000,
    global_dim=(4, 8, 64),
    global_strides=(16384, 2048),
    box_dim=(1, 1, 64),
    element_strides=(1, 1, 1),
    interleave=2,
    swizzle=1,
)
PACKED = replace(TILED, dtype=14, global_dim=(64, 512), box_dim=(32, 128))
PACKED_6 = replace(PACKED, dtype=15, global_strides=(384,))
BASES = {"tiled": TILED, "im2col": IM2COL, "wide": WIDE, "sliced": SLICED, "packed": PACKED, "packed 6": PACKED_6}


def flat(rank: int) -> dict[str, Any]:
    """Rank and nothing else."""
    ones = (1,) * (rank - 1)
    return {"global_dim": (*ones, 64), "global_strides": (256,) * (rank - 1), "box_dim": (*ones, 32), "element_strides": (*ones, 1)}


def deep(n: int) -> dict[str, Any]:
    """A tile of n times 32 KiB, for a device whose blocks have 99 KiB."""
    strides, box = (65536, 256), (n, 256, 128)
    return {"dtype": 0, "global_dim": (256,) * 3, "global_strides": strides, "box_dim": box, "element_strides": (1, 1, 1), "sm": 120}


# Rule, base, what is just outside and what is just inside, each a change of the base; "sm" is the device, 100 where the base needs it.
PAIRS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("OX2001", "tiled", flat(6), flat(5)),
    ("OX2001", "tiled", {"global_dim": (), "global_strides": (), "box_dim": (), "element_strides": ()},
     {"global_dim": (64,), "global_strides": (), "box_dim": (32,), "element_strides": (1,)}),
    ("OX2002", "tiled", {"global_dim": (0, 64)}, {"global_dim": (1, 64)}),
    ("OX2002", "im2col", {"global_dim": (0, 9, 10, 64)}, {"global_dim": (1, 9, 10, 64)}),
    ("OX2003", "tiled", {"global_dim": ((1 << 32) + 1, 64), "sm": 100}, {"global_dim": (1 << 32, 64), "sm": 100}),
    ("OX2003", "im2col", {"global_dim": ((1 << 32) + 1, 9, 10, 64), "sm": 100}, {"global_dim": (1 << 32, 9, 10, 64), "sm": 100}),
    ("OX2004", "tiled", {"global_dim": ((1 << 31) + 1, 64)}, {"global_dim": (1 << 31, 64)}),
    ("OX2004", "tiled", {"global_dim": ((1 << 31) + 1, 64)}, {"global_dim": ((1 << 31) + 1, 64), "sm": 100}),
    ("OX2006", "tiled", {"global_strides": (264,)}, {"global_strides": (272,)}),
    ("OX2006", "im2col", {"global_strides": (11528, 1280, 128)}, {"global_strides": (11536, 1280, 128)}),
    ("OX2007", "tiled", {"box_dim": (32, 30)}, {"box_dim": (32, 32)}),
    ("OX2007", "im2col", {"channels": 60}, {"channels": 56}),
    ("OX2007", "sliced", {"box_dim": (1, 1, 60)}, {"box_dim": (1, 1, 64)}),
    ("OX2007", "packed", {"dtype": 13, "box_dim": (32, 48), "sm": 100}, {"dtype": 13, "box_dim": (32, 64), "sm": 100}),
    ("OX2008", "tiled", {"global_strides": (1 << 40,)}, {"global_strides": ((1 << 40) - 16,)}),
    ("OX2008", "tiled", {"global_strides": (-16,)}, {"global_strides": (0,)}),
    ("OX2009", "tiled", {"global_address": 0x1008}, {"global_address": 0x1010}),
    ("OX2010", "tiled", {"global_address": 1 << 57}, {"global_address": (1 << 57) - 16}),
    ("OX2010", "tiled", {"global_address": -16}, {"global_address": 0}),
    ("OX2012", "tiled", {"box_dim": (32,)}, {"box_dim": (1, 32)}),
    ("OX2012", "tiled", {"box_dim": None}, {}),
    ("OX2013", "tiled", {"box_dim": (257, 32)}, {"box_dim": (256, 32)}),
    ("OX2013", "tiled", {"box_dim": (0, 32)}, {"box_dim": (1, 32)}),
    ("OX2014", "tiled", {"box_dim": (32, 36)}, {"box_dim": (32, 32)}),
    ("OX2014", "tiled", {"box_dim": (32, 20), "swizzle": 2}, {"box_dim": (32, 16), "swizzle": 2}),
    ("OX2014", "tiled", {"box_dim": (32, 12), "swizzle": 1}, {"box_dim": (32, 8), "swizzle": 1}),
    ("OX2014", "tiled", {"box_dim": (32, 36), "swizzle": 6, "sm": 100}, {"box_dim": (32, 32), "swizzle": 6, "sm": 100}),
    ("OX2014", "im2col", {"channels": 72}, {"channels": 64}),
    ("OX2014", "packed", {"dtype": 13, "box_dim": (32, 256), "swizzle": 2, "sm": 100}, {"dtype": 13, "box_dim": (32, 256), "sm": 100}),
    ("OX2015", "tiled", {"box_dim": (229, 256), "swizzle": 0}, {"box_dim": (228, 256), "swizzle": 0}),
    ("OX2015", "tiled", {"box_dim": (256, 256), "swizzle": 0}, {"box_dim": (256, 256), "swizzle": 0, "element_strides": (2, 1)}),
    ("OX2015", "im2col", {"channels": 256, "pixels": 457, "swizzle": 0}, {"channels": 256, "pixels": 456, "swizzle": 0}),
    ("OX2017", "tiled", {"element_strides": (1,)}, {"element_strides": (1, 1)}),
    ("OX2017", "im2col", {"element_strides": None}, {}),
    ("OX2018", "tiled", {"element_strides": (1, 2)}, {"element_strides": (2, 1)}),
    ("OX2018", "im2col", {"element_strides": (1, 1, 1, 2)}, {"element_strides": (1, 1, 2, 1)}),
    ("OX2019", "tiled", {"element_strides": (9, 1)}, {"element_strides": (8, 1)}),
    ("OX2019", "tiled", {"element_strides": (0, 1)}, {"element_strides": (1, 1)}),
    ("OX2019", "sliced", {"element_strides": (1, 1, 9)}, {"element_strides": (1, 1, 8)}),
    ("OX2020", "tiled", {"oob_fill": 2}, {"oob_fill": 1}),
    ("OX2021", "tiled", {"dtype": 3, "oob_fill": 1}, {"dtype": 7, "oob_fill": 1}),
    ("OX2021", "packed", {"oob_fill": 1, "sm": 100}, {"oob_fill": 0, "sm": 100}),
    ("OX2022", "packed", {"sm": 90}, {"sm": 100}),
    ("OX2023", "tiled", {"l2_promotion": 4}, {"l2_promotion": 3}),
    ("OX2023", "tiled", {"l2_promotion": -1}, {"l2_promotion": 0}),
    ("OX2024", "tiled", {"swizzle": 4}, {"swizzle": 4, "sm": 100}),
    ("OX2025", "tiled", {"global_strides": None}, {}),
    ("OX2025", "tiled", {"global_strides": (256, 256)}, {"global_strides": (256,)}),
    ("OX2033", "tiled", {"interleave": 1}, {"interleave": 0}),
    ("OX2034", "im2col", {"global_dim": (10, 64), "global_strides": (128,), "element_strides": (1, 1), "lower": (), "upper": ()},
     {"global_dim": (4, 10, 64), "global_strides": (1280, 128), "element_strides": (1, 1, 1), "lower": (-1,), "upper": (-1,)}),
    ("OX2035", "sliced", {"global_address": 0x1010}, {"global_address": 0x1020}),
    ("OX2035", "packed", {"global_address": 0x1010, "sm": 100}, {"global_address": 0x1020, "sm": 100}),
    ("OX2036", "packed", {"global_dim": (64, 511), "sm": 100}, {"global_dim": (64, 512), "sm": 100}),
    ("OX2036", "packed", {"dtype": 13, "global_dim": (64, 511), "sm": 100}, {"dtype": 13, "global_dim": (64, 510), "sm": 100}),
    ("OX2037", "sliced", {"global_strides": (16384, 2064)}, {"global_strides": (16384, 2080)}),
    ("OX2037", "packed", {"global_strides": (272,), "sm": 100}, {"global_strides": (288,), "sm": 100}),
    ("OX2038", "packed", {"box_dim": (32, 64), "sm": 100}, {"box_dim": (32, 128), "sm": 100}),
    ("OX2039", "packed 6", {"interleave": 1, "global_dim": (2, 64, 512), "global_strides": (24576, 384), "box_dim": (1, 1, 128),
                            "element_strides": (1, 1, 1), "sm": 100},
     {"global_dim": (2, 64, 512), "global_strides": (24576, 384), "box_dim": (1, 1, 128), "element_strides": (1, 1, 1), "sm": 100}),
    ("OX2040", "packed", {"swizzle": 5, "sm": 100}, {"swizzle": 4, "sm": 100}),
    ("OX2040", "packed", {"swizzle": 6, "sm": 100}, {"swizzle": 0, "sm": 100}),
    ("OX2040", "packed 6", {"swizzle": 5, "sm": 100}, {"swizzle": 6, "sm": 100}),
    ("OX2041", "sliced", {"interleave": 3, "swizzle": 0}, {"interleave": 2}),
    ("OX2042", "tiled", {"swizzle": 7}, {"swizzle": 3}),
    ("OX2043", "tiled", {"dtype": 16}, {"dtype": 12}),
    ("OX2043", "tiled", {"dtype": -1}, {"dtype": 0, "box_dim": (32, 128)}),
    ("OX2044", "im2col", {"lower": (-1,)}, {"lower": (-1, -1)}),
    ("OX2044", "im2col", {"upper": None}, {}),
    ("OX2044", "wide", {"lower": (-1, -1), "sm": 100}, {"lower": (-1,), "sm": 100}),
    ("OX2045", "im2col", {"lower": (-129, -1)}, {"lower": (-128, -1)}),
    ("OX2045", "im2col", {"upper": (-1, 128)}, {"upper": (-1, 127)}),
    ("OX2045", "wide", {"lower": (-32769,), "sm": 100}, {"lower": (-32768,), "sm": 100}),
    ("OX2046", "im2col", {"lower": (0, -1), "upper": (-9, -1)}, {"lower": (0, -1), "upper": (-8, -1)}),
    ("OX2047", "im2col", {"global_dim": (4, 9, 1 << 31, 64), "upper": (-1, 0)}, {"global_dim": (4, 9, 1 << 31, 64)}),
    ("OX2048", "im2col", {"channels": 264, "swizzle": 0}, {"channels": 256, "swizzle": 0}),
    ("OX2048", "im2col", {"channels": 0}, {"channels": 8}),
    ("OX2049", "im2col", {"pixels": 1025}, {"pixels": 1024}),
    ("OX2049", "im2col", {"pixels": 0}, {"pixels": 1}),
    ("OX2050", "wide", {"wide_mode": 2, "sm": 100}, {"wide_mode": 1, "sm": 100}),
    ("OX2051", "tiled", {"sm": 89}, {"sm": 90}),
    ("OX2052", "wide", {"sm": 90}, {"sm": 100}),
    ("OX2053", "wide", {"swizzle": 0, "sm": 100}, {"swizzle": 4, "sm": 100}),
    ("OX2054", "wide", {"interleave": 1, "sm": 100}, {"sm": 100}),
    # advice
    ("OX2101", "tiled", {"global_dim": (31, 64)}, {"global_dim": (32, 64)}),
    ("OX2101", "tiled", {"global_dim": (64, 28)}, {"global_dim": (64, 32)}),
    ("OX2102", "tiled", deep(4), deep(3)),
    ("OX2103", "tiled", {"global_strides": (240,)}, {"global_strides": (256,)}),
    ("OX2104", "tiled", {"global_strides": (0,)}, {"global_strides": (0,), "global_dim": (1, 64), "box_dim": (1, 32)}),
    ("OX2105", "tiled", {"global_dim": (7, 64), "box_dim": (7, 32), "element_strides": (8, 1)},
     {"global_dim": (8, 64), "box_dim": (8, 32), "element_strides": (8, 1)}),
    ("OX2106", "tiled", {"global_address": 0x1070}, {"global_address": 0x1080}),
    ("OX2107", "tiled", {"box_dim": (32, 28), "l2_promotion": 1}, {"box_dim": (32, 32), "l2_promotion": 1}),
    ("OX2108", "tiled", {"swizzle": 0}, {"swizzle": 0, "box_dim": (32, 36)}),
    ("OX2108", "tiled", {"swizzle": 0}, {"swizzle": 0, "box_dim": (7, 32)}),
    ("OX2109", "tiled", {"global_dim": (64, 32), "l2_promotion": 3}, {"global_dim": (64, 32), "l2_promotion": 2}),
    ("OX2109", "tiled", {"global_dim": (64, 32), "l2_promotion": 3}, {"l2_promotion": 3}),
    ("OX2110", "tiled", {"box_dim": (32, 4), "swizzle": 0, "l2_promotion": 1}, {"box_dim": (32, 8), "swizzle": 0, "l2_promotion": 1}),
    ("OX2111", "sliced", {"swizzle": 3}, {"swizzle": 1}),
    ("OX2112", "tiled", {"global_dim": (64, 61), "global_strides": (272,)}, {"global_dim": (64, 61), "global_strides": (256,)}),
    ("OX2113", "sliced", {"box_dim": (1, 2, 64)}, {"box_dim": (1, 1, 64)}),
    ("OX2114", "im2col", {"lower": (-1, 10), "upper": (-1, 1)}, {"lower": (-1, 9), "upper": (-1, 1)}),
    ("OX2115", "tiled", {"global_address": 0}, {"global_address": 0x1000}),
]  # fmt: skip


def judged(base: str, change: dict[str, Any]) -> tuple[tuple[str, ...], MapParameters, int]:
    fields = dict(change)
    sm = fields.pop("sm", 90)
    parameters = replace(BASES[base], **fields)
    return tuple(dict.fromkeys(f.rule.id for f in validate(parameters, arch=sm).findings)), parameters, sm


@pytest.mark.parametrize(("rule", "base", "outside", "inside"), PAIRS, ids=[f"{p[0]} {p[1]} {i}" for i, p in enumerate(PAIRS)])
def test_each_bound(rule: str, base: str, outside: dict[str, Any], inside: dict[str, Any]) -> None:
    found, parameters, sm = judged(base, outside)
    advice = rule[2:4] == "21"
    assert [r for r in found if advice or r[2:4] == "20"] == [rule]
    assert rule not in judged(base, inside)[0]
    assert all(r[2:4] == "21" for r in judged(base, inside)[0]), "the twin is usable"
    for finding in validate(parameters, arch=sm).findings:
        if finding.rule.id == rule and finding.breach.mended is not None:
            assert rule not in [f.rule.id for f in validate(finding.breach.mended, arch=sm).findings]


def test_every_rule_has_a_pair() -> None:
    assert {pair[0] for pair in PAIRS} == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_every_rule_has_a_bound_and_a_source() -> None:
    for rule in RULES:
        assert rule.bound
        assert SOURCES[rule.id]
        assert rule.id[2:4] == ("21" if rule.gate == "advice" else "20")


@pytest.mark.parametrize("base", ["tiled", "im2col", "sliced"])
def test_the_bases_are_beyond_reproach(base: str) -> None:
    verdict = validate(BASES[base])
    assert verdict.encodes
    assert verdict.usable
    assert not verdict.findings
    verdict.check(warnings=True)
    assert str(verdict) == f"{BASES[base].kind} map usable on compute capability 9.0"


def test_what_libraries_refuse_without_need_is_taken() -> None:
    """Sizes of 1, unordered strides, overlap, stride 0, boxes beyond the array, 16-byte bases under a swizzle: all measured to work."""
    changes: tuple[dict[str, Any], ...] = (
        {"global_dim": (1, 1)},
        {"global_dim": (8, 4, 64), "global_strides": (256, 2048), "box_dim": (8, 1, 32), "element_strides": (1, 1, 1)},
        {"global_strides": (16,)},
        {"global_strides": (0,)},
        {"global_dim": (3, 5)},
        {"global_address": 0x1010},
        {"element_strides": (8, 1), "global_dim": (3, 64)},
    )
    for change in changes:
        assert validate(replace(TILED, **change)).usable, change


def test_unordered_strides_are_no_overlap() -> None:
    permuted = replace(TILED, global_dim=(8, 4, 64), global_strides=(256, 2048), box_dim=(8, 1, 32), element_strides=(1, 1, 1))
    assert "OX2103" not in [d.rule for d in validate(permuted).hints]


def test_advice_waits_until_the_map_encodes() -> None:
    verdict = validate(replace(TILED, global_address=0, box_dim=(32, 30)))
    assert not verdict.warnings
    assert [d.rule for d in verdict.errors] == ["OX2007"]


def test_a_verdict_raises_what_it_says() -> None:
    broken = validate(replace(TILED, box_dim=(300, 30), l2_promotion=9))
    with pytest.raises(DescriptorError) as caught:
        broken.check()
    assert caught.value.rules == ("OX2013", "OX2007", "OX2023")
    assert str(broken).startswith("tiled map does not encode on compute capability 9.0\n")
    slow = validate(replace(TILED, swizzle=0))
    slow.check()
    with pytest.raises(DescriptorError) as caught:
        slow.check(warnings=True)
    assert caught.value.rules == ("OX2108",)
    assert "where it is read by columns: " in str(slow)
    assert "encodes, and is not usable" in str(validate(WIDE))


def test_the_texts_name_value_bound_remainder_and_fix() -> None:
    (stride,) = validate(replace(TILED, global_dim=(64, 50), global_strides=(200,))).errors
    assert stride.got == "200 bytes = 12 x 16 + 8"
    assert stride.required.startswith("a multiple of 16 bytes (")
    assert stride.fix.startswith("pad the row to 208 bytes: dev.array(x, pad=True)")
    (inner,) = validate(replace(TILED, dtype=6, box_dim=(32, 20), swizzle=2)).errors
    assert inner.got == "20 x 2 bytes (f16) = 40 bytes = 2 x 16 + 8"
    assert inner.fix == "box inner 16 or 24"
    (packed,) = validate(replace(PACKED, dtype=13, box_dim=(32, 48)), arch=100).errors
    assert packed.got == "48 x 4 bits (u4x16_align8b) = 24 bytes = 1 x 16 + 8"
    assert packed.fix == "box inner 32 or 64"


def test_mending_goes_on_until_nothing_is_broken() -> None:
    mended = validate(replace(TILED, box_dim=(300, 30), global_strides=(200,), l2_promotion=9, element_strides=(9, 2))).mended()
    assert mended is not None
    assert mended.usable
    assert mended.parameters == replace(TILED, box_dim=(256, 28), l2_promotion=2, element_strides=(8, 1))
    assert validate(replace(TILED, dtype=16)).mended() is None


@pytest.mark.parametrize(("arch", "sm"), [(90, 90), ("9.0", 90), ("sm_90", 90), ("sm_90a", 90), ("compute_100", 100), ("12.1", 121)])
def test_an_architecture_has_several_names(arch: int | str, sm: int) -> None:
    assert compute_capability(arch) == validate(TILED, arch=arch).sm == sm


@pytest.mark.parametrize("arch", ["hopper", "sm90", True, 9, 9000, None, "sm_90x"])
def test_what_is_no_architecture(arch: object) -> None:
    with pytest.raises(UsageError) as caught:
        compute_capability(arch)
    assert caught.value.rules == ("OX2055",)


# ---- what practice found
def advice(**changes: Any) -> list[str]:
    verdict = validate(replace(TILED, **changes))
    return [d.rule for d in (*verdict.warnings, *verdict.hints)]


def test_padded_rows_may_lie_along_any_dimension() -> None:
    odd = {"global_dim": (64, 4, 61), "box_dim": (8, 1, 32), "element_strides": (1, 1, 1)}
    assert "OX2112" not in advice(**odd, global_strides=(256, 16384))  # (4, 64, 61), padded, with two dimensions exchanged
    assert "OX2112" in advice(**odd, global_strides=(272, 17408))


@pytest.mark.parametrize(("extent", "longer"), [(61, 64), (1, 4)])
def test_an_array_of_one_row_is_made_longer_not_padded(extent: int, longer: int) -> None:
    one = replace(TILED, global_dim=(extent,), global_strides=(), box_dim=(32,), element_strides=(1,))
    (said,) = (d for d in validate(one).hints if d.rule == "OX2112")
    assert f"{longer} elements long" in said.fix
    assert "OX2112" not in [d.rule for d in validate(replace(one, global_dim=(longer,))).hints]


def test_pixels_are_cut_to_what_a_copy_can_take() -> None:
    said = {d.rule: d for d in validate(replace(IM2COL, pixels=2048)).errors}
    assert (said["OX2015"].fix, said["OX2049"].fix) == ("pixels=1024", "pixels=1024")
    assert validate(replace(IM2COL, pixels=1024)).usable


def test_rows_are_not_mended_beyond_the_span() -> None:
    said = {d.rule: d for d in validate(replace(TILED, box_dim=(32, 33))).errors}
    assert said["OX2007"].fix == "box inner 32"
    assert {d.rule: d for d in validate(replace(TILED, box_dim=(32, 33), swizzle=0)).errors}["OX2007"].fix == "box inner 32 or 36"


def test_a_view_of_wider_rows_is_told_how_wide_those_become() -> None:
    (said,) = validate(replace(TILED, dtype=6, global_dim=(64, 48), global_strides=(200,))).errors  # [:, :48] of 100
    assert "pad the row to 208 bytes" in said.fix


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "tile"},
        {"dtype": "f32"},
        {"dtype": True},
        {"global_address": 0.5},
        {"global_dim": 64},
        {"global_dim": [64, 64]},
        {"box_dim": (32, 32.0)},
        {"element": 7},
    ],
)
def test_what_is_no_integer_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        validate(replace(TILED, **changes))
    assert caught.value.rules == ("OX2057",)
    assert next(iter(changes)) in str(caught.value)


def test_only_parameters_are_judged() -> None:
    with pytest.raises(UsageError, match=r"desc\.verdict"):
        validate(object())  # type: ignore[arg-type]  # that is refused


@pytest.mark.parametrize(("arch", "fix"), [(9, "arch=90"), (10, "arch=100"), (12, "arch=120"), (9.0, "arch=90"), (True, "arch=90")])
def test_an_architecture_of_one_digit_is_no_compute_capability(arch: Any, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(TILED, arch=arch)
    assert caught.value.diagnostics[0].fix == fix


@pytest.mark.parametrize("box", [None, ()])
def test_an_absent_box_is_mended_to_one_that_fits(box: tuple[int, ...] | None) -> None:
    verdict = validate(replace(TILED, box_dim=box))
    (said,) = verdict.errors
    assert (said.rule, said.fix) == ("OX2012", "box=(1, 4)")
    mended = verdict.findings[0].breach.mended
    assert mended is not None
    assert validate(mended).usable


def test_a_row_narrower_than_the_span_is_told_all_widths() -> None:
    (said,) = validate(replace(TILED, dtype=6, global_dim=(100, 104), global_strides=(208,), box_dim=(20, 24), swizzle=2)).warnings
    assert (said.rule, said.got) == ("OX2107", "24 x 2 bytes (f16) = 48 bytes")
    assert said.fix == "box inner 32; or 16 with ox.Swizzle32B, 64 with ox.Swizzle128B"


def test_rows_of_padded_types_are_told_with_their_gaps() -> None:
    said = {d.rule: d for d in validate(replace(PACKED, swizzle=2), arch="sm_100").errors}
    assert said["OX2014"].got == "128 x 4 bits and gaps (u4x16_align16b) = 128 bytes"
