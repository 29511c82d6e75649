"""Integer expressions and conditions that a program carries: what is known only at launch or while it runs.

An `Expr` is affine over symbols plus floor division, remainder, minimum and maximum. All are uniform over a CTA: they depend on block
index, cluster rank, launch parameters and loop counters, never on a thread or on data. Division and remainder are Python's (floor).
Build them with the functions below, which fold constants, so that `64 * 1 + 0` never reaches an engine.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never, final


class SymKind(enum.Enum):
    """Where a symbol gets its value."""

    BLOCK = "block"  # block_idx.x, .y, .z
    RANK = "rank"  # cta_rank: %cluster_ctarank
    GRID = "grid"  # grid_dim.x, .y, .z
    PARAM = "param"  # an `Idx` parameter of the pipeline
    EXTENT = "extent"  # global dimension of a descriptor or array: "src.dim[0]", outermost first
    LOOP = "loop"  # counter of an enclosing recorded loop
    OPAQUE = "opaque"  # read while it runs, in [0, bound): LoadIndex, NextTile
    TRIPS = "trips"  # how many tiles a counter gives this CTA, in [0, tiles]: ShareTiles
    STAGE = "stage"  # a ring's stage number while its loop is recorded: replaced before the program is finished


LAUNCH_KINDS: Final = frozenset({SymKind.GRID, SymKind.PARAM, SymKind.EXTENT})


@final
@dataclass(frozen=True, slots=True)
class Const:
    """A known integer."""

    value: int


@final
@dataclass(frozen=True, slots=True)
class Sym:
    """A named integer; the name is unique in its program."""

    name: str
    kind: SymKind


@final
@dataclass(frozen=True, slots=True)
class Add:
    """a + b."""

    a: Expr
    b: Expr


@final
@dataclass(frozen=True, slots=True)
class Mul:
    """a * b; one side is a launch constant."""

    a: Expr
    b: Expr


@final
@dataclass(frozen=True, slots=True)
class FloorDiv:
    """a // b; b is a launch constant."""

    a: Expr
    b: Expr


@final
@dataclass(frozen=True, slots=True)
class Mod:
    """a % b; b is a launch constant."""

    a: Expr
    b: Expr


@final
@dataclass(frozen=True, slots=True)
class Min:
    """The smaller of both."""

    a: Expr
    b: Expr


@final
@dataclass(frozen=True, slots=True)
class Max:
    """The larger of both."""

    a: Expr
    b: Expr


Expr: TypeAlias = Const | Sym | Add | Mul | FloorDiv | Mod | Min | Max
ZERO: Final = Const(0)
ONE: Final = Const(1)


# ---- conditions
class CmpOp(enum.Enum):
    """Comparisons; > and >= are written with the sides swapped."""

    LT = "<"
    LE = "<="
    EQ = "=="
    NE = "!="


@final
@dataclass(frozen=True, slots=True)
class Bool:
    """A condition decided while recording."""

    value: bool


@final
@dataclass(frozen=True, slots=True)
class Cmp:
    """A comparison of two integers."""

    op: CmpOp
    a: Expr
    b: Expr


@final
@dataclass(frozen=True, slots=True)
class And:
    """Both hold."""

    a: Cond
    b: Cond


@final
@dataclass(frozen=True, slots=True)
class Or:
    """At least one holds."""

    a: Cond
    b: Cond


@final
@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    a: Cond


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the try_wait or test_wait that wrote predicate `register`: timing-dependent."""

    register: int


Cond: TypeAlias = Bool | Cmp | And | Or | Not | Answer


# ---- construction, folding constants
def add(a: Expr, b: Expr) -> Expr:
    """The sum, constants gathered on the right."""
    if isinstance(b, Const):
        if b.value == 0:
            return a
        if isinstance(a, Const):
            return Const(a.value + b.value)
        if isinstance(a, Add) and isinstance(a.b, Const):
            return add(a.a, Const(a.b.value + b.value))
        return Add(a, b)
    return add(b, a) if isinstance(a, Const) else Add(a, b)


def mul(a: Expr, b: Expr) -> Expr:
    """The product, a constant on the right."""
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(a.value * b.value)
    if isinstance(a, Const):
        a, b = b, a
    if b == ZERO and not divides_by_zero(a):
        return ZERO
    return a if b == ONE else Mul(a, b)


def sub(a: Expr, b: Expr) -> Expr:
    """The difference, as a sum."""
    return add(a, mul(b, Const(-1)))


def floordiv(a: Expr, b: Expr) -> Expr:
    """The quotient, rounded down."""
    if isinstance(a, Const) and isinstance(b, Const) and b.value:
        return Const(a.value // b.value)
    return a if b == ONE else FloorDiv(a, b)


def mod(a: Expr, b: Expr) -> Expr:
    """The remainder, of the divisor's sign."""
    if isinstance(a, Const) and isinstance(b, Const) and b.value:
        return Const(a.value % b.value)
    return ZERO if b == ONE and not divides_by_zero(a) else Mod(a, b)


def minimum(a: Expr, b: Expr) -> Expr:
    """The smaller of both."""
    return Const(min(a.value, b.value)) if isinstance(a, Const) and isinstance(b, Const) else Min(a, b)


def maximum(a: Expr, b: Expr) -> Expr:
    """The larger of both."""
    return Const(max(a.value, b.value)) if isinstance(a, Const) and isinstance(b, Const) else Max(a, b)


# ---- inspection
def symbols(e: Expr | Cond) -> Iterator[Sym]:
    """Every symbol in `e`, repeats included."""
    stack: list[Expr | Cond] = [e]
    while stack:
        node = stack.pop()
        if isinstance(node, Sym):
            yield node
        elif isinstance(node, Not):
            stack.append(node.a)
        elif not isinstance(node, Const | Bool | Answer):
            stack += (node.a, node.b)


def divides_by_zero(e: Expr) -> bool:
    """True for what has no value. Folding keeps it, however little would be left of it, so that it is refused where it runs."""
    if isinstance(e, Const | Sym):
        return False
    return (isinstance(e, FloorDiv | Mod) and e.b == ZERO) or divides_by_zero(e.a) or divides_by_zero(e.b)


def is_launch_constant(e: Expr) -> bool:
    """True when `e` has one value for a whole launch: it may be a coefficient or a divisor."""
    return all(s.kind in LAUNCH_KINDS for s in symbols(e))


# ---- rewriting
def substitute(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """`e` with symbols replaced by expressions, by name; constants fold again."""
    if isinstance(e, Const):
        return e
    if isinstance(e, Sym):
        return values.get(e.name, e)
    return BUILD[type(e)](substitute(e.a, values), substitute(e.b, values))


def substitute_cond(c: Cond, values: Mapping[str, Expr]) -> Cond:
    """As `substitute`, in a condition."""
    match c:
        case Cmp(op, a, b):
            return Cmp(op, substitute(a, values), substitute(b, values))
        case And(a, b):
            return And(substitute_cond(a, values), substitute_cond(b, values))
        case Or(a, b):
            return Or(substitute_cond(a, values), substitute_cond(b, values))
        case Not(a):
            return Not(substitute_cond(a, values))
        case Bool() | Answer():
            return c
        case _:
            assert_never(c)


BUILD: Final[dict[type, Callable[[Expr, Expr], Expr]]] = {Add: add, Mul: mul, FloorDiv: floordiv, Mod: mod, Min: minimum, Max: maximum}


# ---- evaluation
_BINARY: Final[dict[type, Callable[[int, int], int]]] = {
    Add: lambda a, b: a + b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b,
    Mod: lambda a, b: a % b,
    Min: min,
    Max: max,
}


def evaluate(e: Expr, env: Mapping[str, int]) -> int:
    """The value of `e`; `env` maps symbol names to integers. Raises ZeroDivisionError as Python does."""
    if isinstance(e, Const):
        return e.value
    if isinstance(e, Sym):
        return env[e.name]
    return _BINARY[type(e)](evaluate(e.a, env), evaluate(e.b, env))


def holds(c: Cond, env: Mapping[str, int], answers: Mapping[int, bool]) -> bool:
    """The truth of `c`; `answers` maps predicate registers to the answers of try_wait and test_wait."""
    match c:
        case Bool(value):
            return value
        case Cmp(op, a, b):
            x, y = evaluate(a, env), evaluate(b, env)
            return {CmpOp.LT: x < y, CmpOp.LE: x <= y, CmpOp.EQ: x == y, CmpOp.NE: x != y}[op]
        case And(a, b):
            return holds(a, env, answers) and holds(b, env, answers)
        case Or(a, b):
            return holds(a, env, answers) or holds(b, env, answers)
        case Not(a):
            return not holds(a, env, answers)
        case Answer(register):
            return answers[register]
        case _:
            assert_never(c)
