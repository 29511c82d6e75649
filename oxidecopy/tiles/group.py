"""`Group` with level-2 operations: what several warps do with a tile together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import Cause, ScopeError
from oxidecopy.isa import ops
from oxidecopy.tiles.mapping import Maps
from oxidecopy.typed import leader
from oxidecopy.typed.cta import fill_tile, iota_tile
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import A128, AnyBox
from oxidecopy.typed.refusal import refuse, require
from oxidecopy.typed.scalar import Scalar
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.symbolic import Idx

if TYPE_CHECKING:
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
Bx = TypeVar("Bx", bound=AnyBox, default=Any)


def whole_group(group: leader.Group, what: str) -> Recorder:
    """The recorder, where all threads of `group` execute; `what` of a group syncs it, or is shared out to all of them."""
    group._check(what)
    recorder = group._recorder
    if recorder.scope != group._frame.threads:
        narrow = next((f for f in recorder.frames if f.number > group._frame.number and f.threads != group._frame.threads), None)
        refuse(
            ScopeError,
            "OX1121",
            f"{what} of a group is called where only some of its threads execute",
            got=f"{len(recorder.scope)} of {len(group._frame.threads)} threads",
            required="the group's own block, with no narrower one in between",
            fix="move it out of the inner block",
            causes=(Cause("the inner block", narrow.site),) if narrow is not None else (),
        )
    return recorder


class Group(leader.Group, Maps):
    """Several warps, inside their block."""

    __slots__ = ()

    @override
    def _executes(self, what: str) -> Recorder:
        return whole_group(self, what)

    def fill(self, tile: SharedArray[DT, Any, Any], value: Scalar[DT]) -> None:
        """Sets every element of `tile` to `value`, rounded to its type."""
        fill_tile(self._executes("a fill"), tile, value)

    def iota(self, tile: SharedArray[Any, Any, Any], axis: int) -> None:
        """Sets every element of `tile` to its index along `axis` (0 is the outermost)."""
        iota_tile(self._executes("an iota"), tile, axis)

    def store(self, dst: TmaDescriptor[DT, C, Any, Bx], tile: SharedArray[DT, Bx, A128], at: C, /) -> None:
        """Stores `tile`, which the group has written or seen land, to `dst` at `at`, and waits until the tile may be overwritten.

        Fence and sync of the group, one elected lane issues the copy, commits and waits for the read, sync again.
        """
        self._executes("a store")
        to = require(dst, TmaDescriptor, "`store` of a group", "pass the descriptor that is stored through; `cta.store` takes arrays")
        self._recorder.emit(ops.FenceProxyAsync())
        self.sync()
        with self.elect() as elected:
            to.s2g(elected, tile, at)
            elected.commit_group()
            elected.wait_group_read(0)
        self.sync()


@final
class ClusterGroup(Group, leader.ClusterGroup):
    """A group in a pipeline that has a cluster: its leaders may multicast."""

    __slots__ = ()
