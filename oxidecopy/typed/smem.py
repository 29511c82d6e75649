"""Shared-memory tiles as handles: element type, box and alignment in the type, the place in the recording inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, final

from typing_extensions import TypeVar

from oxidecopy.errors import Diagnostic, ShapeError
from oxidecopy.isa import expr
from oxidecopy.isa.ops import Part, TileRef
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import A16, AnyBox
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.symbolic import Idx, to_expr

if TYPE_CHECKING:
    from oxidecopy.typed.layout import TileRequest
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
# Invariant on purpose: of two covariant boxes in one call a checker would join the types and accept any pair.
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
AL_co = TypeVar("AL_co", bound=A16, covariant=True, default=A16)


class SharedArray(Generic[DT, Bx, AL_co]):
    """One tile in shared memory, made by `cta.shared`."""

    __slots__ = ("_index", "_part", "_recorder", "_request", "_tile")

    def __init__(self, recorder: Recorder, tile: int, request: TileRequest, index: expr.Expr, part: Part | None = None) -> None:
        self._recorder = recorder
        self._tile = tile
        self._request = request
        self._index = index
        self._part = part

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements, outermost first."""
        outer, *inner = self._request.shape
        return (outer // self._part.of if self._part else outer, *inner)

    @property
    def nbytes(self) -> int:
        """Dense bytes: what a barrier is told for a copy into this tile (always the full box, whatever lies outside the tensor)."""
        return self._request.nbytes // (self._part.of if self._part else 1)

    def part(self, rank: Idx, *, of: int) -> SharedArray[DT, Any, AL_co]:
        """Slice `rank` of `of` equal ones along the outermost dimension, for tiles that the CTAs of a cluster load together."""
        self._recorder.check_open("a tile")
        outer = self._request.shape[0]
        if type(of) is not int or of < 1 or outer % of or self._part:
            raise ShapeError(
                Diagnostic(
                    rule="OX1038",
                    what=f"tile {self._request.name!r} cannot be cut into {of} equal parts",
                    got="a part of a part" if self._part else f"{outer} rows / {of}",
                    required="an outermost extent that `of` divides",
                    fix=f"use one of {[n for n in range(1, min(outer, 16) + 1) if outer % n == 0]} parts",
                    site=caller_site(),
                )
            )
        return SharedArray(self._recorder, self._tile, self._request, self._index, Part(to_expr(rank, "a part's rank"), of))

    def _ref(self) -> TileRef:
        self._recorder.check_open(f"tile {self._request.name!r}")
        return TileRef(self._tile, self._index, self._part)

    def _target(self) -> TileRef:
        """The same, for an op that writes the tile by plain stores."""
        return self._ref()


@final
class SharedArrays(Generic[DT, Bx, AL_co]):
    """`stages` equal tiles, indexed by a symbolic integer: `tiles[i % 4]`."""

    __slots__ = ("_recorder", "_request", "_tile")

    def __init__(self, recorder: Recorder, tile: int, request: TileRequest) -> None:
        self._recorder = recorder
        self._tile = tile
        self._request = request

    def __getitem__(self, i: Idx, /) -> SharedArray[DT, Bx, AL_co]:
        self._recorder.check_open(f"tile array {self._request.name!r}")
        return SharedArray(self._recorder, self._tile, self._request, stage_index(i, self._request.stages, f"tile array {self._request.name!r}"))

    def __len__(self) -> int:
        return self._request.stages

    def __iter__(self) -> Iterator[SharedArray[DT, Bx, AL_co]]:
        return (self[i] for i in range(len(self)))


def stage_index(i: Idx, stages: int, what: str) -> expr.Expr:
    """The expression of an index; a plain one out of range is refused at once, as a list would."""
    index = to_expr(i, f"an index of {what}")
    if isinstance(index, expr.Const) and not 0 <= index.value < stages:
        raise ShapeError(
            Diagnostic(
                rule="OX1042", what=f"{what} has no such element", got=str(index.value), required=f"0 to {stages - 1}", fix=f"use `i % {stages}`", site=caller_site()
            )
        )
    return index
