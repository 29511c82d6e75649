"""Coordinates that are quotients and remainders of one number: a record each (`abi.COORDINATE`) instead of instructions.

Nearly all are: boxes are dealt out by a number (a block's index, a loop's counter, a tile), and `number // a % b * box` is where it lies.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple, final

from oxidecopy.engines.cuda.abi import NO_REG
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, Lin, Terms, Values

COORDINATE: Final = struct.Struct("<4i2I4BI2iB7x")
Steps = tuple[int, int, int]
_STEPS: Final = 3


class NotPlacedError(Exception):
    """The coordinate is another function."""


@final
class Placement(NamedTuple):
    """(x // divisor % modulus) * scale + base, with x = offset + what moves by `steps`; 0 where nothing is divided.

    `reg` and `base_reg` are what does not move, in x and in base: a register is to hold each.
    """

    steps: Steps
    reg: Terms
    offset: int
    divisor: int
    modulus: int
    scale: int
    base: int
    base_reg: Terms

    def packed(self, reg: int = NO_REG, base_reg: int = NO_REG, reg_z: int = NO_REG) -> bytes:
        """The record, with the registers' numbers."""
        (magic, shift), (by, by_shift) = magic_of(self.divisor), magic_of(self.modulus)
        return COORDINATE.pack(
            *self.steps, self.offset, magic, by, shift, by_shift, reg, base_reg, self.modulus, self.scale, self.base, reg_z
        )


def placement(values: Values, value: Lin, moving: Mapping[int, int], bits: int) -> Placement:
    """A coordinate in that form.

    x may move by the symbols (atoms) `moving`, each with its step; what hangs on none of `bits` is in registers.

    Raises:
        NotPlacedError: it is none, or may leave 32 bits on the way.
    """
    still, moved = _parted(values, value[1], bits)
    x, divisor, modulus, scale = _divided(values, moved)
    base = value[0]
    low, high = values.interval(x)
    if divisor or modulus:  # of numbers from 0 on: whole turns are added where there are others
        turn = max(divisor, 1) * max(modulus, 1)
        turns = max(0, -(low // turn))
        x = (x[0] + turns * turn, x[1])
        base -= 0 if modulus else turns * scale
        high += turns * turn
    reg, terms = _parted(values, x[1], bits)
    steps = [0, 0, 0]
    for number, step in terms:
        if number not in moving:
            raise NotPlacedError
        steps[moving[number]] = step
    numbers = (*steps, x[0], modulus, scale, base, *((high,) if divisor or modulus else ()), *values.interval(value))
    if max(numbers) > INT_MAX or min(numbers) < INT_MIN or _most(values, still) > INT_MAX or _most(values, reg) > INT_MAX:
        raise NotPlacedError
    return Placement((steps[0], steps[1], steps[2]), reg, x[0], divisor, modulus, scale, base, still)


def spot(values: Values, value: Lin, find: Callable[[Terms], tuple[Hashable, int] | None]) -> bytes | None:
    """A value as a part of PLACE: a function of up to three registers that are there; None when it is none."""
    symbols = _symbols_in(values, value)
    found = [find(((number, 1),)) for number in symbols]
    registers = [known[0] for known in found if known is not None and known[1] == 0 and isinstance(known[0], int)]
    if not 1 <= len(symbols) == len(registers) <= _STEPS:
        return None
    try:
        place = placement(values, value, {number: i for i, number in enumerate(symbols)}, values.symbols_of(value))
    except NotPlacedError:
        return None
    return place.packed(*registers)


def total(values: Values, value: Lin, find: Callable[[Terms], tuple[Hashable, int] | None]) -> bytes | None:
    """A value as a part of PLACE: the sum of up to three registers, each times a number; None when it is none."""
    registers: list[int] = []
    steps = [0] * _STEPS
    for i, (number, k) in enumerate(value[1][: _STEPS + 1]):
        whole = find(((number, k),))
        register, more = whole or find(((number, 1),)) or (None, 0)
        if more or not isinstance(register, int) or i == _STEPS:
            return None
        registers.append(register)
        steps[i] = 1 if whole else k
    numbers = (*steps, value[0], *values.interval(value))
    if not registers or max(numbers) > INT_MAX or min(numbers) < INT_MIN:
        return None
    return Placement((steps[0], steps[1], steps[2]), (), value[0], 0, 0, 1, 0, ()).packed(*registers)


def _symbols_in(values: Values, value: Lin) -> list[int]:
    """The atoms that are symbols, wherever in it."""
    found: dict[int, None] = {}
    stack = [value]
    while stack:
        for number, _ in stack.pop()[1]:
            atom = values.atoms[number]
            if atom.kind == "sym":
                found[number] = None
            else:
                stack += (atom.a, atom.b)
    return sorted(found)


def _parted(values: Values, terms: Terms, bits: int) -> tuple[Terms, Terms]:
    """What hangs on none of these symbols, and the rest."""
    moves = [bool(values.atoms[number].symbols & bits) for number, _ in terms]
    still, moved = (tuple([term for term, m in zip(terms, moves, strict=True) if m is wanted]) for wanted in (False, True))
    return still, moved


def _divided(values: Values, terms: Terms) -> tuple[Lin, int, int, int]:
    """`terms` as (x // divisor % modulus) * scale: x and those."""
    kinds = [(values.atoms[number], k) for number, k in terms if values.atoms[number].kind != "sym"]
    if not kinds:
        return (0, terms), 0, 0, 1
    atom, scale = kinds[0]
    rest = tuple([term for term in terms if values.atoms[term[0]] is not atom])
    if len(kinds) > 1 or atom.kind not in ("div", "mod") or (rest and atom.kind == "mod"):
        raise NotPlacedError
    inside = values.atoms[atom.a[1][0][0]] if atom.kind == "div" and not rest and atom.a[0] == 0 and len(atom.a[1]) == 1 else atom
    if inside.kind == "mod" and inside is not atom and atom.a[1][0][1] == 1 and inside.by % atom.by == 0:
        return inside.a, atom.by, inside.by // atom.by, scale  # x % (a * b) // a is x // a % b
    if atom.kind == "div":
        return _under(values, (0, rest), atom.a, atom.by, scale), atom.by, 0, scale
    divided = [(number, k) for number, k in atom.a[1] if values.atoms[number].kind == "div"]
    if len(divided) == 1 and divided[0][1] == 1:
        inner = values.atoms[divided[0][0]]
        rest = tuple([term for term in atom.a[1] if term != divided[0]])
        return _under(values, (atom.a[0], rest), inner.a, inner.by, 1), inner.by, atom.by, scale
    return atom.a, 0, atom.by, scale


def _under(values: Values, rest: Lin, x: Lin, divisor: int, scale: int) -> Lin:
    """X and the multiples of the divisor that make `rest` / scale when they are divided with it."""
    if rest[0] % scale or any(k % scale for _, k in rest[1]):
        raise NotPlacedError
    return values.add(x, (rest[0] // scale, tuple([(number, k // scale) for number, k in rest[1]])), divisor)


def _most(values: Values, terms: Terms) -> int:
    """A bound of all sums on the way to the value."""
    return sum(abs(k) * max(abs(values.atoms[number].low), abs(values.atoms[number].high)) for number, k in terms)


def magic_of(divisor: int) -> tuple[int, int]:
    """(magic, shift) so that x // divisor is x * magic >> 32 >> shift for 0 <= x < 2**31; zeros where nothing is divided.

    With 2**(n - 1) < divisor <= 2**n, magic is 2**(31 + n) / divisor, rounded up: it is too large by less than divisor <= 2**n parts of
    2**(31 + n), so that the error stays below 1 / divisor for all x.
    """
    if divisor < 2:
        return 0, 0
    n = (divisor - 1).bit_length()
    return ((1 << (31 + n)) // divisor + 1, n - 1)
