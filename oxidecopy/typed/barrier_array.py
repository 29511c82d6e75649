"""`ManagedBarriers[State, Kind, ID]`: several mbarriers of one life, whose elements a recorded integer picks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import Cause, ShapeError
from oxidecopy.typed.barrier import ManagedBarrier
from oxidecopy.typed.barrier_ops import record_init, record_inval
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.states import AnyId, Invalidated, Kind, Owned, Ready, State, TmaBarrier, Uninit
from oxidecopy.typed.symbolic import Idx

S = TypeVar("S", bound=State)
K = TypeVar("K", bound=Kind, default=TmaBarrier)
ID = TypeVar("ID", default=AnyId)


@final
class ManagedBarriers(Generic[S, K, ID]):
    """`n` mbarriers, made by `cta.barriers(n)`; elements are borrowed by `bars[i]`, `i` an `Idx`."""

    __slots__ = ("_all",)

    def __init__(self, everything: ManagedBarrier[S, K, ID]) -> None:
        self._all = everything

    @override
    def __repr__(self) -> str:
        return f"ManagedBarriers{repr(self._all).removeprefix('ManagedBarrier')[:-1]}, {len(self)})"

    def init(self: Owned[ManagedBarriers[Uninit, K, ID]], count: int) -> ManagedBarriers[Ready, K, ID]:
        """Starts all of them with `count` arrivals per phase; consumes this handle."""
        return self.init_by(count, 0)

    def init_by(self: Owned[ManagedBarriers[Uninit, K, ID]], count: int, thread: int) -> ManagedBarriers[Ready, K, ID]:
        """As `init`, by thread number `thread`."""
        one = self._all
        one._require(Uninit, "init")
        record_init(one._recorder, one._decl, len(self), count, thread)
        one._taken = Cause("`init` took it here", caller_site())
        return ManagedBarriers(ManagedBarrier(one._recorder, one._decl, one._kind, Ready))

    def inval(self: Owned[ManagedBarriers[Ready, K, ID]]) -> ManagedBarriers[Invalidated, K, ID]:
        """Ends all of them, after a sync of the CTA; consumes this handle."""
        return self.inval_by(0)

    def inval_by(self: Owned[ManagedBarriers[Ready, K, ID]], thread: int) -> ManagedBarriers[Invalidated, K, ID]:
        """As `inval`, by thread number `thread`."""
        one = self._all
        one._require(Ready, "inval")
        record_inval(one._recorder, one._decl, len(self), thread)
        one._taken = Cause("`inval` took it here", caller_site())
        return ManagedBarriers(ManagedBarrier(one._recorder, one._decl, one._kind, Invalidated))

    def __getitem__(self: ManagedBarriers[Ready, K, ID], i: Idx, /) -> ManagedBarrier[Ready, K, ID]:
        one = self._all
        one._require(Ready, "indexing")
        index = one._recorder.below(
            i, len(self), f"an index of barrier array {one._name()}", ShapeError, "OX1042", f"use `i % {len(self)}`"
        )
        return one._borrow(index)

    def __len__(self) -> int:
        return self._all._recorder.barriers[self._all._decl].stages

    def __iter__(self: ManagedBarriers[Ready, K, ID]) -> Iterator[ManagedBarrier[Ready, K, ID]]:
        return (self[i] for i in range(len(self)))
