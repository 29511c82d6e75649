"""`ox.matmul`: products of matrices, and of batches of them, on tensor cores, with a function of each element at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, overload

from typing_extensions import TypeVar

from oxidecopy.errors import ArgumentError, DTypeError, ShapeError
from oxidecopy.isa import elem, mma, ops
from oxidecopy.isa.elem import Along
from oxidecopy.oneliners.calls import Asked, Work, hot, perform
from oxidecopy.oneliners.explanation import Explanation
from oxidecopy.oneliners.operands import Array, ForeignArray, are_ours, check_apart, check_shape, check_written, refuse_types, taken
from oxidecopy.oneliners.product_tiles import TILES
from oxidecopy.oneliners.products import Product, multiply
from oxidecopy.oneliners.steps import Part, Plan, part_of
from oxidecopy.oneliners.transforming import _element_type, _key_of
from oxidecopy.tiles.elem import Elem
from oxidecopy.tiles.mapping import trace
from oxidecopy.typed.dtypes import DType, bf16, e4m3, e5m2, f16, f32, tf32
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.symbolic import Idx

if TYPE_CHECKING:
    from oxidecopy.host.pipeline import SupportsCudaStream
    from oxidecopy.oneliners.ready import AnyStream

_Half = TypeVar("_Half", bf16, f16)
_Op = TypeVar("_Op", bf16, f16, tf32)
_F8 = TypeVar("_F8", e4m3, e5m2)
_G8 = TypeVar("_G8", e4m3, e5m2)
_Out = TypeVar("_Out", f32, bf16, f16)
_R1 = TypeVar("_R1", bound=DType)
_R2 = TypeVar("_R2", bound=DType)
_R3 = TypeVar("_R3", bound=DType)
_Sh = TypeVar("_Sh", bound=tuple[Idx, ...])
SHAPES: Final = "OX1240"
TYPES: Final = "OX1241"
DEVICE: Final = "OX1242"
READS: Final = "OX1243"
_RESULT: Final[dict[str, type[DType]]] = {"bf16": bf16, "f16": f16, "tf32": f32, "e4m3": bf16, "e5m2": bf16}
_RANKS: Final = (2, 3)


# fmt: off
@overload
def matmul(
    a: GlobalArray[_Half, _Sh], b: GlobalArray[_Half, Any], /, *, out: GlobalArray[_Half, _Sh] | None = ...,
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Half, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[tf32, _Sh], b: GlobalArray[tf32, Any], /, *, out: GlobalArray[f32, _Sh] | None = ...,
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[f32, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_F8, _Sh], b: GlobalArray[_G8, Any], /, *, out: GlobalArray[bf16, _Sh] | None = ...,
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[bf16, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_Op, _Sh], b: GlobalArray[_Op, Any], /, *, out: GlobalArray[_Out, _Sh],
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_F8, _Sh], b: GlobalArray[_G8, Any], /, *, out: GlobalArray[_Out, _Sh],
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_Op, _Sh], b: GlobalArray[_Op, Any], /, *, out: GlobalArray[_Out, _Sh] | None = ...,
    epilogue: Callable[[Elem[f32]], Elem[_Out]], reads: tuple[()] = ...,
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_Op, _Sh], b: GlobalArray[_Op, Any], /, *, out: GlobalArray[_Out, _Sh] | None = ...,
    epilogue: Callable[[Elem[f32], Elem[_R1]], Elem[_Out]], reads: tuple[GlobalArray[_R1, Any]],
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_Op, _Sh], b: GlobalArray[_Op, Any], /, *, out: GlobalArray[_Out, _Sh] | None = ...,
    epilogue: Callable[[Elem[f32], Elem[_R1], Elem[_R2]], Elem[_Out]], reads: tuple[GlobalArray[_R1, Any], GlobalArray[_R2, Any]],
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_Op, _Sh], b: GlobalArray[_Op, Any], /, *, out: GlobalArray[_Out, _Sh] | None = ...,
    epilogue: Callable[[Elem[f32], Elem[_R1], Elem[_R2], Elem[_R3]], Elem[_Out]],
    reads: tuple[GlobalArray[_R1, Any], GlobalArray[_R2, Any], GlobalArray[_R3, Any]],
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_F8, _Sh], b: GlobalArray[_G8, Any], /, *, out: GlobalArray[_Out, _Sh] | None = ...,
    epilogue: Callable[[Elem[f32]], Elem[_Out]], reads: tuple[()] = ...,
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_F8, _Sh], b: GlobalArray[_G8, Any], /, *, out: GlobalArray[_Out, _Sh] | None = ...,
    epilogue: Callable[[Elem[f32], Elem[_R1]], Elem[_Out]], reads: tuple[GlobalArray[_R1, Any]],
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_F8, _Sh], b: GlobalArray[_G8, Any], /, *, out: GlobalArray[_Out, _Sh] | None = ...,
    epilogue: Callable[[Elem[f32], Elem[_R1], Elem[_R2]], Elem[_Out]], reads: tuple[GlobalArray[_R1, Any], GlobalArray[_R2, Any]],
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: GlobalArray[_F8, _Sh], b: GlobalArray[_G8, Any], /, *, out: GlobalArray[_Out, _Sh] | None = ...,
    epilogue: Callable[[Elem[f32], Elem[_R1], Elem[_R2], Elem[_R3]], Elem[_Out]],
    reads: tuple[GlobalArray[_R1, Any], GlobalArray[_R2, Any], GlobalArray[_R3, Any]],
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> GlobalArray[_Out, _Sh]: ...
@overload
def matmul(
    a: ForeignArray, b: ForeignArray | GlobalArray[Any, Any], /, *, out: Any = ..., epilogue: Callable[..., Elem[Any]] | None = ...,
    reads: tuple[Any, ...] = ..., stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[False] = ...,
) -> Any: ...
@overload
def matmul(
    a: object, b: object, /, *, out: Any = ..., epilogue: Callable[..., Elem[Any]] | None = ..., reads: tuple[Any, ...] = ...,
    stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[True],
) -> Explanation[Any]: ...
# fmt: on
def matmul(
    a: Any,
    b: Any,
    /,
    *,
    out: Any = None,
    epilogue: Any = None,
    reads: tuple[Any, ...] = (),
    stream: AnyStream = None,
    tune: bool = False,
    explain: bool = False,
) -> Any:
    """Sets `out` to the product of `a` and `b`, as numpy's `a @ b`, and gives it.

    Sums are in f32, on tensor cores. Any views will do; fastest are those in which K is dense, as in the weights of a linear layer:
    `ox.matmul(x, w.T)` for w of (columns, K). With an `epilogue` each sum goes through a function before it is stored.

    Args:
        a: (M, K) or (batch, M, K), of bf16, f16, tf32, e4m3 or e5m2.
        b: (K, N) or (batch, K, N), of the same type, or the other fp8 type.
        out: where to, of f32, bf16 or f16; a new array where it is left out: of the operands' type, f32 for tf32, bf16 for fp8.
        epilogue: of the sum, an `Elem` of f32, and of an element of each of `reads`; its result's type is that of `out`.
        reads: up to three arrays for it: (N,) for every row, (M, 1) for every column, or of the shape of the result.
        stream: a CUDA stream; the call does not wait for it. None waits for the end.
        tune: measure the ways to do it, once for these shapes on this device, and take the fastest from then on.
        explain: give an `Explanation` in place of the array, whose `out` it is.

    Raises:
        DTypeError: for types that are not multiplied with each other, and an epilogue that does not give what `out` holds.
        ShapeError: for shapes that do not fit each other.
        ArgumentError: for memory that is shared, or cannot be written to, and for devices without these tensor cores.
    """
    if not isinstance(reads, (tuple, list)):
        _refuse_reads(f"reads={described(reads)}", "a tuple of arrays", "reads=(bias,)")
    known: tuple[Any, ...] = (*reads,)
    key = "matmul" if epilogue is None else _key(epilogue, len(known))
    arrays = (out, a, b, *known)
    if key is not None and not (tune or explain) and are_ours(arrays) and hot(key, arrays, (), stream):
        return out
    asked = Asked.of(stream, explain, tune)
    names = ("out", "a", "b", *(f"reads[{i}]" for i in range(len(known))))
    device, (into, left, right, *given) = taken(names, (out, a, b, *known), stream, left_out=1)
    _check_device(device)
    shape = _shape(left, right)
    _check_types(left, right)
    spread = [_spread(read, shape) for read in given]
    if len(given) > ops.EPILOGUE_ARRAYS_MAX:
        _refuse_reads(f"{len(given)} arrays", f"at most {ops.EPILOGUE_ARRAYS_MAX}")
    dtype = _result(left, epilogue, given, spread, into)
    if into is None:
        into = device.empty(shape, dtype, pad=True)
    check_shape("out", into, shape, "the product")
    if into.dtype is not dtype:
        refuse_types(
            "the epilogue does not give what `out` holds",
            dtype.__name__,
            into.dtype.__name__,
            f"cast its result: `.cast(ox.{into.dtype.__name__})`",
        )
    check_written("out", into, "which one would be left is not known")
    check_apart(("out", "a", "b"), (into, left, right), same=False)
    for name, read, along in zip(names[3:], given, spread, strict=True):
        check_apart(("out", name), (into, read), same=along is Along.ALL)
    words = f"multiply {left.dtype.__name__}{list(left.shape)} by {right.dtype.__name__}{list(right.shape)}"
    words += f" to {into.dtype.__name__}{list(into.shape)} on {into.device.name}"

    def planned(choice: Any) -> Plan:
        plan = Plan(operands=[into, left, right, *given])
        extra = tuple((_vector(part_of(3 + i, read), along), along) for i, (read, along) in enumerate(zip(given, spread, strict=True)))
        x, y = _operand(part_of(1, left), turned=False), _operand(part_of(2, right), turned=True)
        multiply(plan, Product(part_of(0, into), x[0], y[0], (x[1], y[1]), extra, epilogue), choice)
        return plan

    result = into if out is None else out
    in_place = any(read.buffer is into.buffer for read in given)
    kind = key if key is not None else ("matmul", _traced(epilogue, given, spread))
    work = Work(kind, words, (into, left, right, *given), (), planned, f"matmul {epilogue is not None}", TILES, repeatable=not in_place)
    said = perform(work, asked)
    return result if said is None else replace(said, out=result)


def _key(epilogue: Any, reads: int) -> object:
    found = _key_of(epilogue, (), 1 + reads)
    return None if found is None else ("matmul", found)


def _check_device(device: Any) -> None:
    if device.sm != mma.SM:
        refuse(
            ArgumentError,
            DEVICE,
            "this device has no tensor cores that `matmul` knows",
            got=f"{device.name}, compute capability {device.sm // 10}.{device.sm % 10}",
            required="compute capability 9.0: H100, H200 or the simulator of one",
            fix="use the product of the library that made the array; docs/contract.md says what newer devices need",
        )


def _shape(a: Array, b: Array) -> tuple[int, ...]:
    ranks = len(a.shape) in _RANKS and len(b.shape) in _RANKS and len(a.shape) >= len(b.shape)
    if not ranks or a.shape[-1] != b.shape[-2] or (len(b.shape) > len(_RANKS) and a.shape[0] != b.shape[0]):
        refuse(
            ShapeError,
            SHAPES,
            "these shapes have no product",
            got=f"{a.shape} and {b.shape}",
            required="(M, K) and (K, N), or (batch, M, K) and (batch, K, N) or (K, N)",
            fix="b.T, where b is (N, K)",
        )
    return (*a.shape[:-1], b.shape[-1])


def _check_types(a: Array, b: Array) -> None:
    wrong = mma.pair_problem(a.dtype.info.name, b.dtype.info.name)
    if wrong:
        refuse(
            DTypeError,
            TYPES,
            "tensor cores do not multiply these",
            got=wrong,
            required="bf16 with bf16, f16 with f16, tf32 with tf32, or two of e4m3 and e5m2",
            fix="ox.copy(ox.bf16, x) converts; numbers of f32 with 10 digits are `dev.array(x, ox.tf32)`",
        )


def _spread(read: Array, shape: tuple[int, ...]) -> Along:
    """How an array that the epilogue reads belongs to the result."""
    m, n = shape[-2:]
    if read.shape == shape:
        return Along.ALL
    if read.shape in ((n,), (1, n)):
        return Along.COLUMN
    if read.shape == (m, 1):
        return Along.ROW
    _refuse_reads(f"shape {read.shape} beside a result of {shape}", f"({n},), ({m}, 1) or {shape}")


def _refuse_reads(
    got: str, required: str, fix: str = "views with other shapes: permute, slices; one array may hold what two did"
) -> NoReturn:
    refuse(
        ShapeError,
        READS,
        "an epilogue cannot read these arrays",
        got=got,
        required=required,
        fix=fix,
    )


def _vector(part: Part, along: Along) -> Part:
    """A vector as it is read: of one dimension."""
    if along is Along.ALL or len(part.shape) == 1:
        return part
    axis = 1 if along is Along.COLUMN else 0
    return part.seen(part.dtype, (part.shape[axis],), (part.strides_bytes[axis],))


def _traced(epilogue: Callable[..., Any], reads: Sequence[Array], spread: Sequence[Along]) -> elem.Elem:
    nodes = [
        elem.Input(0, mma.SUM_DTYPE),
        *(elem.Input(i, r.dtype.info.name, s) for i, (r, s) in enumerate(zip(reads, spread, strict=True), 1)),
    ]
    return trace(None, epilogue, nodes, "an epilogue")


def _result(a: Array, epilogue: Any, reads: Sequence[Array], spread: Sequence[Along], out: Array | None) -> type[DType]:
    """The element type of the result."""
    if epilogue is None:
        if reads:
            what, required = "arrays, and no epilogue that reads them", "a function of the sum and of their elements"
            _refuse_reads(what, required, "epilogue=lambda s, b: s + b")
        dtype = out.dtype if out is not None else _RESULT[a.dtype.info.name]
    else:
        dtype = _element_type(_traced(epilogue, reads, spread))
    if dtype.info.name not in mma.RESULTS:
        refuse(
            DTypeError,
            TYPES,
            "results of products are stored as f32, bf16 or f16",
            got=dtype.__name__,
            required=", ".join(sorted(mma.RESULTS)),
            fix="cast in the epilogue: `epilogue=lambda s: s.cast(ox.bf16)`; convert the result by ox.copy",
        )
    return dtype


def _operand(part: Part, *, turned: bool) -> tuple[Part, str]:
    """As `Product` has it: with K innermost where elements follow each other along K, else before it; `turned`: it is (K, rows)."""
    shape, strides = part.shape, part.strides_bytes
    rows, depth = (-1, -2) if turned else (-2, -1)
    along_k = shape[depth] == 1 or strides[depth] == part.size
    along_rows = shape[rows] == 1 or strides[rows] == part.size
    inner, outer, major = (rows, depth, "mn") if along_rows and not along_k else (depth, rows, "k")
    return part.seen(part.dtype, (*shape[:-2], shape[outer], shape[inner]), (*strides[:-2], strides[outer], strides[inner])), major
