"""Values as instructions of `EVAL`: which order needs the least stack, what is worth a register of its own, and that all fits 32 bits.

In wide code all fits 64 bits, and sums and products may wrap on the way, as they come right again.

Where a value is found already is the caller's knowledge (`Find`); instructions name registers by whatever token that gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, final

from oxidecopy.engines.cuda.abi import NO_REG, STACK_DEPTH, EvalFn
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, WIDE_MAX, WIDE_MIN, Lin, Terms, Test, Values

Token: TypeAlias = Hashable  # a register number, or what stands for one until registers are given out
Key: TypeAlias = Lin | Test
Found: TypeAlias = tuple[Token, int]  # a register, and the constant by which what it holds is larger than the terms asked for
Find: TypeAlias = Callable[[Terms], Found | None]
_NARY: Final = {"less2": (EvalFn.LT_POP, EvalFn.LE_POP), "same2": (EvalFn.EQ_POP, None), "other2": (EvalFn.NE_POP, None)}
_SHALLOW: Final = 2  # what needs no more than this is never split off
_POPPED: Final = {
    EvalFn.ADD: EvalFn.ADD_POP,
    EvalFn.MUL: EvalFn.MUL_POP,
    EvalFn.FLOORDIV: EvalFn.FLOORDIV_POP,
    EvalFn.MOD: EvalFn.MOD_POP,
    EvalFn.MIN: EvalFn.MIN_POP,
    EvalFn.AND: EvalFn.AND_POP,
}
_WITH_BOUND: Final = {"less": EvalFn.LT, "same": EvalFn.EQ, "other": EvalFn.NE}


class Instruction(NamedTuple):
    """One of `EVAL`; `reg` is a token where the function takes one."""

    fn: EvalFn
    reg: Token = NO_REG
    imm: int = 0


class OverflowingError(Exception):
    """A value may leave 32 bits, in wide code 64."""

    def __init__(self, value: Lin, low: int, high: int) -> None:
        super().__init__(value, low, high)
        self.value = value
        self.low = low
        self.high = high


class TooDeepError(Exception):
    """An expression needs more stack than there is."""


@final
class Scalars:
    """Compiles values one after the other; what one leaves in a register is there for the next."""

    def __init__(
        self,
        values: Values,
        find: Find,
        take: Callable[[], Token] | None,
        pushed: Mapping[int, Instruction] | None = None,
        *,
        wide: bool = False,
    ) -> None:
        self.values = values
        self.wide = wide
        self.code: list[Instruction] = []
        self._find = find
        self._take = take  # a register for a common part, None where none may be written
        self._pushed = pushed or {}  # symbols that an instruction of their own gives
        self._made: dict[Terms, Found] = {}
        self._uses: Counter[Terms] = Counter()
        self._tests: dict[Test, Token] = {}
        self._whole: Terms = ()  # of the value that is on its way to a register anyhow

    # ---- what is used how often
    def count(self, key: Key) -> None:
        """Announces that `key` will be compiled, so that common parts are known beforehand."""
        if isinstance(key, Test):
            for part in key.parts:
                self.count(part)
            self._count(key.a[1])
            self._count(key.b[1])
        else:
            self._count(key[1])

    def _count(self, terms: Terms) -> None:
        if not terms:
            return
        self._uses[terms] += 1
        if self._uses[terms] > 1 or self._find(terms) is not None:
            return
        for number, k in terms:
            atom = self.values.atoms[number]
            if atom.kind == "sym":
                continue
            single = ((number, 1),)
            if len(terms) > 1 or k != 1:
                self._uses[single] += 1
                if self._uses[single] > 1:
                    continue
            self._count(atom.a[1])
            self._count(atom.b[1])

    # ---- compiling
    def store(self, key: Key, register: Token) -> None:
        """Computes `key` into `register`."""
        mark, made = len(self.code), dict(self._made)
        try:
            self._key(key)
        except TooDeepError:
            if self._take is None:
                raise
            del self.code[mark:]
            self._made = made
            self._split(key, self._take)
            self._key(key)
        if isinstance(key, Test):
            self._tests[key] = register
        else:
            self._made.setdefault(key[1], (register, key[0]))
        self.code.append(Instruction(EvalFn.STORE, register))

    def _key(self, key: Key) -> None:
        if isinstance(key, Test):
            self.test(key)
        else:
            self._whole = key[1]
            self.value(key)
            self._whole = ()

    def _split(self, key: Key, take: Callable[[], Token]) -> None:
        """Computes the deep parts of a value first, innermost first, into registers of their own."""
        if isinstance(key, Test):
            for part in key.parts:
                self._split(part, take)
                if self._need_of_test(part) > _SHALLOW and part not in self._tests:
                    self.store(part, take())
            self._split(key.a, take)
            self._split(key.b, take)
            return
        for number, _ in key[1]:
            single: Lin = (0, ((number, 1),))
            if self._known(single[1]) is None:
                self._split(self.values.atoms[number].a, take)
                self._split(self.values.atoms[number].b, take)
                if self._need_of_atom(number) > _SHALLOW:
                    self.store(single, take())

    def out(self, value: Lin, dimension: int) -> None:
        """Computes a coordinate of a fused loop."""
        self.value(value)
        self.code.append(Instruction(EvalFn.OUT, dimension))

    def value(self, value: Lin, free: int = STACK_DEPTH) -> None:
        """Leaves `value` in the accumulator, using at most `free` places of the stack."""
        const, terms = value
        self._need_place(free)
        if not terms:
            self._check(value, const, const)
            self._constant(const)
            return
        known = self._known(terms)
        if known is not None or self.wide:
            low, high = self.values.interval(value)
            self._check(value, low, high)
        if known is not None:
            self._register(known[0], const - known[1])
            return
        start = len(self.code)
        left = self._sum(value, free)
        self._keep(terms, start, value[0] - left)
        if left:
            self._with(EvalFn.ADD, left)

    # ---- constants
    def _constant(self, number: int) -> None:
        """Pushes it: beyond 32 bits in two halves, beyond 64 as what is left of it there."""
        if INT_MIN <= number <= INT_MAX:
            self.code.append(Instruction(EvalFn.IMM, NO_REG, number))
            return
        self.code.append(Instruction(EvalFn.IMM, NO_REG, _signed(number, 32)))
        self.code.append(Instruction(EvalFn.HIGH, NO_REG, _signed(number >> 32, 32)))

    def _with(self, fn: EvalFn, number: int) -> None:
        """Combines the accumulator with a constant, which is pushed where no immediate holds it: wide code has one place more for that."""
        if not self.wide or INT_MIN <= number <= INT_MAX:
            self.code.append(Instruction(fn, NO_REG, number))
            return
        self._constant(number)
        self.code.append(Instruction(_POPPED[fn]))

    def _register(self, register: Token, plus: int) -> None:
        """Pushes what a register holds and a constant."""
        if not self.wide or INT_MIN <= plus <= INT_MAX:
            self.code.append(Instruction(EvalFn.REG, register, plus))
            return
        self.code.append(Instruction(EvalFn.REG, register))
        self._with(EvalFn.ADD, plus)

    def _sum(self, value: Lin, free: int) -> int:
        """Everything but what it returns: a constant that is still to be added."""
        const, terms = value
        check = not self.wide and not self._surely_fits(value)
        order = sorted(terms, key=self._weight, reverse=True) if len(terms) > 1 else terms
        low = high = 0
        for i, (number, k) in enumerate(order):
            atom = self.values.atoms[number]
            register, factor = self._known(((number, 1),)), k
            whole = self._known(((number, k),)) if k != 1 else None
            if whole is not None:
                register, factor = whole, 1
            if register is not None and factor == 1:
                if i:
                    self._add_register(register)
                else:
                    self._register(register[0], const - register[1])
                    low = high = const
                    const = 0
            else:
                self._atom(number, register, free - (1 if i else 0))
                if k != 1:
                    self._with(EvalFn.MUL, k)
                if i:
                    self.code.append(Instruction(EvalFn.ADD_POP))
            if check:
                ends = (k * atom.low, k * atom.high)
                self._check(value, min(ends), max(ends))
                low, high = low + min(ends), high + max(ends)
                self._check(value, low, high)
                self._check(value, low + const, high + const)
        return const

    def _add_register(self, register: Found) -> None:
        self.code.append(Instruction(EvalFn.ADD_REG, register[0]))
        if register[1]:
            self._with(EvalFn.ADD, -register[1])

    def _atom(self, number: int, register: Found | None, free: int) -> None:
        self._need_place(free)
        if register is not None:
            self._register(register[0], -register[1])
            return
        atom = self.values.atoms[number]
        start = len(self.code)
        match atom.kind:
            case "div":
                self.value(atom.a, free)
                power = not atom.by & (atom.by - 1)
                self._divide(atom.a, atom.by, power=power)
            case "mod":
                self.value(atom.a, free)
                power = not atom.by & (atom.by - 1)
                self._remain(atom.a, atom.by, power=power)
            case "min":
                self._pair(atom.a, atom.b, EvalFn.MIN, EvalFn.MIN_POP, free)
            case "mul":
                self._pair(atom.a, atom.b, EvalFn.MUL, EvalFn.MUL_POP, free)
            case _:
                self.code.append(self._pushed[number])
                return
        self._keep(((number, 1),), start, 0)

    def _divide(self, value: Lin, by: int, *, power: bool) -> None:
        if self.wide and (power or by > WIDE_MAX):  # beyond 64 bits only the sign is left, as what is divided fits them
            self.code.append(Instruction(EvalFn.SHR, NO_REG, min(by.bit_length() - 1, 63)))
            return
        self._check(value, 0, by)
        if power:
            self.code.append(Instruction(EvalFn.SHR, NO_REG, by.bit_length() - 1))
        else:
            self._with(EvalFn.FLOORDIV, by)

    def _remain(self, value: Lin, by: int, *, power: bool) -> None:
        self._check(value, 0, by - 1 if power else by)
        self._with(*((EvalFn.AND, by - 1) if power else (EvalFn.MOD, by)))

    def _pair(self, a: Lin, b: Lin, constant: EvalFn, pop: EvalFn, free: int) -> None:
        """A commutative function of two values, the one that needs more stack first."""
        if not a[1]:
            a, b = b, a
        if not b[1]:
            self.value(a, free)
            self._check(b, b[0], b[0])
            self._with(constant, b[0])
            return
        first, second = (a, b) if self._need(a[1]) >= self._need(b[1]) else (b, a)
        self.value(first, free)
        self.value(second, free - 1)
        self.code.append(Instruction(pop))

    def test(self, test: Test, free: int = STACK_DEPTH) -> None:
        """Leaves 1 or 0 in the accumulator."""
        if test in self._tests:
            self._need_place(free)
            self.code.append(Instruction(EvalFn.REG, self._tests[test]))
            return
        match test.kind:
            case "less" | "same" | "other":
                self.value(test.a, free)
                self.code.append(Instruction(_WITH_BOUND[test.kind], NO_REG, test.bound))
            case "less2" | "same2" | "other2":
                forward, backward = _NARY[test.kind]
                swapped = self._need(test.b[1]) > self._need(test.a[1])
                self.value(test.b if swapped else test.a, free)
                self.value(test.a if swapped else test.b, free - 1)
                if swapped and backward is not None:  # a < b is not b <= a
                    self.code += (Instruction(backward), Instruction(EvalFn.NOT))
                else:
                    self.code.append(Instruction(forward))
            case "answer":
                self._need_place(free)
                self.code.append(Instruction(EvalFn.REG, test))
            case "not":
                self.test(test.parts[0], free)
                self.code.append(Instruction(EvalFn.NOT))
            case _:
                a, b = sorted(test.parts, key=self._need_of_test, reverse=True)
                self.test(a, free)
                self.test(b, free - 1)
                self.code.append(Instruction(EvalFn.AND_POP if test.kind == "and" else EvalFn.OR_POP))

    # ---- registers for common parts
    def _known(self, terms: Terms) -> Found | None:
        made = self._made.get(terms)
        return made if made is not None else self._find(terms)

    def _keep(self, terms: Terms, start: int, const: int) -> None:
        """Copies what is in the accumulator to a register when that saves instructions later."""
        left = self._uses[terms] - 1
        if self._take is None or left < 1 or terms == self._whole or terms in self._made or left * (len(self.code) - start - 1) <= 2:
            return
        register = self._take()
        self._made[terms] = (register, const)
        self.code += (Instruction(EvalFn.STORE, register), Instruction(EvalFn.REG, register))

    # ---- stack
    @staticmethod
    def _need_place(free: int) -> None:
        if free < 1:
            raise TooDeepError

    def _weight(self, term: tuple[int, int]) -> int:
        """Terms that need more stack come first; registers that can be added as they are, last."""
        number, k = term
        if self._known(((number, 1),)) is not None:
            return 1 if k == 1 else 2
        return 2 + self._need_of_atom(number)

    def _need_of_atom(self, number: int) -> int:
        if self._known(((number, 1),)) is not None:
            return 1
        atom = self.values.atoms[number]
        return _two(self._need(atom.a[1]), self._need(atom.b[1])) if atom.b[1] else max(1, self._need(atom.a[1]))

    def _need(self, terms: Terms) -> int:
        if not terms or self._known(terms) is not None:
            return 1
        needs = sorted([0 if self._known(((n, 1),)) is not None and k == 1 else self._need_of_atom(n) for n, k in terms], reverse=True)
        return max([1, needs[0], *[1 + n for n in needs[1:]]])

    def _need_of_test(self, test: Test) -> int:
        if test in self._tests:
            return 1
        if test.parts:
            needs = [self._need_of_test(part) for part in test.parts]
            return needs[0] if len(needs) == 1 else _two(*needs)
        a = self._need(test.a[1])
        return _two(a, self._need(test.b[1])) if test.kind.endswith("2") else a

    # ---- 32 bits
    def _surely_fits(self, value: Lin) -> bool:
        """True when no order of its terms can leave 32 bits."""
        bound = abs(value[0])
        for number, k in value[1]:
            atom = self.values.atoms[number]
            bound += abs(k) * max(abs(atom.low), abs(atom.high))
        return bound <= INT_MAX

    def _check(self, value: Lin, low: int, high: int) -> None:
        if low < (WIDE_MIN if self.wide else INT_MIN) or high > (WIDE_MAX if self.wide else INT_MAX):
            raise OverflowingError(value, low, high)


def _signed(number: int, bits: int) -> int:
    """The lowest bits, as a number with a sign."""
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _two(a: int, b: int) -> int:
    return max(a, b) if a != b else a + 1


def registers_of(code: Sequence[Instruction]) -> set[Token]:
    """The registers that it reads."""
    return {i.reg for i in code if i.fn in (EvalFn.REG, EvalFn.ADD_REG, EvalFn.MUL_REG)}
