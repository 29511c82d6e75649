"""Rules about what is one of a few: interleave, swizzle, promotion, fill, the mode of a wide map, and the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxidecopy.maps.enumerators import (
    FILL_OF,
    INTERLEAVE_OF,
    PROMOTION_OF,
    SWIZZLE_64B,
    SWIZZLE_128B,
    SWIZZLE_ATOM_32B,
    SWIZZLE_ATOM_64B,
    SWIZZLE_NONE,
    U4_ALIGN16B,
    U6_ALIGN16B,
    WIDE_MODES,
)
from oxidecopy.maps.facts import Facts, capability
from oxidecopy.maps.rule import Breach, MapRule

_WIDE: Final = ("im2col_wide",)
_SWIZZLES_OF: Final = {  # packed type -> modes that it goes with
    U4_ALIGN16B: (SWIZZLE_NONE, SWIZZLE_128B, SWIZZLE_ATOM_32B),
    U6_ALIGN16B: (SWIZZLE_NONE, SWIZZLE_128B, SWIZZLE_ATOM_32B, SWIZZLE_ATOM_64B),  # the last one for stores only
}
_WIDE_SWIZZLES: Final = (SWIZZLE_64B, SWIZZLE_128B, SWIZZLE_ATOM_32B)


def _device(f: Facts) -> Iterator[Breach]:
    if f.sm < 90:
        fix = "run it on the simulator: Device.open('sim')"
        yield Breach(what="this device has no tensor maps", got=f"compute capability {capability(f.sm)}", fix=fix)


def _interleave(f: Facts) -> Iterator[Breach]:
    if f.p.interleave not in INTERLEAVE_OF:
        yield Breach(what="`interleave` is unknown", got=str(f.p.interleave), fix='interleave="none"', mended=f.but(interleave=0))


def _swizzle(f: Facts) -> Iterator[Breach]:
    if f.swizzle is None:
        yield Breach(what="`swizzle` is unknown", got=str(f.p.swizzle), fix="swizzle=ox.SwizzleNone", mended=f.but(swizzle=0))


def _swizzle_on_device(f: Facts) -> Iterator[Breach]:
    if f.swizzle is not None and 90 <= f.sm < f.swizzle.min_sm:
        yield Breach(
            what=f"the {f.swizzle_name} swizzle does not exist on this device",
            got=f"compute capability {capability(f.sm)}",
            required=f"{capability(f.swizzle.min_sm)} or newer",
            fix="swizzle=ox.Swizzle128B",
            mended=f.but(swizzle=SWIZZLE_128B),
        )


def _packed_interleave(f: Facts) -> Iterator[Breach]:
    if f.p.dtype == U6_ALIGN16B and f.interleaved:
        fix = 'interleave="none"'
        yield Breach(what=f"{f.name} cannot be interleaved", got=str(f.p.interleave), fix=fix, mended=f.but(interleave=0))


def _packed_swizzle(f: Facts) -> Iterator[Breach]:
    if f.p.swizzle not in _SWIZZLES_OF.get(f.p.dtype, (f.p.swizzle,)):
        yield Breach(
            what=f"{f.name} does not go with this swizzle",
            got=f.swizzle_name,
            fix="swizzle=ox.Swizzle128B",
            mended=f.but(swizzle=SWIZZLE_128B),
        )


def _promotion(f: Facts) -> Iterator[Breach]:
    if f.p.l2_promotion not in PROMOTION_OF:
        yield Breach(what="`l2_promotion` is unknown", got=str(f.p.l2_promotion), fix="l2_promotion=128", mended=f.but(l2_promotion=2))


def _fill(f: Facts) -> Iterator[Breach]:
    if f.p.oob_fill not in FILL_OF:
        yield Breach(what="`oob_fill` is unknown", got=str(f.p.oob_fill), fix='oob_fill="zero"', mended=f.but(oob_fill=0))


def _nan(f: Facts) -> Iterator[Breach]:
    if f.p.oob_fill == 1 and f.info is not None and not f.info.is_float:
        yield Breach(what=f"{f.name} has no NaN to fill with", got='oob_fill="nan"', fix='oob_fill="zero"', mended=f.but(oob_fill=0))


# ---- wide maps
def _wide_mode(f: Facts) -> Iterator[Breach]:
    if f.p.wide_mode not in WIDE_MODES.values():
        yield Breach(what="the mode of the wide map is unknown", got=str(f.p.wide_mode), fix="wide_mode=0", mended=f.but(wide_mode=0))


def _wide_device(f: Facts) -> Iterator[Breach]:
    if f.sm < 100:
        yield Breach(
            what="wide im2col copies do not exist on this device: the map encodes, then every such copy faults",
            got=f"compute capability {capability(f.sm)}",
            fix="use TmaDescriptor.im2col",
        )


def _wide_swizzle(f: Facts) -> Iterator[Breach]:
    if f.swizzle is not None and f.p.swizzle not in _WIDE_SWIZZLES:
        what = "a wide im2col copy does not go with this swizzle"
        yield Breach(what=what, got=f.swizzle_name, fix="swizzle=ox.Swizzle128B", mended=f.but(swizzle=SWIZZLE_128B))


def _wide_interleave(f: Facts) -> Iterator[Breach]:
    if f.interleaved and f.p.interleave in INTERLEAVE_OF:
        what = "a wide im2col copy cannot be interleaved"
        yield Breach(what=what, got=INTERLEAVE_OF[f.p.interleave], fix='interleave="none"', mended=f.but(interleave=0))


RULES: Final = (
    MapRule(id="OX2051", gate="encodes", bound="compute capability 9.0 or newer", check=_device),
    MapRule(id="OX2041", gate="encodes", bound="none, 16B or 32B (0 to 2)", check=_interleave),
    MapRule(id="OX2042", gate="encodes", bound="a swizzle mode (0 to 6)", check=_swizzle),
    MapRule(id="OX2024", gate="encodes", bound="compute capability 10.0 for the modes with wider atoms", check=_swizzle_on_device),
    MapRule(id="OX2039", gate="encodes", bound='interleave "none" for u6x16_align16b', check=_packed_interleave),
    MapRule(id="OX2040", gate="encodes", bound="none, 128B or 128B_ATOM_32B; 128B_ATOM_64B for u6x16_align16b", check=_packed_swizzle),
    MapRule(id="OX2023", gate="encodes", bound="0, 64, 128 or 256 bytes (0 to 3)", check=_promotion),
    MapRule(id="OX2020", gate="encodes", bound='"zero" or "nan" (0 or 1)', check=_fill),
    MapRule(id="OX2021", gate="encodes", bound="a float element type", check=_nan),
    MapRule(id="OX2050", gate="encodes", bound="0 or 1", check=_wide_mode, kinds=_WIDE),
    MapRule(id="OX2052", gate="usable", bound="compute capability 10.0 or newer", check=_wide_device, kinds=_WIDE),
    MapRule(id="OX2053", gate="usable", bound="64B, 128B or 128B_ATOM_32B", check=_wide_swizzle, kinds=_WIDE),
    MapRule(id="OX2054", gate="usable", bound='interleave "none"', check=_wide_interleave, kinds=_WIDE),
)
