"""`Cta`: what a pipeline function is given. It allocates shared memory and barriers, picks threads, and records plain operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, final, overload

from typing_extensions import TypeVar, override

from oxidecopy.errors import ArgumentError, Diagnostic, DTypeError, ScopeError, ShapeError
from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Sym, SymKind
from oxidecopy.isa.ops import ArrayRef, ScalarRef, ThreadSet
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL
from oxidecopy.typed.barrier import ManagedBarrier, ManagedBarriers
from oxidecopy.typed.descriptor import TmaDescriptor, coordinates
from oxidecopy.typed.dtypes import DType, i32, i64, u8, u16, u32, u64
from oxidecopy.typed.geometry import A16, A128, A1024, D1, D2, D3, D4, D5, AnyBox, Box1, Box2, Box3, Box4, Box5, box_extents
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.handles import RecordedArray
from oxidecopy.typed.layout import TileRequest
from oxidecopy.typed.leader import ClusterLeader, ConditionBlock, Group, Leader, ScopeBlock
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.smem import SharedArray, SharedArrays
from oxidecopy.typed.states import AnyId, Kind, TmaBarrier, Uninit
from oxidecopy.typed.symbolic import Idx, Pred, Scalar, ScalarValue, SymIdx, refuse, to_expr
from oxidecopy.typed.values import fill_value

if TYPE_CHECKING:
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
Bx = TypeVar("Bx", bound=AnyBox, default=Any)
AL = TypeVar("AL", bound=A16)
_B1 = TypeVar("_B1", bound=AnyBox)
_K2 = TypeVar("_K2", bound=Kind)
_ID2 = TypeVar("_ID2")
_CS = TypeVar("_CS", D1, D2, D3, D4, D5)
_IDX = TypeVar("_IDX", u8, u16, u32, i32, u64, i64)
_INTEGERS: Final = ("u8", "u16", "u32", "i32", "u64", "i64")


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
    def barrier(self) -> ManagedBarrier[Uninit, TmaBarrier, AnyId]: ...
    @overload
    def barrier(self, *, brand: type[_ID2]) -> ManagedBarrier[Uninit, TmaBarrier, _ID2]: ...
    @overload
    def barrier(self, *, kind: type[_K2]) -> ManagedBarrier[Uninit, _K2, AnyId]: ...
    @overload
    def barrier(self, *, kind: type[_K2], brand: type[_ID2]) -> ManagedBarrier[Uninit, _K2, _ID2]: ...
    def barrier(self, *, kind: type[Kind] = TmaBarrier, brand: type[object] = AnyId) -> ManagedBarrier[Uninit, Any, Any]:
        """One mbarrier, not yet initialised. `brand` is any class of yours: tokens of another brand are then type errors."""
        return ManagedBarrier(self._recorder, self._declare(kind, brand, 1), kind, Uninit)

    @overload
    def barriers(self, n: int, /) -> ManagedBarriers[Uninit, TmaBarrier, AnyId]: ...
    @overload
    def barriers(self, n: int, /, *, brand: type[_ID2]) -> ManagedBarriers[Uninit, TmaBarrier, _ID2]: ...
    @overload
    def barriers(self, n: int, /, *, kind: type[_K2]) -> ManagedBarriers[Uninit, _K2, AnyId]: ...
    @overload
    def barriers(self, n: int, /, *, kind: type[_K2], brand: type[_ID2]) -> ManagedBarriers[Uninit, _K2, _ID2]: ...
    def barriers(self, n: int, /, *, kind: type[Kind] = TmaBarrier, brand: type[object] = AnyId) -> ManagedBarriers[Uninit, Any, Any]:
        """`n` mbarriers indexed by an `Idx`, for loops whose stage is only known when they run."""
        return ManagedBarriers(ManagedBarrier(self._recorder, self._declare(kind, brand, _stages(n, "barriers")), kind, Uninit))

    def _declare(self, kind: type[Kind], brand: type[object], stages: int) -> int:
        self._recorder.check_open("the cta")
        self._recorder.require_toplevel("allocating a barrier")
        if not (isinstance(kind, type) and issubclass(kind, Kind) and kind is not Kind):
            refuse("OX1047", "`kind` is no barrier kind", got=repr(kind), required="TmaBarrier, MmaBarrier or GeneralBarrier", error=DTypeError)
        stem = "bar" if brand is AnyId else getattr(brand, "__name__", "bar").lower()
        taken = {b.name for b in self._recorder.barriers}
        name = stem if stem != "bar" and stem not in taken else f"{stem}{len(taken)}"
        return self._recorder.add_barrier(kind.__name__, stages, name)

    # ---- shared memory
    @overload
    def shared(self, like: TmaDescriptor[DT, Any, Any, Bx], /) -> SharedArray[DT, Bx, A1024]: ...
    @overload
    def shared(self, like: TmaDescriptor[DT, Any, Any, Bx], /, *, stages: int) -> SharedArrays[DT, Bx, A1024]: ...
    @overload
    def shared(self, dtype: type[DT], box: type[_B1], /, *, align: type[AL]) -> SharedArray[DT, _B1, AL]: ...
    @overload
    def shared(self, dtype: type[DT], box: tuple[int], /, *, align: type[AL]) -> SharedArray[DT, Box1[Any], AL]: ...
    @overload
    def shared(self, dtype: type[DT], box: tuple[int, int], /, *, align: type[AL]) -> SharedArray[DT, Box2[Any, Any], AL]: ...
    @overload
    def shared(self, dtype: type[DT], box: tuple[int, int, int], /, *, align: type[AL]) -> SharedArray[DT, Box3[Any, Any, Any], AL]: ...
    @overload
    def shared(
        self, dtype: type[DT], box: tuple[int, int, int, int], /, *, align: type[AL]
    ) -> SharedArray[DT, Box4[Any, Any, Any, Any], AL]: ...
    @overload
    def shared(
        self, dtype: type[DT], box: tuple[int, int, int, int, int], /, *, align: type[AL]
    ) -> SharedArray[DT, Box5[Any, Any, Any, Any, Any], AL]: ...
    def shared(self, like: Any, box: Any = None, /, *, align: type[A16] = A128, stages: int | None = None) -> Any:
        """A tile in shared memory.

        Args:
            like: a descriptor, for a tile of its box (aligned to 1,024 bytes: right for every swizzle), or an element type.
            box: with an element type: the extents in elements, outermost first, as a tuple or a box type.
            align: with an element type: `A16` to `A1024`.
            stages: with a descriptor: this many equal tiles, indexed by an `Idx`.
        """
        self._recorder.check_open("the cta")
        self._recorder.require_toplevel("allocating shared memory")
        if isinstance(like, TmaDescriptor):
            param = like._recorded("cta.shared")
            request = TileRequest(
                self._tile_name(param.name), param.dtype, param.layout.shape, 1024, _stages(stages, "stages") if stages is not None else 1, caller_site()
            )
            # A tile made for one descriptor has that descriptor's layout from the start.
            request.adopt(param.swizzle)
        else:
            request = TileRequest(self._tile_name("tile"), _dtype_name(like), _box(box), _align(align), 1, caller_site())
        self._recorder.tiles.append(request)
        number = len(self._recorder.tiles) - 1
        if stages is not None:
            return SharedArrays[Any, Any, Any](self._recorder, number, request)
        return SharedArray[Any, Any, Any](self._recorder, number, request, expr.ZERO)

    def _tile_name(self, stem: str) -> str:
        taken = {t.name for t in self._recorder.tiles}
        stem = stem if stem == "tile" else f"{stem}_tile"
        return stem if stem not in taken else f"{stem}{len(taken)}"

    # ---- who executes
    def elect(self) -> AbstractContextManager[Leader, None]:
        """One fixed thread of the CTA: the first."""
        return ScopeBlock(self._recorder, "elect", _one(self._recorder.scope.first), Leader)

    def thread(self, i: int) -> AbstractContextManager[Leader, None]:
        """Thread number `i`."""
        return ScopeBlock(self._recorder, "thread", _one(self._thread(i)), Leader)

    def threads_except(self, i: int) -> AbstractContextManager[None, None]:
        """All threads but number `i`."""
        n = self._thread(i)
        ranges = tuple((lo, hi) for lo, hi in ((0, n), (n + 1, self.threads)) if lo < hi)
        if not ranges:
            refuse("OX1030", "a block that no thread executes: the CTA has one thread", got="threads=1", required="2 threads or more", error=ScopeError)
        return ScopeBlock(self._recorder, "threads_except", ThreadSet(ranges), type(None))

    def warps(self, first: int, stop: int, /) -> ScopeBlock[Group]:
        """Warps `first` to `stop` - 1 as a role of their own; the last warp may be partial."""
        n = -(-self.threads // 32)
        if not (type(first) is int and type(stop) is int and 0 <= first < stop <= n):
            refuse("OX1043", "no such warps", got=f"{first!r} to {stop!r}", required=f"0 <= first < stop <= {n}", error=ScopeError)
        return ScopeBlock(self._recorder, "warps", ThreadSet(((first * 32, min(stop * 32, self.threads)),)), Group)

    def when(self, cond: Pred | bool, /) -> AbstractContextManager[None, None]:
        """Runs the block where `cond` holds. A plain bool is decided while recording."""
        if not isinstance(cond, Pred | bool):
            refuse("OX1027", "`when` takes a condition", got=repr(cond), required="a comparison of recorded integers, or a bool", fix="write `i == 3`")
        return ConditionBlock(self._recorder, ops.When(cond=cond.cond if isinstance(cond, Pred) else expr.Bool(cond)))

    def range(self, a: Idx, b: Idx | None = None, step: int = 1, /) -> Iterator[SymIdx]:
        """A loop that the device runs: its body is recorded once. `break` out of it is refused."""
        start, stop = (expr.ZERO, to_expr(a, "a trip count")) if b is None else (to_expr(a, "a loop's start"), to_expr(b, "a loop's end"))
        if type(step) is not int or step == 0:
            refuse("OX1029", "a loop's step is a constant", got=repr(step), required="an int other than 0", fix="multiply the counter instead")
        return self._loop(start, stop, step)

    def _loop(self, start: expr.Expr, stop: expr.Expr, step: int) -> Iterator[SymIdx]:
        recorder = self._recorder
        recorder.check_open("a loop")
        counter = f"i{recorder.loops}"
        recorder.loops += 1
        frame = recorder.push(ops.Loop(counter=counter, start=start, stop=stop, step=step), recorder.scope)
        try:
            yield SymIdx(Sym(counter, SymKind.LOOP), recorder)
        except GeneratorExit:
            # The for statement dropped this iterator before its body's end: break, return or an exception.
            recorder.left_loop = frame.site
            raise
        recorder.check_loops()
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
        given: object = array
        if not isinstance(given, RecordedArray) or given.owner is not recorder:
            refuse("OX1019", "`load_index` reads an array that is a parameter of this pipeline", got=type(array).__name__, error=ScopeError)
        index, bound = to_expr(i, "an index"), to_expr(below, "a bound")
        dtype, rank = given.param.dtype, given.param.rank
        if rank != 1 or dtype not in _INTEGERS or not expr.is_launch_constant(bound) or (isinstance(bound, expr.Const) and bound.value < 1):
            refuse(
                "OX1142",
                f"`load_index` cannot read indices from {given.param.name!r} like this",
                got=f"{dtype} of rank {rank}, below={below if isinstance(below, int) else 'a recorded integer'}",
                required=f"a 1-D array of {', '.join(_INTEGERS)}; a bound of 1 or more that is one value for the launch",
                fix="pass the extent that the index goes into: `below=src.shape[0]`",
                error=DTypeError,
            )
        name = f"read{recorder.reads}"
        recorder.reads += 1
        recorder.opaque = True
        recorder.emit(ops.LoadIndex(name=name, array=ArrayRef(given.param.name), index=index, below=bound))
        return SymIdx(Sym(name, SymKind.OPAQUE), recorder)

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
        ref = tile._ref()
        self._recorder.emit(ops.Fill(tile=ref, value=ScalarRef(value.name) if isinstance(value, ScalarValue) else fill_value(value, tile._request.dtype)))

    def iota(self, tile: SharedArray[Any, Any, Any], axis: int) -> None:
        """Sets every element of `tile` to its index along `axis` (0 is the outermost)."""
        ref = tile._ref()
        if type(axis) is not int or not 0 <= axis < len(tile.shape):
            refuse("OX1013", "`iota` along an axis that the tile does not have", got=repr(axis), required=f"0 to {len(tile.shape) - 1}", error=ShapeError)
        self._recorder.emit(ops.Iota(tile=ref, axis=axis))

    def store(self, out: GlobalArray[DT, _CS], tile: SharedArray[DT, Any, Any], at: _CS, /) -> None:
        """Plain stores of `tile` to `out` at element coordinates `at`, clipped at its edge, the tile's swizzle undone."""
        self._recorder.check_open("the cta")
        array: object = out
        if not isinstance(array, RecordedArray) or array.owner is not self._recorder:
            refuse("OX1019", "`store` needs an array that is a parameter of this pipeline", got=type(out).__name__, error=ScopeError)
        if tile._request.dtype != array.param.dtype:
            refuse("OX1011", f"`store` to {array.param.name!r}: element types differ", got=tile._request.dtype, required=array.param.dtype, error=DTypeError)
        at_exprs = coordinates(at, array.param.rank, f"`store` to {array.param.name!r}")
        if len(tile.shape) != array.param.rank:
            refuse("OX1013", f"`store` to {array.param.name!r}: the tile's rank differs", got=str(len(tile.shape)), required=str(array.param.rank), error=ShapeError)
        self._recorder.emit(ops.StoreGlobal(array=ArrayRef(array.param.name), tile=tile._ref(), coords=at_exprs))

    def _thread(self, i: int) -> int:
        if type(i) is not int or not 0 <= i < self.threads:
            refuse("OX1043", "no such thread", got=repr(i), required=f"0 to {self.threads - 1}", error=ScopeError)
        return i


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
        x, y, z = self._recorder.cluster
        return x * y * z

    @override
    def elect(self) -> AbstractContextManager[ClusterLeader, None]:
        return ScopeBlock(self._recorder, "elect", _one(self._recorder.scope.first), ClusterLeader)

    @override
    def thread(self, i: int) -> AbstractContextManager[ClusterLeader, None]:
        return ScopeBlock(self._recorder, "thread", _one(self._thread(i)), ClusterLeader)

    def cluster_sync(self) -> None:
        """All threads of all CTAs of the cluster wait for each other (barrier.cluster)."""
        self._recorder.check_open("the cta")
        self._recorder.emit(ops.ClusterSync())


def _one(thread: int) -> ThreadSet:
    return ThreadSet(((thread, thread + 1),))


def _stages(n: object, what: str) -> int:
    if type(n) is not int or not 1 <= n <= 1024:
        raise ArgumentError(
            Diagnostic(rule="OX1048", what=f"the number of {what} is a constant", got=repr(n), required="an int from 1 to 1024", site=caller_site())
        )
    return n


def _dtype_name(dtype: object) -> str:
    if not (isinstance(dtype, type) and issubclass(dtype, DType) and "info" in dtype.__dict__):
        refuse("OX1011", "no element type of oxidecopy", got=repr(dtype), required="ox.f32, ox.bf16, ...", error=DTypeError)
    if dtype.info.bits % 8:
        refuse("OX1049", f"shared tiles of packed {dtype.info.name} are not supported yet", got=f"{dtype.info.bits} bits", required="whole bytes", error=DTypeError)
    return dtype.info.name


def _box(box: object) -> tuple[int, ...]:
    shape = box_extents(box) or box
    if not (isinstance(shape, tuple) and 1 <= len(shape) <= 5 and all(type(n) is int and n > 0 for n in shape)):
        refuse("OX1012", "no box", got=repr(box), required="1 to 5 positive ints, outermost first, in elements", error=ShapeError)
    return shape


def _align(align: object) -> int:
    if not (isinstance(align, type) and issubclass(align, A16)):
        refuse("OX1047", "`align` is no alignment", got=repr(align), required="ox.A16, A128, A256, A512 or A1024", error=DTypeError)
    return align.bytes
