"""Expressions and conditions as text, with Python's operators and precedence.

The text keeps the tree exactly: `a + b + c` is `(a + b) + c`, and other groupings get parentheses. `a - b` is short for `a + b * -1` (of a
number: for adding its negative), `-a` for `a * -1`.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from oxidecopy.isa.expr import Add, And, Answer, Bool, Cmp, Cond, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym, SymKind
from oxidecopy.program.text.lexer import format_name

Node: TypeAlias = Expr | Cond
Pair: TypeAlias = Add | Mul | FloorDiv | Mod | And | Or
Leaf: TypeAlias = Const | Sym | Bool | Answer

# Python's precedence: comparisons bind least, signs most.
CMP, OR, AND, ADD, MUL, SIGN, ATOM = range(1, 8)
INFIX: Final[dict[type[Pair], tuple[str, int]]] = {
    Add: ("+", ADD),
    Mul: ("*", MUL),
    FloorDiv: ("//", MUL),
    Mod: ("%", MUL),
    And: ("&", AND),
    Or: ("|", OR),
}
_EXTENT: Final = re.compile(r"(?P<name>.*?)(?P<entry>\[[0-9]+\])?\.dim\[(?P<axis>[0-9]+)\]", re.DOTALL)


def format_node(node: Node, level: int = CMP) -> str:
    """The text of `node`, in parentheses when it binds less than `level`."""
    text, own = _format(node)
    return f"({text})" if own < level else text


def _format(node: Node) -> tuple[str, int]:
    """The text of `node` and how strongly it binds."""
    match node:
        case Min(a, b) | Max(a, b):
            return f"{'min' if isinstance(node, Min) else 'max'}({format_node(a)}, {format_node(b)})", ATOM
        case Cmp(op, a, b):
            return f"{format_node(a, OR)} {op.value} {format_node(b, OR)}", CMP
        case Not(a):
            return f"~{format_node(a, SIGN)}", SIGN
        case Const() | Sym() | Bool() | Answer():
            return _format_leaf(node)
        case Add() | Mul() | FloorDiv() | Mod() | And() | Or():
            return _format_minus(node) or _format_pair(node)


def _format_leaf(node: Leaf) -> tuple[str, int]:
    match node:
        case Const(value):
            return str(value), SIGN if value < 0 else ATOM
        case Sym():
            return _format_symbol(node), ATOM
        case Bool(value):
            return "true" if value else "false", ATOM
        case Answer(register):
            return f"?{register}", ATOM


def _format_minus(node: Pair) -> tuple[str, int] | None:
    """The short forms with a minus sign, for the trees that have one."""
    match node:
        case Add(a, Const(value)) if value < 0:
            return f"{format_node(a, ADD)} - {-value}", ADD
        case Add(a, Mul(b, Const(-1))) if not isinstance(b, Const):
            return f"{format_node(a, ADD)} - {format_node(b, MUL)}", ADD
        case Mul(a, Const(-1)) if not isinstance(a, Const):
            return f"-{format_node(a, SIGN)}", SIGN
        case _:
            return None


def _format_pair(node: Pair) -> tuple[str, int]:
    mark, level = INFIX[type(node)]
    return f"{format_node(node.a, level)} {mark} {format_node(node.b, level + 1)}", level


def _format_symbol(symbol: Sym) -> str:
    match = _EXTENT.fullmatch(symbol.name) if symbol.kind is SymKind.EXTENT else None
    if match:
        return f"{format_name(match['name'])}{match['entry'] or ''}.dim[{match['axis']}]"
    if symbol.kind in (SymKind.BLOCK, SymKind.GRID):
        return ".".join(map(format_name, symbol.name.split(".")))
    return format_name(symbol.name)
