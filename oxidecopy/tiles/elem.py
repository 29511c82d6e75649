"""`Elem`: one element of a tile while the function of a `map` is traced. Its operators build the expression that engines evaluate.

What each operation means, bit for bit, is written down in `isa.elem`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, final, overload

from typing_extensions import TypeVar, override

from oxidecopy.errors import DTypeError, RecordError, SymbolicError
from oxidecopy.isa import elem
from oxidecopy.isa.elem import Along, Binary, Cast, Compare, CompareOp, ElemOp, Fn, Neg, Number, Parameter, Select, Unary
from oxidecopy.program.nesting import NESTING_MAX, NODES_MAX, excess, fits
from oxidecopy.typed.dtypes import DType, bf16, f16, f32, f64, i32, i64, u8, u16, u32, u64
from oxidecopy.typed.geometry import D1
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.scalar import Scalar, ScalarValue, TakesScalars
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.symbolic import refuse_foreign
from oxidecopy.typed.values import fitting_value

DT = TypeVar("DT", bound=DType)
_DO = TypeVar("_DO", bound=DType)
_S = TypeVar("_S", f16, bf16, f32, f64, i32, i64)
_I = TypeVar("_I", u8, u16, u32, i32, u64, i64)


@final
class Trace:
    """One call of a map's function; its elements mean nothing in another."""

    __slots__ = ("open", "owner")

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.open = True


@final
class Elem(TakesScalars, Generic[DT]):
    """One element of a tile inside `map`. Both sides of an operator have one element type: cast first.

    Numbers take the element's type, `Scalar` parameters must have it. Every operation rounds to its type: f16 and bf16 are computed in f32
    and rounded to nearest even, f32 and f64 are IEEE, integers wrap around. `cast` rounds to nearest even; it saturates from float to
    integer (NaN gives 0) and to fp8, and wraps from integer to integer. Comparisons give a `Truth`, whose `select` takes one of two values.
    """

    __slots__ = ("_node", "_trace")

    def __init__(self, node: elem.Elem, trace: Trace) -> None:
        self._node = node
        self._trace = trace

    @override
    def __repr__(self) -> str:
        return f"Elem[{self._node.dtype}]"

    def __add__(self, o: Elem[DT] | Scalar[DT], /) -> Elem[DT]:
        return self._pair(ElemOp.ADD, o)

    def __radd__(self, o: Scalar[DT], /) -> Elem[DT]:
        return self._pair(ElemOp.ADD, o, swapped=True)

    def __sub__(self, o: Elem[DT] | Scalar[DT], /) -> Elem[DT]:
        return self._pair(ElemOp.SUB, o)

    def __rsub__(self, o: Scalar[DT], /) -> Elem[DT]:
        return self._pair(ElemOp.SUB, o, swapped=True)

    def __mul__(self, o: Elem[DT] | Scalar[DT], /) -> Elem[DT]:
        return self._pair(ElemOp.MUL, o)

    def __rmul__(self, o: Scalar[DT], /) -> Elem[DT]:
        return self._pair(ElemOp.MUL, o, swapped=True)

    def __truediv__(self, o: Elem[DT] | Scalar[DT], /) -> Elem[DT]:
        return self._pair(ElemOp.DIV, o)

    def __rtruediv__(self, o: Scalar[DT], /) -> Elem[DT]:
        return self._pair(ElemOp.DIV, o, swapped=True)

    def __neg__(self) -> Elem[DT]:
        self._use()
        wrong = elem.problem(Neg(self._node))
        if wrong:
            _no_operation(wrong)
        return self._made(Neg(self._node))

    # ---- bits of integers
    def __and__(self: Elem[_I], o: Elem[_I] | Scalar[_I], /) -> Elem[_I]:
        return self._pair(ElemOp.AND, o)

    def __rand__(self: Elem[_I], o: Scalar[_I], /) -> Elem[_I]:
        return self._pair(ElemOp.AND, o, swapped=True)

    def __or__(self: Elem[_I], o: Elem[_I] | Scalar[_I], /) -> Elem[_I]:
        return self._pair(ElemOp.OR, o)

    def __ror__(self: Elem[_I], o: Scalar[_I], /) -> Elem[_I]:
        return self._pair(ElemOp.OR, o, swapped=True)

    def __xor__(self: Elem[_I], o: Elem[_I] | Scalar[_I], /) -> Elem[_I]:
        return self._pair(ElemOp.XOR, o)

    def __rxor__(self: Elem[_I], o: Scalar[_I], /) -> Elem[_I]:
        return self._pair(ElemOp.XOR, o, swapped=True)

    def __lshift__(self: Elem[_I], o: Elem[_I] | Scalar[_I], /) -> Elem[_I]:
        return self._pair(ElemOp.SHL, o)

    def __rshift__(self: Elem[_I], o: Elem[_I] | Scalar[_I], /) -> Elem[_I]:
        return self._pair(ElemOp.SHR, o)

    def __invert__(self: Elem[_I]) -> Elem[_I]:
        return self._function(Fn.NOT)

    # ---- functions
    def __abs__(self: Elem[_S]) -> Elem[_S]:
        return self._function(Fn.ABS)

    def minimum(self, o: Elem[DT] | Scalar[DT], /) -> Elem[DT]:
        """The smaller one; NaN where one of the two is."""
        return self._pair(ElemOp.MIN, o)

    def maximum(self, o: Elem[DT] | Scalar[DT], /) -> Elem[DT]:
        """The larger one; NaN where one of the two is."""
        return self._pair(ElemOp.MAX, o)

    def relu(self) -> Elem[DT]:
        """Itself, or 0 where it is negative; NaN stays."""
        return self._pair(ElemOp.MAX, 0)

    @overload
    def sqrt(self: Elem[f16]) -> Elem[f16]: ...
    @overload
    def sqrt(self: Elem[bf16]) -> Elem[bf16]: ...
    @overload
    def sqrt(self: Elem[f32]) -> Elem[f32]: ...
    @overload
    def sqrt(self: Elem[f64]) -> Elem[f64]: ...
    def sqrt(self: Elem[Any]) -> Elem[Any]:
        """The square root, IEEE."""
        return self._function(Fn.SQRT)

    @overload
    def rsqrt(self: Elem[f16]) -> Elem[f16]: ...
    @overload
    def rsqrt(self: Elem[bf16]) -> Elem[bf16]: ...
    @overload
    def rsqrt(self: Elem[f32]) -> Elem[f32]: ...
    def rsqrt(self: Elem[Any]) -> Elem[Any]:
        """1 / sqrt; errors of this and what follows: `oxidecopy.isa.elem.ULP`."""
        return self._function(Fn.RSQRT)

    @overload
    def exp(self: Elem[f16]) -> Elem[f16]: ...
    @overload
    def exp(self: Elem[bf16]) -> Elem[bf16]: ...
    @overload
    def exp(self: Elem[f32]) -> Elem[f32]: ...
    def exp(self: Elem[Any]) -> Elem[Any]:
        """E to the power of it."""
        return self._function(Fn.EXP)

    @overload
    def log(self: Elem[f16]) -> Elem[f16]: ...
    @overload
    def log(self: Elem[bf16]) -> Elem[bf16]: ...
    @overload
    def log(self: Elem[f32]) -> Elem[f32]: ...
    def log(self: Elem[Any]) -> Elem[Any]:
        """The natural logarithm."""
        return self._function(Fn.LOG)

    @overload
    def tanh(self: Elem[f16]) -> Elem[f16]: ...
    @overload
    def tanh(self: Elem[bf16]) -> Elem[bf16]: ...
    @overload
    def tanh(self: Elem[f32]) -> Elem[f32]: ...
    def tanh(self: Elem[Any]) -> Elem[Any]:
        """The hyperbolic tangent."""
        return self._function(Fn.TANH)

    @overload
    def sigmoid(self: Elem[f16]) -> Elem[f16]: ...
    @overload
    def sigmoid(self: Elem[bf16]) -> Elem[bf16]: ...
    @overload
    def sigmoid(self: Elem[f32]) -> Elem[f32]: ...
    def sigmoid(self: Elem[Any]) -> Elem[Any]:
        """1 / (1 + exp(-x))."""
        return self._function(Fn.SIGMOID)

    @overload
    def gelu(self: Elem[f16]) -> Elem[f16]: ...
    @overload
    def gelu(self: Elem[bf16]) -> Elem[bf16]: ...
    @overload
    def gelu(self: Elem[f32]) -> Elem[f32]: ...
    def gelu(self: Elem[Any]) -> Elem[Any]:
        """What it is times the normal distribution's function at x (by the error function, no approximation by tanh)."""
        return self._function(Fn.GELU)

    # ---- comparisons
    def __lt__(self, o: Elem[DT] | Scalar[DT], /) -> Truth:
        return self._compared(CompareOp.LT, o)

    def __le__(self, o: Elem[DT] | Scalar[DT], /) -> Truth:
        return self._compared(CompareOp.LE, o)

    def __gt__(self, o: Elem[DT] | Scalar[DT], /) -> Truth:
        return self._compared(CompareOp.GT, o)

    def __ge__(self, o: Elem[DT] | Scalar[DT], /) -> Truth:
        return self._compared(CompareOp.GE, o)

    @override
    def __eq__(self, o: Elem[DT] | Scalar[DT], /) -> Truth:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # a truth value of each element
        return self._compared(CompareOp.EQ, o)

    @override
    def __ne__(self, o: Elem[DT] | Scalar[DT], /) -> Truth:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # a truth value of each element
        return self._compared(CompareOp.NE, o)

    __hash__: None  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]  # no truth value of ==, so no hash

    def cast(self, dtype: type[_DO], /) -> Elem[_DO]:
        """The value as another element type; nothing for the type it has."""
        self._use()
        name = _named(dtype)
        return self._made(self._node if name == self._node.dtype else Cast(self._node, name))

    # ---- tracing
    def _use(self, trace: Trace | None = None) -> None:
        """Refuses an element whose map is over, or another one than `trace`."""
        if not self._trace.open or trace not in (None, self._trace):
            refuse(
                RecordError,
                "OX1125",
                "an element is used outside the function of its map",
                required="use inside the function, while it is traced",
                fix="pass the tile to the map that needs it",
            )

    def _pair(self, op: ElemOp, other: object, *, swapped: bool = False) -> Elem[DT]:
        self._use()
        mine, theirs = self._node, self._operand(op, other)
        wrong = elem.pair_problem(op, mine.dtype, theirs.dtype)
        if wrong and mine.dtype != theirs.dtype:
            _two_types(op.value, mine.dtype, theirs.dtype)
        if wrong:
            _no_operation(wrong)
        return self._made(Binary(op, theirs, mine) if swapped else Binary(op, mine, theirs))

    def _function(self, fn: Fn) -> Elem[Any]:
        self._use()
        node = Unary(fn, self._node)
        wrong = elem.problem(node)
        if wrong:
            _no_operation(wrong)
        return self._made(node)

    def _compared(self, op: CompareOp, other: object) -> Truth:
        self._use()
        mine, theirs = self._node, self._operand(op, other)
        if mine.dtype != theirs.dtype:
            _two_types(op.value, mine.dtype, theirs.dtype)
        wrong = elem.compare_problem(op, mine.dtype, theirs.dtype)
        if wrong:
            _no_operation(wrong)
        return Truth(_limited(Compare(op, mine, theirs)), self._trace)

    def _made(self, node: elem.Elem) -> Elem[Any]:
        """An element of the same trace; its tree must stay within what a program may hold."""
        return Elem(_limited(node), self._trace)

    def _operand(self, op: ElemOp | CompareOp, other: object) -> elem.Elem:
        """The node of an operator's other side."""
        dtype = self._node.dtype
        if isinstance(other, Elem):
            other._use(self._trace)
            return other._node
        if isinstance(other, ScalarValue):
            if other.owner is not self._trace.owner:
                refuse_foreign(f"scalar {other.name!r}")
            return Parameter(other.name, other.dtype_name)
        if dtype not in elem.FLOATS | elem.INTEGERS:
            _no_operation(f"{dtype} has no arithmetic")
        value = fitting_value(other, dtype, f"the number beside `{op.value}`")
        return Number(value if dtype in elem.INTEGERS else float(value), dtype)

    if not TYPE_CHECKING:
        __array_ufunc__ = None  # numpy's numbers leave the operator to the element
        __hash__ = None

        def _no_value(self, *_: Any) -> NoReturn:
            refuse(
                SymbolicError,
                "OX1122",
                "the value of an element is not known while its map is traced",
                got="a condition or a conversion to a Python number",
                fix="choose by `(v < w).select(v, w)`; values that are known belong in plain parameters",
            )

        __bool__ = __index__ = __int__ = __float__ = __iter__ = __len__ = _no_value


def parameter(name: str, dtype: type[DT], beside: Elem[Any], /) -> Elem[DT]:
    """The scalar parameter `name` as an element, in the function that was given `beside`."""
    return beside._made(Parameter(name, dtype.info.name))


@final
class Truth:
    """What a comparison of elements gives: true or false for each of them."""

    __slots__ = ("_node", "_trace")

    def __init__(self, node: elem.Elem, trace: Trace) -> None:
        self._node = node
        self._trace = trace

    def select(self, a: Elem[DT], b: Elem[DT] | Scalar[DT], /) -> Elem[DT]:
        """`a` where it is true, else `b`."""
        first: object = a
        if not isinstance(first, Elem):
            refuse(
                RecordError,
                "OX1180",
                "`select` takes an element first",
                got=described(a),
                required="an element, then an element or a number",
                fix="turn the comparison around, and put the number second",
            )
        a._use(self._trace)
        b_node = a._operand(ElemOp.MIN, b)
        if a._node.dtype != b_node.dtype:
            _two_types("select", a._node.dtype, b_node.dtype)
        return a._made(Select(self._node, a._node, b_node))

    def __and__(self, o: Truth, /) -> Truth:
        return self._pair(ElemOp.AND, o)

    def __or__(self, o: Truth, /) -> Truth:
        return self._pair(ElemOp.OR, o)

    def __xor__(self, o: Truth, /) -> Truth:
        return self._pair(ElemOp.XOR, o)

    def __invert__(self) -> Truth:
        return Truth(_limited(Unary(Fn.NOT, self._node)), self._trace)

    def _pair(self, op: ElemOp, o: Truth) -> Truth:
        other: object = o
        if not isinstance(other, Truth) or other._trace is not self._trace or not self._trace.open:
            refuse(
                RecordError,
                "OX1125",
                f"`{op.value}` of a comparison and what is none of this map",
                got=described(o),
                required="two comparisons of the elements of one map",
                fix="compare the elements first: `(x > 0) & (y > 0)`; `select` has both ways of a choice",
            )
        return Truth(_limited(Binary(op, self._node, o._node)), self._trace)

    if not TYPE_CHECKING:

        def _no_value(self, *_: Any) -> NoReturn:
            refuse(
                SymbolicError,
                "OX1122",
                "the truth of a comparison of elements is not known while their map is traced",
                got="a condition: `if`, `and`, `or`, `not`, or a chain of comparisons",
                fix="choose by `v.maximum(w)`, `v.minimum(w)` or `(v < w).select(v, w)`, and combine by `&`, `|`, `~`",
            )

        __bool__ = __index__ = __int__ = __float__ = __iter__ = __len__ = _no_value


@final
class Vector(Generic[DT]):
    """A tile of one row as an input of a map, spread over the output: made by `per_row` or `per_column`."""

    __slots__ = ("along", "tile")

    def __init__(self, tile: SharedArray[DT, Any, Any], along: Along) -> None:
        self.tile = tile
        self.along = along


@final
class ArrayVector(Generic[DT]):
    """A 1-D array that an epilogue reads, spread over the result: made by `per_row` or `per_column`."""

    __slots__ = ("along", "array")

    def __init__(self, array: GlobalArray[DT, D1], along: Along) -> None:
        self.array = array
        self.along = along


@overload
def per_row(of: SharedArray[DT, Any, Any], /) -> Vector[DT]: ...
@overload
def per_row(of: GlobalArray[DT, D1], /) -> ArrayVector[DT]: ...
def per_row(of: SharedArray[DT, Any, Any] | GlobalArray[DT, D1], /) -> Vector[DT] | ArrayVector[DT]:
    """An input of `map`: element i of a tile for all of row i of the output (rows are counted over all outer dimensions).

    Of an array, for `group.contract`: element i for all of row i of the whole result.
    """
    return Vector(of, Along.ROW) if isinstance(of, SharedArray) else ArrayVector(of, Along.ROW)


@overload
def per_column(of: SharedArray[DT, Any, Any], /) -> Vector[DT]: ...
@overload
def per_column(of: GlobalArray[DT, D1], /) -> ArrayVector[DT]: ...
def per_column(of: SharedArray[DT, Any, Any] | GlobalArray[DT, D1], /) -> Vector[DT] | ArrayVector[DT]:
    """An input of `map`: element j of a tile for all of column j of the output. Of an array, for `group.contract`: of the whole result."""
    return Vector(of, Along.COLUMN) if isinstance(of, SharedArray) else ArrayVector(of, Along.COLUMN)


def _limited(node: elem.Elem) -> elem.Elem:
    """A node whose tree stays within what a program may hold."""
    if not fits(node):
        refuse(
            RecordError,
            "OX1127",
            "the function of a map is too large",
            got=excess(node),
            required=f"at most {NESTING_MAX} operations on top of each other and {NODES_MAX} in all, shared ones counted each time",
            fix="split it into several maps",
        )
    return node


def _two_types(op: str, a: str, b: str) -> NoReturn:
    refuse(
        DTypeError,
        "OX1123",
        f"`{op}` of two element types",
        got=f"{a} and {b}",
        required="one type on both sides",
        fix=f"cast one of them: `.cast(ox.{a})`",
    )


def _named(dtype: object) -> str:
    """The name of an element type of whole bytes."""
    info = dtype.info if isinstance(dtype, type) and issubclass(dtype, DType) and "info" in dtype.__dict__ else None
    if info is None or info.name not in elem.ELEMENT_TYPES:
        refuse(
            DTypeError,
            "OX1128",
            "`cast` to what is no type of elements",
            got=described(dtype),
            required="a class such as ox.bf16, of whole bytes",
            fix="v.cast(ox.bf16)",
        )
    return info.name


def _no_operation(what: str) -> NoReturn:
    refuse(
        DTypeError,
        "OX1124",
        f"no such operation: {what}",
        required="f16, bf16, f32 or f64; of integers all but division and functions; bits of integers alone",
        fix="cast to f32, calculate, and cast back",
    )
