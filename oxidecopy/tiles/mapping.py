"""`map` and `copy`: what all threads in scope compute together, element by element, from tiles into a tile.

Accesses are logical: element (i, j) of the output comes from elements (i, j) of the inputs, wherever the swizzle and pitch of each tile put
them. So a copy from a swizzled tile into one without a swizzle undoes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, overload

from typing_extensions import TypeVar

from oxidecopy.errors import DTypeError, OxidecopyError, RecordError, ShapeError
from oxidecopy.isa import elem, ops
from oxidecopy.isa.elem import Along
from oxidecopy.tiles.elem import Elem, Trace, Vector
from oxidecopy.tiles.reshaping import Reshapes
from oxidecopy.tiles.stage import StageTuple
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import AnyBox
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.smem import SharedArray

if TYPE_CHECKING:
    from oxidecopy.typed.recorder import Recorder

_D1 = TypeVar("_D1", bound=DType)
_D2 = TypeVar("_D2", bound=DType)
_D3 = TypeVar("_D3", bound=DType)
_D4 = TypeVar("_D4", bound=DType)
_DO = TypeVar("_DO", bound=DType)
_B1 = TypeVar("_B1", bound=AnyBox)


class Maps(Reshapes):
    """Base of what executes maps: a group, or all threads of the CTA in scope."""

    __slots__ = ()

    @overload
    def map(
        self, fn: Callable[[Elem[_D1]], Elem[_DO]], a: SharedArray[_D1, _B1, Any] | Vector[_D1], /, *, out: SharedArray[_DO, _B1, Any]
    ) -> None: ...
    @overload
    def map(
        self,
        fn: Callable[[Elem[_D1], Elem[_D2]], Elem[_DO]],
        a: SharedArray[_D1, _B1, Any] | Vector[_D1],
        b: SharedArray[_D2, _B1, Any] | Vector[_D2],
        /,
        *,
        out: SharedArray[_DO, _B1, Any],
    ) -> None: ...
    @overload
    def map(
        self,
        fn: Callable[[Elem[_D1], Elem[_D2], Elem[_D3]], Elem[_DO]],
        a: SharedArray[_D1, _B1, Any] | Vector[_D1],
        b: SharedArray[_D2, _B1, Any] | Vector[_D2],
        c: SharedArray[_D3, _B1, Any] | Vector[_D3],
        /,
        *,
        out: SharedArray[_DO, _B1, Any],
    ) -> None: ...
    @overload
    def map(
        self,
        fn: Callable[[Elem[_D1], Elem[_D2], Elem[_D3], Elem[_D4]], Elem[_DO]],
        a: SharedArray[_D1, _B1, Any] | Vector[_D1],
        b: SharedArray[_D2, _B1, Any] | Vector[_D2],
        c: SharedArray[_D3, _B1, Any] | Vector[_D3],
        d: SharedArray[_D4, _B1, Any] | Vector[_D4],
        /,
        *,
        out: SharedArray[_DO, _B1, Any],
    ) -> None: ...
    def map(
        self, fn: Callable[..., Elem[Any]], /, *inputs: SharedArray[Any, Any, Any] | Vector[Any], out: SharedArray[Any, Any, Any]
    ) -> None:
        """Sets every element of `out` to `fn` of the elements of one to four tiles at the same place.

        `fn` is called once, with an `Elem` for each tile, and records what it does with them. `out` may be one of the inputs. A tile of one
        row can be an input by `per_row` or `per_column`. Nothing is synced: what others wrote must be ordered before, and who else reads
        `out` must be ordered after.
        """
        recorder = self._executes("a map")
        tiles = tuple([v.tile if isinstance(v, Vector) else v for v in inputs])
        alongs = tuple([v.along if isinstance(v, Vector) else Along.ALL for v in inputs])
        _check_tiles(tiles, alongs, out)
        node = _traced(recorder, fn, tiles, alongs)
        if node.dtype != out._request.dtype:
            refuse(
                DTypeError,
                "OX1126",
                f"the function of a map does not give what {out._request.name!r} holds",
                got=node.dtype,
                required=out._request.dtype,
                fix=f"cast its result: `.cast(ox.{out._request.dtype})`",
            )
        refs = tuple(tile._ref(recorder) for tile in tiles)
        recorder.emit(ops.MapTiles(inputs=refs, out=out._target(recorder), fn=node))

    def copy(self, tile: SharedArray[_D1, _B1, Any], /, *, out: SharedArray[_D1, _B1, Any]) -> None:
        """Copies every element, bit for bit; the layouts may differ (this swizzles and unswizzles)."""
        self.map(lambda v: v, tile, out=out)


def _check_tiles(tiles: tuple[object, ...], alongs: tuple[Along, ...], out: object) -> None:
    known = [t for t in (*tiles, out) if isinstance(t, SharedArray)]
    if not 1 <= len(tiles) <= ops.MAP_INPUTS_MAX or len(known) <= len(tiles):
        refuse(
            ShapeError,
            "OX1120",
            "a map takes tiles",
            got=", ".join(map(described, (*tiles, out))),
            required=f"1 to {ops.MAP_INPUTS_MAX} shared tiles and `out`",
            fix=_tile_wanted(tiles),
        )
    shape = known[-1].shape
    for t, along in zip(known, alongs, strict=False):
        if not elem.fits_shape(t.shape, shape, along):
            vector = along is not Along.ALL
            refuse(
                ShapeError,
                "OX1120",
                f"a vector per {along.value} of a map has another length" if vector else "the tiles of a map differ in shape",
                got=", ".join(f"{t._request.name} {t.shape}" for t in known),
                required=f"{elem.input_shapes(shape, along)}, with outer dimensions of 1 at most" if vector else "one shape",
                fix=f"load it in a box of {shape[-1] if along is Along.COLUMN else prod(shape[:-1])} elements"
                if vector
                else "give all descriptors one box; `ox.per_row` and `ox.per_column` spread a tile of one row",
            )
        if along is not Along.ALL and t._request is known[-1]._request:
            refuse(
                ShapeError,
                "OX1181",
                "a vector of a map lies in the tile that is written",
                got=t._request.name,
                required="another tile: threads read all of it while others write",
                fix="give the vector a tile of its own",
            )


def _tile_wanted(inputs: tuple[object, ...]) -> str:
    if any(isinstance(t, StageTuple) for t in inputs):
        return "name the tiles of a stage one by one: `with ring.consume(group) as (tile,)`"
    if any(isinstance(t, GlobalArray | TmaDescriptor) for t in inputs):
        return "load it into a tile (one more descriptor in the ring's `tiles`); `ox.per_column(tile)`, `ox.per_row(tile)` spread a vector"
    return "pass what a ring's block or `cta.shared` gives"


def _traced(
    recorder: Recorder, fn: Callable[..., object], tiles: tuple[SharedArray[Any, Any, Any], ...], alongs: tuple[Along, ...]
) -> elem.Elem:
    """What `fn` does with the elements."""
    given = enumerate(zip(tiles, alongs, strict=True))
    node = trace(recorder, fn, [elem.Input(i, tile._request.dtype, along) for i, (tile, along) in given])
    used = elem.ways(node)
    for i, (tile, along) in enumerate(zip(tiles, alongs, strict=True)):
        if along is not Along.ALL and i not in used:  # how it is spread stands where it is used
            refuse(
                RecordError,
                "OX1125",
                f"the function of a map does not use its vector per {along.value}",
                got=f"{tile._request.name}, element {i} of the function",
                required="every vector used",
                fix="leave the vector out of the map",
            )
    return node


def trace(owner: object, fn: Callable[..., object], nodes: Sequence[elem.Elem], what: str = "the function of a map") -> elem.Elem:
    """What `fn`, in words `what`, makes of elements that are `nodes`: it is called once. `owner` is whose scalars it may use."""
    traced = Trace(owner)
    inputs: list[Elem[Any]] = [Elem(node, traced) for node in nodes]
    try:
        inspect.signature(fn).bind(*inputs)
    except (TypeError, ValueError) as problem:
        refuse(
            RecordError,
            "OX1125",
            f"{what} cannot be called with its elements",
            got=f"{len(inputs)} elements: {problem}",
            required=f"a function of {len(inputs)}: one for each input",
            fix=f"lambda {', '.join('abcd'[: len(inputs)])}: ...",
        )
    try:
        made = fn(*inputs)
    except (TypeError, AttributeError) as problem:
        if isinstance(problem, OxidecopyError) or Elem.__name__ not in str(problem):
            raise
        _refuse_use(problem)
    traced.open = False
    if not isinstance(made, Elem) or made._trace is not traced:
        refuse(
            RecordError,
            "OX1125",
            f"{what} gives no element",
            got=described(made),
            required="what operators or `cast` make of its elements",
            fix="return a result: `lambda x: x.cast(ox.bf16)`",
        )
    return made._node


def _refuse_use(problem: Exception) -> NoReturn:
    """Refuses what Python says that an element has not: an operator, a method, a place among numpy's functions."""
    refuse(
        RecordError,
        "OX1009",
        "the function of a map does with an element what elements do not have",
        got=f"{type(problem).__name__}: {problem}",
        required="operators + - * / and comparisons, & | ^ ~ of integers, `cast`, `select`, and methods such as `exp` and `maximum`",
        fix="v * v is a square; functions are methods of the element: v.exp(), v.maximum(0)",
    )
