"""Nodes -> records: which register each value lives in, and where jumps go.

Each region (`placing.py`) computes what is wanted of it in one go at its head; values that hang on something an op in the region reads,
right behind that. When this needs more registers than there are, the agent is written again in the `lean` way: each value is computed
right before its op, and forgotten after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import NO_REG, DeviceOp, EvalFn
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.coordinates import spot, total
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.nodes import Fused, If, Node, Op, Repeat
from oxidecopy.engines.cuda.code.placing import Placing, Region, asks
from oxidecopy.engines.cuda.code.records import COPY, INSTRUCTION, RING, Records
from oxidecopy.engines.cuda.code.scalars import Found, Instruction, Key, OverflowingError, Scalars, Token
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, WIDE_MAX, WIDE_MIN, ZERO, Lin, Terms, Test, Values
from oxidecopy.errors import Diagnostic

_KEPT: Final = 5  # first of the registers of a kept token
_LANES: Final = 32  # of a warp: the registers that a lane each has first
_SPARE: Final = 12  # registers that a region's head leaves to the regions in it
_BUILT_IN: Final = (
    ("block_idx.x", abi.REG_BLOCK_X),
    ("block_idx.y", abi.REG_BLOCK_Y),
    ("block_idx.z", abi.REG_BLOCK_Z),
    ("cta_rank", abi.REG_RANK),
)


class NoRegisterError(Exception):
    """All registers are taken."""


class EmissionError(Exception):
    """An agent cannot be written: `diagnostics` say why, none when there are too few registers even for the lean way."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics


@final
class Emitter:
    """Writes agents one after the other into one code; `wide` code has integers of 64 bits, that with `places` has PLACE.

    With `sums` it has that, too, which then computes the addends of sums as well.
    """

    def __init__(self, values: Values, *, wide: bool = False, places: bool = False, sums: bool = False) -> None:
        self.values = values
        self._wide = wide
        self._places = places
        self._sums = sums
        self.records = Records()
        self._fixed: dict[Terms, int] = {}
        self._free: list[int] = []
        self._answers: dict[Test, int] = {}
        self._placing = Placing(values, [], wide=wide, lean=False)
        self._region = self._placing.outermost
        for name, register in _BUILT_IN:
            found = values.named(name)
            if found is not None and found[1]:
                self._fixed[found[1]] = register

    def agent(self, nodes: list[Node], answers: Sequence[Test], end: Where) -> int:
        """The agent's first record. Raises EmissionError."""
        entry = len(self.records)
        for lean in (False, True):
            try:
                self._agent(nodes, answers, end, lean=lean)
            except NoRegisterError:
                self.records.cut(entry)
                if lean:
                    raise EmissionError from None
            else:
                break
        return entry

    def _agent(self, nodes: list[Node], answers: Sequence[Test], end: Where, *, lean: bool) -> None:
        self._free = list(range(abi.REGISTERS - 1, abi.FIRST_FREE_REG - 1, -1))
        self._symbols: dict[Terms, int] = dict(self._fixed)
        self._answers = {test: self._take() for test in answers}
        self._placing = Placing(self.values, nodes, wide=self._wide, lean=lean)
        self._region = self._placing.outermost
        clear = [i for r in self._answers.values() for i in (Instruction(EvalFn.IMM), Instruction(EvalFn.STORE, r))]
        if clear:
            self._eval(clear, end)
        self._body(nodes, self._region)
        self.records.add(DeviceOp.END, end)

    def _body(self, nodes: list[Node], region: Region) -> None:
        outside, self._region = self._region, region
        symbols = dict(self._symbols)
        due: dict[int, list[Key]] = {}
        ends: dict[int, list[Key]] = {}
        at_head = {key for key, _ in region.wants if not self._placing.symbols_of(key) & region.late}
        eager = not self._placing.lean and len(at_head) <= len(self._free) - _SPARE
        for (key, _), (first, last) in region.wants.items():
            due.setdefault(0 if eager and key in at_head else first, []).append(key)
            ends.setdefault(last, []).append(key)
        for i, node in enumerate(nodes):
            if i in due:
                self._compute(due[i], node.where)
            self._node(node)
            for key in ends.get(i, ()):
                self._free.append(region.have.pop(key))
        self._free += [register for terms, register in self._symbols.items() if terms not in symbols]
        self._symbols = symbols
        self._region = outside

    def _compute(self, keys: list[Key], where: Where) -> None:
        temporary: list[int] = []
        made: dict[Key, int] = {}

        def take() -> Token:
            temporary.append(self._take())
            return temporary[-1]

        if self._places or self._sums:
            keys = self._side_by_side(keys, made, where)
        scalars = Scalars(self.values, self._find, take, wide=self._wide)
        for key in keys:
            scalars.count(key)
        for key in sorted(keys, key=_size):
            register = self._take()
            try:
                scalars.store(key, register)
            except OverflowingError as found:
                raise EmissionError(refusals.overflow(where, f"`{self.values.text(found.value)}`", found.low, found.high)) from None
            made[key] = register
        self._region.have |= made  # only now: a value is not there before it is computed
        if scalars.code:
            self._eval(scalars.code, where)
        self._free += temporary

    def _side_by_side(self, keys: list[Key], made: dict[Key, int], where: Where) -> list[Key]:
        """Computes those values that a lane each can; gives back the others."""
        left: list[Key] = []
        parts: dict[int, bytes] = {}
        for key in keys:
            found = None if isinstance(key, Test) else spot(self.values, key, self._find)
            if found is None or not self._free or self._free[-1] >= _LANES:
                left.append(key)
                if self._sums and not isinstance(key, Test):
                    self._addends(key, parts, made)
            else:
                made[key] = register = self._take()
                parts[register] = found
        self._lanes(parts, made, where)
        return self._added(left, made, where) if self._sums else left

    def _lanes(self, parts: dict[int, bytes], made: dict[Key, int], where: Where) -> None:
        """A record by which a lane each computes its register."""
        if parts:
            mask = sum(1 << register for register in parts)
            self.records.add(DeviceOp.PLACE, where, imms=[0, mask - (mask >> _LANES - 1 << _LANES), 0, 0, 0])  # records hold signed numbers
            self.records.tail(b"".join([parts[register] for register in sorted(parts)]))
            self._region.have |= {key: register for key, register in made.items() if register in parts}

    def _added(self, keys: list[Key], made: dict[Key, int], where: Where) -> list[Key]:
        """Computes those that are sums of a few registers; gives back the others."""
        left: list[Key] = []
        parts: dict[int, bytes] = {}
        for key in keys:
            found = None if isinstance(key, Test) else total(self.values, key, self._find)
            if found is None or not self._free or self._free[-1] >= _LANES:
                left.append(key)
            else:
                made[key] = register = self._take()
                parts[register] = found
        self._lanes(parts, made, where)
        return left

    def _addends(self, key: Lin, parts: dict[int, bytes], made: dict[Key, int]) -> None:
        """What a value is the sum of, by a lane each: then little is left to compute."""
        for term in key[1]:
            part = (0, (term,))
            found = spot(self.values, part, self._find) if self.values.atoms[term[0]].kind != "sym" and part not in made else None
            if found is not None and self._free and self._free[-1] < _LANES:
                made[part] = register = self._take()
                parts[register] = found

    def _find(self, terms: Terms) -> Found | None:
        register = self._symbols.get(terms)
        region: Region | None = self._region
        while register is None and region is not None:
            register = region.have.get((0, terms))
            region = region.above
        return None if register is None else (register, 0)

    def _node(self, node: Node) -> None:
        match node:
            case Op():
                self._op(node)
            case If():
                self._if(node)
            case Repeat():
                self._repeat(node)
            case Fused():
                self._fused(node)

    def _op(self, node: Op) -> None:
        regs, imms = [NO_REG] * 8, [0] * 5
        for k, value in node.operands:
            regs[k], imms[k] = self._operand(value, node.where)
        for k, value in node.exact:
            regs[k] = self._register(value)
        for k, imm in node.imms:
            imms[k] = imm
        if isinstance(node.result, Test):
            regs[2] = self._answers[node.result]
        elif node.result is not None:
            regs[2] = self._new_symbol(node.result)
        for k, register in enumerate(node.kept, _KEPT):
            regs[k] = self._answers[register]
        self.records.add(node.op, node.where, regs, imms, aux=node.aux, slot=self._slot(node, imms), flags=node.flags)
        self.records.tail(node.tail)

    def _slot(self, node: Op, imms: list[int]) -> int:
        """The map of a record: a slot that is known and fits, or what stands in immediates 3 and 4."""
        base, chosen = node.slot
        if not chosen and 0 <= base <= refusals.SLOT_MAX and not node.placed:
            return base or node.map
        register, imms[4] = self._operand(node.slot, node.where)
        imms[3] = (register + 1) % (NO_REG + 1)
        return node.map

    def _if(self, node: If) -> None:
        test = node.test
        regs, imms = [NO_REG] * 8, [0] * 5
        if test.kind == "other":
            regs[1], imms[1] = self._register((0, test.a[1])), -test.bound
        elif test.kind == "answer":
            regs[1] = self._answers[test]
        elif asks(test):  # an op may have changed the answer since the same test was made
            self._compute([test], node.where)
            regs[1] = self._region.have.pop(test)
            self._free.append(regs[1])
        else:
            regs[1] = self._register(test)
        jump = self.records.add(DeviceOp.JUMP_UNLESS, node.where, regs, imms)
        self._body(node.body, self._placing.regions[id(node)])
        imms[0] = len(self.records)
        self.records.put(jump, DeviceOp.JUMP_UNLESS, regs, imms)

    def _repeat(self, node: Repeat) -> None:
        regs, imms = [NO_REG] * 8, [0] * 5
        counter = regs[0] = self._take()
        for k, value in ((1, node.start), (2, node.stop), (3, (node.step, ()))):
            regs[k], imms[k] = self._operand(value, node.where)
        head = self.records.add(DeviceOp.LOOP, node.where, regs, imms)
        begin = len(self.records)
        outside = dict(self._symbols)
        if node.counter[1]:
            self._symbols[node.counter[1]] = counter
        if node.stages:
            begin = self._next_stage(node, counter)
        self._body(node.body, self._placing.regions[id(node)])
        self.records.add(DeviceOp.NEXT, node.where, [counter, NO_REG, *regs[2:]], [0, 0, imms[2], imms[3], begin])
        imms[4] = len(self.records)
        tight = self._places and node.step > 0 and self.records.tighten(head + 1)
        self.records.put(head, DeviceOp.LOOP, regs, imms, flags=abi.LOOP_TIGHT if tight else 0)
        if node.stages:
            self.records.leave_at(begin)
        self._free += [r for terms, r in self._symbols.items() if terms not in outside and r != counter]
        self._symbols = outside
        self._free.append(counter)

    def _next_stage(self, node: Repeat, counter: int) -> int:
        tile = self._new_symbol(node.tile)
        return self.records.add(DeviceOp.NEXT_STAGE, node.where, [counter, NO_REG, tile, *[NO_REG] * 5], [0, node.full, node.stages, 0, 0])

    def _fused(self, node: Fused) -> None:
        regs, imms = [NO_REG] * 8, [0] * 5
        for value in (*[c.tile for c in node.copies], *[(c.stride * node.stages, ()) for c in node.copies], *[c.mask for c in node.copies]):
            self._check(value, node.where)
        for k, value in ((0, node.start), (1, node.stop)):
            regs[k], imms[k] = self._operand(value, node.where)
        self.records.add(node.op, node.where, regs, imms)
        words = len(node.code) + len(node.places) * abi.COORDINATE_BYTES // abi.EVAL_BYTES
        ring = (node.full, node.empty, node.nbytes, node.offset, node.stages, len(node.copies), node.flags, words)
        self.records.tail(RING.pack(*ring, node.empty_behind, node.first, node.peers))
        for copy in node.copies:
            what = (copy.map, copy.rank, copy.kind, copy.reduce, copy.tile[0], copy.stride, copy.mask[0], copy.begin, copy.end)
            self.records.tail(COPY.pack(*what, self._register((0, copy.tile[1])), self._register((0, copy.mask[1]))))
        self._instructions(node.code)
        self.records.tail(
            b"".join([place.packed(self._register((0, place.reg)), self._register((0, place.base_reg))) for place in node.places])
        )

    def _operand(self, value: Lin, where: Where) -> tuple[int, int]:
        """Its register and immediate."""
        self._check(value, where)
        imm, key = self._placing.parts(value)
        return self._register(key), imm

    def _check(self, value: Lin, where: Where) -> None:
        """An operand and its constant part fit; what is in registers has been checked where it was computed."""
        low, high = self.values.interval(value)
        least, most = (WIDE_MIN, WIDE_MAX) if self._wide else (INT_MIN, INT_MAX)
        if min(low, value[0]) < least or max(high, value[0]) > most:
            raise EmissionError(refusals.overflow(where, f"`{self.values.text(value)}`", low, high))

    # ---- registers and records
    def _take(self) -> int:
        if not self._free:
            raise NoRegisterError
        return self._free.pop()

    def _new_symbol(self, symbol: Lin) -> int:
        register = self._take()
        self._symbols[symbol[1] or ((-1, register),)] = register
        return register

    def _register(self, key: Key) -> int:
        if key == ZERO:
            return NO_REG
        if not isinstance(key, Test) and key[0] == 0:
            symbol = self._symbols.get(key[1])
            if symbol is not None:
                return symbol
        region: Region | None = self._region
        while region is not None:
            found = region.have.get(key)
            if found is not None:
                return found
            region = region.above
        raise KeyError(key)  # nobody wanted it: a bug of ours

    def _eval(self, code: Sequence[Instruction], where: Where) -> None:
        self.records.add(DeviceOp.EVAL, where, imms=[len(code), 0, 0, 0, 0])
        self._instructions(code)

    def _instructions(self, code: Sequence[Instruction]) -> None:
        self.records.tail(b"".join([INSTRUCTION.pack(i.fn, self._number(i.reg), 0, i.imm) for i in code]))

    def _number(self, token: Token) -> int:
        if isinstance(token, int):
            return token
        if isinstance(token, Test):
            return self._answers[token]
        return self._register((0, token)) if isinstance(token, tuple) else NO_REG


def _size(key: Key) -> tuple[int, int]:
    """Parts before what they are part of: atoms are numbered from the inside out."""
    if isinstance(key, Test):
        return (1 << 31, 0)
    return (max([atom for atom, _ in key[1]], default=-1), len(key[1]))
