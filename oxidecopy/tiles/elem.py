"""`Elem`: one element of a tile while the function of a `map` is traced. Its operators build the expression that engines evaluate.

What each operation means, bit for bit, is written down in `isa.elem`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, final

from typing_extensions import TypeVar

from oxidecopy.errors import DTypeError, RecordError, SymbolicError
from oxidecopy.isa import elem
from oxidecopy.isa.elem import Binary, Cast, ElemOp, Neg, Number, Parameter
from oxidecopy.program.nesting import NESTING_MAX, NODES_MAX, fits
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.scalar import Scalar, ScalarValue, TakesScalars
from oxidecopy.typed.symbolic import refuse_foreign
from oxidecopy.typed.values import fitting_value

DT = TypeVar("DT", bound=DType)
_DO = TypeVar("_DO", bound=DType)


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
    integer (NaN gives 0) and to fp8, and wraps from integer to integer.
    """

    __slots__ = ("_node", "_trace")

    def __init__(self, node: elem.Elem, trace: Trace) -> None:
        self._node = node
        self._trace = trace

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
            refuse(
                DTypeError,
                "OX1123",
                f"`{op.value}` of two element types",
                got=f"{mine.dtype} and {theirs.dtype}",
                required="one type on both sides",
                fix=f"cast one of them: `.cast(ox.{mine.dtype})`",
            )
        if wrong:
            _no_operation(wrong)
        return self._made(Binary(op, theirs, mine) if swapped else Binary(op, mine, theirs))

    def _made(self, node: elem.Elem) -> Elem[Any]:
        """An element of the same trace; its tree must stay within what a program may hold."""
        if not fits(node):
            refuse(
                RecordError,
                "OX1127",
                "the function of a map is too large",
                required=f"at most {NESTING_MAX} operations on top of each other and {NODES_MAX} in all, shared ones counted each time",
                fix="split it into several maps",
            )
        return Elem(node, self._trace)

    def _operand(self, op: ElemOp, other: object) -> elem.Elem:
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
                got="a comparison, a condition or a conversion to a Python number",
                fix="write the function with +, -, *, / and cast alone; values that are known belong in plain parameters",
            )

        __bool__ = __index__ = __int__ = __float__ = __iter__ = __len__ = _no_value
        __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _no_value


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
        required="f16, bf16, f32 or f64, or an integer type except for division",
        fix="cast to f32, calculate, and cast back",
    )
