"""Integers and conditions that are not known while a pipeline is recorded.

`SymIdx` has no visible `__index__`, `__int__` or `__bool__`, so that checkers refuse `range(i)`, `xs[i]` and `int(i)`; the hidden ones
raise with the user's file and line. (A visible `__bool__ -> NoReturn` would make mypy skip the code after an `if`.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeAlias, final

from typing_extensions import override

from oxidecopy.errors import RecordError, ScopeError, SymbolicError
from oxidecopy.isa import expr
from oxidecopy.isa.expr import CmpOp, Cond, Expr, Sym, SymKind
from oxidecopy.program.nesting import NESTING_MAX, NODES_MAX, Node, all_nodes, excess, fits
from oxidecopy.program.program import extent_name
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.scalar import ScalarValue, refuse_as_index


# ---- conditions
@final
class Pred:
    """A recorded condition: for `cta.when`, `&`, `|` and `~` only."""

    __slots__ = ("cond", "owner")

    def __init__(self, cond: Cond, owner: object) -> None:
        self.cond = cond
        self.owner = owner

    def __and__(self, other: Pred | bool, /) -> Pred:
        return Pred(expr.And(self.cond, to_cond(other)), owner_of(self, other))

    def __or__(self, other: Pred | bool, /) -> Pred:
        return Pred(expr.Or(self.cond, to_cond(other)), owner_of(self, other))

    def __rand__(self, other: bool, /) -> Pred:
        return Pred(expr.And(to_cond(other), self.cond), self.owner)

    def __ror__(self, other: bool, /) -> Pred:
        return Pred(expr.Or(to_cond(other), self.cond), self.owner)

    def __invert__(self) -> Pred:
        return Pred(expr.Not(self.cond), self.owner)

    def __repr__(self) -> str:
        return f"Pred({shown(self.cond)})"

    if not TYPE_CHECKING:
        __array_ufunc__ = None  # numpy's scalars then leave the operation to this class

        def __bool__(self) -> NoReturn:
            refuse(
                SymbolicError,
                "OX1020",
                "a recorded condition has no truth value yet",
                got=repr(self),
                required="recorded control flow",
                fix="use `with cta.when(cond):`, `&`, `|`, `~` instead of and, or, not, `ox.minimum`, `ox.maximum` instead of min, max; "
                "an assert about the arguments stands before the launch",
            )

        def __eq__(self, other: object) -> NoReturn:
            _not_a_condition("conditions are compared", f"{self!r} and {other!r}")

        __ne__ = __eq__

        def __hash__(self) -> NoReturn:  # noqa: PLE0309  # it refuses
            _no_key(self)


def to_cond(value: Pred | bool, what: str = "an operator of conditions") -> Cond:  # noqa: FBT001  # a condition, not an option
    """The condition of a `Pred` or a bool; anything else is refused."""
    if isinstance(value, Pred):
        return value.cond
    if isinstance(value, bool):
        return expr.Bool(value)
    _not_a_condition(f"{what} takes a condition", described(value))


def _not_a_condition(what: str, got: str) -> NoReturn:
    refuse(
        SymbolicError,
        "OX1027",
        what,
        got=got,
        required="comparisons of recorded integers, or bools, combined by &, | and ~",
        fix="write `(i == 0) & (k < 3)`",
    )


# ---- integers
@final
class SymIdx:
    """A symbolic integer; arithmetic on it is recorded. Division and remainder round down, as Python's."""

    __slots__ = ("expr", "owner")

    def __init__(self, e: Expr, owner: object) -> None:
        self.expr = e
        self.owner = owner

    def __add__(self, o: Idx, /) -> SymIdx:
        return SymIdx(expr.add(self.expr, to_expr(o)), owner_of(self, o))

    def __radd__(self, o: int, /) -> SymIdx:
        return SymIdx(expr.add(to_expr(o), self.expr), self.owner)

    def __sub__(self, o: Idx, /) -> SymIdx:
        return SymIdx(expr.sub(self.expr, to_expr(o)), owner_of(self, o))

    def __rsub__(self, o: int, /) -> SymIdx:
        return SymIdx(expr.sub(to_expr(o), self.expr), self.owner)

    def __mul__(self, o: Idx, /) -> SymIdx:
        return SymIdx(_product(self.expr, to_expr(o)), owner_of(self, o))

    def __rmul__(self, o: int, /) -> SymIdx:
        return SymIdx(_product(to_expr(o), self.expr), self.owner)

    def __floordiv__(self, o: Idx, /) -> SymIdx:
        return SymIdx(expr.floordiv(self.expr, _divisor(o)), owner_of(self, o))

    def __rfloordiv__(self, o: int, /) -> SymIdx:
        return SymIdx(expr.floordiv(to_expr(o), _divisor(self)), self.owner)

    def __mod__(self, o: Idx, /) -> SymIdx:
        return SymIdx(expr.mod(self.expr, _divisor(o)), owner_of(self, o))

    def __rmod__(self, o: int, /) -> SymIdx:
        return SymIdx(expr.mod(to_expr(o), _divisor(self)), self.owner)

    def __neg__(self) -> SymIdx:
        return SymIdx(expr.mul(self.expr, expr.Const(-1)), self.owner)

    def __lt__(self, o: Idx, /) -> Pred:
        return Pred(expr.Cmp(CmpOp.LT, self.expr, to_expr(o)), owner_of(self, o))

    def __le__(self, o: Idx, /) -> Pred:
        return Pred(expr.Cmp(CmpOp.LE, self.expr, to_expr(o)), owner_of(self, o))

    def __gt__(self, o: Idx, /) -> Pred:
        return Pred(expr.Cmp(CmpOp.LT, to_expr(o), self.expr), owner_of(self, o))

    def __ge__(self, o: Idx, /) -> Pred:
        return Pred(expr.Cmp(CmpOp.LE, to_expr(o), self.expr), owner_of(self, o))

    @override
    def __eq__(self, o: Idx, /) -> Pred:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # a condition, not a bool
        return Pred(expr.Cmp(CmpOp.EQ, self.expr, to_expr(o)), owner_of(self, o))

    @override
    def __ne__(self, o: Idx, /) -> Pred:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # a condition, not a bool
        return Pred(expr.Cmp(CmpOp.NE, self.expr, to_expr(o)), owner_of(self, o))

    __hash__: None  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]  # no truth value of ==, so no hash

    def __repr__(self) -> str:
        return f"SymIdx({shown(self.expr)})"

    if not TYPE_CHECKING:
        __array_ufunc__ = None  # numpy's integers then leave the operation to this class

        def __bool__(self) -> NoReturn:
            refuse(
                SymbolicError,
                "OX1020",
                "a recorded integer has no truth value yet",
                got=repr(self),
                required="recorded control flow",
                fix="compare it and use `with cta.when(i != 0):`",
            )

        def __index__(self) -> NoReturn:
            refuse(
                SymbolicError,
                "OX1021",
                "a recorded integer has no value yet: it cannot index Python objects, count Python loops or become a number",
                got=repr(self),
                required="a use that can be recorded",
                fix="use `cta.range(n)` for loops, and `cta.barriers(n)` or `cta.shared(desc, stages=n)` for indexed handles",
            )

        __int__ = __float__ = __complex__ = __index__

        def __hash__(self) -> NoReturn:  # noqa: PLE0309  # it refuses
            _no_key(self)

        def __truediv__(self, _other: object) -> NoReturn:
            refuse(SymbolicError, "OX1023", "true division would not give an integer", got=repr(self), fix="use `//`, which rounds down")

        __rtruediv__ = __truediv__

        def __rdivmod__(self, _other: object) -> NoReturn:
            _bad_divisor(self)

        def _not_affine(self, *_: object) -> NoReturn:
            refuse(
                SymbolicError,
                "OX1022",
                "this operation on a recorded integer is not affine",
                got=repr(self),
                required="+, -, *, //, %, ox.minimum, ox.maximum",
                fix="write powers of two as constants: `i * 8`, `i // 8`, `i % 8`",
            )

        __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _not_affine
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __matmul__ = __rmatmul__ = _not_affine
        __divmod__ = __abs__ = __invert__ = __round__ = _not_affine


Idx: TypeAlias = int | SymIdx


def to_expr(value: Idx, what: str = "an operand of index arithmetic") -> Expr:
    """The expression of an `Idx`; anything else is refused by name."""
    if isinstance(value, SymIdx):
        return value.expr
    number = _plain(value, what)
    if number is None or not -(1 << 63) <= number < 1 << 63:
        refuse(
            SymbolicError,
            "OX1029",
            f"{what} must be an integer",
            got=described(value),
            required="an ox.Idx: an int of at most 64 bits, or a recorded integer",
            fix="use whole elements: `//` rounds down",
        )
    return expr.Const(number)


def _plain(value: object, what: str) -> int | None:
    if isinstance(value, ScalarValue):
        refuse_as_index(value, what)
    return whole(value)


def _product(a: Expr, b: Expr) -> Expr:
    bounded(a)
    bounded(b)
    if not (expr.is_launch_constant(a) or expr.is_launch_constant(b)):
        refuse(
            SymbolicError,
            "OX1022",
            "a product of two values that both change during the launch is not affine",
            got=f"({shown(a)}) * ({shown(b)})",
            required="one factor that is an int, an `Idx` parameter, an extent or a grid dimension",
            fix="pass the product as an `Idx` parameter",
        )
    return expr.mul(a, b)


def _divisor(o: Idx) -> Expr:
    e = to_expr(o, "a divisor")
    bounded(e)
    if not expr.is_launch_constant(e):
        _bad_divisor(o)
    if e == expr.ZERO:
        refuse(SymbolicError, "OX1062", "division by zero", got="0", required="a divisor other than 0", fix="divide by a positive int")
    return e


def _bad_divisor(o: object) -> NoReturn:
    refuse(
        SymbolicError,
        "OX1022",
        "a divisor must be one value for the whole launch",
        got=repr(o),
        required="an int, an `Idx` parameter, an extent or a grid dimension",
        fix="divide by a launch constant",
    )


def bounded(node: Node) -> list[Node]:
    """The parts of an expression; one too large to work with is refused: doubled forty times it has more of them than memory."""
    found = all_nodes(node)
    if found is None:
        refuse(
            RecordError,
            "OX1058",
            "a recorded expression is too large",
            got=excess(node),
            required=f"at most {NESTING_MAX} levels of operators and {NODES_MAX} operators and operands",
            fix="compute it on the host and pass it as an `Idx` parameter",
        )
    return found


def minimum(a: Idx, b: Idx, /) -> SymIdx:
    """The smaller of two integers, recorded (Python's `min` would ask for a truth value)."""
    return SymIdx(expr.minimum(to_expr(a), to_expr(b)), owner_of(a, b))


def maximum(a: Idx, b: Idx, /) -> SymIdx:
    """The larger of two integers, recorded."""
    return SymIdx(expr.maximum(to_expr(a), to_expr(b)), owner_of(a, b))


# ---- whose they are
def owner_of(*values: object) -> object:
    """The recording that the symbolic ones among `values` belong to; None when all are plain. Two recordings do not mix."""
    owner = None
    for value in values:
        if isinstance(value, SymIdx | Pred) and value.owner is not None:
            if owner is not None and value.owner is not owner:
                refuse_foreign("a recorded integer or condition")
            owner = value.owner
    return owner


def refuse_foreign(what: str) -> NoReturn:
    """Refuses something that was made in another recording, or in one that is over."""
    refuse(
        ScopeError,
        "OX1019",
        f"{what} is used outside the pipeline that it was made in",
        required="use inside the pipeline function, while it is recorded",
        fix="make it again inside the pipeline function",
    )


def extents(owner: object, name: str, rank: int) -> tuple[SymIdx, ...]:
    """A parameter's extents as symbols, outermost first."""
    return tuple(SymIdx(Sym(extent_name(name, axis), SymKind.EXTENT), owner) for axis in range(rank))


def constant(value: object) -> int | None:
    """`value` as an int that is known while recording (numpy's too, bool is not); None for recorded integers as for anything else."""
    return None if isinstance(value, SymIdx) else whole(value)


def shown(node: Expr | Cond) -> str:
    """An expression or condition in words, as the text form of programs writes it."""
    from oxidecopy.program.text.expressions import format_node  # only errors and reprs need the text form

    return format_node(node) if fits(node) else "..."


def _no_key(value: object) -> NoReturn:
    refuse(
        SymbolicError,
        "OX1021",
        "what is only recorded has no value yet: it cannot be a key of a dict or a member of a set",
        got=repr(value),
        required="a use that can be recorded",
        fix="use plain ints as keys",
    )
