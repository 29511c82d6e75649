"""One-shot programs: all that a block does is one thread's straight line of loads, a wait and stores. Such code is one `abi.ONCE`.

What is recognised is what an agent does after lowering: syncs of its one warp, loops of one trip and decided branches are gone by then.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import NO_REG, DeviceOp
from oxidecopy.engines.cuda.code.nodes import Node, Op
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, Atom, Lin, Values
from oxidecopy.program.program import BLOCK_SYMBOLS

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.image import Where

COPIES_MAX: Final = 4  # loads, and stores as many
_ONCE: Final = struct.Struct("<4B2i20x")
_COPY: Final = struct.Struct("<4B3iHHBB10x")
_COORDINATE: Final = struct.Struct("<4i2I2B2xI2i8x")
_STORES: Final = (DeviceOp.TENSOR_S2G, DeviceOp.TENSOR_REDUCE)
_GROUPS: Final = (DeviceOp.WAIT_GROUP, DeviceOp.WAIT_GROUP_READ)
_FIRST_COORDINATE: Final = 3  # operand


class _OtherError(Exception):
    """It is none."""


@final
class OneShot(NamedTuple):
    """The records, and the op that a report of a wait speaks of."""

    records: list[bytes]
    where: Where


def one_shot(nodes: Sequence[Node], values: Values) -> OneShot | None:
    """The code as one record, where it is that; it must be all that its block does."""
    try:
        return _Line(nodes, values).code()
    except _OtherError:
        return None


@final
class _Line:
    def __init__(self, nodes: Sequence[Node], values: Values) -> None:
        self.ops = [node for node in nodes if isinstance(node, Op)]
        self.values = values
        self.next = 0
        if len(self.ops) != len(nodes):
            raise _OtherError
        self._blocks = {found[1][0][0]: i for i, name in enumerate(BLOCK_SYMBOLS) if (found := values.named(name)) is not None and found[1]}

    def code(self) -> OneShot:
        init = self._take(DeviceOp.MBARRIER_INIT, imm=(1, 1))
        bar = self._constant(init, 0)
        if (2, 1) not in init.imms:
            raise _OtherError
        announce = self._on(self._take(DeviceOp.MBARRIER_ARRIVE_EXPECT_TX), bar)
        loads = list(self._run(DeviceOp.TENSOR_G2S))
        wait = self._on(self._take(DeviceOp.MBARRIER_WAIT_PHASE), bar)
        stores = list(self._run(*_STORES))
        self._take(DeviceOp.COMMIT_GROUP)
        group = self._take(*_GROUPS, imm=(0, 0))
        flags = abi.ONCE_FLAG_READ if group.op is DeviceOp.WAIT_GROUP_READ else 0
        if self.next < len(self.ops):
            self._on(self._take(DeviceOp.MBARRIER_INVAL), bar)
            flags |= abi.ONCE_FLAG_INVAL
        fits = 1 <= len(loads) <= COPIES_MAX and len(stores) <= COPIES_MAX and self.next == len(self.ops)
        if not fits or self._constant(wait, 1) != 0 or any(self._constant(load, 1) != bar for load in loads):
            raise _OtherError
        head = _ONCE.pack(DeviceOp.ONCE, len(loads), len(stores), flags, bar, dict(announce.imms)[1])
        return OneShot([head, *self._copies([*loads, *stores])], wait.where)

    # ---- ops one after the other
    def _take(self, *kinds: DeviceOp, imm: tuple[int, int] | None = None) -> Op:
        """The next op, which is one of these, with that immediate."""
        if self.next == len(self.ops):
            raise _OtherError
        op = self.ops[self.next]
        if op.op not in kinds or (imm is not None and imm not in op.imms):
            raise _OtherError
        self.next += 1
        return op

    def _run(self, *kinds: DeviceOp) -> Iterator[Op]:
        """All ops from here on that are of these."""
        while self.next < len(self.ops) and self.ops[self.next].op in kinds:
            yield self._take(*kinds)

    def _constant(self, op: Op, operand: int) -> int:
        """An operand that is known."""
        value, terms = dict(op.operands)[operand]
        if terms or not INT_MIN <= value <= INT_MAX:
            raise _OtherError
        return value

    def _on(self, op: Op, bar: int) -> Op:
        if self._constant(op, 0) != bar:
            raise _OtherError
        return op

    # ---- copies
    def _copies(self, copies: list[Op]) -> Iterator[bytes]:
        """Their records, and those of their coordinates, which copies of the same ones share."""
        begins: dict[tuple[Lin, ...], int] = {}
        coordinates = b""
        for op in copies:
            at = tuple([dict(op.exact)[_FIRST_COORDINATE + i] for i in reversed(range(op.aux))])
            if at not in begins:
                begins[at] = len(coordinates) // abi.COORDINATE_BYTES
                coordinates += b"".join([self._coordinate(value) for value in at])
            begin, tile = begins[at], self._constant(op, 0)
            slot, chosen = op.slot
            if chosen:  # an entry of a table
                raise _OtherError
            yield _COPY.pack(slot, op.aux, op.op, op.flags, tile, 0, 0, begin, begin + op.aux, NO_REG, NO_REG)
        for start in range(0, len(coordinates), abi.RECORD_BYTES):
            yield coordinates[start : start + abi.RECORD_BYTES].ljust(abi.RECORD_BYTES, b"\0")

    def _single(self, value: Lin, kind: str) -> Atom | None:
        """The one atom in it, when it is of this kind."""
        atom = self.values.atoms[value[1][0][0]] if len(value[1]) == 1 else None
        return atom if atom is not None and atom.kind == kind else None

    def _coordinate(self, value: Lin) -> bytes:
        """(x // divisor % modulus) * scale + base, x affine in the block's index."""
        divisor = modulus = 0
        x, scale, base = (0, value[1]), 1, value[0]
        atom = self._single(x, "mod")
        if atom is not None:
            x, scale, modulus = atom.a, x[1][0][1], atom.by
        atom = self._single(x, "div")
        if atom is not None and (not modulus or x[1][0][1] == 1):
            scale = scale if modulus else x[1][0][1]
            x, divisor = (atom.a[0] + x[0] * atom.by, atom.a[1]), atom.by
        low, high = self.values.interval(x)
        if divisor or modulus:  # of numbers from 0 on: whole turns are added where there are others
            turn = max(divisor, 1) * max(modulus, 1)
            turns = max(0, -(low // turn))
            x = (x[0] + turns * turn, x[1])
            base -= 0 if modulus else turns * scale
            if high + turns * turn > INT_MAX:
                raise _OtherError
        steps = [0, 0, 0]
        for number, step in x[1]:
            if number not in self._blocks:
                raise _OtherError
            steps[self._blocks[number]] = step
        numbers = (*steps, x[0], modulus, scale, base, *self.values.interval(value))
        if max(numbers) > INT_MAX or min(numbers) < INT_MIN:
            raise _OtherError
        (magic, shift), (by, by_shift) = _magic(divisor), _magic(modulus)
        return _COORDINATE.pack(*steps, x[0], magic, by, shift, by_shift, modulus, scale, base)


def _magic(divisor: int) -> tuple[int, int]:
    """(magic, shift) so that x // divisor is x * magic >> 32 >> shift for 0 <= x < 2**31; zeros where nothing is divided.

    With 2**(n - 1) < divisor <= 2**n, magic is 2**(31 + n) / divisor, rounded up: it is too large by less than divisor <= 2**n parts of
    2**(31 + n), so that the error stays below 1 / divisor for all x.
    """
    if divisor < 2:
        return 0, 0
    n = (divisor - 1).bit_length()
    return ((1 << (31 + n)) // divisor + 1, n - 1)
