"""One-shot programs: all that a block does is one thread's straight line of loads, a wait and stores. Such code is one `abi.ONCE`.

What is recognised is what an agent does after lowering: syncs of its one warp, loops of one trip and decided branches are gone by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import NO_REG, DeviceOp
from oxidecopy.engines.cuda.code.coordinates import NotPlacedError, placement
from oxidecopy.engines.cuda.code.nodes import Node, Op
from oxidecopy.engines.cuda.code.records import COPY, ONCE
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, Lin, Values
from oxidecopy.engines.cuda.code.whole import LeftError
from oxidecopy.program.program import BLOCK_SYMBOLS

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.image import Where

COPIES_MAX: Final = 4  # loads, and stores as many
_STORES: Final = (DeviceOp.TENSOR_S2G, DeviceOp.TENSOR_REDUCE)
_GROUPS: Final = (DeviceOp.WAIT_GROUP, DeviceOp.WAIT_GROUP_READ)
_FIRST_COORDINATE: Final = 3  # operand


@final
class OneShot(NamedTuple):
    """The records, and the op that a report of a wait speaks of."""

    records: list[bytes]
    where: Where


def one_shot(nodes: Sequence[Node], values: Values) -> OneShot:
    """The code as one record; it must be all that its block does.

    Raises:
        LeftError: it is none of that.
    """
    return _Line(nodes, values).code()


@final
class _Line:
    def __init__(self, nodes: Sequence[Node], values: Values) -> None:
        self.ops = [node for node in nodes if isinstance(node, Op)]
        self.values = values
        self.next = 0
        other = next((node for node in nodes if not isinstance(node, Op)), None)
        if other is not None:
            raise LeftError("a loop or a branch", other.where)
        self._blocks = {found[1][0][0]: i for i, name in enumerate(BLOCK_SYMBOLS) if (found := values.named(name)) is not None and found[1]}
        self._bits = values.symbols_of((0, tuple([(number, 1) for number in self._blocks])))

    def code(self) -> OneShot:
        init = self._take(DeviceOp.MBARRIER_INIT, imm=(1, 1))
        bar = self._constant(init, 0)
        if (2, 1) not in init.imms:
            raise LeftError("more than one barrier", init.where)
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
        if not 1 <= len(loads) <= COPIES_MAX or len(stores) > COPIES_MAX:
            raise LeftError(f"{len(loads)} loads and {len(stores)} stores, at most {COPIES_MAX} of each are", wait.where)
        if self.next < len(self.ops):
            raise LeftError("more comes behind the stores", self.ops[self.next].where)
        if self._constant(wait, 1) != 0:
            raise LeftError("a wait for another phase than the first", wait.where)
        if any(self._constant(load, 1) != bar for load in loads):
            raise LeftError("more than one barrier", wait.where)
        head = ONCE.pack(DeviceOp.ONCE, len(loads), len(stores), flags, bar, dict(announce.imms)[1])
        return OneShot([head, *self._copies([*loads, *stores])], wait.where)

    # ---- ops one after the other
    def _take(self, *kinds: DeviceOp, imm: tuple[int, int] | None = None) -> Op:
        """The next op, which is one of these, with that immediate."""
        wanted = kinds[0].name.lower()
        if self.next == len(self.ops):
            raise LeftError(f"no {wanted} at its end", self.ops[-1].where if self.ops else None)
        op = self.ops[self.next]
        if op.op not in kinds:
            raise LeftError(f"{op.op.name.lower()}, where a copy has its {wanted}", op.where)
        if imm is not None and imm not in op.imms:
            raise LeftError(f"{op.op.name.lower()} of another count than a copy has", op.where)
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
            raise LeftError("a barrier, phase or tile that is known only when it runs", op.where)
        return value

    def _on(self, op: Op, bar: int) -> Op:
        if self._constant(op, 0) != bar:
            raise LeftError("more than one barrier", op.where)
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
                coordinates += b"".join([self._coordinate(value, op) for value in at])
            begin, tile = begins[at], self._constant(op, 0)
            slot, chosen = op.slot
            if chosen:
                raise LeftError("an entry of a table of descriptors", op.where)
            yield COPY.pack(slot, op.aux, op.op, op.flags, tile, 0, 0, begin, begin + op.aux, NO_REG, NO_REG)
        for start in range(0, len(coordinates), abi.RECORD_BYTES):
            yield coordinates[start : start + abi.RECORD_BYTES].ljust(abi.RECORD_BYTES, b"\0")

    def _coordinate(self, value: Lin, op: Op) -> bytes:
        try:
            found = placement(self.values, value, self._blocks, self._bits)
        except NotPlacedError:
            raise LeftError("a coordinate that is no place of a box in a grid", op.where) from None
        if found.reg or found.base_reg:
            raise LeftError("a coordinate made of more than block indices and constants", op.where)
        return found.packed()
