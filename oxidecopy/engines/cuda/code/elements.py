"""Element expressions as the stack code of `MAP_TILES`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, assert_never

from oxidecopy.engines.cuda.abi import DTypeCode, ElemFn
from oxidecopy.isa.elem import MASK, Along, Binary, Cast, Compare, Elem, ElemOp, Input, Neg, Number, Parameter, Select, Unary, operands_of

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.words import Words

DEPTH_MAX: Final = 8  # places of the kernel's stack
_INSTRUCTION: Final = struct.Struct("<4BI")
_COMMUTE: Final = frozenset({ElemOp.ADD, ElemOp.MUL, ElemOp.MIN, ElemOp.MAX, ElemOp.AND, ElemOp.OR, ElemOp.XOR})
_ALONG: Final = {Along.ALL: 0, Along.ROW: 1, Along.COLUMN: 2}


def code_of(dtype: str) -> DTypeCode:
    """The kernels' number of an element type."""
    return DTypeCode[dtype.upper()]


def compile_elem(e: Elem, words: Words) -> bytes:
    """The instructions, 8 bytes each."""
    out: list[bytes] = []
    _compile(e, words, out, {})
    return b"".join(out)


def depth_of(e: Elem, known: dict[int, int]) -> int:
    """Places of the stack that it needs; `known` keeps those of shared parts, by identity."""
    found = known.get(id(e))
    if found is not None:
        return found
    match e:
        case Neg(a) | Cast(a, _) | Unary(_, a):
            depth = depth_of(a, known)
        case Binary(op, a, b) if op in _COMMUTE or op is ElemOp.SUB:
            first, second = depth_of(a, known), depth_of(b, known)
            depth = max(first, second) + (first == second)
        case Binary(_, a, b) | Compare(_, a, b):
            depth = max(depth_of(a, known), depth_of(b, known) + 1)
        case Select(cond, a, b):
            depth = max(depth_of(cond, known), depth_of(a, known) + 1, depth_of(b, known) + 2)
        case Input() | Number() | Parameter():
            depth = 1
        case _:
            assert_never(e)
    known[id(e)] = depth
    return depth


def length_of(e: Elem, known: dict[int, int]) -> int:
    """Instructions at most: a part that a recording shares is computed each time. `known` as in `depth_of`."""
    found = known.get(id(e))
    if found is None:
        found = known[id(e)] = 2 + sum([length_of(part, known) for part in operands_of(e)])
    return found


def _compile(e: Elem, words: Words, out: list[bytes], known: dict[int, int]) -> None:  # noqa: C901 - one case per node
    match e:
        case Input(index, dtype, along):
            _add(out, ElemFn.INPUT, dtype, source=index, along=_ALONG[along])
        case Number(value, dtype):
            _add(out, ElemFn.WORD, dtype, word=words.number(value, dtype, cast=True))
        case Parameter(name, dtype):
            _add(out, ElemFn.WORD, dtype, word=words.scalar(name, dtype, cast=True))
        case Neg(a):
            _compile(a, words, out, known)
            _add(out, ElemFn.NEG, e.dtype)
        case Cast(a, dtype):
            _compile(a, words, out, known)
            if a.dtype != dtype:
                _add(out, ElemFn.CAST, dtype, source=code_of(a.dtype))
        case Unary(fn, a):
            _compile(a, words, out, known)
            _add(out, ElemFn[fn.name], "u64" if e.dtype == MASK else e.dtype)
        case Compare(op, a, b):
            _compile(a, words, out, known)
            _compile(b, words, out, known)
            _add(out, ElemFn[op.name], a.dtype)
        case Select(cond, a, b):
            for part in (cond, a, b):
                _compile(part, words, out, known)
            _add(out, ElemFn.SELECT, e.dtype)
        case Binary(op, a, b):
            _binary(e, op, a, b, words, out, known)


def _binary(e: Binary, op: ElemOp, a: Elem, b: Elem, words: Words, out: list[bytes], known: dict[int, int]) -> None:
    """The deeper side first, where that leaves no bit different: sums and products commute, a - b is -b + a."""
    dtype = "u64" if e.dtype == MASK else e.dtype
    swapped = (op in _COMMUTE or op is ElemOp.SUB) and depth_of(b, known) > depth_of(a, known)
    if not swapped:
        _compile(a, words, out, known)
        _compile(b, words, out, known)
        _add(out, ElemFn[op.name], dtype)
        return
    _compile(b, words, out, known)
    if op is ElemOp.SUB:
        _add(out, ElemFn.NEG, e.dtype)
    _compile(a, words, out, known)
    _add(out, ElemFn.ADD if op is ElemOp.SUB else ElemFn[op.name], dtype)


def _add(out: list[bytes], fn: ElemFn, dtype: str, source: int = 0, along: int = 0, word: int = 0) -> None:
    out.append(_INSTRUCTION.pack(fn, code_of(dtype), source, along, word))
