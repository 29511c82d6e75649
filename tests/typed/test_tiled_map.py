"""What the factories of descriptors are given: Python values that are none of a map, and each rule with its twin one edit apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import DescriptorError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import EVERY_SWIZZLE, SWIZZLES
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.typed.symbolic import SymIdx
from oxidecopy.typed.tiled_map import Choices, Source, build_im2col_map, build_tensor_map


def _build(**changes: Any) -> TensorMap:
    """A legal map, f32 (64, 64), with some parameters changed."""
    parameters: dict[str, Any] = {
        "dtype": DTYPES["f32"],
        "shape": (64, 64),
        "strides_bytes": (256, 4),
        "address": 0x7000,
        "box": (32, 32),
        "element_strides": None,
        "swizzle": SWIZZLES["none"],
        "l2_promotion": 128,
        "oob_fill": "zero",
        "sm": 90,
    }
    chosen = parameters | changes
    source = Source(**{name: chosen.pop(name) for name in ("dtype", "shape", "strides_bytes", "address")})
    box = chosen.pop("box")
    return build_tensor_map(source, Choices(**chosen), box)


def test_map_holds_the_parameters() -> None:
    made = _build(swizzle=SWIZZLES["128B"], element_strides=(2, 1), oob_fill="nan", l2_promotion=0)
    assert made == TensorMap(
        dtype="f32",
        global_dim=(64, 64),
        global_strides=(256,),
        box_dim=(32, 32),
        element_strides=(2, 1),
        swizzle="128B",
        oob_fill="nan",
        l2_promotion=0,
    )


_LATER = EVERY_SWIZZLE["128B_ATOM_32B"]
# Rule, parameters that break it and it alone, the same one edit away, and words that must be in the text: value, bound, fix.
_TWINS: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    (
        "OX2001",
        {"shape": (2,) * 6, "strides_bytes": (512, 256, 128, 64, 32, 4), "box": (1,) * 5 + (4,)},
        {"shape": (2,) * 5, "strides_bytes": (256, 128, 64, 32, 4), "box": (1,) * 4 + (4,)},
        ("rank 6", "1 to 5", "reshape"),
    ),
    (
        "OX2001",
        {"shape": (), "strides_bytes": (), "box": ()},
        {"shape": (1,), "strides_bytes": (4,), "box": (4,)},
        ("rank 0", "reshape(1)"),
    ),
    ("OX2002", {"shape": (0, 64)}, {"shape": (1, 64)}, ("dimension 0", "at least 1")),
    ("OX2003", {"shape": (2**32 + 1, 64), "sm": 100}, {"shape": (2**32, 64), "sm": 100}, ("4,294,967,297", "4,294,967,296")),
    ("OX2004", {"shape": (2**31 + 1, 64)}, {"shape": (2**31, 64)}, ("2,147,483,649", "2,147,483,648")),
    ("OX2004", {"shape": (2**31 + 1, 64)}, {"shape": (2**31 + 1, 64), "sm": 100}, ("9.0",)),
    ("OX2005", {"strides_bytes": (256, 8)}, {"strides_bytes": (256, 4)}, ("8 bytes", "4 bytes", "ascontiguousarray")),
    (
        "OX2005",
        {"shape": (8, 64, 64), "strides_bytes": (16384, 16, 256), "box": (1, 32, 32)},
        {"shape": (8, 64, 64), "strides_bytes": (16384, 16, 4), "box": (1, 32, 32)},
        ("256 bytes",),
    ),
    (
        "OX2006",
        {"shape": (64, 50), "strides_bytes": (200, 4)},
        {"shape": (64, 50), "strides_bytes": (208, 4)},
        ("200 bytes = 12 x 16 + 8", "multiple of 16", "pad the row to 208 bytes: dev.array(x, pad=True)"),
    ),
    ("OX2007", {"box": (32, 6)}, {"box": (32, 8)}, ("6 x 4 bytes (f32) = 24 bytes = 1 x 16 + 8", "4 elements", "box inner 4 or 8")),
    ("OX2007", {"box": (32, 2)}, {"box": (32, 4)}, ("box inner 4",)),
    ("OX2008", {"strides_bytes": (2**40, 4)}, {"strides_bytes": (2**40 - 16, 4)}, ("1,099,511,627,776", "2^40")),
    ("OX2008", {"strides_bytes": (-16, 4)}, {"strides_bytes": (0, 4)}, ("-16",)),
    ("OX2009", {"address": 0x7008}, {"address": 0x7010}, ("8 bytes past", "8 bytes later")),
    ("OX2010", {"address": 2**57}, {"address": 2**57 - 16}, ("0x200000000000000", "2^57")),
    ("OX2011", {"box": (64 / 2, 32)}, {"box": (64 // 2, 32)}, ("entry 0 is 32.0 (float)", "//")),
    ("OX2011", {"box": (True, 32)}, {"box": (1, 32)}, ("True (bool)",)),
    ("OX2011", {"box": [32, 32]}, {"box": (32, 32)}, ("[32, 32] (list)",)),
    ("OX2011", {"box": 32}, {"box": (32, 32)}, ("box=(32, 32)",)),
    ("OX2011", {"box": np.array([16, 32])}, {"box": (16, 32)}, ("box=(16, 32)",)),
    ("OX2012", {"box": (32,)}, {"box": (1, 32)}, ("of length 1", "length 2", "box=(1, 32)")),
    ("OX2012", {"box": (2, 32, 16)}, {"box": (32, 16)}, ("of length 3", "box=(32, 16)")),
    ("OX2013", {"box": (257, 4)}, {"box": (256, 4)}, ("257", "1 to 256", "box (256, 4)")),
    ("OX2013", {"box": (0, 4)}, {"box": (1, 4)}, ("box (1, 4)",)),
    ("OX2013", {"box": (-4, 260)}, {"box": (1, 256)}, ("fix: box (1, 256)",)),  # one box that mends all entries
    ("OX2013", {"box": (257, 4), "element_strides": (2, 1)}, {"box": (256, 4), "element_strides": (2, 1)}, ("257",)),
    (
        "OX2014",
        {"box": (8, 64), "swizzle": SWIZZLES["128B"]},
        {"box": (8, 32), "swizzle": SWIZZLES["128B"]},
        ("64 x 4 bytes (f32) = 256 bytes", "at most 128", "box inner 32, or swizzle=ox.SwizzleNone"),
    ),
    ("OX2014", {"box": (8, 16), "swizzle": SWIZZLES["32B"]}, {"box": (8, 16), "swizzle": SWIZZLES["64B"]}, ("swizzle=ox.Swizzle64B",)),
    ("OX2015", {"box": (256, 256)}, {"box": (228, 256)}, ("262,144 bytes", "233,472", "box (226, 256)")),
    ("OX2015", {"box": (256, 256)}, {"box": (256, 256), "element_strides": (2, 1)}, ("256 x 256 x 4",)),
    ("OX2016", {"element_strides": (1.0, 1)}, {"element_strides": (1, 1)}, ("1.0 (float)",)),
    ("OX2017", {"element_strides": (2,)}, {"element_strides": (2, 1)}, ("of length 1",)),
    ("OX2018", {"element_strides": (1, 2)}, {"element_strides": (2, 1)}, ("(1, 2)", "(1, 1)")),
    ("OX2019", {"element_strides": (9, 1)}, {"element_strides": (8, 1)}, ("9", "1 to 8")),
    ("OX2019", {"element_strides": (1, 0)}, {"element_strides": (1, 1)}, ("0",)),
    ("OX2020", {"oob_fill": "one"}, {"oob_fill": "nan"}, ("'one'",)),
    ("OX2021", {"dtype": DTYPES["i32"], "oob_fill": "nan"}, {"dtype": DTYPES["i32"]}, ("i32", "float")),
    ("OX2022", {"dtype": DTYPES["u4x16_align8b"]}, {"dtype": DTYPES["u32"]}, ("compute capability 9.0", "10.0 or newer")),
    ("OX2023", {"l2_promotion": 512}, {"l2_promotion": 256}, ("512",)),
    ("OX2023", {"l2_promotion": False}, {"l2_promotion": 0}, ("False",)),
    ("OX2024", {"swizzle": _LATER}, {"swizzle": _LATER, "sm": 100}, ("128B_ATOM_32B", "10.0 or newer")),
]


@pytest.mark.parametrize(("rule", "wrong", "right", "words"), _TWINS)
def test_each_rule_and_its_twin(rule: str, wrong: dict[str, Any], right: dict[str, Any], words: tuple[str, ...]) -> None:
    _build(**right)
    with pytest.raises(DescriptorError) as caught:
        _build(**wrong)
    found = [d for d in caught.value.diagnostics if d.rule == rule]
    assert {d.rule for d in caught.value.diagnostics} == {rule}
    for word in words:
        assert word in str(found[0])


def test_transposed_array_is_told_which_dimension_is_dense() -> None:
    with pytest.raises(DescriptorError, match="dimension 0 is the dense one") as caught:
        _build(strides_bytes=(4, 256))
    assert caught.value.rules == ("OX2005",)


def test_all_broken_rules_at_once() -> None:
    with pytest.raises(DescriptorError) as caught:
        _build(
            shape=(64, 50),
            strides_bytes=(200, 4),
            box=(300, 6),
            element_strides=(9, 2),
            dtype=DTYPES["f32"],
            oob_fill="one",
            l2_promotion=1,
            address=4,
        )
    assert caught.value.rules == ("OX2006", "OX2007", "OX2009", "OX2013", "OX2018", "OX2019", "OX2020", "OX2023")
    assert all(d.got and d.required and d.fix and d.site is not None for d in caught.value.diagnostics)
    assert str(caught.value).startswith("tensor map refused: 8 rules broken")
    assert caught.value.diagnostics[0].site is not None
    assert caught.value.diagnostics[0].site.file == __file__


def test_box_larger_than_the_array_is_accepted() -> None:
    assert _build(shape=(3, 5), strides_bytes=(32, 4), box=(64, 64)).box_dim == (64, 64)


@pytest.mark.parametrize("stride", [0, 16, 128])
def test_zero_and_overlapping_strides_are_accepted(stride: int) -> None:
    assert _build(strides_bytes=(stride, 4)).global_strides == (stride,)


def test_unordered_strides_are_accepted() -> None:
    assert _build(shape=(8, 4, 64), strides_bytes=(256, 2048, 4), box=(8, 1, 32)).global_strides == (256, 2048)


@pytest.mark.parametrize("stride", [3, 200, -8, 2**50])
def test_stride_of_a_size_1_dimension_has_no_meaning(stride: int) -> None:
    assert _build(shape=(1, 50), strides_bytes=(stride, 4)).global_strides == (208,)
    assert _build(shape=(8, 1, 64), strides_bytes=(256, stride, 4), box=(8, 1, 32)).global_strides == (256, 256)
    assert _build(shape=(64, 1), strides_bytes=(16, stride)).global_strides == (16,)


def test_size_1_beside_the_longest_stride_stays_in_range() -> None:
    assert _build(shape=(1, 2**20, 64), strides_bytes=(7, 2**30, 4), box=(1, 1, 32)).global_strides == (16, 2**30)


def test_huge_shapes_are_computed_exactly() -> None:
    with pytest.raises(DescriptorError) as caught:
        _build(shape=(2**62, 2**62 + 3), strides_bytes=(2**64 + 12, 4))
    assert caught.value.rules == ("OX2003", "OX2003", "OX2006", "OX2008")
    assert "18,446,744,073,709,551,628 bytes" in str(caught.value)
    assert _build(shape=(2**31, 2**31), strides_bytes=(2**33, 4)).global_dim == (2**31, 2**31)


def test_numpy_integers_are_integers() -> None:
    np = pytest.importorskip("numpy")
    made = _build(box=(np.int64(32), np.uint8(32)), element_strides=(np.int32(2), 1))
    assert made.box_dim == (32, 32)
    assert all(type(n) is int for n in made.box_dim + made.element_strides)


def test_symbolic_extent_is_no_integer() -> None:
    from oxidecopy.isa.expr import Sym, SymKind

    with pytest.raises(DescriptorError, match="SymIdx") as caught:
        _build(box=(SymIdx(Sym("block_idx.x", SymKind.BLOCK), None), 32))
    assert caught.value.rules == ("OX2011",)


def test_box_type_without_literals_is_explained() -> None:
    from oxidecopy.typed.geometry import Box2

    with pytest.raises(DescriptorError, match="Literal"):
        _build(box=Box2[int, int])


# ---- im2col
def _im2col(mode: str = "im2col", **changes: Any) -> TensorMap:
    """A legal im2col map, f16 (4, 9, 10, 64), with some parameters changed."""
    chosen: dict[str, Any] = {"lower": (-1, -2), "upper": (-1, 0), "channels": 64, "pixels": 32} | changes
    source = Source(
        dtype=DTYPES["f16"],
        shape=chosen.pop("shape", (4, 9, 10, 64)),
        strides_bytes=chosen.pop("strides_bytes", (11520, 1280, 128, 2)),
        address=0x7000,
    )
    steps, swizzle, sm = chosen.pop("element_strides", None), chosen.pop("swizzle", SWIZZLES["128B"]), chosen.pop("sm", 90)
    return build_im2col_map(source, Choices(element_strides=steps, swizzle=swizzle, sm=sm), mode=mode, **chosen)


def test_an_im2col_map_holds_its_parameters() -> None:
    assert _im2col(element_strides=(1, 2, 2, 1)) == TensorMap(
        dtype="f16",
        global_dim=(4, 9, 10, 64),
        global_strides=(11520, 1280, 128),
        box_dim=(32, 64),
        element_strides=(1, 2, 2, 1),
        swizzle="128B",
        mode="im2col",
        lower=(-1, -2),
        upper=(-1, 0),
    )


@pytest.mark.parametrize("mode", ["im2col_w", "im2col_w128"])
def test_wide_maps_are_refused_for_hopper_and_taken_for_blackwell(mode: str) -> None:
    made = _im2col(mode, lower=(-1,), upper=(-1,), sm=100)
    pixels = 32 if mode == "im2col_w" else 128  # always 128 there (PTX 5.5.5)
    assert (made.mode, made.lower, made.upper, made.box_dim) == (mode, (-1,), (-1,), (pixels, 64))
    with pytest.raises(DescriptorError, match=r"compute capability 9\.0") as caught:
        _im2col(mode, lower=(-1,), upper=(-1,))
    assert caught.value.rules == ("OX2052",)


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("OX2026", {"lower": -1}),
        ("OX2026", {"upper": (0.5, 0)}),
        ("OX2027", {"channels": 64.0}),
        ("OX2027", {"pixels": None}),
        ("OX2044", {"lower": (-1,)}),
        ("OX2048", {"channels": 0}),
        ("OX2049", {"pixels": 1025}),
        ("OX2017", {"element_strides": (1, 1)}),
        ("OX2016", {"element_strides": 2}),
        ("OX2034", {"shape": (4, 64), "strides_bytes": (128, 2), "lower": (), "upper": ()}),
    ],
)
def test_what_no_im2col_map_is_made_of(rule: str, changes: dict[str, Any]) -> None:
    with pytest.raises(DescriptorError) as caught:
        _im2col(**changes)
    assert caught.value.rules == (rule,)
    assert caught.value.diagnostics[0].site is not None


def test_all_that_is_wrong_with_an_im2col_map_at_once() -> None:
    with pytest.raises(DescriptorError) as caught:
        _im2col(lower=(-1.0, 0), channels="64", pixels=0, element_strides=(1, 9, 1, 1))
    assert caught.value.rules == ("OX2019", "OX2026", "OX2027", "OX2049")


@pytest.mark.parametrize("name", ["128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"])
def test_wide_atoms_are_refused_for_hopper_and_taken_for_blackwell(name: str) -> None:
    assert _build(swizzle=EVERY_SWIZZLE[name], sm=100).swizzle == name
    with pytest.raises(DescriptorError, match=r"compute capability 9\.0") as caught:
        _build(swizzle=EVERY_SWIZZLE[name])
    assert caught.value.rules == ("OX2024",)


def test_packed_types_are_refused_for_hopper_and_taken_for_blackwell() -> None:
    packed: dict[str, Any] = {"dtype": DTYPES["u4x16_align16b"], "shape": (64, 256), "strides_bytes": (128, 1), "box": (32, 128)}
    assert _build(**packed, sm=100).dtype == "u4x16_align16b"
    with pytest.raises(DescriptorError, match=r"compute capability 9\.0") as caught:
        _build(**packed)
    assert caught.value.rules == ("OX2022",)


# ---- interleaved
def _sliced(shape: tuple[int, ...] = (4, 8, 9, 64, 8), **choices: Any) -> TensorMap:
    array: Any = ox.Device.open("sim").empty(shape, choices.pop("dtype", ox.f16))
    factory: Any = ox.TmaDescriptor.interleaved
    made: TensorMap = factory(array, **({"box": (1,) * (len(shape) - 2) + (32,)} | choices)).tensor_map
    return made


def test_an_interleaved_map_counts_slice_pixels() -> None:
    made = _sliced(element_strides=(1, 1, 2, 2), swizzle=ox.Swizzle128B)
    assert (made.global_dim, made.global_strides) == ((4, 8, 9, 64), (73728, 9216, 1024))
    assert (made.interleave, made.box_dim, made.tile_shape) == ("16B", (1, 1, 1, 32), (1, 1, 1, 16 * 8))
    assert made.row_bytes == 64 * 16
    wide = _sliced((4, 8, 64, 8), dtype=ox.f32)
    assert (wide.interleave, wide.global_dim, wide.tile_shape, wide.row_bytes) == ("32B", (4, 8, 64), (1, 1, 32 * 8), 64 * 32)


@pytest.mark.parametrize(
    ("rule", "shape", "choices"),
    [
        ("OX2028", (4, 8, 64, 12), {}),
        ("OX2028", (8, 64, 8), {}),
        ("OX2029", (4, 8, 64, 8), {"box": (1, 1, 8), "swizzle": ox.Swizzle128B, "element_strides": (1, 1, 2)}),
        ("OX2007", (4, 8, 64, 8), {"box": (1, 1, 6)}),
        ("OX2012", (4, 8, 64, 8), {"box": (1, 1, 1, 8)}),
        ("OX2013", (4, 8, 64, 8), {"box": (1, 1, 264)}),
    ],
)
def test_what_no_interleaved_map_is_made_of(rule: str, shape: tuple[int, ...], choices: dict[str, Any]) -> None:
    with pytest.raises(DescriptorError) as caught:
        _sliced(shape, **choices)
    assert caught.value.rules == (rule,)


def test_packed_elements_are_not_interleaved() -> None:
    packed: Any = ox.Device.open("sim", arch=100).empty((2, 8, 16, 32), ox.u4x16_align8b)
    factory: Any = ox.TmaDescriptor.interleaved
    with pytest.raises(DescriptorError, match=r"interleaved\(a\.bytes") as caught:
        factory(packed, box=(1, 1, 16))
    assert caught.value.rules == ("OX2028",)
    assert factory(packed.bytes, box=(1, 1, 16)).tensor_map.interleave == "16B"


# ---- the fix works
@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"box": 32}, "box=(32, 32)"),
        ({"box": [32, 16]}, "box=(32, 16)"),
        ({"box": [32]}, "box=(64, 64)"),
        ({"box": None}, "box=(64, 64)"),
        ({"element_strides": 2}, "element_strides=(2, 1)"),
        ({"element_strides": "x"}, "element_strides=(1, 1)"),
    ],
)
def test_what_is_no_tuple_is_told_one_of_the_right_length(changes: dict[str, Any], fix: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        _build(**changes)
    (said,) = caught.value.diagnostics
    assert said.fix.startswith(fix)
    name, _, value = fix.partition("=")
    _build(**{name: eval(value)})  # one of the literals above


def test_a_transposed_array_is_not_told_to_pad_rows_that_are_none() -> None:
    with pytest.raises(DescriptorError) as caught:
        _build(strides_bytes=(4, 256))
    assert caught.value.rules == ("OX2005",)
    with pytest.raises(DescriptorError) as caught:
        _build(strides_bytes=(4, 264))  # after the turn, the rows are 264 bytes apart
    assert caught.value.rules == ("OX2005", "OX2006")
    assert "264 bytes" in caught.value.diagnostics[1].got
    assert "before the array is turned" in caught.value.diagnostics[1].fix


def test_every_second_element_is_one_fault() -> None:
    with pytest.raises(DescriptorError) as caught:
        _build(strides_bytes=(520, 8))
    assert caught.value.rules == ("OX2005",)
    assert "pad=True" in caught.value.diagnostics[0].fix
