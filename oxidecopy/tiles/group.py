"""`Group` with level-2 operations: what several warps do with a tile together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final, overload

from typing_extensions import TypeVar, override

from oxidecopy.errors import Cause, ScopeError
from oxidecopy.isa import ops
from oxidecopy.tiles.elem import ArrayVector, Elem
from oxidecopy.tiles.mapping import Maps
from oxidecopy.typed import leader
from oxidecopy.typed.cache import CachePolicy
from oxidecopy.typed.cta import fill_tile, iota_tile
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType, bf16, e4m3, e5m2, f16, f32, tf32
from oxidecopy.typed.geometry import A128, AnyBox
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import refuse, require
from oxidecopy.typed.scalar import Scalar
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.symbolic import Idx

if TYPE_CHECKING:
    from oxidecopy.tiles.ring import Ring
    from oxidecopy.tiles.stage import Landed
    from oxidecopy.tiles.store_ring import StoreRing
    from oxidecopy.typed.recorder import Recorder

# Operands, result and what an epilogue reads, of a contraction.
_Op = TypeVar("_Op", bf16, f16, tf32)
_F8 = TypeVar("_F8", e4m3, e5m2)
_G8 = TypeVar("_G8", e4m3, e5m2)
_Out = TypeVar("_Out", f32, bf16, f16)
_R1 = TypeVar("_R1", bound=DType)
_R2 = TypeVar("_R2", bound=DType)
_R3 = TypeVar("_R3", bound=DType)
DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
Major = Literal["k", "mn"]
Majors = tuple[Major, Major]
Read: TypeAlias = ArrayVector[DT] | GlobalArray[DT, C]  # what an epilogue reads


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

    # fmt: off
    @overload
    def contract(
        self, ring: Ring[Any, tuple[Landed[_Op, Any], Landed[_Op, Any]]], outs: StoreRing[_Out, C, Any], at: C, /, *,
        steps: Idx, part: tuple[Idx, int] = ..., epilogue: Callable[[Elem[f32]], Elem[_Out]] | None = ..., reads: tuple[()] = ...,
        majors: Majors = ..., swapped: bool = ..., add: bool = ..., cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def contract(
        self, ring: Ring[Any, tuple[Landed[_Op, Any], Landed[_Op, Any]]], outs: StoreRing[_Out, C, Any], at: C, /, *,
        steps: Idx, part: tuple[Idx, int] = ..., epilogue: Callable[[Elem[f32], Elem[_R1]], Elem[_Out]],
        reads: tuple[Read[_R1, C]], majors: Majors = ..., swapped: bool = ..., add: bool = ..., cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def contract(
        self, ring: Ring[Any, tuple[Landed[_Op, Any], Landed[_Op, Any]]], outs: StoreRing[_Out, C, Any], at: C, /, *,
        steps: Idx, part: tuple[Idx, int] = ..., epilogue: Callable[[Elem[f32], Elem[_R1], Elem[_R2]], Elem[_Out]],
        reads: tuple[Read[_R1, C], Read[_R2, C]], majors: Majors = ..., swapped: bool = ..., add: bool = ...,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def contract(
        self, ring: Ring[Any, tuple[Landed[_Op, Any], Landed[_Op, Any]]], outs: StoreRing[_Out, C, Any], at: C, /, *,
        steps: Idx, part: tuple[Idx, int] = ..., epilogue: Callable[[Elem[f32], Elem[_R1], Elem[_R2], Elem[_R3]], Elem[_Out]],
        reads: tuple[Read[_R1, C], Read[_R2, C], Read[_R3, C]], majors: Majors = ..., swapped: bool = ..., add: bool = ...,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def contract(
        self, ring: Ring[Any, tuple[Landed[_F8, Any], Landed[_G8, Any]]], outs: StoreRing[_Out, C, Any], at: C, /, *,
        steps: Idx, part: tuple[Idx, int] = ..., epilogue: Callable[[Elem[f32]], Elem[_Out]] | None = ..., reads: tuple[()] = ...,
        swapped: bool = ..., add: bool = ..., cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def contract(
        self, ring: Ring[Any, tuple[Landed[_F8, Any], Landed[_G8, Any]]], outs: StoreRing[_Out, C, Any], at: C, /, *,
        steps: Idx, part: tuple[Idx, int] = ..., epilogue: Callable[[Elem[f32], Elem[_R1]], Elem[_Out]],
        reads: tuple[Read[_R1, C]], swapped: bool = ..., add: bool = ..., cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def contract(
        self, ring: Ring[Any, tuple[Landed[_F8, Any], Landed[_G8, Any]]], outs: StoreRing[_Out, C, Any], at: C, /, *,
        steps: Idx, part: tuple[Idx, int] = ..., epilogue: Callable[[Elem[f32], Elem[_R1], Elem[_R2]], Elem[_Out]],
        reads: tuple[Read[_R1, C], Read[_R2, C]], swapped: bool = ..., add: bool = ..., cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    @overload
    def contract(
        self, ring: Ring[Any, tuple[Landed[_F8, Any], Landed[_G8, Any]]], outs: StoreRing[_Out, C, Any], at: C, /, *,
        steps: Idx, part: tuple[Idx, int] = ..., epilogue: Callable[[Elem[f32], Elem[_R1], Elem[_R2], Elem[_R3]], Elem[_Out]],
        reads: tuple[Read[_R1, C], Read[_R2, C], Read[_R3, C]], swapped: bool = ..., add: bool = ...,
        cache_hint: CachePolicy | None = ...,
    ) -> None: ...
    # fmt: on
    def contract(  # noqa: PLR0913 - as its forms above
        self,
        ring: Ring[Any, Any],
        outs: StoreRing[Any, Any, Any],
        at: Any,
        /,
        *,
        steps: Idx,
        part: tuple[Idx, int] = (0, 1),
        epilogue: Callable[..., Elem[Any]] | None = None,
        reads: tuple[Any, ...] = (),
        majors: Majors = ("k", "k"),
        swapped: bool = False,
        add: bool = False,
        cache_hint: CachePolicy | None = None,
    ) -> None:
        """The next `steps` stages of a ring, landed, are multiplied on tensor cores, a * b^T, summed in f32, and the result is stored.

        All of it is one op of this group, a warpgroup: waits, products, releases of the stages, epilogue and stores, which are under way
        when it is over. For a ring of two tiles: a (M rows, 128 bytes of K) and b (N rows, as much of K), both with `Swizzle128B`.

        Args:
            ring: whose stages are consumed, as by `ring.consume(group)`.
            outs: a store ring for this group alone, of a descriptor with a box of 64 rows of 128 bytes and `Swizzle128B`.
            at: the corner, in the result, of the whole tile of a and b (that of all groups).
            steps: stages to multiply: the K of the array over that of a stage, rounded up.
            part: `(number, of)`: this group has that part of the rows of a, where several groups share a stage.
            epilogue: from the f32 sum (and an element of each of `reads`) to what is stored; a cast by default. Traced as that of `map`.
            reads: up to three arrays that the epilogue reads: `ox.per_row(v)`, `ox.per_column(v)`, or one with the result's dimensions.
            majors: what lies dense in a's and b's rows: "k", or "mn" for tiles of columns (blocks of K rows, by `slot.load_part`).
            swapped: the ring's first tile is b (as in a multicast ring that shares b).
            add: adds to what is there (TMA reduction), in the order in which blocks come: for a K that several of them share.
            cache_hint: for the stores.
        """
        from oxidecopy.tiles.contraction import contract

        contract(
            self, ring, outs, at,
            steps=steps, part=part, epilogue=epilogue, reads=reads, majors=majors, swapped=swapped, add=add, cache_hint=cache_hint,
        )  # fmt: skip

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
