"""Element expressions as text, and back: `cast(max(x0:f32 * alpha:f32, row(x1:f32)), bf16)`.

`x0` is the element of the first input, `row(x1)` that of a vector; any other word is a scalar parameter, in quotes where it would read as
something else. Leaves carry their type, every other node has that of what is in it. The text keeps the tree exactly, as that of
`expressions` does.
"""

from __future__ import annotations

import re
from typing import Final

from oxidecopy.isa.elem import Along, Binary, Cast, Compare, CompareOp, Elem, ElemOp, Fn, Input, Neg, Number, Parameter, Select, Unary
from oxidecopy.program.nesting import NESTING_MAX
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.lexer import TokenKind, format_name, format_word, quote, refuse

ADD, MUL, SIGN, ATOM = range(1, 5)  # how strongly an operator binds
_LEVELS: Final = {ElemOp.ADD: ADD, ElemOp.SUB: ADD, ElemOp.MUL: MUL, ElemOp.DIV: MUL}
_INPUT: Final = re.compile(r"x(?P<index>[0-9]{1,9})")
_CAST: Final = "cast"
_SELECT: Final = "select"
_PAIRS: Final[dict[str, ElemOp | CompareOp]] = {
    "min": ElemOp.MIN, "max": ElemOp.MAX, "and": ElemOp.AND, "or": ElemOp.OR, "xor": ElemOp.XOR, "shl": ElemOp.SHL, "shr": ElemOp.SHR,
    "lt": CompareOp.LT, "le": CompareOp.LE, "eq": CompareOp.EQ, "ne": CompareOp.NE, "gt": CompareOp.GT, "ge": CompareOp.GE,
}  # fmt: skip
_PAIR_WORDS: Final = {op: word for word, op in _PAIRS.items()}
_FNS: Final = {fn.value: fn for fn in Fn}
_VECTORS: Final = {along.value: along for along in Along if along is not Along.ALL}
_FLOATS: Final = {"nan": float("nan"), "inf": float("inf")}


def format_elem(e: Elem, level: int = ADD) -> str:
    """The text of `e`, in parentheses when it binds less than `level`."""
    text, own = _format(e)
    return f"({text})" if own < level else text


def _format(e: Elem) -> tuple[str, int]:  # noqa: C901 - one case per node
    """The text of `e` and how strongly it binds."""
    match e:
        case Input(index, dtype, along):
            text = f"x{index}:{format_word(dtype)}"
            return text if along is Along.ALL else f"{along.value}({text})", ATOM
        case Number(value, dtype):
            text = f"{value!r}:{format_word(dtype)}"
            return text, SIGN if text.startswith("-") else ATOM
        case Parameter(name, dtype):
            plain = format_name(name)
            return f"{quote(name) if _INPUT.fullmatch(plain) or plain == _CAST else plain}:{format_word(dtype)}", ATOM
        case Cast(a, dtype):
            return f"{_CAST}({format_elem(a)}, {format_word(dtype)})", ATOM
        case Neg(Number() as number):
            return f"-({_format(number)[0]})", SIGN  # else the sign would read as the number's
        case Neg(a):
            return f"-{format_elem(a, SIGN)}", SIGN
        case Unary(fn, a):
            return f"{fn.value}({format_elem(a)})", ATOM
        case Select(cond, a, b):
            return f"{_SELECT}({format_elem(cond)}, {format_elem(a)}, {format_elem(b)})", ATOM
        case Compare(op, a, b) | Binary(op, a, b) if op in _PAIR_WORDS:
            return f"{_PAIR_WORDS[op]}({format_elem(a)}, {format_elem(b)})", ATOM
        case Binary(op, a, b):
            level = _LEVELS[op]
            return f"{format_elem(a, level)} {op.value} {format_elem(b, level + 1)}", level
        case Compare():
            raise AssertionError(e)  # all comparisons are words


# ---- reading. Recursion goes down by one bracket at a time, of which `depth` are open; the heights of trees are counted besides.
def read_elem(cursor: Cursor) -> Elem:
    return _sum(cursor, 1)[0]


_Tree = tuple[Elem, int]  # with its height


def _sum(cursor: Cursor, depth: int, level: int = ADD) -> _Tree:
    """Operators that bind as `level` or more, left to right."""
    left, height = _sum(cursor, depth, MUL) if level == ADD else _signed(cursor, depth)
    while (op := _operator(cursor, level)) is not None:
        right, other = _sum(cursor, depth, MUL) if level == ADD else _signed(cursor, depth)
        left, height = Binary(op, left, right), 1 + max(height, other)
        _check_depth(cursor, height)
    return left, height


def _operator(cursor: Cursor, level: int) -> ElemOp | None:
    return next((op for op, own in _LEVELS.items() if own == level and cursor.take(op.value)), None)


def _signed(cursor: Cursor, depth: int) -> _Tree:
    signs, negative = 0, False
    while not negative and cursor.take("-"):
        negative = _at_number(cursor)
        signs += not negative
        _check_depth(cursor, signs)
    tree, height = (_number(cursor, -1), 1) if negative else _atom(cursor, depth)
    _check_depth(cursor, height + signs)
    for _ in range(signs):
        tree = Neg(tree)
    return tree, height + signs


def _atom(cursor: Cursor, depth: int) -> _Tree:
    _check_depth(cursor, depth)
    if cursor.take("("):
        tree = _sum(cursor, depth + 1)
        cursor.expect(")")
        return tree
    if _at_number(cursor):
        return _number(cursor, 1), 1
    token = cursor.peek
    word = token.text if token.kind is TokenKind.WORD else ""
    if word and cursor.following.is_mark("(") and (word in (_CAST, _SELECT) or word in _PAIRS or word in _FNS or word in _VECTORS):
        cursor.advance()
        cursor.advance()
        made, height = _call(cursor, word, depth + 1)
        cursor.expect(")")
        _check_depth(cursor, height)
        return made, height
    name = cursor.name("a number, an input, a scalar parameter or `(`")
    found = _INPUT.fullmatch(word)
    dtype = _type(cursor)
    return (Input(int(found["index"]), dtype) if found else Parameter(name, dtype)), 1


def _call(cursor: Cursor, word: str, depth: int) -> _Tree:
    """What is written like a function, between its brackets."""
    a, height = _sum(cursor, depth)
    if word in _VECTORS:
        if not isinstance(a, Input):
            refuse(cursor.place, "OX1901", f"`{word}` of what is no input", required="an input, as x1:f32")
        return Input(a.index, a.dtype, _VECTORS[word]), 1
    if word in _FNS:
        return Unary(_FNS[word], a), height + 1
    cursor.expect(",")
    if word == _CAST:
        return Cast(a, cursor.word("an element type")), height + 1
    b, other = _sum(cursor, depth)
    height = max(height, other)
    if word == _SELECT:
        cursor.expect(",")
        c, other = _sum(cursor, depth)
        return Select(a, b, c), max(height, other) + 1
    op = _PAIRS[word]
    return Compare(op, a, b) if isinstance(op, CompareOp) else Binary(op, a, b), height + 1


def _at_number(cursor: Cursor) -> bool:
    token = cursor.peek
    return token.kind in (TokenKind.INT, TokenKind.FLOAT) or (token.kind is TokenKind.WORD and token.text in _FLOATS)


def _number(cursor: Cursor, sign: int) -> Number:
    token = cursor.advance()
    value = int(token.text) if token.kind is TokenKind.INT else _FLOATS[token.text] if token.text in _FLOATS else float(token.text)
    return Number(sign * value, _type(cursor))


def _type(cursor: Cursor) -> str:
    cursor.expect(":")
    return cursor.word("an element type")


def _check_depth(cursor: Cursor, depth: int) -> None:
    if depth > NESTING_MAX:
        refuse(cursor.place, "OX1903", "an expression is nested too deeply", got=f"level {depth}", required=f"at most {NESTING_MAX} levels")
