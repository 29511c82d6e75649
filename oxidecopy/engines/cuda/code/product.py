"""Programs that multiply matrices tile by tile: all that a block does is one `abi.PRODUCT`, with a table of where its tiles lie.

What is recognised is what the agents do after lowering: one thread that feeds a ring, one or two warpgroups that contract its stages,
each for the same tiles. The launch is known, so each coordinate of each block's every turn is computed here, and nothing is taken on
trust: not how often loops run, nor that all count the same stages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import CONTRACT_SHAPES, DeviceOp
from oxidecopy.engines.cuda.code.finish import BYTES as FINISH_BYTES
from oxidecopy.engines.cuda.code.finish import finish_of
from oxidecopy.engines.cuda.code.nodes import Copy, Fused, If, Node, Op, Repeat, Stream
from oxidecopy.engines.cuda.code.records import CONTRACT, EPILOGUE, PRODUCT
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, Lin, Test
from oxidecopy.engines.cuda.code.whole import LeftError
from oxidecopy.isa import ops
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.image import Where
    from oxidecopy.engines.cuda.code.lower import Lowering

Numbers: TypeAlias = npt.NDArray[np.int64]
Environment: TypeAlias = dict[int, Numbers]  # symbols, by atom
TABLE_MAX: Final = 4 << 20  # bytes
VISITS_MAX: Final = 1 << 20  # of all blocks, to one op: more would take longer to look at than they gain
_LOAD: Final = struct.Struct("<4x2I4B3i4x")  # abi.PRODUCT_LOAD
_BEFORE: Final = frozenset({DeviceOp.BAR_SYNC, DeviceOp.CLUSTER_SYNC, DeviceOp.FENCE_MBARRIER_INIT, DeviceOp.MBARRIER_INIT})
_LOADS: Final = (DeviceOp.TENSOR_G2S, DeviceOp.TENSOR_G2S_MULTICAST)
_WHILE: Final = frozenset({DeviceOp.CONTRACT, DeviceOp.MBARRIER_ARRIVE_EXPECT_TX, *_LOADS})
_BEHIND: Final = frozenset({DeviceOp.BAR_SYNC, DeviceOp.CLUSTER_SYNC, DeviceOp.CONTRACT_DRAIN})
_STEPS: Final = 1  # operand of a contraction
_COORDINATE: Final = 3  # operand
_GROUPS_MAX: Final = 2
_ROW: Final = 128  # bytes of an operand's row in a stage
_COUNT_MAX: Final = 255  # arrivals of a phase, which the head has a byte for


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
        numbers: list[Any] = [*CONTRACT.unpack_from(node.tail), *EPILOGUE.unpack_from(node.tail, CONTRACT.size)[:4]]
        return _Contract._make([*numbers, node.slot, node.aux])


@final
class _Load(NamedTuple):
    """A load of each stage: `growth` of its coordinates from one to the next, innermost first."""

    stride: int
    mask: int
    slot: int
    multicast: bool
    growth: tuple[int, ...]


@final
class _Feed(NamedTuple):
    """What is loaded. `rows`, by block and turn: the block, the first stage, then coordinates and tile of each load in that stage."""

    loads: list[_Load]
    nbytes: int
    steps: int
    rows: Numbers
    where: Where


def product_of(low: Lowering, streams: Sequence[tuple[int, Stream]], grid: tuple[int, int, int]) -> ProductCode:
    """The program as that.

    Raises:
        LeftError: it is more, or other than that.
    """
    if low.deal.slots:
        raise LeftError("its tiles come from a counter")
    if len(low.maps) > abi.INLINE_MAPS_LARGE:
        raise LeftError(f"{len(low.maps)} tensor maps, at most {abi.INLINE_MAPS_LARGE} fit beside it")
    return _Program(low, streams, grid).code()


@final
class _Program:
    def __init__(self, low: Lowering, streams: Sequence[tuple[int, Stream]], grid: tuple[int, int, int]) -> None:
        self._low = low
        self._values = low.values
        self._grid = grid
        self._inits: dict[int, int] = {}  # arrivals that complete a phase, by barrier
        self._agents = [self._all(stream.nodes) for _, stream in streams]

    def code(self) -> ProductCode:
        busy = [i for i, visits in enumerate(self._agents) if visits]
        groups = [i for i in busy if all(visit.node.op is DeviceOp.CONTRACT for visit in self._agents[i])]
        others = [i for i in busy if i not in groups]
        if not 1 <= len(groups) <= _GROUPS_MAX or len(others) != 1:
            raise LeftError(f"{len(groups)} agents contract, and {len(others)} do something else: one or two, and one that loads")
        contracts, outs = self._contracts([self._agents[i] for i in groups])
        head, visits = contracts[0], self._agents[others[0]]
        steps = self._steps(self._agents[groups[0]])
        feed = self._fused(visits, head, steps) if isinstance(visits[0].node, Fused) else self._plain(visits, head, steps)
        turns, words, table = self._table([self._agents[i] for i in groups], feed, head)
        full, empty = (self._count(bar, head.stages) for bar in (head.full, head.empty))
        if self._inits:
            raise LeftError("barriers beside those of the ring")
        data = PRODUCT.pack(
            head.full, head.empty, head.a, head.a_stride, head.b, head.b_stride, *[*outs, 0][:2], feed.nbytes, feed.steps, words, turns,
            head.stages, head.out_stages, head.peers, head.shape, head.kind, head.form, head.adds, head.rank, len(groups), len(feed.loads),
            head.slot[0], full, empty, head.pitch, head.axes, head.size,
        )  # fmt: skip
        for load in feed.loads:
            grows = [*load.growth, 0, 0, 0][: abi.PRODUCT_RANK_MAX]
            data += _LOAD.pack(load.stride, load.mask, load.slot, len(load.growth), load.multicast, 0, *grows)
        data = data.ljust(abi.PRODUCT_FINISH_AT, b"\0") + self._finish(self._agents[groups[0]], self._agents[groups[-1]])
        return ProductCode(
            head=data.ljust(abi.PRODUCT_BYTES, b"\0"),
            table=table,
            family=f"{abi.PRODUCT_FAMILY}_{abi.ContractShape(head.shape).name.lower()}",
            sites=[visits[0].node.where, *[self._agents[i][0].node.where for i in groups]],
            agents=[*groups, *others],
        )

    # ---- what each agent does, and when
    def _all(self, nodes: Sequence[Node]) -> list[_Visit]:
        """Its contractions, or its loads, which stand between what is done once; none of an agent that only syncs."""
        first = next((i for i, node in enumerate(nodes) if not _is(node, _BEFORE)), len(nodes))
        last = next((i for i in range(first, len(nodes)) if _is(nodes[i], _BEHIND)), len(nodes))
        more = next((node for node in nodes[last:] if not _is(node, _BEHIND)), None)
        if more is not None:
            raise LeftError("more comes behind the tiles", more.where)
        for node in nodes[:first]:
            if isinstance(node, Op) and node.op is DeviceOp.MBARRIER_INIT:
                self._init(node)
        blocks = np.arange(self._grid[0] * self._grid[1] * self._grid[2], dtype=np.int64)
        places = (blocks % self._grid[0], blocks // self._grid[0] % self._grid[1], blocks // (self._grid[0] * self._grid[1]))
        env = {}
        across, down, _ = shape = self._low.program.cluster
        x, y, z = (place % n for place, n in zip(places, shape, strict=True))
        for name, place in ((RANK_SYMBOL, x + across * (y + down * z)), *zip(BLOCK_SYMBOLS, places, strict=True)):
            symbol = self._values.named(name)
            if symbol is not None and symbol[1]:
                env[symbol[1][0][0]] = place
        found: list[_Visit] = []
        self._visit(nodes[first:last], blocks, env, (), found)
        if found and not sum(len(visit.block) for visit in found):
            raise LeftError("nothing is done in any block", found[0].node.where)
        return found

    def _init(self, node: Op) -> None:
        imms, first = dict(node.imms), self._constant(dict(node.operands)[0], "a barrier", node.where)
        for i in range(imms[2]):
            if first + 8 * i in self._inits:
                raise LeftError("a barrier is initialised twice", node.where)
            self._inits[first + 8 * i] = imms[1]

    def _count(self, first: int, stages: int) -> int:
        """Arrivals that complete a phase of a ring's barriers."""
        counts = {self._inits.pop(first + 8 * i, 0) for i in range(stages)}
        if len(counts) != 1 or counts == {0}:
            raise LeftError("barriers of the ring that do not count the same")
        count = counts.pop()
        if count > _COUNT_MAX:  # as of one that nobody waits for
            raise LeftError(f"barriers that count {count} arrivals, at most {_COUNT_MAX}")
        return count

    def _visit(self, nodes: Sequence[Node], block: Numbers, env: Environment, order: tuple[Numbers, ...], found: list[_Visit]) -> None:
        for i, node in enumerate(nodes):
            here = (*order, np.full(len(block), i))
            match node:
                case Repeat(stages=0):
                    start, stop = self._of(node.start, env, block), self._of(node.stop, env, block)
                    which, trip = _repeated(_trips(start, stop, node.step))
                    inside = {atom: numbers[which] for atom, numbers in env.items()}
                    if node.counter[1]:
                        inside[node.counter[1][0][0]] = start[which] + node.step * trip
                    self._visit(node.body, block[which], inside, (*[column[which] for column in here], trip), found)
                case If():
                    taken = np.flatnonzero(self._holds(node.test, env, block))
                    inside = {atom: numbers[taken] for atom, numbers in env.items()}
                    self._visit(node.body, block[taken], inside, tuple([column[taken] for column in here]), found)
                case Op(op=DeviceOp.MBARRIER_WAIT_PHASE):
                    pass  # for a stage that is free: the producer waits as the ring asks it to
                case Op() if node.op in _WHILE:
                    found.append(_Visit(node, block, env, here))
                case Fused(op=DeviceOp.PRODUCE):
                    found.append(_Visit(node, block, env, here))
                case _:
                    raise LeftError(f"{_words(node)} beside loads and contractions", node.where)

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
            raise LeftError("a number that is read while it runs")
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
                holds: npt.NDArray[np.bool_] = a < other
            case "same":
                holds = a == other
            case "other":
                holds = a != other
            case _:
                raise LeftError("a condition that is known only while it runs")
        return holds

    def _constant(self, value: Lin, name: str, where: Where) -> int:
        if value[1] or not INT_MIN <= value[0] <= INT_MAX:
            raise LeftError(f"{name} that depends on the block", where)
        return value[0]

    # ---- what all of them have in common
    def _contracts(self, groups: list[list[_Visit]]) -> tuple[list[_Contract], list[int]]:
        """The same for all tiles; that of the second group is the next block of rows."""
        made = []
        for visits in groups:
            records = {_Contract.of(visit.node) for visit in visits if isinstance(visit.node, Op)}
            if len(records) != 1:
                raise LeftError("contractions that differ in more than their tiles", visits[0].node.where)
            made.append(records.pop())
        first = made[0]
        rows = next(m for (m, _), shape in CONTRACT_SHAPES.items() if shape == first.shape)
        for i, other in enumerate(made):
            if other._replace(a=other.a - i * rows * _ROW, number=first.number, out=first.out) != first:
                raise LeftError("the second group has not the rows below the first one's", groups[i][0].node.where)
        if first.slot[1] or first.rank > abi.PRODUCT_RANK_MAX:
            raise LeftError(f"results of {first.rank} dimensions, or an entry of a table", groups[0][0].node.where)
        return made, [other.out for other in made]

    # ---- what is loaded
    def _steps(self, visits: list[_Visit]) -> int:
        """Stages of a group's first tile: all have as many, or it is seen when the table is made."""
        steps = int(self._sorted(visits, self._put)[0, 1 + _STEPS])
        if steps < 1:
            raise LeftError("a tile without a stage", visits[0].node.where)
        return steps

    def _fused(self, visits: list[_Visit], head: _Contract, steps: int) -> _Feed:
        """By loops that are one record each, of one tile or several."""
        found: list[tuple[list[_Load], int]] = []
        for node in [visit.node for visit in visits]:
            if not isinstance(node, Fused) or node.flags & abi.RING_FLAG_COUNTER or not node.counter[1]:
                raise LeftError("loads that are no loop over the ring's stages", node.where)
            if (node.full, node.empty, node.stages) != (head.full, head.empty, head.stages):
                raise LeftError("loads for another ring", node.where)
            found.append(([self._load(copy, node.counter, node.where, steps) for copy in node.copies], node.nbytes))
        if any(other != found[0] for other in found):
            raise LeftError("tiles that are loaded by different loads", visits[0].node.where)
        loads, nbytes = found[0]
        rows = self._sorted([self._by_tile(visit, steps) for visit in visits], self._fed)
        return _Feed(loads, nbytes, steps, rows, visits[0].node.where)

    def _by_tile(self, visit: _Visit, steps: int) -> _Visit:
        """A loop at the first stage of each of its tiles."""
        node, block, env = visit.node, visit.block, visit.env
        assert isinstance(node, Fused)
        start, stop = self._of(node.start, env, block), self._of(node.stop, env, block)
        if ((stop - start) % steps).any():
            raise LeftError("tiles of different numbers of stages", node.where)
        which, tile = _repeated(_trips(start, stop, steps))
        inside = {atom: numbers[which] for atom, numbers in env.items()}
        inside[node.counter[1][0][0]] = self._of(node.begin, env, block)[which] + steps * tile
        return _Visit(node, block[which], inside, (*[column[which] for column in visit.order], tile))

    def _load(self, copy: Copy, counter: Lin, where: Where, steps: int) -> _Load:
        growth = []
        for value in reversed(copy.coords):
            factors = dict(value[1])
            growth.append(factors.pop(counter[1][0][0], 0) if steps > 1 else 0)
            if steps > 1 and self._values.depends((0, tuple(factors.items())), self._values.symbols_of(counter)):
                raise LeftError("a coordinate that takes no equal steps from stage to stage", where)
        mask = self._constant(copy.mask, "a multicast mask", where)
        return _Load(copy.stride, mask, copy.map, copy.kind is DeviceOp.TENSOR_G2S_MULTICAST, tuple(growth))

    def _fed(self, visit: _Visit) -> list[Numbers]:
        node, block, env = visit.node, visit.block, visit.env
        assert isinstance(node, Fused)
        gone = env[node.counter[1][0][0]] - self._of(node.begin, env, block)
        places = [self._of(value, env, block) for copy in node.copies for value in (*reversed(copy.coords), copy.tile)]
        return [self._of(node.start, env, block) + node.offset + gone, *places]

    def _plain(self, visits: list[_Visit], head: _Contract, steps: int) -> _Feed:
        """Op by op: each stage is announced, then come its loads, and each of these takes equal steps from stage to stage."""
        announced = [visit for visit in visits if visit.node.op is DeviceOp.MBARRIER_ARRIVE_EXPECT_TX]
        loaded = [visit for visit in visits if visit.node.op in _LOADS]
        nbytes = {dict(visit.node.imms)[1] for visit in announced if isinstance(visit.node, Op)}
        if len(nbytes) != 1 or len(announced) + len(loaded) != len(visits):
            raise LeftError("stages of different sizes, or some in loops that are one record and some beside", visits[0].node.where)
        stages, rows = self._sorted(announced, self._announced), self._sorted(loaded, self._loaded)
        count = len(rows) // len(stages)
        if len(rows) != count * len(stages) or len(stages) % steps:
            raise LeftError("stages of different numbers of loads, or tiles of different numbers of stages", visits[0].node.where)
        block = stages[:, 0]
        number = np.arange(len(block)) - np.searchsorted(block, block)  # of the stage, counted by its block
        if (np.bincount(block) % steps).any():
            raise LeftError("tiles of different numbers of stages", visits[0].node.where)
        tiles = rows.reshape(-1, steps, count, rows.shape[1])  # block, barrier, slot, mask, multicast, rank, tile, coordinates
        stage = (number % head.stages).reshape(-1, steps)
        ring = head.full + 8 * stage
        if (tiles[..., 0] != block.reshape(-1, steps, 1)).any() or (tiles[..., 1] != ring[..., None]).any():
            raise LeftError("loads that are not for the stage announced before them", visits[0].node.where)
        if (stages[:, 1] != ring.reshape(-1)).any() or (tiles[..., 2:6] != tiles[0, 0, :, 2:6]).any():
            raise LeftError("loads that differ from stage to stage, or are for others in each block", visits[0].node.where)
        loads, found = [], [block[::steps], number[::steps]]
        for j in range(count):
            rank, at = int(tiles[0, 0, j, 5]), tiles[:, :, j, 6:]
            strides = (at[:, :, 0] - at[:1, :1, 0])[stage == 1]
            stride = int(strides[0]) if len(strides) else 0
            growth = at[0, 1, 1:] - at[0, 0, 1:] if steps > 1 else 0 * at[0, 0, 1:]
            grown = at[:, :1, 1:] + np.arange(steps)[:, None] * growth
            zero = at[:, :, 0] - stride * stage
            if (at[:, :, 1:] != grown).any() or (zero != zero[:, :1]).any():
                raise LeftError("a coordinate that takes no equal steps from stage to stage", loaded[0].node.where)
            slot, mask, multicast = (int(x) for x in tiles[0, 0, j, 2:5])
            loads.append(_Load(stride, mask, slot, bool(multicast), tuple([int(x) for x in growth[:rank]])))
            found += [*at[:, 0, 1 : 1 + rank].T, zero[:, 0]]
        return _Feed(loads, nbytes.pop(), steps, np.stack(found, 1), visits[0].node.where)

    def _announced(self, visit: _Visit) -> list[Numbers]:
        assert isinstance(visit.node, Op)
        return [self._of(dict(visit.node.operands)[0], visit.env, visit.block)]

    def _loaded(self, visit: _Visit) -> list[Numbers]:
        node, block, env = visit.node, visit.block, visit.env
        assert isinstance(node, Op)
        operands, exact, multicast = dict(node.operands), dict(node.exact), node.op is DeviceOp.TENSOR_G2S_MULTICAST
        if node.slot[1] or node.flags or node.placed or node.aux > abi.PRODUCT_RANK_MAX:
            raise LeftError("a load with a cache hint, of an entry of a table, or of more than three dimensions", node.where)
        mask = self._of(operands[2], env, block) if multicast else 0 * block
        known = [np.full(len(block), x) for x in (node.slot[0], multicast, node.aux)]
        corner = [self._of(exact[_COORDINATE + i], env, block) for i in reversed(range(node.aux))]
        corner += [0 * block] * (abi.PRODUCT_RANK_MAX - node.aux)
        return [self._of(operands[1], env, block), known[0], mask, *known[1:], self._of(operands[0], env, block), *corner]

    # ---- the table
    def _table(self, groups: list[list[_Visit]], feed: _Feed, head: _Contract) -> tuple[int, int, bytes]:  # noqa: C901 - checks
        """Turns, words of an entry, and the table; every agent has the same turns and counts the same stages."""
        loads, block = feed.loads, feed.rows[:, 0]
        if not 1 <= len(loads) <= abi.PRODUCT_LOADS or any(load.slot >= abi.INLINE_MAPS_LARGE for load in loads):
            raise LeftError(f"{len(loads)} loads of a stage, at most {abi.PRODUCT_LOADS} are", feed.where)
        if any(len(load.growth) > abi.PRODUCT_RANK_MAX for load in loads):
            raise LeftError("loads of more than three dimensions", feed.where)
        if any(not INT_MIN <= number <= INT_MAX for load in loads for number in (load.stride, *load.growth)):
            raise LeftError("numbers of more than 32 bits")
        turn = np.arange(len(block)) - np.searchsorted(block, block)
        words = abi.PRODUCT_PLACES + abi.PRODUCT_PLACE_WORDS * len(loads)
        turns, blocks = int(turn.max()) + 1, self._grid[0] * self._grid[1] * self._grid[2]
        if 4 * blocks * turns * words > TABLE_MAX:
            raise LeftError(f"{turns} tiles of each of {blocks} blocks: too long a table")
        table = np.zeros((blocks, turns, words), np.int64)
        table[block, turn, 0] = 1
        column = 2
        for j, load in enumerate(loads):
            rank, at = len(load.growth), abi.PRODUCT_PLACES + abi.PRODUCT_PLACE_WORDS * j
            table[block, turn, at : at + rank] = feed.rows[:, column : column + rank]
            tile = feed.rows[:, column + rank]
            if (tile != tile[np.searchsorted(block, block)]).any():
                raise LeftError("a load whose place in a stage changes from tile to tile", feed.where)  # the kernel asks for it once
            table[block, turn, at + abi.PRODUCT_PLACE_WORDS - 1] = tile
            column += rank + 1
        if (feed.rows[:, 1] != turn * feed.steps).any():
            raise LeftError("stages that are not counted tile by tile", feed.where)
        for i, visits in enumerate(groups):
            put, at = self._sorted(visits, self._put), abi.PRODUCT_CORNER + abi.PRODUCT_RANK_MAX * i
            if len(put) != len(block) or (put[:, :3] != np.stack([block, turn * feed.steps, np.full(len(block), feed.steps)], 1)).any():
                raise LeftError("a group whose tiles, or stages of a tile, are not those that are loaded", visits[0].node.where)
            table[block, turn, at : at + head.rank] = put[:, 3:]
        if table.min() < INT_MIN or table.max() > INT_MAX:
            raise LeftError("numbers of more than 32 bits")
        return turns, words, table.astype("<i4").tobytes()

    def _sorted(self, visits: list[_Visit], row: Callable[[_Visit], list[Numbers]]) -> Numbers:
        """Rows that begin with the block, in the order of blocks, and of what each does."""
        depth = max(len(visit.order) for visit in visits)
        keys, rows = [], []
        for visit in visits:
            nothing = np.zeros(len(visit.block), np.int64)
            keys.append(np.stack([visit.block, *visit.order, *[nothing] * (depth - len(visit.order))], 1))
            rows.append(np.stack([visit.block, *row(visit)], 1))
        key, made = np.concatenate(keys), np.concatenate(rows)
        in_order: Numbers = made[np.lexsort(key.T[::-1])]
        return in_order

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
            raise LeftError("epilogues that differ")
        return made.pop()

    def _epilogue(self, node: Op | Fused) -> bytes:
        op = node.where.op
        if not isinstance(op, ops.Contract) or not isinstance(node, Op):
            raise LeftError("no contraction", node.where)
        if EPILOGUE.unpack_from(node.tail, CONTRACT.size)[4] == 0:
            return bytes(FINISH_BYTES)
        found = finish_of(op.fn, [self._low.words.arrays[array.name] for array in op.arrays], self._low.words)
        if found is None:
            raise LeftError("the epilogue is no chain of steps around one function", node.where)
        return found


def _trips(start: Numbers, stop: Numbers, step: int) -> Numbers:
    """Of a loop, in each block that comes to it."""
    trips: Numbers = np.maximum(-((start - stop) // step), 0)
    if trips.sum() > VISITS_MAX:
        raise LeftError(f"loops of more than {VISITS_MAX} turns in all")
    return trips


def _repeated(trips: Numbers) -> tuple[Numbers, Numbers]:
    """Which of these each trip is of, and its number there."""
    which = np.repeat(np.arange(len(trips)), trips)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(trips) - trips, trips)


def _words(node: Node) -> str:
    return node.op.name.lower() if isinstance(node, Op | Fused) else "a loop over a counter's tiles"


def _is(node: Node, kinds: frozenset[DeviceOp]) -> bool:
    return isinstance(node, Op) and node.op in kinds
