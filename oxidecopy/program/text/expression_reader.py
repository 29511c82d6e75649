"""Expressions and conditions from text.

The parser keeps its own stacks, so deep nesting cannot exhaust Python's. It builds the tree that is written and folds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from oxidecopy.isa.expr import Add, And, Answer, Bool, Cmp, CmpOp, Cond, Const, Expr, Max, Min, Mul, Not, Or, Sym, SymKind
from oxidecopy.program.nesting import NESTING_MAX
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.expressions import ADD, CMP, INFIX, SIGN, Node, format_node
from oxidecopy.program.text.lexer import TokenKind, refuse


@final
@dataclass(frozen=True, slots=True)
class _Operator:
    """An operator or an open bracket on the stack. `operands` of 0 marks a bracket, which nothing reduces across."""

    level: int
    operands: int
    make: Callable[..., Node]
    on_conditions: bool = False
    is_call: bool = False


@final
@dataclass(frozen=True, slots=True)
class _Value:
    """A finished subtree, its height, and whether it was written as a plain number."""

    node: Node
    height: int = 1
    literal: bool = False


def _compare(op: CmpOp) -> Callable[..., Node]:
    return lambda a, b: Cmp(op, a, b)


_MINUS: Final = _Operator(ADD, 2, lambda a, b: Add(a, Mul(b, Const(-1))))
_BINARY: Final[dict[str, _Operator]] = {
    "-": _MINUS,
    **{mark: _Operator(level, 2, make, on_conditions=make in (And, Or)) for make, (mark, level) in INFIX.items()},
    **{op.value: _Operator(CMP, 2, _compare(op)) for op in CmpOp},
}
_PREFIX: Final[dict[str, _Operator]] = {
    "-": _Operator(SIGN, 1, lambda a: Mul(a, Const(-1))),
    "~": _Operator(SIGN, 1, Not, on_conditions=True),
    "(": _Operator(0, 0, lambda a: a),
}
_CALLS: Final[dict[str, _Operator]] = {
    "min": _Operator(0, 0, Min, is_call=True),
    "max": _Operator(0, 0, Max, is_call=True),
}


def read_expr(cursor: Cursor, symbols: Mapping[str, SymKind]) -> Expr:
    node = _Reader(cursor, symbols).read()
    if isinstance(node, Expr):
        return node
    refuse(cursor.place, "OX1901", "a condition where an integer is needed", got=format_node(node))


def read_cond(cursor: Cursor, symbols: Mapping[str, SymKind]) -> Cond:
    node = _Reader(cursor, symbols).read()
    if isinstance(node, Cond):
        return node
    refuse(cursor.place, "OX1901", "an integer where a condition is needed", got=format_node(node), fix="compare it: `n != 0`")


@final
class _Reader:
    """Operator-precedence parsing with two explicit stacks."""

    __slots__ = ("_brackets", "_cursor", "_pending", "_symbols", "_values")

    def __init__(self, cursor: Cursor, symbols: Mapping[str, SymKind]) -> None:
        self._cursor = cursor
        self._symbols = symbols
        self._values: list[_Value] = []
        self._pending: list[_Operator] = []
        self._brackets: list[bool] = []  # per open bracket: has a comma been read?

    def read(self) -> Node:
        self._operand()
        while self._goes_on():
            self._operand()
        self._reduce(1)
        if self._pending:
            self._cursor.unexpected("`)`")
        return self._values.pop().node

    def _operand(self) -> None:
        """Reads signs and open brackets, then one value."""
        cursor = self._cursor
        while True:
            token = cursor.peek
            if token.is_mark("-") and cursor.following.kind is TokenKind.INT:
                self._values.append(_Value(Const(cursor.integer())))
                return
            if token.kind is TokenKind.MARK and token.text in _PREFIX:
                operator = _PREFIX[token.text]
            elif token.kind is TokenKind.WORD and token.text in _CALLS and cursor.following.is_mark("("):
                cursor.advance()
                operator = _CALLS[token.text]
            else:
                self._values.append(_Value(self._atom(), literal=token.kind is TokenKind.INT))
                return
            cursor.advance()
            self._pending.append(operator)
            if not operator.operands:
                self._brackets.append(False)
                self._check_depth(len(self._brackets))

    def _goes_on(self) -> bool:
        """Reads closing brackets, then a binary operator or the comma of a call. False at the end of the expression."""
        cursor = self._cursor
        while self._brackets and cursor.peek.is_mark(")"):
            self._close()
        token = cursor.peek
        if token.kind is not TokenKind.MARK:
            return False
        if token.text in _BINARY:
            operator = _BINARY[token.text]
            self._reduce(operator.level)
            self._pending.append(operator)
        elif token.text == "," and self._brackets:
            self._reduce(1)
            if not self._pending[-1].is_call or self._brackets[-1]:
                cursor.unexpected("`)`")
            self._brackets[-1] = True
        else:
            return False
        cursor.advance()
        return True

    def _close(self) -> None:
        """Takes `)`. A parenthesis leaves its value as it is; a call takes its two."""
        self._reduce(1)
        bracket = self._pending.pop()
        if bracket.is_call != self._brackets.pop():
            self._cursor.unexpected("`,` and a second number")
        if bracket.is_call:
            self._apply(bracket, 2)
        else:
            self._values[-1] = replace(self._values[-1], literal=False)
        self._cursor.advance()

    def _reduce(self, level: int) -> None:
        """Applies the waiting operators that bind at least as `level`, down to the innermost open bracket."""
        while self._pending and self._pending[-1].operands and self._pending[-1].level >= level:
            operator = self._pending.pop()
            self._apply(operator, operator.operands)

    def _apply(self, operator: _Operator, count: int) -> None:
        values = self._values[-count:]
        del self._values[-count:]
        wanted = Cond if operator.on_conditions else Expr
        if not all(isinstance(v.node, wanted) for v in values):
            needs = "conditions" if operator.on_conditions else "integers"
            refuse(
                self._cursor.place,
                "OX1901",
                "an operator on values of the wrong kind",
                required=needs,
                fix="put comparisons in parentheses",
            )
        height = 1 + max(v.height for v in values)
        self._check_depth(height)
        last = values[-1]
        if operator is _MINUS and last.literal and isinstance(last.node, Const):
            node: Node = Add(values[0].node, Const(-last.node.value))  # type: ignore[arg-type]  # checked above to be an integer
        else:
            node = operator.make(*(v.node for v in values))
        self._values.append(_Value(node, height))

    def _check_depth(self, depth: int) -> None:
        if depth > NESTING_MAX:
            refuse(
                self._cursor.place,
                "OX1903",
                "an expression is nested too deeply",
                got=f"level {depth}",
                required=f"at most {NESTING_MAX} levels",
            )

    # ---- atoms
    def _atom(self) -> Node:
        cursor = self._cursor
        token = cursor.peek
        if token.kind is TokenKind.INT:
            return Const(cursor.integer())
        if cursor.take("?"):
            return Answer(cursor.integer())
        if token.kind is TokenKind.WORD and token.text in ("true", "false"):
            return Bool(cursor.advance().text == "true")
        return self._symbol()

    def _indexed(self, name: str) -> str:
        """`name`, with a number in brackets where one follows: an entry of a table, an axis."""
        if self._cursor.take("["):
            name = f"{name}[{self._cursor.integer()}]"
            self._cursor.expect("]")
        return name

    def _symbol(self) -> Sym:
        cursor = self._cursor
        name = self._indexed(cursor.name("a number, a symbol or `(`"))
        if cursor.take("."):
            name = self._indexed(f"{name}.{cursor.name()}")
        if name not in self._symbols:
            refuse(
                cursor.place,
                "OX1917",
                f"{name!r} is no integer known here",
                required="block_idx.x, grid_dim.x, cta_rank, an idx parameter, an extent of a map or array, the counter of a loop around",
            )
        return Sym(name, self._symbols[name])
