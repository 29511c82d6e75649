"""`Group` with level-2 operations: what several warps do with a tile together."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

from oxidecopy.isa import ops
from oxidecopy.typed import leader
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import A128, AnyBox
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.symbolic import Idx

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
Bx = TypeVar("Bx", bound=AnyBox, default=Any)


class Group(leader.Group):
    """Several warps, inside their block."""

    __slots__ = ()

    def store(self, dst: TmaDescriptor[DT, C, Any, Bx], tile: SharedArray[DT, Bx, A128], at: C, /) -> None:
        """Stores `tile`, which the group has written or seen land, to `dst` at `at`, and waits until the tile may be overwritten.

        Fence and sync of the group, one elected lane issues the copy, commits and waits for the read, sync again.
        """
        self._check("a group's store")
        self._recorder.emit(ops.FenceProxyAsync())
        self.sync()
        with self.elect() as elected:
            dst.s2g(elected, tile, at)
            elected.commit_group()
            elected.wait_group_read(0)
        self.sync()
