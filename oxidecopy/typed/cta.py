"""`Cta`: what a pipeline function is given. It allocates shared memory and barriers, picks threads, and records plain operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, final, overload

from typing_extensions import TypeVar, override

from oxidecopy.errors import DTypeError, RecordError, ScopeError, ShapeError
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Const, Expr, Sym, SymKind, is_launch_constant
from oxidecopy.isa.ops import ArrayRef, ScalarRef, ThreadSet
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL
from oxidecopy.typed.barrier import ManagedBarrier
from oxidecopy.typed.barrier_array import ManagedBarriers
from oxidecopy.typed.cta_checks import (
    alignment,
    barrier_kind,
    box_of,
    brand_name,
    element_type,
    loop_step,
    plain_name,
    stages_of,
    warp_threads,
)
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.descriptor_checks import array_of, halo_rows, in_shared, same_type, tile_of
from oxidecopy.typed.dtypes import DType, i32, i64, u8, u16, u32, u64
from oxidecopy.typed.early import refuse_early_exit
from oxidecopy.typed.frames import fresh
from oxidecopy.typed.geometry import A16, A1024, D1, D2, D3, D4, D5, AnyBox, AnySwizzle, Box1, Box2, Box3, Box4, Box5
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.im2col import Im2colDescriptor, Im2colWideDescriptor
from oxidecopy.typed.layout import TileRequest
from oxidecopy.typed.leader import ClusterGroup, ClusterLeader, ConditionBlock, Group, HandleBlock, Leader, ThreadsBlock
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.scalar import Scalar, ScalarValue
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.smem import SharedArray, SharedArrays
from oxidecopy.typed.states import AnyId, Kind, TmaBarrier, Uninit
from oxidecopy.typed.symbolic import Idx, Pred, SymIdx, refuse_foreign, shown, to_cond
from oxidecopy.typed.tensormap import TensorMapSlot, slot_for
from oxidecopy.typed.values import fitting_value

if TYPE_CHECKING:
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
AL = TypeVar("AL", bound=A16)
_B1 = TypeVar("_B1", bound=AnyBox)
_K2 = TypeVar("_K2", bound=Kind)
_ID2 = TypeVar("_ID2")
_CS = TypeVar("_CS", D1, D2, D3, D4, D5)
_CO = TypeVar("_CO", bound=tuple[Idx, ...])
_SWO = TypeVar("_SWO", bound=AnySwizzle)
_IDX = TypeVar("_IDX", u8, u16, u32, i32, u64, i64)
_INTEGERS: Final = ("u8", "u16", "u32", "i32", "u64", "i64")

NO_STOP: Final = SymIdx(ZERO, None)  # stands for the argument that `cta.range(stop)` leaves out


@final
class Dim3:
    """Three symbolic integers, as CUDA's blockIdx and gridDim."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: SymIdx, y: SymIdx, z: SymIdx) -> None:
        self.x = x
        self.y = y
        self.z = z


class Cta:
    """One thread block of the launch."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @property
    def block_idx(self) -> Dim3:
        """This CTA's place in the grid."""
        x, y, z = (SymIdx(Sym(name, SymKind.BLOCK), self._recorder) for name in BLOCK_SYMBOLS)
        return Dim3(x, y, z)

    @property
    def grid_dim(self) -> Dim3:
        """CTAs of the launch in x, y and z."""
        x, y, z = (SymIdx(Sym(f"grid_dim.{axis}", SymKind.GRID), self._recorder) for axis in "xyz")
        return Dim3(x, y, z)

    @property
    def threads(self) -> int:
        """Threads of one CTA."""
        return self._recorder.threads

    # ---- barriers
    @overload
    def barrier(self, *, name: str = ...) -> ManagedBarrier[Uninit, TmaBarrier, AnyId]: ...
    @overload
    def barrier(self, *, brand: type[_ID2], name: str = ...) -> ManagedBarrier[Uninit, TmaBarrier, _ID2]: ...
    @overload
    def barrier(self, *, kind: type[_K2], name: str = ...) -> ManagedBarrier[Uninit, _K2, AnyId]: ...
    @overload
    def barrier(self, *, kind: type[_K2], brand: type[_ID2], name: str = ...) -> ManagedBarrier[Uninit, _K2, _ID2]: ...
    def barrier(
        self, *, kind: type[Kind] = TmaBarrier, brand: type[object] = AnyId, name: str | None = None
    ) -> ManagedBarrier[Uninit, Any, Any]:
        """One mbarrier, not yet initialised.

        Args:
            kind: `TmaBarrier` counts bytes, too.
            brand: any class of yours: tokens of another brand are then type errors, and errors name the barrier after it.
            name: what errors and listings call it, where there is no brand or another name is better.
        """
        return self._declare(kind, brand, 1, name)

    @overload
    def barriers(self, n: int, /, *, name: str = ...) -> ManagedBarriers[Uninit, TmaBarrier, AnyId]: ...
    @overload
    def barriers(self, n: int, /, *, brand: type[_ID2], name: str = ...) -> ManagedBarriers[Uninit, TmaBarrier, _ID2]: ...
    @overload
    def barriers(self, n: int, /, *, kind: type[_K2], name: str = ...) -> ManagedBarriers[Uninit, _K2, AnyId]: ...
    @overload
    def barriers(self, n: int, /, *, kind: type[_K2], brand: type[_ID2], name: str = ...) -> ManagedBarriers[Uninit, _K2, _ID2]: ...
    def barriers(
        self, n: int, /, *, kind: type[Kind] = TmaBarrier, brand: type[object] = AnyId, name: str | None = None
    ) -> ManagedBarriers[Uninit, Any, Any]:
        """`n` mbarriers indexed by an `Idx`, for loops whose stage is only known when they run; the rest as for `barrier`."""
        return ManagedBarriers(self._declare(kind, brand, stages_of(n, "barriers"), name))

    def _declare(self, kind: type[Kind], brand: type[object], stages: int, name: object) -> ManagedBarrier[Uninit, Any, Any]:
        recorder = self._recorder
        recorder.check_open("the cta")
        recorder.require_no_loop("a barrier")
        cls = barrier_kind(kind)
        stem = f"bar{len(recorder.barriers)}" if brand is AnyId else brand_name(brand)
        stem = stem if name is None else plain_name(name, "a barrier")
        return ManagedBarrier(recorder, recorder.add_barrier(cls.__name__, stages, stem), cls, Uninit)

    # ---- shared memory
    @overload
    def shared(self, like: TmaDescriptor[DT, Any, Any, Bx], /, *, name: str = ...) -> SharedArray[DT, Bx, A1024]: ...
    @overload
    def shared(self, like: TmaDescriptor[DT, Any, Any, Bx], /, *, stages: int, name: str = ...) -> SharedArrays[DT, Bx, A1024]: ...
    @overload
    def shared(self, like: Im2colDescriptor[DT, Any, Any, Bx], /, *, name: str = ...) -> SharedArray[DT, Bx, A1024]: ...
    @overload
    def shared(self, like: Im2colDescriptor[DT, Any, Any, Bx], /, *, stages: int, name: str = ...) -> SharedArrays[DT, Bx, A1024]: ...
    @overload
    def shared(
        self, like: Im2colWideDescriptor[DT, Any, Any, Any], /, *, halo: int = ..., name: str = ...
    ) -> SharedArray[DT, Any, A1024]: ...
    @overload
    def shared(
        self, like: Im2colWideDescriptor[DT, Any, Any, Any], /, *, stages: int, halo: int = ..., name: str = ...
    ) -> SharedArrays[DT, Any, A1024]: ...
    @overload
    def shared(self, dtype: type[DT], box: type[_B1], /, *, align: type[AL], name: str = ...) -> SharedArray[DT, _B1, AL]: ...
    @overload
    def shared(self, dtype: type[DT], box: tuple[int], /, *, align: type[AL], name: str = ...) -> SharedArray[DT, Box1[Any], AL]: ...
    @overload
    def shared(
        self, dtype: type[DT], box: tuple[int, int], /, *, align: type[AL], name: str = ...
    ) -> SharedArray[DT, Box2[Any, Any], AL]: ...
    @overload
    def shared(
        self, dtype: type[DT], box: tuple[int, int, int], /, *, align: type[AL], name: str = ...
    ) -> SharedArray[DT, Box3[Any, Any, Any], AL]: ...
    @overload
    def shared(
        self, dtype: type[DT], box: tuple[int, int, int, int], /, *, align: type[AL], name: str = ...
    ) -> SharedArray[DT, Box4[Any, Any, Any, Any], AL]: ...
    @overload
    def shared(
        self, dtype: type[DT], box: tuple[int, int, int, int, int], /, *, align: type[AL], name: str = ...
    ) -> SharedArray[DT, Box5[Any, Any, Any, Any, Any], AL]: ...
    def shared(self, like: Any, box: Any = None, /, *, align: Any = None, stages: Any = None, halo: Any = None, name: Any = None) -> Any:
        """A tile in shared memory.

        Args:
            like: a descriptor, for a tile of its box (aligned to 1,024 bytes: right for every swizzle), or an element type.
            box: with an element type: the extents in elements, outermost first, as a tuple or a box type.
            align: with an element type: `A16` to `A1024`.
            stages: with a descriptor: this many equal tiles, indexed by an `Idx`.
            halo: with a descriptor of wide im2col copies: the pixels of its halo.
            name: what errors and listings call it; by default it is named after the descriptor.
        """
        self._recorder.check_open("the cta")
        self._recorder.require_no_loop("a tile")
        called = None if name is None else plain_name(name, "a tile")
        if not isinstance(like, TmaDescriptor | Im2colDescriptor | Im2colWideDescriptor):
            _only("stages", stages, "with a descriptor")
            _only("halo", halo, "with a descriptor of wide im2col copies")
            dtype = element_type(like)
            request = self._request(called or "tile", dtype, in_shared(dtype, box_of(box)), alignment(align), 1)
            return SharedArray[Any, Any, Any](self._recorder, self._add(request), request, ZERO)
        _only("a box", box, "with an element type")
        _only("align", align, "with an element type")
        recorder, param, _ = like._recorded("shared")
        if recorder is not self._recorder:
            refuse_foreign("a descriptor")
        count = 1 if stages is None else stages_of(stages, "stages")
        shape = param.layout.shape
        if isinstance(like, Im2colWideDescriptor):
            shape = (halo_rows(param, 0 if halo is None else halo, "a tile"), shape[-1])
        else:
            _only("halo", halo, "with a descriptor of wide im2col copies")
        request = self._request(called or f"{param.name}_tile", param.dtype, shape, A1024.bytes, count)
        # A tile made for one descriptor has that descriptor's layout from the start.
        request.adopt(param.swizzle)
        if stages is None:
            return SharedArray[Any, Any, Any](self._recorder, self._add(request), request, ZERO)
        return SharedArrays[Any, Any, Any](self._recorder, self._add(request), request)

    def tensormap(self, like: TmaDescriptor[DT, _CO, _SWO, Bx], slots: GlobalArray[u8, D2], /) -> TensorMapSlot[DT, _CO, _SWO, Bx]:
        """A slot for a descriptor that this CTA makes out of `like` while it runs: of another array, or of a part of one.

        Args:
            like: a tiled descriptor, a parameter of the pipeline: box, swizzle and all else that copies rely on stay as they are.
            slots: where the descriptors of all CTAs lie: rows of 128 bytes, one for each CTA and slot (`dev.empty((ctas, 128), ox.u8)`).
        """
        self._recorder.check_open("the cta")
        return slot_for(self._recorder, like, slots)

    def _request(self, stem: str, dtype: str, shape: tuple[int, ...], align: int, stages: int) -> TileRequest:
        """`shape` is what lies in shared memory: bytes of packed elements."""
        info = DTYPES[dtype]
        name = fresh(stem, {t.name for t in self._recorder.tiles})
        packed = dtype if info.packed else ""
        return TileRequest(name=name, dtype=info.in_shared, shape=shape, align=align, stages=stages, site=caller_site(), packed=packed)

    def _add(self, request: TileRequest) -> int:
        self._recorder.tiles.append(request)
        return len(self._recorder.tiles) - 1

    # ---- who executes
    def elect(self) -> AbstractContextManager[Leader, None]:
        """One fixed thread of the CTA: the first."""
        return HandleBlock(self._recorder, "elect", _first(self._recorder.scope), Leader)

    def thread(self, i: int) -> AbstractContextManager[Leader, None]:
        """Thread number `i`."""
        return HandleBlock(self._recorder, "thread", self._recorder.thread(i, "`thread`"), Leader)

    def threads_except(self, i: int) -> AbstractContextManager[None, None]:
        """All threads but number `i`."""
        one = self._recorder.thread(i, "`threads_except`")
        n = one.first
        ranges = tuple((lo, hi) for lo, hi in ((0, n), (n + 1, self.threads)) if lo < hi)
        if not ranges:
            refuse(
                ScopeError,
                "OX1030",
                "this threads_except block would never run: the CTA has one thread",
                got="threads=1",
                required="at least one thread",
                fix="ask for more threads in the pipeline's declaration",
            )
        return ThreadsBlock(self._recorder, "threads_except", ThreadSet(ranges))

    def warps(self, first: int, stop: int, /) -> AbstractContextManager[Group, None]:
        """Warps `first` to `stop` - 1 as a role of their own; the last warp may be partial."""
        return HandleBlock(self._recorder, "warps", warp_threads(self._recorder, first, stop), Group)

    def when(self, cond: Pred | bool, /) -> AbstractContextManager[None, None]:  # noqa: FBT001  # a condition, not an option
        """Runs the block where `cond` holds. A plain bool is decided while recording. `return` out of the block is refused."""
        to_cond(cond, "`when`")
        refuse_early_exit()
        return ConditionBlock(self._recorder, cond)

    # One signature, not two overloads: where an argument is wrong, checkers still know that the counter is a SymIdx.
    def range(self, start: Idx, stop: Idx = NO_STOP, step: int = 1, /) -> Iterator[SymIdx]:
        """A loop that the device runs: its body is recorded once. `break` out of it is refused.

        Args:
            start: the first value of the counter; as the only argument it is `stop`, and the counter starts at 0, as with Python's range.
            stop: where the loop ends, exclusive.
            step: a plain int other than 0.
        """
        self._recorder.check_open("a loop")
        alone = stop is NO_STOP
        first = ZERO if alone else self._recorder.index(start, "a loop's start")
        end = self._recorder.index(start, "a trip count") if alone else self._recorder.index(stop, "a loop's end")
        return self._loop(first, end, loop_step(step))

    def _loop(self, start: Expr, stop: Expr, step: int) -> Iterator[SymIdx]:
        recorder = self._recorder
        recorder.check_open("a loop")
        counter = recorder.next_counter()
        frame = recorder.push(ops.Loop(counter=counter, start=start, stop=stop, step=step), recorder.scope)
        try:
            yield SymIdx(Sym(counter, SymKind.LOOP), recorder)
        except GeneratorExit:
            # The for statement dropped this iterator before its body's end: break, return or an exception.
            recorder.leave(frame)
            raise
        recorder.check_open("a loop")
        recorder.pop(frame)

    def load_index(self, array: GlobalArray[_IDX, D1], i: Idx, /, *, below: Idx) -> SymIdx:
        """Element `i` of an integer array: an index into data, known only while the pipeline runs, the same for all threads.

        It may choose coordinates, never what is waited for, looped over or skipped. A value outside [0, below) ends the launch by an error.

        Args:
            array: 1-D, a parameter of this pipeline that it does not write.
            i: inside the array.
            below: the bound, one value for the launch: the extent that the index goes into (`src.shape[0]`).
        """
        recorder = self._recorder
        recorder.check_open("the cta")
        param = array_of(recorder, array, "`load_index`")
        index, bound = recorder.index(i, "an index of `load_index`"), recorder.index(below, "a bound")
        fits = is_launch_constant(bound) and not (isinstance(bound, Const) and bound.value < 1)
        if param.rank != 1 or param.dtype not in _INTEGERS or not fits:
            refuse(
                DTypeError,
                "OX1142",
                f"`load_index` cannot read indices from {param.name!r} like this",
                got=f"{param.dtype} of rank {param.rank}, below {shown(bound)}",
                required=f"a 1-D array of {', '.join(_INTEGERS)}; a bound of 1 or more that is one value for the launch",
                fix="pass the extent that the index goes into: `below=src.shape[0]`",
            )
        read = recorder.read()
        recorder.emit(ops.LoadIndex(name=read.name, array=ArrayRef(param.name), index=index, below=bound))
        return SymIdx(read, recorder)

    # ---- ordering
    def sync(self) -> None:
        """All threads of the CTA wait for each other (bar.sync 0)."""
        self._recorder.check_open("the cta")
        self._recorder.emit(ops.BarSync(number=0, threads=self.threads))

    def fence_proxy_async(self) -> None:
        """Makes the executing threads' earlier shared-memory writes visible to later copies: each writer, before the sync."""
        self._recorder.check_open("the cta")
        self._recorder.emit(ops.FenceProxyAsync())

    # ---- plain accesses, by all threads in scope together
    def fill(self, tile: SharedArray[DT, Any, Any], value: Scalar[DT]) -> None:
        """Sets every element of `tile` to `value`, rounded to its type."""
        fill_tile(self._recorder, tile, value)

    def iota(self, tile: SharedArray[Any, Any, Any], axis: int) -> None:
        """Sets every element of `tile` to its index along `axis` (0 is the outermost)."""
        iota_tile(self._recorder, tile, axis)

    def store(self, out: GlobalArray[DT, _CS], tile: SharedArray[DT, Any, Any], at: _CS, /) -> None:
        """Plain stores of `tile` to `out` at element coordinates `at`, clipped at its edge, the tile's swizzle undone."""
        self._recorder.check_open("the cta")
        param, source = array_of(self._recorder, out, "`store`"), tile_of(tile, "`store`")
        what = f"`store` to {param.name!r}"
        ref = source._ref(self._recorder)
        same_type(f"{what}: the tile", source._request.dtype, param.dtype)
        coords = self._recorder.coordinates(at, param.rank, what)
        if len(source.shape) != param.rank:
            fix = "use a tile with the array's number of dimensions, or an array with the tile's: a view or a reshaped one"
            refuse(
                ShapeError,
                "OX1013",
                f"{what} has rank {param.rank}",
                got=f"a tile of shape {source.shape}",
                required=f"rank {param.rank}",
                fix=fix,
            )
        self._recorder.emit(ops.StoreGlobal(array=ArrayRef(param.name), tile=ref, coords=coords))


class ClusterCta(Cta):
    """A CTA of a pipeline with a cluster."""

    __slots__ = ()

    @property
    def cta_rank(self) -> SymIdx:
        """This CTA's rank in its cluster (%cluster_ctarank, x fastest)."""
        return SymIdx(Sym(RANK_SYMBOL, SymKind.RANK), self._recorder)

    @property
    def cluster_size(self) -> int:
        """CTAs of the cluster."""
        return self._recorder.cluster_size

    @override
    def elect(self) -> AbstractContextManager[ClusterLeader, None]:
        """One fixed thread of the CTA: the first."""
        return HandleBlock(self._recorder, "elect", _first(self._recorder.scope), ClusterLeader)

    @override
    def thread(self, i: int) -> AbstractContextManager[ClusterLeader, None]:
        """Thread number `i`."""
        return HandleBlock(self._recorder, "thread", self._recorder.thread(i, "`thread`"), ClusterLeader)

    @override
    def warps(self, first: int, stop: int, /) -> AbstractContextManager[ClusterGroup, None]:
        """Warps `first` to `stop` - 1 as a role of their own; the last warp may be partial."""
        return HandleBlock(self._recorder, "warps", warp_threads(self._recorder, first, stop), ClusterGroup)

    def cluster_sync(self) -> None:
        """All threads of all CTAs of the cluster wait for each other (barrier.cluster)."""
        self._recorder.check_open("the cta")
        self._recorder.emit(ops.ClusterSync())


def fill_tile(recorder: Recorder, tile: object, value: object) -> None:
    """Records a fill by the threads in scope."""
    target = tile_of(tile, "`fill`")
    ref, dtype = target._target(recorder), target._request.dtype
    if not isinstance(value, ScalarValue):
        recorder.emit(ops.Fill(tile=ref, value=fitting_value(value, dtype)))
        return
    if value.owner is not recorder:
        refuse_foreign(f"scalar {value.name!r}")
    same_type("`fill`: the value", value.dtype_name, dtype)
    recorder.emit(ops.Fill(tile=ref, value=ScalarRef(value.name)))


def iota_tile(recorder: Recorder, tile: object, axis: object) -> None:
    """Records an iota by the threads in scope."""
    target = tile_of(tile, "`iota`")
    ref, rank, number = target._target(recorder), len(target.shape), whole(axis)
    if number is None or not 0 <= number < rank:
        refuse(
            ShapeError,
            "OX1061",
            "`iota` along an axis that the tile does not have",
            got=described(axis),
            required=f"a plain int from 0 to {rank - 1}",
            fix=f"{rank - 1} is the innermost axis",
        )
    recorder.emit(ops.Iota(tile=ref, axis=number))


def _first(threads: ThreadSet) -> ThreadSet:
    return ThreadSet(((threads.first, threads.first + 1),))


def _only(name: str, value: object, when: str) -> None:
    """Refuses an argument of `shared` that belongs to its other form."""
    if value is not None:
        fix = "cta.shared(src), cta.shared(src, stages=4) or cta.shared(ox.f32, (64, 64), align=ox.A128)"
        refuse(RecordError, "OX1009", f"`shared` takes {name} only {when}", got=described(value), required="one of its forms", fix=fix)
