"""Shared-memory tiles as handles: element type, box and alignment in the type, the place in the recording inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import DTypeError, ShapeError
from oxidecopy.isa import expr
from oxidecopy.isa.ops import Part, TileRef
from oxidecopy.typed.dtypes import DType, Packed, u8
from oxidecopy.typed.geometry import A16, AnyBox
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.symbolic import Idx, shown

if TYPE_CHECKING:
    from oxidecopy.typed.layout import TileRequest
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
# Invariant on purpose: of two covariant boxes in one call a checker would join the types and accept any pair.
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
_P = TypeVar("_P", bound=Packed)
AL_co = TypeVar("AL_co", bound=A16, covariant=True, default=A16)


class SharedArray(Generic[DT, Bx, AL_co]):
    """One tile in shared memory, made by `cta.shared`."""

    __slots__ = ("_index", "_packed", "_part", "_recorder", "_request", "_tile")

    def __init__(
        self,
        recorder: Recorder,
        tile: int,
        request: TileRequest,
        index: expr.Expr,
        part: Part | None = None,
        *,
        packed: str | None = None,
    ) -> None:
        self._recorder = recorder
        self._tile = tile
        self._request = request
        self._index = index
        self._part = part
        self._packed = request.packed if packed is None else packed  # the packed type of its elements; empty where they are whole bytes

    @override
    def __repr__(self) -> str:
        # Of a ring's tile the number of the stage is only put in when its block is over.
        stage = f"[{shown(self._index)}]" if self._request.stages > 1 and type(self) is SharedArray else ""
        part = f", part {shown(self._part.rank)} of {self._part.of}" if self._part else ""
        return f"{type(self).__name__}('{self._request.name}{stage}', {self._request.dtype}, {self._request.shape}{part})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements, outermost first."""
        outer, *inner = self._request.elements if self._packed else self._request.shape
        return (outer // self._part.of if self._part else outer, *inner)

    @property
    def nbytes(self) -> int:
        """Dense bytes: what a barrier is told for a copy into this tile (always the full box, whatever lies outside the tensor)."""
        return self._request.nbytes // (self._part.of if self._part else 1)

    @property
    def bytes(self: SharedArray[_P, Any, AL_co]) -> SharedArray[u8, Any, AL_co]:
        """The bytes that packed elements lie in, gaps included, for plain accesses."""
        name = f"tile {self._request.name!r}"
        if not self._packed:
            got, required = self._request.dtype, "packed elements"
            refuse(DTypeError, "OX1049", f"{name} is one of whole bytes", got=got, required=required, fix="use the tile as it is")
        return SharedArray(self._recorder, self._tile, self._request, self._index, self._part, packed="")

    def part(self, rank: Idx, *, of: int) -> SharedArray[DT, Any, AL_co]:
        """Slice `rank` of `of` equal ones along the outermost dimension, for tiles that the CTAs of a cluster load together."""
        name = f"tile {self._request.name!r}"
        self._recorder.check_open(name)
        outer = self._request.shape[0]
        parts = whole(of)
        if parts is None or parts < 1 or outer % parts or self._part:
            refuse(
                ShapeError,
                "OX1038",
                f"{name} cannot be cut into such parts",
                got="a part of a part" if self._part else f"{outer} rows / {described(of)}",
                required="a plain number of parts that divides the outermost extent",
                fix=f"use one of {[n for n in range(1, min(outer, 16) + 1) if outer % n == 0]} parts",
            )
        index = self._recorder.below(rank, parts, f"the rank of a part of {name}", ShapeError, "OX1042", f"use `cta.cta_rank % {parts}`")
        return SharedArray(self._recorder, self._tile, self._request, self._index, Part(index, parts), packed=self._packed)

    def _ref(self, recorder: Recorder) -> TileRef:
        """The tile as an operand of an op of `recorder`."""
        self._recorder.check_open(f"tile {self._request.name!r}", recorder)
        return TileRef(self._tile, self._index, self._part)

    def _target(self, recorder: Recorder) -> TileRef:
        """The same, for an op that writes the tile by plain stores."""
        return self._ref(recorder)


@final
class SharedArrays(Generic[DT, Bx, AL_co]):
    """`stages` equal tiles, indexed by a symbolic integer: `tiles[i % 4]`."""

    __slots__ = ("_recorder", "_request", "_tile")

    def __init__(self, recorder: Recorder, tile: int, request: TileRequest) -> None:
        self._recorder = recorder
        self._tile = tile
        self._request = request

    @override
    def __repr__(self) -> str:
        return f"SharedArrays({self._request.name!r}, {self._request.dtype}, {self._request.shape}, {len(self)})"

    def __getitem__(self, i: Idx, /) -> SharedArray[DT, Bx, AL_co]:
        name = f"tile array {self._request.name!r}"
        self._recorder.check_open(name)
        index = self._recorder.below(i, len(self), f"an index of {name}", ShapeError, "OX1042", f"use `i % {len(self)}`")
        return SharedArray(self._recorder, self._tile, self._request, index)

    def __len__(self) -> int:
        return self._request.stages

    def __iter__(self) -> Iterator[SharedArray[DT, Bx, AL_co]]:
        return (self[i] for i in range(len(self)))
