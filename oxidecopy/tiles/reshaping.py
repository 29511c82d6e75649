"""`transpose`, `sum`, `max` and `stencil`: what all threads in scope make together of a tile, in a tile of another shape.

Accesses are logical, as those of maps: whatever the swizzle and pitch of each tile, element (i, j) is element (i, j).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from typing_extensions import TypeVar

from oxidecopy.errors import DTypeError, ShapeError
from oxidecopy.isa import ops
from oxidecopy.typed.descriptor_checks import tile_of
from oxidecopy.typed.dtypes import DType, bf16, f16, f32
from oxidecopy.typed.geometry import N0, N1, N2, N3, N4, Box1, Box2, Box3, Box4, Box5
from oxidecopy.typed.refusal import described, flag, refuse, whole
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.values import misfit, plain_number

if TYPE_CHECKING:
    from oxidecopy.typed.recorder import Recorder

_D1 = TypeVar("_D1", bound=DType)
_F = TypeVar("_F", f16, bf16, f32)


class Reshapes:
    """Base of what executes transposes and reductions: a group, or all threads of the CTA in scope."""

    __slots__ = ()

    def _executes(self, what: str) -> Recorder:
        """The recorder, when this handle's threads are those that execute now."""
        raise NotImplementedError

    @overload
    def transpose(self, tile: SharedArray[_D1, Box2[N0, N1], Any], /, *, out: SharedArray[_D1, Box2[N1, N0], Any]) -> None: ...
    @overload
    def transpose(self, tile: SharedArray[_D1, Box3[N0, N1, N2], Any], /, *, out: SharedArray[_D1, Box3[N0, N2, N1], Any]) -> None: ...
    @overload
    def transpose(
        self, tile: SharedArray[_D1, Box4[N0, N1, N2, N3], Any], /, *, out: SharedArray[_D1, Box4[N0, N1, N3, N2], Any]
    ) -> None: ...
    @overload
    def transpose(
        self, tile: SharedArray[_D1, Box5[N0, N1, N2, N3, N4], Any], /, *, out: SharedArray[_D1, Box5[N0, N1, N2, N4, N3], Any]
    ) -> None: ...
    def transpose(self, tile: SharedArray[Any, Any, Any], /, *, out: SharedArray[Any, Any, Any]) -> None:
        """Sets element (.., j, i) of `out` to element (.., i, j) of `tile`, bit for bit: the last two dimensions are swapped.

        `out` is another tile of the same element type. Nothing is synced, as with `map`. Threads move blocks of 16 bytes a side (8 for
        types of one byte), and go through them along diagonals: where the rows of both tiles are multiples of 128 bytes there are no bank
        conflicts, whether or not they are swizzled.
        """
        recorder = self._executes("a transpose")
        source, target = tile_of(tile, "`transpose`"), tile_of(out, "`transpose`: `out`")
        needed = (*source.shape[:-2], *source.shape[:-3:-1])
        if len(source.shape) < 2 or target.shape != needed:
            refuse(
                ShapeError,
                "OX1190",
                "a transpose swaps the last two dimensions of a tile",
                got=f"{source._request.name} {source.shape} into {target._request.name} {target.shape}",
                required=f"{needed} for `out`" if len(source.shape) > 1 else "a tile of two dimensions or more",
                fix="give the descriptor of `out` the box of the tile with its last two extents swapped",
            )
        _same_type("a transpose", source._request.dtype, target._request.dtype)
        _apart("a transpose", source, target)
        recorder.emit(ops.TransposeTile(source=source._ref(recorder), out=target._target(recorder)))

    @overload
    def sum(
        self,
        tile: SharedArray[_F, Box2[N0, N1], Any],
        /,
        *,
        axis: Literal[1],
        out: SharedArray[f32, Box1[N0], Any],
        accumulate: bool = False,
    ) -> None: ...
    @overload
    def sum(
        self,
        tile: SharedArray[_F, Box2[N0, N1], Any],
        /,
        *,
        axis: Literal[0],
        out: SharedArray[f32, Box1[N1], Any],
        accumulate: bool = False,
    ) -> None: ...
    def sum(
        self,
        tile: SharedArray[Any, Any, Any],
        /,
        *,
        axis: Literal[0, 1],
        out: SharedArray[f32, Any, Any],
        accumulate: bool = False,
    ) -> None:
        """Sums of rows (`axis=1`) or columns (`axis=0`), in f32; `accumulate=True` adds them to what `out` holds.

        The order of additions is fixed, so every engine gives the same bits. Of a row of P elements in 128 bytes (32 of f32, 64 of f16 and
        bf16) partial sum p takes elements p, p + P, p + 2P, ...; then partial sums are added pairwise, 2i and 2i + 1, until one is left. Of
        a column partial sum p of four takes rows p, p + 4, ..., and the result is (p0 + p1) + (p2 + p3).
        """
        self._fold("sum", tile, axis, out, accumulate=accumulate)

    @overload
    def max(
        self,
        tile: SharedArray[_F, Box2[N0, N1], Any],
        /,
        *,
        axis: Literal[1],
        out: SharedArray[f32, Box1[N0], Any],
        accumulate: bool = False,
    ) -> None: ...
    @overload
    def max(
        self,
        tile: SharedArray[_F, Box2[N0, N1], Any],
        /,
        *,
        axis: Literal[0],
        out: SharedArray[f32, Box1[N1], Any],
        accumulate: bool = False,
    ) -> None: ...
    def max(
        self,
        tile: SharedArray[Any, Any, Any],
        /,
        *,
        axis: Literal[0, 1],
        out: SharedArray[f32, Any, Any],
        accumulate: bool = False,
    ) -> None:
        """The largest element of each row (`axis=1`) or column (`axis=0`); NaN where one is NaN.

        `accumulate=True` takes what `out` holds into account.
        """
        self._fold("max", tile, axis, out, accumulate=accumulate)

    def stencil(
        self,
        tile: SharedArray[f32, Any, Any],
        /,
        *,
        taps: Mapping[tuple[int, int], float],
        out: SharedArray[f32, Any, Any],
    ) -> None:
        """Sets element (i, j) of `out` to the sum of `weight * tile[i + row, j + column]` over `taps`, `{(row, column): weight}`.

        The tile is loaded with what lies around the output's elements: `out` is its middle, and what it has more of rows and columns is
        the same above and below, left and right. So places count from where `out` begins, and an average of neighbours is
        `taps={(-1, 0): 0.25, (1, 0): 0.25, (0, -1): 0.25, (0, 1): 0.25}`. Up to nine taps; the sum begins with the first one's product and
        adds the others in order, each rounded to f32, so every engine gives the same bits.
        """
        recorder = self._executes("a stencil")
        source, target = tile_of(tile, "`stencil`"), tile_of(out, "`stencil`: `out`")
        around = ops.margin(source.shape, target.shape)
        if around is None:
            refuse(
                ShapeError,
                "OX1195",
                "the output of a stencil lies in the middle of its tile",
                got=f"{source._request.name} {source.shape} into {target._request.name} {target.shape}",
                required="two dimensions, with as many more rows above as below, and columns left as right",
                fix="give the descriptor of the tile a box with the halo on both sides",
            )
        dtypes = source._request.dtype, target._request.dtype
        if dtypes != ("f32", "f32"):
            got = " into ".join(dtypes)
            refuse(
                DTypeError, "OX1192", "`stencil` takes f32 and gives f32", got=got, required="f32", fix="`map` casts, before or after it"
            )
        _apart("a stencil", source, target)
        found = _taps(taps)
        problem = ops.taps_problem(found, around)
        if problem:
            got = f"{len(found)} taps, {source.shape} around {target.shape}"
            refuse(
                ShapeError,
                "OX1196",
                "these are no taps of a stencil",
                got=got,
                required=problem,
                fix="load `tile` with its halo, and name each neighbour once",
            )
        recorder.emit(ops.StencilTile(source=source._ref(recorder), out=target._target(recorder), taps=found))

    def _fold(self, how: str, tile: object, axis: object, out: object, *, accumulate: object) -> None:
        what = f"`{how}`"
        recorder = self._executes(f"a {how}")
        source, target = tile_of(tile, what), tile_of(out, f"{what}: `out`")
        along, onto = whole(axis), flag(accumulate, "accumulate")
        if along not in (0, 1) or len(source.shape) != 2 or target.shape != (source.shape[1 - along],):
            sides = " or ".join(f"({n},) for axis={a}" for a, n in enumerate(reversed(source.shape)))
            refuse(
                ShapeError,
                "OX1191",
                f"{what} makes a vector of a tile: an element for each row (axis=1) or column (axis=0)",
                got=f"axis={described(axis)}, {source._request.name} {source.shape} into {target._request.name} {target.shape}",
                required=sides if len(source.shape) == 2 else "a tile of two dimensions",
                fix="give `out` one dimension, as long as the tile has rows or columns",
            )
        if source._request.dtype not in ops.FOLDABLE or target._request.dtype != "f32":
            refuse(
                DTypeError,
                "OX1192",
                f"{what} takes floats and gives f32",
                got=f"{source._request.dtype} into {target._request.dtype}",
                required=f"{', '.join(ops.FOLDABLE)} into f32",
                fix="`map` casts, before it or after it",
            )
        _apart(what, source, target)
        refs = source._ref(recorder), target._target(recorder)
        recorder.emit(ops.ReduceTile(op=how, onto=int(onto), axis=along, source=refs[0], out=refs[1]))


def _taps(taps: object) -> tuple[ops.Tap, ...]:
    """What a user gives, with weights rounded to f32."""
    found: list[ops.Tap] = []
    for place, weight in taps.items() if isinstance(taps, Mapping) else ():
        numbers = tuple(map(whole, place)) if isinstance(place, tuple) else ()
        number = plain_number(weight)
        if len(numbers) != 2 or None in numbers or number is None or misfit(weight, "f32"):
            found.clear()
            break
        row, column = (int(n or 0) for n in numbers)
        found.append(ops.Tap(row, column, _rounded(float(number))))
    if not found:
        got = repr(taps)[:200] if isinstance(taps, Mapping) else described(taps)
        refuse(
            ShapeError,
            "OX1196",
            "these are no taps of a stencil",
            got=got,
            required="{(row, column): weight}, whole numbers and a number",
            fix="taps={(0, 0): 0.5, (0, 1): 0.25, (0, -1): 0.25}",
        )
    return tuple(found)


def _rounded(weight: float) -> float:
    """To f32; what it cannot hold stays as it is, and is refused as that."""
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", weight))
    except OverflowError:
        return weight
    return float(rounded)


def _same_type(what: str, got: str, required: str) -> None:
    if got != required:
        refuse(
            DTypeError,
            "OX1193",
            f"{what} moves bits, so both tiles have one element type",
            got=f"{got} into {required}",
            required="one type",
            fix="`map` casts, before it or after it",
        )


def _apart(what: str, source: SharedArray[Any, Any, Any], target: SharedArray[Any, Any, Any]) -> None:
    if source._request is target._request:
        refuse(
            ShapeError,
            "OX1194",
            f"{what} reads the tile that it writes",
            got=source._request.name,
            required="another tile: threads read all of it while others write",
            fix="set aside one more tile by `cta.shared`",
        )
