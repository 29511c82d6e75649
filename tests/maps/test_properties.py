"""What holds of any parameters at all: the validator answers, usable maps encode, and proposed fixes mend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxidecopy.errors import DescriptorError, Diagnostic
from oxidecopy.maps.parameters import KINDS, MapParameters
from oxidecopy.maps.validate import validate
from oxidecopy.program.tensor_map import TensorMap
from tests.helpers.encode_rows import parameters, rows

ANY = st.one_of(st.integers(-2, 520), st.integers(-(1 << 66), 1 << 66), st.sampled_from([1 << n for n in (31, 32, 40, 57, 64)]))
SMALL = st.integers(-1, 9)
ARCHES = st.sampled_from([80, 90, 100, 103, 120])
ENCODED = [parameters(row) for row in rows()[1] if row[-1] == 0]


def arrays(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[int, ...] | None]:
    return st.one_of(st.none(), st.lists(numbers, max_size=7).map(tuple))


@st.composite
def wild(draw: st.DrawFn) -> MapParameters:
    """Anything that the fields can hold."""
    return MapParameters(
        kind=draw(st.sampled_from(KINDS)),
        dtype=draw(st.integers(-2, 18)),
        global_address=draw(ANY),
        global_dim=draw(arrays(ANY)),
        global_strides=draw(arrays(ANY)),
        box_dim=draw(arrays(ANY)),
        element_strides=draw(arrays(SMALL | ANY)),
        interleave=draw(SMALL),
        swizzle=draw(SMALL),
        l2_promotion=draw(SMALL),
        oob_fill=draw(SMALL),
        lower=draw(arrays(ANY)),
        upper=draw(arrays(ANY)),
        channels=draw(ANY),
        pixels=draw(ANY),
        wide_mode=draw(SMALL),
    )


@st.composite
def likely(draw: st.DrawFn) -> MapParameters:
    """An array of a fitting rank, everything else near its bounds: a few rules are broken at a time."""
    kind = draw(st.sampled_from(KINDS))
    rank = draw(st.integers(1 if kind == "tiled" else 3, 5))

    def several(numbers: st.SearchStrategy[int], count: int) -> tuple[int, ...]:
        return draw(st.lists(numbers, min_size=count, max_size=count).map(tuple))

    corners = 1 if kind == "im2col_wide" else rank - 2 if kind == "im2col" else 0
    return MapParameters(
        kind=kind,
        dtype=draw(st.integers(0, 15)),
        global_address=draw(st.sampled_from([0, 8, 16, 32, 4096, (1 << 57) - 16, 1 << 57])),
        global_dim=several(st.sampled_from([1, 2, 7, 64, 128, 384, 1 << 31, (1 << 31) + 1, 1 << 32, (1 << 32) + 1, 0]), rank),
        global_strides=several(st.sampled_from([0, 8, 16, 24, 32, 256, (1 << 40) - 16, (1 << 40) - 8, 1 << 40, -16]), rank - 1),
        box_dim=several(st.sampled_from([0, 1, 2, 3, 8, 16, 32, 64, 128, 255, 256, 257]), rank) if kind == "tiled" else (),
        element_strides=several(st.sampled_from([1, 1, 1, 2, 8, 9, 0]), rank),
        interleave=draw(st.sampled_from([0, 0, 0, 1, 2, 3])),
        swizzle=draw(st.integers(0, 7)),
        l2_promotion=draw(st.integers(0, 4)),
        oob_fill=draw(st.integers(0, 2)),
        lower=several(st.sampled_from([-32769, -129, -17, -16, -1, 0, 1, 15, 127, 128]), corners),
        upper=several(st.sampled_from([-129, -128, -64, -7, -1, 0, 1, 15, 16, 32767, 32768]), corners),
        channels=draw(st.sampled_from([0, 1, 8, 16, 31, 64, 128, 256, 257])) if corners else 0,
        pixels=draw(st.sampled_from([0, 1, 14, 128, 1024, 1025])) if corners else 0,
        wide_mode=draw(st.integers(0, 2)) if kind == "im2col_wide" else 0,
    )


@settings(max_examples=150)
@given(wild() | likely(), ARCHES)
def test_any_parameters_get_a_verdict(given: MapParameters, arch: int) -> None:
    verdict = validate(given, arch=arch)
    assert verdict.encodes or not verdict.usable
    assert verdict.encodes == (not any(f.rule.gate == "encodes" for f in verdict.findings))
    assert not verdict.warnings or verdict.encodes
    for diagnostic in (*verdict.errors, *verdict.warnings, *verdict.hints):
        assert isinstance(diagnostic, Diagnostic)
        assert diagnostic.what
        assert diagnostic.got
        assert diagnostic.required
        assert diagnostic.fix
    if verdict.findings:
        with pytest.raises(DescriptorError) as caught:
            verdict.check(warnings=True)
        assert len(caught.value.diagnostics) == len(verdict.findings)
    else:
        verdict.check(warnings=True)


@settings(max_examples=150)
@given(likely(), ARCHES)
def test_a_fix_mends_its_rule(given: MapParameters, arch: int) -> None:
    for finding in validate(given, arch=arch).findings:
        if finding.breach.mended is not None:
            assert finding.rule.id not in [f.rule.id for f in validate(finding.breach.mended, arch=arch).findings], finding


@settings(max_examples=150)
@given(likely(), ARCHES)
def test_fixes_one_after_the_other_lead_to_a_usable_map(given: MapParameters, arch: int) -> None:
    """Unless one of them is no change of parameters."""
    verdict = validate(given, arch=arch)
    mended = verdict.mended()
    if mended is not None:
        assert mended.usable
    elif all(f.breach.mended is not None for f in verdict.findings if f.rule.gate != "advice"):
        # A mend may uncover what only another array or device can help: it must be that, and no circle.
        assert any(f.breach.mended is None for f in verdict.findings) or _stuck(given, arch)


def _stuck(given: MapParameters, arch: int) -> bool:
    """Mending ends at a rule without a mend."""
    for _ in range(64):
        broken = [f.breach for f in validate(given, arch=arch).findings if f.rule.gate != "advice"]
        mends = [b.mended for b in broken if b.mended is not None]
        if not mends:
            return bool(broken)
        given = mends[0]
    return False


@settings(max_examples=80)
@given(st.sampled_from(ENCODED), st.data())
def test_one_edit_of_a_map_that_encodes_is_judged_by_the_rules_of_that_field(given: MapParameters, data: st.DataObject) -> None:
    swizzle = data.draw(st.integers(0, 7))
    verdict = validate(replace(given, swizzle=swizzle), arch=90)
    assert {d.rule for d in verdict.errors} <= {"OX2014", "OX2024", "OX2042", "OX2004", "OX2018", "OX2052", "OX2053"}


@settings(max_examples=50)
@given(likely(), st.integers(0, 6))
def test_turning_twice_is_nothing(given: MapParameters, rank: int) -> None:
    assert given.turned().turned() == given
    assert given.turned(rank).rank == min(rank, given.rank)


def test_a_map_and_its_parameters_say_the_same() -> None:
    tensor = TensorMap(
        dtype="e4m3",
        global_dim=(4, 9, 10, 64),
        global_strides=(5760, 640, 64),
        box_dim=(14, 32),
        element_strides=(1, 2, 2, 1),
        swizzle="64B",
        l2_promotion=64,
        mode="im2col_w128",
        lower=(-1,),
        upper=(-2,),
    )
    made: Any = MapParameters.of(tensor, 0x4000)
    assert made == MapParameters(
        kind="im2col_wide",
        dtype=0,
        global_address=0x4000,
        global_dim=(4, 9, 10, 64),
        global_strides=(5760, 640, 64),
        element_strides=(1, 2, 2, 1),
        swizzle=2,
        l2_promotion=1,
        lower=(-1,),
        upper=(-2,),
        channels=32,
        pixels=14,
        wide_mode=1,
        element="e4m3",
    )
