"""cuTensorMapEncode* as plain C calls, for asking the driver about parameters that the bindings do not let through.

The bindings refuse unknown enumerators before the driver sees them. Here every number reaches it, but for what would end the process: null
arrays, which a call reads without a look, and ranks beyond the arrays.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final, final

from oxidecopy.errors import Diagnostic, UsageError
from oxidecopy.maps.parameters import Extents, MapParameters

MAP_BYTES: Final = 128
_MAP_ALIGN: Final = 64  # the driver API's word; the driver does not check it (measured)
_ROOM: Final = 8  # entries of each array: the driver reads as many as the rank, and was never asked for more than 6
_RANK_MAX: Final = 6


@final
class EncodeCalls:
    """The three calls of `library`; a context must be current."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._memory = (ctypes.c_ubyte * (MAP_BYTES + _MAP_ALIGN))()
        start = ctypes.addressof(self._memory)
        self._map = start + -start % _MAP_ALIGN

    def encode(self, parameters: MapParameters) -> tuple[int, bytes]:
        """The driver's CUresult, and the 128 bytes when it is 0.

        Raises:
            UsageError: for arguments that would crash the call (OX2056).
        """
        _refuse_crash(parameters)
        of = parameters.turned()
        ctypes.memset(self._map, 0, MAP_BYTES)
        head = (
            ctypes.c_void_p(self._map),
            ctypes.c_uint32(of.dtype),
            ctypes.c_uint32(of.rank),
            ctypes.c_void_p(of.global_address),
            _array(ctypes.c_uint64, of.global_dim),
            _array(ctypes.c_uint64, of.global_strides),
        )
        steps, interleave = _array(ctypes.c_uint32, of.element_strides), ctypes.c_uint32(of.interleave)
        options = [ctypes.c_uint32(n) for n in (of.swizzle, of.l2_promotion, of.oob_fill)]
        copied = [ctypes.c_uint32(n) for n in (of.channels, of.pixels)]
        library = self._library
        if of.kind == "tiled":
            code = library.cuTensorMapEncodeTiled(*head, _array(ctypes.c_uint32, of.box_dim), steps, interleave, *options)
        elif of.kind == "im2col":
            corners = (_array(ctypes.c_int32, of.lower), _array(ctypes.c_int32, of.upper))
            code = library.cuTensorMapEncodeIm2col(*head, *corners, *copied, steps, interleave, *options)
        else:
            wide = [ctypes.c_int32(corner) for corner in (*(of.lower or ()), *(of.upper or ()))]
            mode = ctypes.c_uint32(of.wide_mode)
            code = library.cuTensorMapEncodeIm2colWide(*head, *wide, *copied, steps, interleave, mode, *options)
        return int(code), b"" if code else ctypes.string_at(self._map, MAP_BYTES)


def load_calls() -> EncodeCalls:
    """The driver that the bindings have loaded already."""
    return EncodeCalls(ctypes.CDLL("libcuda.so.1"))


def _array(kind: Any, values: Extents) -> Any:
    return (kind * _ROOM)(*(values or ()))


def _refuse_crash(p: MapParameters) -> None:
    corners = {"tiled": 0, "im2col": max(p.rank - 2, 0), "im2col_wide": 1}[p.kind]
    wanted = {"global_dim": p.rank, "global_strides": max(p.rank - 1, 0), "element_strides": p.rank, "lower": corners, "upper": corners}
    if p.kind == "tiled":
        wanted["box_dim"] = p.rank
    wrong = [name for name, count in wanted.items() if (value := getattr(p, name)) is None or len(value) != count]
    if wrong or p.rank > _RANK_MAX:
        raise UsageError(
            Diagnostic(
                rule="OX2056",
                what="arguments that would crash the driver's call",
                got=", ".join(wrong) or f"rank {p.rank}",
                required=f"no null pointer, and arrays as long as the rank, of at most {_RANK_MAX}",
                fix="ask `ox.validate`, which reads no memory",
            )
        )
