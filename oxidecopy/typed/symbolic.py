"""Integers, conditions and values that are not known while a pipeline is recorded.

`SymIdx` has no visible `__index__`, `__int__` or `__bool__`, so that checkers refuse `range(i)`, `xs[i]` and `int(i)`; the hidden ones raise
with the user's file and line. (A visible `__bool__ -> NoReturn` would make mypy skip the code after an `if`.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, SupportsIndex, TypeAlias, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import Diagnostic, RecordError, SymbolicError
from oxidecopy.isa import expr
from oxidecopy.isa.expr import CmpOp, Cond, Expr
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.sites import caller_site

DT = TypeVar("DT", bound=DType)


def refuse(rule: str, what: str, *, got: str = "", required: str = "", fix: str = "", error: type[RecordError] = SymbolicError) -> NoReturn:
    """Raises `error` with one diagnostic at the user's line."""
    raise error(Diagnostic(rule=rule, what=what, got=got, required=required, fix=fix, site=caller_site()))


@final
class Pred:
    """A recorded condition: for `cta.when`, `&`, `|` and `~` only."""

    __slots__ = ("cond", "owner")

    def __init__(self, cond: Cond, owner: object) -> None:
        self.cond = cond
        self.owner = owner

    def __and__(self, other: Pred | bool, /) -> Pred:
        return Pred(expr.And(self.cond, _cond(other)), self.owner)

    def __or__(self, other: Pred | bool, /) -> Pred:
        return Pred(expr.Or(self.cond, _cond(other)), self.owner)

    def __rand__(self, other: bool, /) -> Pred:
        return Pred(expr.And(_cond(other), self.cond), self.owner)

    def __ror__(self, other: bool, /) -> Pred:
        return Pred(expr.Or(_cond(other), self.cond), self.owner)

    def __invert__(self) -> Pred:
        return Pred(expr.Not(self.cond), self.owner)

    if not TYPE_CHECKING:

        def __bool__(self) -> NoReturn:
            refuse(
                "OX1020",
                "a recorded condition has no truth value yet",
                fix="use `with cta.when(cond):`, and `&`, `|`, `~` instead of and, or, not",
            )


def _cond(value: Pred | bool) -> Cond:
    if isinstance(value, Pred):
        return value.cond
    if isinstance(value, bool):
        return expr.Bool(value)
    refuse("OX1027", "a condition is combined with something that is none", got=repr(value), required="a recorded condition or a bool")


@final
class SymIdx:
    """A symbolic integer; arithmetic on it is recorded. Division and remainder round down, as Python's."""

    __slots__ = ("expr", "owner")

    def __init__(self, e: Expr, owner: object) -> None:
        self.expr = e
        self.owner = owner

    def __add__(self, o: Idx, /) -> SymIdx:
        return SymIdx(expr.add(self.expr, to_expr(o)), self.owner)

    def __radd__(self, o: int, /) -> SymIdx:
        return SymIdx(expr.add(to_expr(o), self.expr), self.owner)

    def __sub__(self, o: Idx, /) -> SymIdx:
        return SymIdx(expr.sub(self.expr, to_expr(o)), self.owner)

    def __rsub__(self, o: int, /) -> SymIdx:
        return SymIdx(expr.sub(to_expr(o), self.expr), self.owner)

    def __mul__(self, o: Idx, /) -> SymIdx:
        return SymIdx(_product(self.expr, to_expr(o)), self.owner)

    def __rmul__(self, o: int, /) -> SymIdx:
        return SymIdx(_product(to_expr(o), self.expr), self.owner)

    def __floordiv__(self, o: Idx, /) -> SymIdx:
        return SymIdx(expr.floordiv(self.expr, _divisor(o)), self.owner)

    def __mod__(self, o: Idx, /) -> SymIdx:
        return SymIdx(expr.mod(self.expr, _divisor(o)), self.owner)

    def __neg__(self) -> SymIdx:
        return SymIdx(expr.mul(self.expr, expr.Const(-1)), self.owner)

    def __lt__(self, o: Idx, /) -> Pred:
        return self._compare(CmpOp.LT, self.expr, to_expr(o))

    def __le__(self, o: Idx, /) -> Pred:
        return self._compare(CmpOp.LE, self.expr, to_expr(o))

    def __gt__(self, o: Idx, /) -> Pred:
        return self._compare(CmpOp.LT, to_expr(o), self.expr)

    def __ge__(self, o: Idx, /) -> Pred:
        return self._compare(CmpOp.LE, to_expr(o), self.expr)

    @override
    def __eq__(self, o: Idx, /) -> Pred:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # a condition, not a bool
        return self._compare(CmpOp.EQ, self.expr, to_expr(o))

    @override
    def __ne__(self, o: Idx, /) -> Pred:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # a condition, not a bool
        return self._compare(CmpOp.NE, self.expr, to_expr(o))

    __hash__: None  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]  # no truth value of ==, so no hash

    def _compare(self, op: CmpOp, a: Expr, b: Expr) -> Pred:
        return Pred(expr.Cmp(op, a, b), self.owner)

    if not TYPE_CHECKING:

        def __bool__(self) -> NoReturn:
            refuse("OX1020", "a recorded integer has no truth value yet", fix="compare it and use `with cta.when(i != 0):`")

        def __index__(self) -> NoReturn:
            refuse(
                "OX1021",
                "a recorded integer cannot index Python objects or count Python loops: it has no value yet",
                fix="use `cta.range(n)` for loops, and `cta.barriers(n)` or `cta.shared(desc, stages=n)` for indexed handles",
            )

        __int__ = __float__ = __index__

        def __truediv__(self, other) -> NoReturn:
            refuse("OX1023", "true division would not give an integer", fix="use `//`, which rounds down")

        __rtruediv__ = __truediv__

        def __rfloordiv__(self, other) -> NoReturn:
            refuse("OX1022", "a divisor must be one value for the whole launch", fix="divide by an int, an `Idx` parameter or an extent")

        __rmod__ = __rfloordiv__


Idx: TypeAlias = int | SymIdx


def to_expr(value: Idx, what: str = "an index") -> Expr:
    """The expression of an `Idx`; anything else is refused by name."""
    if isinstance(value, SymIdx):
        return value.expr
    if type(value) is int:
        return expr.Const(value)
    return _to_expr_slow(value, what)


def _to_expr_slow(value: object, what: str) -> Expr:
    if isinstance(value, ScalarValue):
        refuse(
            "OX1024",
            f"a Scalar is used as {what}: scalars are values for tiles and may not reach coordinates or trip counts",
            got=f"Scalar[{value.dtype_name}]",
            required="int or ox.Idx",
            fix="declare the parameter as `n: ox.Idx`",
        )
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return expr.Const(value.__index__())  # numpy integers
    refuse(
        "OX1029", f"{what} must be an integer", got=f"{value!r} ({type(value).__name__})", required="int or ox.Idx", fix="use whole elements"
    )


def _product(a: Expr, b: Expr) -> Expr:
    if not (expr.is_launch_constant(a) or expr.is_launch_constant(b)):
        refuse(
            "OX1022",
            "a product of two values that both change during the launch is not affine",
            required="one factor that is an int, an `Idx` parameter, an extent or a grid dimension",
        )
    return expr.mul(a, b)


def _divisor(o: Idx) -> Expr:
    e = to_expr(o, "a divisor")
    if not expr.is_launch_constant(e):
        refuse("OX1022", "a divisor must be one value for the whole launch", fix="divide by an int, an `Idx` parameter or an extent")
    if e == expr.ZERO:
        refuse("OX1022", "division by zero", got="0", required="a divisor other than 0")
    return e


def minimum(a: Idx, b: Idx, /) -> SymIdx:
    """The smaller of two integers, recorded (Python's `min` would ask for a truth value)."""
    return SymIdx(expr.minimum(to_expr(a), to_expr(b)), owner_of(a, b))


def maximum(a: Idx, b: Idx, /) -> SymIdx:
    """The larger of two integers, recorded."""
    return SymIdx(expr.maximum(to_expr(a), to_expr(b)), owner_of(a, b))


def owner_of(*values: Idx | Pred) -> object:
    """The recording that the symbolic ones among `values` belong to; None when all are plain."""
    return next((v.owner for v in values if isinstance(v, SymIdx | Pred) and v.owner is not None), None)


class TakesScalars:
    """Base of what has operators for scalars of its own: `alpha * v` is left to `v`."""

    __slots__ = ()


@final
class ScalarValue(Generic[DT]):
    """A scalar parameter while a pipeline is recorded: a value of an element type, for tile operations."""

    __slots__ = ("dtype_name", "name", "owner")

    def __init__(self, name: str, dtype_name: str, owner: object) -> None:
        self.name = name
        self.dtype_name = dtype_name
        self.owner = owner

    if not TYPE_CHECKING:

        def __bool__(self) -> NoReturn:
            refuse("OX1020", f"scalar {self.name!r} has no value while the pipeline is recorded", fix="pass a plain int or bool parameter")

        def __index__(self) -> NoReturn:
            refuse("OX1021", f"scalar {self.name!r} has no value while the pipeline is recorded", fix="declare it as `ox.Idx`")

        __int__ = __float__ = __index__

        def _no_arithmetic(self, other: Any, *_: Any) -> Any:
            if isinstance(other, TakesScalars):
                return NotImplemented
            refuse(
                "OX1024",
                f"scalar {self.name!r} is used in index arithmetic",
                got=f"Scalar[{self.dtype_name}]",
                required="int or ox.Idx",
                fix="declare the parameter as `ox.Idx`",
            )

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = __mod__ = _no_arithmetic


Scalar: TypeAlias = ScalarValue[DT] | float
