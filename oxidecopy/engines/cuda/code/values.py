"""Integers of a program in one normal form: a constant plus multiples of *atoms*, for a known launch.

Atoms are symbols (block index, rank, loop counters, what ops read) and what is not affine: quotients, remainders, minima, maxima,
products. They are numbered, equal ones once, and each has an interval that holds for the whole launch. So equal expressions are equal
tuples, whatever way they were written: that is what makes loops recognisable and common parts shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias, assert_never, final

from oxidecopy.isa.expr import Add, And, Answer, Bool, Cmp, CmpOp, Cond, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym

Terms: TypeAlias = tuple[tuple[int, int], ...]  # (atom, coefficient), ascending
Lin: TypeAlias = tuple[int, Terms]

INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
WIDE_MIN: Final = -(1 << 63)
WIDE_MAX: Final = (1 << 63) - 1
ZERO: Final[Lin] = (0, ())


@final
class Atom(NamedTuple):
    """`kind` is sym, div, mod, min, max or mul. `a` and `b` are operands (`by` the divisor), `symbols` a bit for each symbol in it."""

    kind: str
    name: str
    a: Lin
    b: Lin
    by: int
    low: int
    high: int
    symbols: int


# ---- conditions: of known truth, or a test. `less`, `same` and `other` compare `a` with the constant `bound`; `less2` and `same2` two
# values whose difference may not fit 32 bits.
@final
class Test(NamedTuple):
    """A condition that is not known before the launch: `parts` for and, or, not; `register` for an answer."""

    kind: str
    a: Lin = ZERO
    b: Lin = ZERO
    bound: int = 0
    parts: tuple[Test, ...] = ()
    register: int = 0


Truth: TypeAlias = bool | Test


class DivisionByZeroError(Exception):
    """A divisor is 0 for this launch."""


@final
class Values:
    """All integers of one program and launch."""

    def __init__(self, constants: Mapping[str, int]) -> None:
        self.atoms: list[Atom] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._names: dict[str, Lin] = {name: (value, ()) for name, value in constants.items()}
        self._known: dict[int, tuple[Expr, Lin]] = {}  # by identity; the expression is kept so that its identity stays its own
        self._symbols = 0

    # ---- symbols
    def symbol(self, name: str, low: int, high: int) -> Lin:
        """A new symbol in [low, high], or the constant when that is one number."""
        if low >= high:
            found: Lin = (low, ())
        else:
            bit = 1 << self._symbols
            self._symbols += 1
            found = (0, ((self._atom(Atom("sym", name, ZERO, ZERO, 0, low, high, bit)), 1),))
        self._names[name] = found
        return found

    def define(self, name: str, value: Lin) -> None:
        """`name` stands for `value` from now on."""
        self._names[name] = value

    def named(self, name: str) -> Lin | None:
        """The value of a name, when it is known already."""
        return self._names.get(name)

    def symbols_of(self, value: Lin) -> int:
        """One bit for each symbol in it."""
        bits = 0
        for atom, _ in value[1]:
            bits |= self.atoms[atom].symbols
        return bits

    def interval(self, value: Lin) -> tuple[int, int]:
        """Bounds of it, both inclusive."""
        low = high = value[0]
        for number, k in value[1]:
            atom = self.atoms[number]
            if k > 0:
                low += k * atom.low
                high += k * atom.high
            else:
                low += k * atom.high
                high += k * atom.low
        return low, high

    def depends(self, value: Lin, symbols: int) -> bool:
        """True when any of these symbols is in it."""
        return bool(self.symbols_of(value) & symbols)

    # ---- from expressions
    def of(self, e: Expr) -> Lin:
        """The normal form of `e`. KeyError for a name that is not defined, DivisionByZeroError as it says."""
        known = self._known.get(id(e))
        if known is not None:
            return known[1]
        if isinstance(e, Const):
            return (e.value, ())
        made = self._names[e.name] if isinstance(e, Sym) else self._compound(e)
        self._known[id(e)] = (e, made)
        return made

    def _compound(self, e: Add | Mul | FloorDiv | Mod | Min | Max) -> Lin:
        a = self.of(e.a)
        match e:
            case Add():
                return self.add(a, self.of(e.b))
            case Mul():
                return self.mul(a, self.of(e.b))
            case FloorDiv():
                return self.div(a, self._divisor(e.b))
            case Mod():
                return self.mod(a, self._divisor(e.b))
            case Min():
                return self.least(a, self.of(e.b))
            case Max():
                return self.scale(self.least(self.scale(a, -1), self.scale(self.of(e.b), -1)), -1)
            case _:
                assert_never(e)

    def _divisor(self, e: Expr) -> int:
        const, terms = self.of(e)
        if terms or not const:
            raise DivisionByZeroError
        return const

    # ---- arithmetic
    def add(self, a: Lin, b: Lin, times: int = 1) -> Lin:
        """The sum of a and `times` b."""
        if not b[1]:
            return (a[0] + times * b[0], a[1])
        if not a[1] and times == 1:
            return (a[0] + b[0], b[1])
        sums = dict(a[1])
        for atom, k in b[1]:
            sums[atom] = sums.get(atom, 0) + times * k
        return (a[0] + times * b[0], tuple(sorted([pair for pair in sums.items() if pair[1]])))

    def scale(self, a: Lin, by: int) -> Lin:
        """The product with a constant."""
        if by == 1:
            return a
        return (a[0] * by, tuple([(atom, k * by) for atom, k in a[1]])) if by else ZERO

    def mul(self, a: Lin, b: Lin) -> Lin:
        """The product."""
        if not b[1]:
            return self.scale(a, b[0])
        if not a[1]:
            return self.scale(b, a[0])
        (al, ah), (bl, bh) = self.interval(a), self.interval(b)
        corners = (al * bl, al * bh, ah * bl, ah * bh)
        a, b = sorted((a, b))
        return self._single("mul", a, b, 0, min(corners), max(corners))

    def div(self, a: Lin, by: int) -> Lin:
        """The quotient, rounded down. Whole multiples of the divisor are taken out, so that what is left has a remainder of its own."""
        if by < 0:
            a, by = self.scale(a, -1), -by
        if by == 1:
            return a
        whole: Lin = (a[0] // by, tuple([(atom, k // by) for atom, k in a[1] if not k % by]))
        rest: Lin = (a[0] % by, tuple([(atom, k) for atom, k in a[1] if k % by]))
        if not rest[1]:
            return whole
        low, high = self.interval(rest)
        if low // by == high // by:
            return self.add(whole, (low // by, ()))
        if len(rest[1]) == 1 and rest[1][0][1] == 1:
            inner = self.atoms[rest[1][0][0]]
            if inner.kind == "div":  # (x // n + c) // by
                return self.add(whole, self.div(self.add(inner.a, (rest[0] * inner.by, ())), by * inner.by))
        return self.add(whole, self._single("div", rest, ZERO, by, low // by, high // by))

    def mod(self, a: Lin, by: int) -> Lin:
        """The remainder, of the divisor's sign."""
        if by < 0:
            return self.scale(self.mod(self.scale(a, -1), -by), -1)
        rest: Lin = (a[0] % by, ())
        again = False
        for number, k in a[1]:
            atom = self.atoms[number]
            left = k % by
            if left:
                left = left - by if left > by // 2 else left
                nested = atom.kind == "mod" and not atom.by % by
                rest = self.add(rest, atom.a if nested else (0, ((number, 1),)), left)
                again = again or nested
        if again:
            return self.mod(rest, by)
        if not rest[1]:
            return (rest[0] % by, ())
        rest = (rest[0] % by, rest[1])
        low, high = self.interval(rest)
        if low // by == high // by:
            return (rest[0] - low // by * by, rest[1])
        return self._single("mod", rest, ZERO, by, 0, by - 1)

    def least(self, a: Lin, b: Lin) -> Lin:
        """The smaller of both. The larger is minus the smaller of the negatives."""
        low, high = self.interval(self.add(a, b, -1))
        if high <= 0:
            return a
        if low >= 0:
            return b
        (al, ah), (bl, bh) = self.interval(a), self.interval(b)
        a, b = sorted((a, b))
        return self._single("min", a, b, 0, min(al, bl), min(ah, bh))

    def _single(self, kind: str, a: Lin, b: Lin, by: int, low: int, high: int) -> Lin:
        symbols = self.symbols_of(a) | self.symbols_of(b)
        return (0, ((self._atom(Atom(kind, "", a, b, by, low, high, symbols)), 1),))

    def _atom(self, atom: Atom) -> int:
        key = (atom.kind, atom.name, atom.a, atom.b, atom.by)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.atoms)
            self.atoms.append(atom)
        return number

    # ---- rewriting
    def replaced(self, value: Lin, symbol: Lin, by: Lin) -> Lin:
        """`value` with another value in the place of a symbol."""
        ((number, _),) = symbol[1]
        bits = self.atoms[number].symbols
        made: Lin = (value[0], ())
        for atom, k in value[1]:
            found = self.atoms[atom]
            if atom == number:
                made = self.add(made, by, k)
            elif not found.symbols & bits:
                made = self.add(made, (0, ((atom, 1),)), k)
            else:
                made = self.add(made, self._rebuilt(found, self.replaced(found.a, symbol, by), self.replaced(found.b, symbol, by)), k)
        return made

    def _rebuilt(self, atom: Atom, a: Lin, b: Lin) -> Lin:
        match atom.kind:
            case "div":
                return self.div(a, atom.by)
            case "mod":
                return self.mod(a, atom.by)
            case "min":
                return self.least(a, b)
            case _:
                return self.mul(a, b)

    def grouped(self, value: Lin, symbols: int) -> Lin:
        """`value` with what hangs on none of `symbols` gathered in atoms of kind `group`, one for each sum: a register can hold that."""
        still = tuple([pair for pair in value[1] if not self.atoms[pair[0]].symbols & symbols])
        made: Lin = (value[0], ())
        for number, k in value[1]:
            atom = self.atoms[number]
            if atom.symbols & symbols:
                if atom.kind != "sym":
                    a, b = self.grouped(atom.a, symbols), self.grouped(atom.b, symbols)
                    single = self._single(atom.kind, a, b, atom.by, atom.low, atom.high)
                else:
                    single = (0, ((number, 1),))
                made = self.add(made, single, k)
        if len(still) == 1 and still[0][1] == 1:
            return self.add(made, (0, still))
        return self.add(made, self._single("group", (0, still), ZERO, 0, *self.interval((0, still)))) if still else made

    # ---- conditions
    def truth(self, c: Cond) -> Truth:
        """The normal form of a condition."""
        match c:
            case Bool(value):
                return value
            case Answer(register):
                return Test("answer", register=register)
            case Not(a):
                return negated(self.truth(a))
            case And(a, b):
                return _both(self.truth(a), self.truth(b), "and", neutral=True)
            case Or(a, b):
                return _both(self.truth(a), self.truth(b), "or", neutral=False)
            case Cmp(op, left, right):
                return self.compare(op, self.of(left), self.of(right))
            case _:
                assert_never(c)

    def compare(self, op: CmpOp, a: Lin, b: Lin) -> Truth:
        """A comparison, decided where the intervals do."""
        difference = self.add(a, b, -1)
        low, high = self.interval(difference)
        if op in (CmpOp.LT, CmpOp.LE):
            limit = 0 if op is CmpOp.LT else 1  # a - b < limit
            if high < limit:
                return True
            if low >= limit:
                return False
            if _fits(low, high, difference[0], limit - difference[0]):
                return Test("less", (0, difference[1]), bound=limit - difference[0])
            return Test("less2", a, (b[0] + limit, b[1]))
        if not low <= 0 <= high or low == high:
            return (low == high == 0) == (op is CmpOp.EQ)
        if _fits(low, high, difference[0], -difference[0]):
            return Test("same" if op is CmpOp.EQ else "other", (0, difference[1]), bound=-difference[0])
        return Test("same2" if op is CmpOp.EQ else "other2", a, b)

    def symbols_of_test(self, test: Test) -> int:
        """As `symbols_of`; answers count as none."""
        bits = self.symbols_of(test.a) | self.symbols_of(test.b)
        for part in test.parts:
            bits |= self.symbols_of_test(part)
        return bits

    # ---- words
    def text(self, value: Lin) -> str:
        """A value as a formula over the user's names."""
        words = [self._term(self.atoms[atom], k) for atom, k in value[1]]
        if value[0] or not words:
            words.append(str(value[0]))
        return " + ".join(words).replace("+ -", "- ")

    def _term(self, atom: Atom, k: int) -> str:
        match atom.kind:
            case "sym":
                word = atom.name
            case "div":
                word = f"({self.text(atom.a)}) // {atom.by}"
            case "mod":
                word = f"({self.text(atom.a)}) % {atom.by}"
            case "min":
                word = f"min({self.text(atom.a)}, {self.text(atom.b)})"
            case "group":
                word = f"({self.text(atom.a)})"
            case _:
                word = f"({self.text(atom.a)}) * ({self.text(atom.b)})"
        if k == 1:
            return word
        return f"{k} * {word}" if atom.kind in ("sym", "min") else f"{k} * ({word})"


def _fits(low: int, high: int, const: int, bound: int) -> bool:
    """True when what has this interval, the same without its constant, and the bound are all 32-bit numbers."""
    return min(low, low - const, bound) > INT_MIN and max(high, high - const, bound) <= INT_MAX


def negated(test: Truth) -> Truth:
    """Not that."""
    if isinstance(test, bool):
        return not test
    match test.kind:
        case "not":
            return test.parts[0]
        case "same" | "other" | "same2" | "other2":
            other = {"same": "other", "other": "same", "same2": "other2", "other2": "same2"}[test.kind]
            return Test(other, test.a, test.b, test.bound)
        case _:
            return Test("not", parts=(test,))


def _both(a: Truth, b: Truth, kind: str, *, neutral: bool) -> Truth:
    if isinstance(a, bool):
        return b if a is neutral else a
    if isinstance(b, bool):
        return a if b is neutral else b
    return Test(kind, parts=(a, b))
