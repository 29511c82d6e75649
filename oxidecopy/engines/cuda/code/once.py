"""One-shot programs: all that a block does is one thread's straight line of loads, a wait and stores. Such code is one `abi.ONCE`.

What is recognised is what an agent does after lowering: syncs of its one warp, loops of one trip and decided branches are gone by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import NO_REG, DeviceOp
from oxidecopy.engines.cuda.code.coordinates import NotPlacedError, placement
from oxidecopy.engines.cuda.code.line import Line
from oxidecopy.engines.cuda.code.nodes import Node, Op
from oxidecopy.engines.cuda.code.records import COPY, ONCE
from oxidecopy.engines.cuda.code.values import Lin, Values
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
    return _Once(nodes, values).code()


@final
class _Once(Line):
    def __init__(self, nodes: Sequence[Node], values: Values) -> None:
        super().__init__(nodes, "a copy")
        self.values = values
        self._blocks = {found[1][0][0]: i for i, name in enumerate(BLOCK_SYMBOLS) if (found := values.named(name)) is not None and found[1]}
        self._bits = values.symbols_of((0, tuple([(number, 1) for number in self._blocks])))

    def code(self) -> OneShot:
        init = self.take(DeviceOp.MBARRIER_INIT, imm=(1, 1))
        bar = self.constant(init, 0)
        if (2, 1) not in init.imms:
            raise LeftError("more than one barrier", init.where)
        announce = self._on(self.take(DeviceOp.MBARRIER_ARRIVE_EXPECT_TX), bar)
        loads = list(self.run(DeviceOp.TENSOR_G2S))
        wait = self._on(self.take(DeviceOp.MBARRIER_WAIT_PHASE), bar)
        stores = list(self.run(*_STORES))
        self.take(DeviceOp.COMMIT_GROUP)
        group = self.take(*_GROUPS, imm=(0, 0))
        flags = abi.ONCE_FLAG_READ if group.op is DeviceOp.WAIT_GROUP_READ else 0
        if self.left is not None:
            self._on(self.take(DeviceOp.MBARRIER_INVAL), bar)
            flags |= abi.ONCE_FLAG_INVAL
        if not 1 <= len(loads) <= COPIES_MAX or len(stores) > COPIES_MAX:
            raise LeftError(f"{len(loads)} loads and {len(stores)} stores, at most {COPIES_MAX} of each are", wait.where)
        self.end("more comes behind the stores")
        if self.constant(wait, 1) != 0:
            raise LeftError("a wait for another phase than the first", wait.where)
        if any(self.constant(load, 1) != bar for load in loads):
            raise LeftError("more than one barrier", wait.where)
        head = ONCE.pack(DeviceOp.ONCE, len(loads), len(stores), flags, bar, dict(announce.imms)[1])
        return OneShot([head, *self._copies([*loads, *stores])], wait.where)

    def _on(self, op: Op, bar: int) -> Op:
        if self.constant(op, 0) != bar:
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
            begin, tile = begins[at], self.constant(op, 0)
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
