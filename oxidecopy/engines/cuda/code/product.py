"""Programs that multiply matrices tile by tile: all that a block does is one `abi.PRODUCT`, with a table of where its tiles lie.

What is recognised is what the agents do after lowering: one thread that feeds a ring, one or two warpgroups that contract its stages, each for
the same tiles. The launch is known, so every coordinate of every block's every turn is computed here, and nothing is taken on trust: not how
often loops run, nor that all count the same stages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import CONTRACT_SHAPES, DeviceOp
from oxidecopy.engines.cuda.code.contract import CONTRACT, EPILOGUE
from oxidecopy.engines.cuda.code.finish import BYTES as FINISH_BYTES
from oxidecopy.engines.cuda.code.finish import finish_of
from oxidecopy.engines.cuda.code.nodes import Copy, Fused, If, Node, Op, Repeat, Stream
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, Lin, Test, Values
from oxidecopy.isa import ops
from oxidecopy.program.program import BLOCK_SYMBOLS

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.image import Where
    from oxidecopy.engines.cuda.code.lower import Lowering

Numbers: TypeAlias = npt.NDArray[np.int64]
Environment: TypeAlias = dict[int, Numbers]  # symbols, by atom
TABLE_MAX: Final = 4 << 20  # bytes
_HEAD: Final = struct.Struct("<12I16B")  # abi.PRODUCT
_LOAD: Final = struct.Struct("<3I4B3i4x")  # abi.PRODUCT_LOAD
_BEFORE: Final = frozenset({DeviceOp.BAR_SYNC, DeviceOp.MBARRIER_INIT})
_BEHIND: Final = frozenset({DeviceOp.BAR_SYNC, DeviceOp.CONTRACT_DRAIN})
_COORDINATE: Final = 3  # operand
_GROUPS_MAX: Final = 2
_ROW: Final = 128  # bytes of an operand's row in a stage


class _OtherError(Exception):
    """It is none."""


@final
class ProductCode(NamedTuple):
    """The head that lies in the parameter, the table, the family, and what reports speak of: the producer, then the groups.

    `agents` are positions in the streams, in the order of warps: the groups, then the producer.
    """

    head: bytes
    table: bytes
    family: str
    sites: list[Where]
    agents: list[int]


@final
class _Visit(NamedTuple):
    """An op, or a fused loop, at all times when some block does it: the block's number, and what its place in that block's order is."""

    node: Op | Fused
    block: Numbers
    env: Environment
    order: tuple[Numbers, ...]


@final
class _Contract(NamedTuple):
    """The two records of a CONTRACT."""

    full: int
    empty: int
    a: int
    a_stride: int
    b: int
    b_stride: int
    stages: int
    peers: int
    shape: int
    kind: int
    number: int
    pitch: int
    axes: int
    size: int
    out: int
    out_stages: int
    form: int
    adds: int
    slot: Lin
    rank: int

    @staticmethod
    def of(node: Op) -> _Contract:
        head = CONTRACT.unpack_from(node.tail)
        out, out_stages, form, adds, *_ = EPILOGUE.unpack_from(node.tail, CONTRACT.size)
        return _Contract(*head, out, out_stages, form, adds, node.slot, node.aux)


@final
class _Load(NamedTuple):
    """A load of each stage: `growth` of its coordinates from one to the next, innermost first."""

    tile: int
    stride: int
    slot: int
    growth: tuple[int, ...]


def product_of(low: Lowering, streams: Sequence[tuple[int, Stream]], grid: tuple[int, int, int]) -> ProductCode | None:
    """The program as that, where it is."""
    if low.program.cluster_size > 1 or low.deal.slots or len(low.maps) > abi.INLINE_MAPS_LARGE:
        return None
    try:
        return _Program(low, streams, grid).code()
    except _OtherError:
        return None


@final
class _Program:
    def __init__(self, low: Lowering, streams: Sequence[tuple[int, Stream]], grid: tuple[int, int, int]) -> None:
        self._low = low
        self._values = low.values
        self._grid = grid
        self._inits: dict[int, tuple[int, int]] = {}  # of barriers: arrivals that complete a phase, and how many barriers
        self._agents = [self._all(stream.nodes) for _, stream in streams]

    def code(self) -> ProductCode:
        groups = [i for i, visits in enumerate(self._agents) if all(isinstance(v.node, Op) for v in visits)]
        others = [i for i in range(len(self._agents)) if i not in groups]
        if not 1 <= len(groups) <= _GROUPS_MAX or len(others) != 1:
            raise _OtherError
        contracts, outs = self._contracts([self._agents[i] for i in groups])
        feed = self._agents[others[0]]
        first = feed[0].node
        if not isinstance(first, Fused):
            raise _OtherError
        head, loads = contracts[0], self._loads(feed, contracts[0])
        turns, words, table, steps = self._table([self._agents[i] for i in groups], feed, head, loads)
        full, empty = (self._inits.pop(bar, (0, 0)) for bar in (head.full, head.empty))
        if self._inits or full[1] != head.stages or empty[1] != head.stages:
            raise _OtherError
        data = _HEAD.pack(
            head.full, head.empty, head.a, head.a_stride, head.b, head.b_stride, *[*outs, 0][:2], first.nbytes, steps, words, turns,
            head.stages, head.out_stages, head.peers, head.shape, head.kind, head.form, head.adds, head.rank, len(groups), len(loads),
            head.slot[0], full[0], empty[0], head.pitch, head.axes, head.size,
        )  # fmt: skip
        for load in loads:
            grows = [*load.growth, 0, 0, 0][: abi.PRODUCT_RANK_MAX]
            data += _LOAD.pack(load.tile, load.stride, 0, load.slot, len(load.growth), 0, 0, *grows)
        data = data.ljust(abi.PRODUCT_FINISH_AT, b"\0") + self._finish(self._agents[groups[0]], self._agents[groups[-1]])
        return ProductCode(
            head=data.ljust(abi.PRODUCT_BYTES, b"\0"),
            table=table,
            family=f"{abi.PRODUCT_FAMILY}_{abi.ContractShape(head.shape).name.lower()}",
            sites=[first.where, *[self._agents[i][0].node.where for i in groups]],
            agents=[*groups, *others],
        )

    # ---- what each agent does, and when
    def _all(self, nodes: Sequence[Node]) -> list[_Visit]:
        """Its contractions, or its loads; between what is done once before and behind them."""
        first = next((i for i, node in enumerate(nodes) if not _is(node, _BEFORE)), len(nodes))
        last = next((i for i in range(first, len(nodes)) if _is(nodes[i], _BEHIND)), len(nodes))
        if first == last or not all(_is(node, _BEHIND) for node in nodes[last:]):
            raise _OtherError
        for node in nodes[:first]:
            if isinstance(node, Op) and node.op is DeviceOp.MBARRIER_INIT:
                self._init(node)
        blocks = np.arange(self._grid[0] * self._grid[1] * self._grid[2], dtype=np.int64)
        places = (blocks % self._grid[0], blocks // self._grid[0] % self._grid[1], blocks // (self._grid[0] * self._grid[1]))
        env = {}
        for name, place in zip(BLOCK_SYMBOLS, places, strict=True):
            symbol = self._values.named(name)
            if symbol is not None and symbol[1]:
                env[symbol[1][0][0]] = place
        found: list[_Visit] = []
        self._visit(nodes[first:last], blocks, env, (), found)
        if not found or not sum(len(visit.block) for visit in found):
            raise _OtherError
        return found

    def _init(self, node: Op) -> None:
        imms, bar = dict(node.imms), self._constant(dict(node.operands)[0])
        if bar in self._inits:
            raise _OtherError
        self._inits[bar] = (imms[1], imms[2])

    def _visit(self, nodes: Sequence[Node], block: Numbers, env: Environment, order: tuple[Numbers, ...], found: list[_Visit]) -> None:
        for i, node in enumerate(nodes):
            here = (*order, np.full(len(block), i))
            match node:
                case Repeat(stages=0):
                    start, stop = self._of(node.start, env, block), self._of(node.stop, env, block)
                    trips = np.maximum(-((start - stop) // node.step), 0)
                    which = np.repeat(np.arange(len(block)), trips)
                    trip = np.arange(len(which)) - np.repeat(np.cumsum(trips) - trips, trips)
                    inside = {atom: numbers[which] for atom, numbers in env.items()}
                    if node.counter[1]:
                        inside[node.counter[1][0][0]] = start[which] + node.step * trip
                    self._visit(node.body, block[which], inside, (*[column[which] for column in here], trip), found)
                case If():
                    taken = np.flatnonzero(self._holds(node.test, env, block))
                    inside = {atom: numbers[taken] for atom, numbers in env.items()}
                    self._visit(node.body, block[taken], inside, tuple([column[taken] for column in here]), found)
                case Op(op=DeviceOp.CONTRACT) | Fused(op=DeviceOp.PRODUCE):
                    found.append(_Visit(node, block, env, here))
                case _:
                    raise _OtherError

    # ---- numbers of all blocks
    def _of(self, value: Lin, env: Environment, block: Numbers) -> Numbers:
        made = np.full(len(block), value[0], np.int64)
        for number, factor in value[1]:
            made += factor * self._atom(number, env, block)
        return made

    def _atom(self, number: int, env: Environment, block: Numbers) -> Numbers:
        if number in env:
            return env[number]
        atom = self._values.atoms[number]
        if atom.kind == "sym":
            raise _OtherError  # what an op has read
        a = self._of(atom.a, env, block)
        if atom.kind == "group":
            return a
        if atom.kind in ("div", "mod"):
            return a // atom.by if atom.kind == "div" else a % atom.by
        b = self._of(atom.b, env, block)
        return np.minimum(a, b) if atom.kind == "min" else a * b

    def _holds(self, test: Test, env: Environment, block: Numbers) -> npt.NDArray[np.bool_]:
        if test.kind in ("and", "or", "not"):
            parts = [self._holds(part, env, block) for part in test.parts]
            return ~parts[0] if test.kind == "not" else np.logical_and(*parts) if test.kind == "and" else np.logical_or(*parts)
        a = self._of(test.a, env, block)
        other = self._of(test.b, env, block) if test.kind.endswith("2") else test.bound
        match test.kind.rstrip("2"):
            case "less":
                return a < other
            case "same":
                return a == other
            case "other":
                return a != other
            case _:
                raise _OtherError

    def _constant(self, value: Lin) -> int:
        if value[1] or not INT_MIN <= value[0] <= INT_MAX:
            raise _OtherError
        return value[0]

    # ---- what all of them have in common
    def _contracts(self, groups: list[list[_Visit]]) -> tuple[list[_Contract], list[int]]:
        """The same for all tiles; that of the second group is the next block of rows."""
        made = []
        for visits in groups:
            records = {_Contract.of(visit.node) for visit in visits if isinstance(visit.node, Op)}
            if len(records) != 1:
                raise _OtherError
            made.append(records.pop())
        first = made[0]
        rows = next(m for (m, _), shape in CONTRACT_SHAPES.items() if shape == first.shape)
        for i, other in enumerate(made):
            if other._replace(a=other.a - i * rows * _ROW, number=first.number, out=first.out) != first:
                raise _OtherError
        if first.slot[1] or first.rank > abi.PRODUCT_RANK_MAX:
            raise _OtherError
        return made, [other.out for other in made]

    def _loads(self, feed: list[_Visit], head: _Contract) -> list[_Load]:
        """Those of a stage, which all tiles have in common."""
        found: list[list[_Load]] = []
        for node in [visit.node for visit in feed]:
            if not isinstance(node, Fused) or node.flags & abi.RING_FLAG_COUNTER or (node.full, node.empty) != (head.full, head.empty):
                raise _OtherError
            first = feed[0].node
            if node.stages != head.stages or not isinstance(first, Fused) or node.nbytes != first.nbytes or not node.counter[1]:
                raise _OtherError
            found.append([self._load(copy, node.counter) for copy in node.copies])
        if any(loads != found[0] for loads in found) or not 1 <= len(found[0]) <= abi.PRODUCT_LOADS:
            raise _OtherError
        return found[0]

    def _load(self, copy: Copy, counter: Lin) -> _Load:
        if copy.kind is not DeviceOp.TENSOR_G2S or copy.rank > abi.PRODUCT_RANK_MAX or copy.map >= abi.INLINE_MAPS_LARGE:
            raise _OtherError
        growth = []
        for value in reversed(copy.coords):
            factors = dict(value[1])
            growth.append(factors.pop(counter[1][0][0], 0))
            if self._values.depends((0, tuple(factors.items())), self._values.symbols_of(counter)):
                raise _OtherError  # it is no multiple of the counter
        return _Load(self._constant(copy.tile), copy.stride, copy.map, tuple(growth))

    # ---- the table
    def _table(
        self, groups: list[list[_Visit]], feed: list[_Visit], head: _Contract, loads: list[_Load]
    ) -> tuple[int, int, bytes, int]:  # fmt: skip
        """Turns, words of an entry, the table, and the steps of each tile; every agent has the same turns and counts the same stages."""
        fed = self._sorted(feed, self._fed)
        block, steps = fed[:, 0], int(fed[0, 2])
        turn = np.arange(len(block)) - np.searchsorted(block, block)
        words = -(-(abi.PRODUCT_PLACES + abi.PRODUCT_RANK_MAX * len(loads)) // 4) * 4
        turns = int(turn.max()) + 1
        blocks = self._grid[0] * self._grid[1] * self._grid[2]
        if 4 * blocks * turns * words > TABLE_MAX:
            raise _OtherError
        table = np.zeros((blocks, turns, words), np.int64)
        table[block, turn, 0] = 1
        column = 3
        for j, load in enumerate(loads):
            rank = len(load.growth)
            at = abi.PRODUCT_PLACES + abi.PRODUCT_RANK_MAX * j
            table[block, turn, at : at + rank] = fed[:, column : column + rank]
            column += rank
        ordered = [fed]
        for i, visits in enumerate(groups):
            put = self._sorted(visits, self._put)
            at = abi.PRODUCT_CORNER + abi.PRODUCT_RANK_MAX * i
            if len(put) != len(block) or (put[:, 0] != block).any():
                raise _OtherError
            table[block, turn, at : at + head.rank] = put[:, 3:]
            ordered.append(put)
        for numbers in ordered:
            if (numbers[:, 1] != turn * steps).any() or (numbers[:, 2] != steps).any():
                raise _OtherError
        if steps < 1 or table.min() < INT_MIN or table.max() > INT_MAX:
            raise _OtherError
        return turns, words, table.astype("<i4").tobytes(), steps

    def _sorted(self, visits: list[_Visit], row: Callable[[_Visit], list[Numbers]]) -> Numbers:
        """Block, first stage, stages, coordinates: in the order of blocks, and of what each does."""
        depth = max(len(visit.order) for visit in visits)
        keys, rows = [], []
        for visit in visits:
            count = len(visit.block)
            keys.append(np.stack([visit.block, *visit.order, *[np.zeros(count, np.int64)] * (depth - len(visit.order))], 1))
            rows.append(np.stack([visit.block, *row(visit)], 1))
        key, made = np.concatenate(keys), np.concatenate(rows)
        in_order: Numbers = made[np.lexsort(key.T[::-1])]
        return in_order

    def _fed(self, visit: _Visit) -> list[Numbers]:
        node, block, env = visit.node, visit.block, dict(visit.env)
        assert isinstance(node, Fused)
        start, stop = self._of(node.start, env, block), self._of(node.stop, env, block)
        env[node.counter[1][0][0]] = self._of(node.begin, env, block)
        places = [self._of(value, env, block) for copy in node.copies for value in reversed(copy.coords)]
        return [start + node.offset, stop - start, *places]

    def _put(self, visit: _Visit) -> list[Numbers]:
        node, block, env = visit.node, visit.block, visit.env
        assert isinstance(node, Op)
        operands, exact = dict(node.operands), dict(node.exact)
        corner = [self._of(exact[_COORDINATE + i], env, block) for i in reversed(range(node.aux))]
        return [self._of(operands[0], env, block), self._of(operands[1], env, block), *corner]

    # ---- what becomes of the sums
    def _finish(self, *groups: list[_Visit]) -> bytes:
        """Of all contractions the same."""
        made = {self._epilogue(visit.node) for visits in groups for visit in visits}
        if len(made) != 1:
            raise _OtherError
        return made.pop()

    def _epilogue(self, node: Op | Fused) -> bytes:
        op = node.where.op
        if not isinstance(op, ops.Contract) or not isinstance(node, Op):
            raise _OtherError
        if EPILOGUE.unpack_from(node.tail, CONTRACT.size)[4] == 0:
            return bytes(FINISH_BYTES)
        found = finish_of(op.fn, [self._low.words.arrays[array.name] for array in op.arrays], self._low.words)
        if found is None:
            raise _OtherError
        return found


def _is(node: Node, kinds: frozenset[DeviceOp]) -> bool:
    return isinstance(node, Op) and node.op in kinds
