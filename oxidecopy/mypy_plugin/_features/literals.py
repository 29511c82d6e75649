"""Numbers in the source: folded constants, literal types, boxes and their bytes. Pure: asks mypy's types, reports nothing.

Whatever is not a known literal is None, and whoever asks then stays silent: the recorder and the verifier know it later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Final, final

from mypy.constant_fold import constant_fold_binary_op, constant_fold_expr, constant_fold_unary_op
from mypy.nodes import ARG_NAMED, CallExpr, Context, Expression, MemberExpr, NameExpr, OpExpr, TupleExpr, UnaryExpr
from mypy.types import Instance, ProperType, TupleType, Type, get_proper_type

from oxidecopy.mypy_plugin import _names
from oxidecopy.mypy_plugin._types import literal

if TYPE_CHECKING:
    from mypy.errorcodes import ErrorCode

# Bytes of one element, by class; packed types have none. A test holds them against `oxidecopy.isa`.
ELEMENT_BYTES: Final[dict[str, int]] = {
    **dict.fromkeys(("u8", "e4m3", "e5m2"), 1),
    **dict.fromkeys(("u16", "f16", "bf16"), 2),
    **dict.fromkeys(("u32", "i32", "f32", "f32_ftz", "tf32", "tf32_ftz"), 4),
    **dict.fromkeys(("u64", "i64", "f64"), 8),
}
GEOMETRY: Final = "oxidecopy.typed.geometry"
BOXES: Final = frozenset(f"{GEOMETRY}.Box{n}" for n in range(1, 6))
TILE_ARRAY: Final = "oxidecopy.typed.smem.SharedArrays"
TILE_CLASSES: Final = frozenset({_names.TILE, TILE_ARRAY, _names.LANDED, _names.BLOCK_TILE})

Tile = Callable[[Expression], "int | None"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error at `node`."""

    node: Context
    code: ErrorCode
    message: str
    notes: tuple[str, ...] = ()


def _no_tile(_: Expression) -> int | None:
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is known of one module: mypy's types of its expressions.

    Attributes:
        types: by expression.
        module: its name: constants of other modules are only taken from their types.
        tile: bytes of an expression that is a tile, where its type does not say them.
    """

    types: Mapping[Expression, Type]
    module: str
    tile: Tile = field(default=_no_tile)

    def type_of(self, e: Expression) -> ProperType | None:
        """Mypy's type of an expression."""
        t = self.types.get(e)
        return get_proper_type(t) if t is not None else None

    def integer(self, e: Expression | None) -> int | None:
        """The value of an expression of plain integers, or nothing; bytes of tiles (`tile.nbytes`) may be part of it."""
        if e is None:
            return None
        folded = constant_fold_expr(e, self.module)
        if type(folded) is int:
            return folded
        known = literal(self.types.get(e))
        if known is not None:
            return known
        if isinstance(e, MemberExpr) and e.name == "nbytes":
            return self.bytes_of_tile(e.expr)
        return self._computed(e)

    def _computed(self, e: Expression) -> int | None:
        value: object = None
        if isinstance(e, OpExpr) and e.op not in {"and", "or"}:
            left, right = self.integer(e.left), self.integer(e.right)
            if left is not None and right is not None and _small(e.op, left, right):
                value = constant_fold_binary_op(e.op, left, right)
        elif isinstance(e, UnaryExpr):
            operand = self.integer(e.expr)
            value = constant_fold_unary_op(e.op, operand) if operand is not None else None
        return value if type(value) is int else None

    def bytes_of_tile(self, e: Expression) -> int | None:
        """Dense bytes of an expression that is a tile."""
        known = tile_bytes(self.type_of(e))
        return known if known is not None else self.tile(e)

    def announced(self, e: Expression) -> int | None:
        """Bytes that an argument of `expect_tx` and its like comes to: a number or a tile."""
        t = self.type_of(e)
        if isinstance(t, Instance) and t.type.fullname in TILE_CLASSES:
            return self.bytes_of_tile(e)
        return self.integer(e)

    def box(self, e: Expression | None) -> tuple[int | None, ...] | None:
        """The extents of a box given as a tuple, unknown ones as None; None when `e` is none."""
        if e is None:
            return None
        if isinstance(e, TupleExpr):
            return tuple(self.integer(item) for item in e.items)
        t = self.type_of(e)
        if isinstance(t, TupleType):
            return tuple(literal(item) for item in t.items)
        return None


def _small(op: str, left: int, right: int) -> bool:
    """Nobody writes 1 << 10**9 on purpose, and a checker must not compute it."""
    return op not in {"<<", "**"} or (abs(left) < 1 << 64 and 0 <= right < 64)


# ---- types
def extents(t: Type | None) -> tuple[int, ...] | None:
    """The literals of `Box2[Literal[64], Literal[32]]`; None when some are unknown."""
    p = get_proper_type(t) if t is not None else None
    if not isinstance(p, Instance) or p.type.fullname not in BOXES:
        return None
    values = tuple(literal(a) for a in p.args)
    known = tuple(n for n in values if n is not None)
    return known if len(known) == len(values) else None


def element(t: Type | None) -> tuple[str, int] | None:
    """Name and bytes of an element type."""
    p = get_proper_type(t) if t is not None else None
    if not isinstance(p, Instance) or p.type.module_name != _names.DTYPES:
        return None
    size = ELEMENT_BYTES.get(p.type.name)
    return None if size is None else (p.type.name, size)


def tile_bytes(t: Type | None) -> int | None:
    """Dense bytes of a tile (of one stage, for an array of them) whose type says all extents."""
    p = get_proper_type(t) if t is not None else None
    if not isinstance(p, Instance) or p.type.fullname not in TILE_CLASSES or len(p.args) < 2:
        return None
    return dense(element(p.args[0]), extents(p.args[1]))


def dense(kind: tuple[str, int] | None, box: tuple[int | None, ...] | None) -> int | None:
    """Bytes of a box of these elements."""
    if kind is None or not box:
        return None
    known = [n for n in box if n is not None and n > 0]
    return kind[1] * prod(known) if len(known) == len(box) else None


# ---- calls
def named(call: CallExpr, name: str) -> Expression | None:
    """The argument passed by this name."""
    return next((a for a, n, k in zip(call.args, call.arg_names, call.arg_kinds, strict=True) if k == ARG_NAMED and n == name), None)


def positional(call: CallExpr) -> list[Expression]:
    """Arguments passed by place, up to the first that may stand for several."""
    found: list[Expression] = []
    for argument, kind in zip(call.args, call.arg_kinds, strict=True):
        if not kind.is_positional():
            break
        found.append(argument)
    return found


def receiver(call: CallExpr, view: View, method: str, *classes: str) -> Expression | None:
    """The object of a call of `method`, when it is of one of these classes."""
    callee = call.callee
    if not isinstance(callee, MemberExpr) or callee.name != method:
        return None
    t = view.type_of(callee.expr)
    fits = isinstance(t, Instance) and any(t.type.has_base(c) for c in classes)
    return callee.expr if fits else None


def made_bytes(call: CallExpr, view: View) -> int | None:
    """Dense bytes of one tile that a call of `cta.shared` makes, whose box is a type or a tuple of known integers."""
    t = view.type_of(call)
    known = tile_bytes(t)
    if known is not None or not isinstance(t, Instance) or t.type.fullname not in TILE_CLASSES:
        return known
    given = positional(call)
    return dense(element(t.args[0]), view.box(given[1])) if len(given) > 1 and t.args else None


def variable(e: Expression | None) -> object:
    """What a name stands for; None for what is no name."""
    return e.node if isinstance(e, NameExpr) else None
