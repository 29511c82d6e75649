"""A counting ring for stores: staging tiles that a group fills in turn, each stored by one elected lane."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import ScopeError
from oxidecopy.isa import expr, limits, ops
from oxidecopy.isa.expr import Const
from oxidecopy.isa.ops import MapRef, TileRef
from oxidecopy.tiles.cursor import Cursor
from oxidecopy.tiles.group import whole_group
from oxidecopy.tiles.stage import Block, BlockTile
from oxidecopy.typed.cache import CachePolicy, hint_of
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import A1024, AnyBox
from oxidecopy.typed.leader import Group as AnyGroup
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.symbolic import Idx

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.frames import Frame
    from oxidecopy.typed.layout import TileRequest
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
Bx = TypeVar("Bx", bound=AnyBox, default=Any)


@final
class StoreRing(Generic[DT, C, Bx]):
    """Made by `cta.store_ring`; one group puts into it. Its stores are drained when the group's block ends."""

    def __init__(self, recorder: Recorder, param: MapParam, ref: MapRef, tile: int, request: TileRequest) -> None:
        self._recorder = recorder
        self._param = param
        self._ref = ref
        self._tile = tile
        self._request = request
        self._cursor = Cursor(recorder, f"{request.name}.put")
        self._threads: ops.ThreadSet | None = None
        self._contracts: bool | None = None  # filled by contractions, not by hand; None: not filled yet

    def put(
        self, group: AnyGroup, at: C, /, *, cache_hint: CachePolicy | None = None
    ) -> AbstractContextManager[SharedArray[DT, Bx, A1024], None]:
        """A free staging tile, stored at `at` when the block ends.

        Waits until the store that used the tile last has read it (`wait_group_read` with one group fewer than stages left pending), and
        syncs the group. At the end: proxy fence by all writers, sync, then the elected lane stores and commits.
        """
        recorder = self._recorder
        recorder.check_open("a store ring")
        if not isinstance(group, AnyGroup):
            refuse(
                ScopeError,
                "OX1104",
                "a store ring is filled by a group",
                got=type(group).__name__,
                required="what `cta.consumers()` gives",
                fix="with cta.consumers() as group: ... outs.put(group, at)",
            )
        self._belongs(group, contracts=False)
        group._frame.at_close(self._drain)
        return _Put(self, group, recorder.coordinates(at, self._param.rank, f"a store to {self._param.name!r}"), hint_of(cache_hint))

    def _take(self, group: AnyGroup, count: int) -> expr.Expr:
        """The number of the first of so many uses, which a contraction of the group makes."""
        self._belongs(group, contracts=True)
        group._frame.at_close(self._drain_contracts)
        return self._cursor.take(Const(count))

    def _belongs(self, group: AnyGroup, *, contracts: bool) -> None:
        """One group fills the tiles, in one way."""
        if self._threads is None:
            self._threads, self._contracts = group._frame.threads, contracts
        if self._contracts is not contracts:
            refuse(
                ScopeError,
                "OX1236",
                f"{self._request.name} is filled by contractions, and by hand",
                required="one way for each store ring: a warpgroup that contracts does nothing else with its tiles",
                fix="make a second one",
            )
        if self._threads != group._frame.threads:
            refuse(
                ScopeError,
                "OX1104",
                "two groups put into one store ring",
                required="a store ring for each group: bulk groups belong to a thread",
                fix="make a second one",
            )

    def _drain_contracts(self, frame: Frame) -> None:
        """As `_drain`, of a warpgroup that stays together."""
        number, threads = self._recorder.barrier_number(frame.threads), len(frame.threads)
        self._recorder.emit(ops.ContractDrain(number=number, threads=threads, lane=frame.threads.first))

    def _drain(self, frame: Frame) -> None:
        """The group's block ends: its elected lane waits for what it stored, so that shared memory outlives the reads."""
        first = frame.threads.first
        threads = ops.ThreadSet(((first, first + 1),))
        block = self._recorder.push(ops.Scope(role="elect", threads=threads), threads)
        self._recorder.emit(ops.WaitGroupRead(pending=0))
        self._recorder.pop(block)


@final
class _Put(AbstractContextManager[Any, None]):
    """The block of a staging tile being filled."""

    def __init__(self, ring: StoreRing[Any, Any, Any], group: AnyGroup, at: tuple[expr.Expr, ...], hint: ops.CacheHint | None) -> None:
        self._ring = ring
        self._hint = hint
        self._group = group
        self._at = at
        self._block = Block()
        self._tile: BlockTile[Any, Any] | None = None

    @override
    def __enter__(self) -> BlockTile[Any, Any]:
        ring, recorder = self._ring, self._ring._recorder
        whole_group(self._group, "a staging tile")
        stages = ring._request.stages
        slot = expr.mod(ring._cursor.take(), Const(stages))
        with self._group.elect():
            recorder.emit(ops.WaitGroupRead(pending=min(stages - 1, limits.WAIT_GROUP_MAX)))
        self._group.sync()
        tile: BlockTile[Any, Any] = BlockTile(recorder, ring._tile, ring._request, slot)
        tile._block = self._block
        self._tile = tile
        return tile

    @override
    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /) -> None:
        self._block.open = False
        if exc_type is not None or self._tile is None:
            return
        ring, recorder = self._ring, self._ring._recorder
        recorder.emit(ops.FenceProxyAsync())
        self._group.sync()
        with self._group.elect():
            recorder.emit(ops.TensorS2G(map=ring._ref, tile=TileRef(ring._tile, self._tile._index), coords=self._at, hint=self._hint))
            recorder.emit(ops.CommitGroup())
