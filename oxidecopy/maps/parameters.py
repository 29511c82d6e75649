"""`MapParameters`: every argument of a driver call that encodes a tensor map, wrong ones included.

Numbers are the driver's own (enumerators of cuda.h, sizes in elements, strides in bytes); the order of dimensions is this package's,
outermost first. `turned` makes one order of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, final

from oxidecopy.maps.enumerators import FILLS, INTERLEAVES, PROMOTIONS, WIDE_MODES
from oxidecopy.program.tensor_map import IM2COL, TILE, TensorMap

Kind: TypeAlias = Literal["tiled", "im2col", "im2col_wide"]
KINDS: Final[tuple[Kind, ...]] = ("tiled", "im2col", "im2col_wide")
Extents: TypeAlias = tuple[int, ...] | None


_ALWAYS: Final = ("dtype", "global_address")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MapParameters:
    """The arguments of cuTensorMapEncodeTiled, ...Im2col or ...Im2colWide. An array may be None: the null pointer.

    Attributes:
        kind: which of the three calls.
        dtype: value of CUtensorMapDataType.
        global_address: of element 0, bytes.
        global_dim: extents, elements; as many as the map has dimensions.
        global_strides: bytes, for all dimensions but the innermost one.
        box_dim: of a tiled map, extents of one copy before element strides, elements.
        element_strides: step in each dimension, elements.
        interleave: value of CUtensorMapInterleave.
        swizzle: value of CUtensorMapSwizzle.
        l2_promotion: value of CUtensorMapL2promotion.
        oob_fill: value of CUtensorMapFloatOOBfill.
        lower: of an im2col map, the lower corner in (d, h, w), elements; of a wide one in (w,).
        upper: the upper corner, from the last element of each dimension.
        channels: of an im2col map, elements of one pixel that a copy moves.
        pixels: of an im2col map, pixels that a copy moves.
        wide_mode: value of CUtensorMapIm2ColWideMode.
        element: what messages call the element type; the enumerator's name when empty.
    """

    kind: Kind = "tiled"
    dtype: int
    global_address: int
    global_dim: Extents
    global_strides: Extents
    box_dim: Extents = ()
    element_strides: Extents
    interleave: int = 0
    swizzle: int = 0
    l2_promotion: int = 2
    oob_fill: int = 0
    lower: Extents = ()
    upper: Extents = ()
    channels: int = 0
    pixels: int = 0
    wide_mode: int = 0
    element: str = ""

    @property
    def rank(self) -> int:
        """Dimensions: as many as there are extents."""
        return len(self.global_dim or ())

    @staticmethod
    def of(tensor_map: TensorMap, address: int = 0) -> MapParameters:
        """What the driver is called with for `tensor_map` over memory at `address`."""
        tiled = tensor_map.mode == TILE
        pixels, channels = (0, 0) if tiled else tensor_map.box_dim
        return MapParameters(
            kind="tiled" if tiled else "im2col" if tensor_map.mode == IM2COL else "im2col_wide",
            dtype=tensor_map.dtype_info.driver_enum,
            global_address=address,
            global_dim=tensor_map.global_dim,
            global_strides=tensor_map.global_strides,
            box_dim=tensor_map.box_dim if tiled else (),
            element_strides=tensor_map.element_strides,
            interleave=INTERLEAVES[tensor_map.interleave],
            swizzle=tensor_map.swizzle_info.driver_enum,
            l2_promotion=PROMOTIONS[tensor_map.l2_promotion],
            oob_fill=FILLS[tensor_map.oob_fill],
            lower=tensor_map.lower,
            upper=tensor_map.upper,
            channels=channels,
            pixels=pixels,
            wide_mode=WIDE_MODES.get(tensor_map.mode, 0),
            element=tensor_map.dtype,
        )

    def as_data(self) -> dict[str, Any]:
        """The fields that are not 0 or empty, as JSON takes them."""
        fields = {name: getattr(self, name) for name in MapParameters.__dataclass_fields__}
        return {name: value for name, value in fields.items() if value not in (0, (), "") or name in _ALWAYS}

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> MapParameters:
        """What `as_data` wrote, read back."""
        empty: dict[str, Any] = dict.fromkeys(_ALWAYS, 0) | {"global_dim": (), "global_strides": (), "element_strides": ()}
        fields = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        return MapParameters(**(empty | {"l2_promotion": 0} | fields))

    def turned(self, rank: int | None = None) -> MapParameters:
        """The same arguments with dimensions in the opposite order: this package's when they were the driver's (innermost first).

        Args:
            rank: the rank as passed to the call, which reads that many entries of each array; the number of extents when left out.
        """
        dims = self.rank if rank is None else rank
        corners = 1 if self.kind == "im2col_wide" else dims - 2
        return replace(
            self,
            global_dim=_turned(self.global_dim, dims),
            global_strides=_turned(self.global_strides, dims - 1),
            box_dim=_turned(self.box_dim, dims),
            element_strides=_turned(self.element_strides, dims),
            lower=_turned(self.lower, corners),
            upper=_turned(self.upper, corners),
        )


def _turned(values: Extents, count: int) -> Extents:
    return None if values is None else tuple(reversed(values[: max(count, 0)]))
