"""Programs that map tiles: all that a block does is one `abi.APPLY`.

One thread loads what a counter deals the block into a ring, a group makes a tile of each set by a map, and one more thread stores it. As in
`once`, that is recognised by what the agents do after lowering.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import NO_REG, DeviceOp
from oxidecopy.engines.cuda.code.coordinates import NotPlacedError, Placement, placement
from oxidecopy.engines.cuda.code.line import Line
from oxidecopy.engines.cuda.code.nodes import Copy, Fused, Op, Repeat, Stream
from oxidecopy.engines.cuda.code.records import APPLY, COPY, RECORD
from oxidecopy.engines.cuda.code.values import INT_MAX, ZERO, Lin, Values
from oxidecopy.engines.cuda.code.whole import LeftError
from oxidecopy.isa import limits, ops

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.image import Where
    from oxidecopy.engines.cuda.code.lower import Lowering

_FIRST_COORDINATE: Final = 3  # operand
_COUNT, _SHARE, _TOTAL = 1, 2, 3  # immediates of a COMPUTE
_NO_REGS: Final = (NO_REG,) * 8
_UNITS_BYTES: Final = abi.RECORD_BYTES  # behind a COMPUTE; then come the offsets of inputs, room for their strides, and its instructions
_OFFSETS: Final = struct.Struct("<8i")
_INPUTS: Final = 4
_STAGES: Final = range(
    2, limits.WARP + 1
)  # a lane makes a stage's barriers; a CTA's first tiles, one for each stage, are not the counter's
_BYTES_MIN: Final = 8_192  # of a stage: records ask for several smaller ones at once, which hides the counter
_WHOSE: Final = "a map of tiles"
_MORE: Final = "more than a map of tiles has"


@final
class Part(NamedTuple):
    """Who does something: its position in the streams, the record that reports speak of, and what its waits are in the program."""

    stream: int
    entry: int
    waits: Where


@final
class ApplyCode(NamedTuple):
    """The code, and who runs it, in the order of warps: the group, who stores, who loads."""

    code: bytes
    parts: tuple[Part, Part, Part]


def apply_of(low: Lowering, streams: Sequence[tuple[int, Stream]]) -> ApplyCode:
    """The program as that.

    Raises:
        LeftError: it is none of that.
    """
    if len(low.maps) > abi.INLINE_MAPS_MEDIUM:
        raise LeftError(f"more than {abi.INLINE_MAPS_MEDIUM} descriptors")
    groups = [i for i, (me, _) in enumerate(streams) if low.cast.all[me].count > 1]
    producers = [i for i, (_, stream) in enumerate(streams) if stream.nodes and isinstance(stream.nodes[-1], Fused)]
    if len(streams) != 3 or len(groups) != 1 or len(producers) != 1 or groups == producers:
        raise LeftError("other roles than a thread that loads, a group that maps, and its thread that makes the barriers and stores")
    (group,), (producer,) = groups, producers
    order = (group, 3 - group - producer, producer)
    return _Ring(low.values, streams, order, limits.WARP * low.cast.all[streams[group][0]].warps).code()


@final
class _Ring:
    def __init__(self, values: Values, streams: Sequence[tuple[int, Stream]], order: tuple[int, int, int], lanes: int) -> None:
        self._values = values
        self._order = order
        self._lanes = lanes
        group, storer, producer = (streams[i][1] for i in order)
        *nodes, feed = producer.nodes
        assert isinstance(feed, Fused)
        self._begins = Line(nodes, _WHOSE)
        self._feed = feed
        self._group = _Around(group)
        self._storer = _Around(storer)

    def code(self) -> ApplyCode:
        feed, group, storer = self._feed, self._group, self._storer
        self._prologue()
        self._tiles()
        # a turn of the two loops
        pending = dict(storer.body.take(DeviceOp.WAIT_GROUP_READ).imms)[0]
        self._meet()
        compute = group.body.take(DeviceOp.COMPUTE)
        for around in (group, storer):
            around.body.take(DeviceOp.FENCE_PROXY_ASYNC)
        self._meet()
        store = storer.body.take(DeviceOp.TENSOR_S2G)
        storer.body.take(DeviceOp.COMMIT_GROUP)
        arrive = storer.body.take(DeviceOp.MBARRIER_ARRIVE)
        last = storer.behind.take(DeviceOp.WAIT_GROUP, DeviceOp.WAIT_GROUP_READ, imm=(0, 0))
        for line in (group.body, group.behind, storer.body, storer.behind):
            line.end(_MORE)
        if self._round(arrive, dict(arrive.operands)[0], storer.loop, feed.stages) != (feed.empty, limits.MBARRIER_BYTES):
            raise LeftError("another barrier than that of the stage", arrive.where)
        # where tiles lie
        out = self._round(store, dict(store.operands)[0], storer.loop, pending + 1)
        if self._round(compute, dict(compute.operands)[0], group.loop, pending + 1) != out:
            raise LeftError("another tile is made than the one that is stored", compute.where)
        inputs = [self._round(compute, value, group.loop, feed.stages) for _, value in compute.exact]
        if any(first for first, _ in inputs):  # what is the same for all turns stands in the record's offsets
            raise LeftError("a tile that is known only when it runs", compute.where)
        self._apart(compute)
        loads = b"".join([self._load(copy) for copy in feed.copies]).ljust(abi.RECORD_BYTES * abi.APPLY_LOADS, b"\0")
        put, places = self._stored(store, *out)
        made = _whole(self._computed(compute, out[0], [stride for _, stride in inputs]))
        head = APPLY.pack(
            DeviceOp.APPLY, len(feed.copies), last.op is DeviceOp.WAIT_GROUP_READ, pending, feed.full, feed.empty, feed.nbytes,
            abi.APPLY_COMPUTE + len(made), feed.stages, pending + 1, feed.stop[0],
        )  # fmt: skip
        coordinates = _whole(b"".join([place.packed() for place in (*feed.places, *places)]))
        who = zip(self._order, (abi.APPLY_COMPUTE // abi.RECORD_BYTES, abi.APPLY_STORES, 0), strict=True)
        waits = (group.loop.where, storer.loop.where, feed.where)
        a, b, c = (Part(stream, entry, where) for (stream, entry), where in zip(who, waits, strict=True))
        return ApplyCode(head + loads + put + made + coordinates, (a, b, c))

    # ---- ops
    def _prologue(self) -> None:
        """One thread makes the ring's barriers, and all meet."""
        feed, line = self._feed, self._storer.before
        init = line.take(DeviceOp.MBARRIER_INIT, imm=(1, 1))
        ring = (feed.full, 2 * feed.stages, feed.full + limits.MBARRIER_BYTES * feed.stages)
        if (line.constant(init, 0), dict(init.imms)[2], feed.empty) != ring or feed.stages not in _STAGES:
            raise LeftError(f"other barriers than those of a ring of {_STAGES[0]} to {_STAGES[-1]} stages", init.where)
        for meets in (self._begins, line, self._group.before):
            sync = meets.take(DeviceOp.BAR_SYNC)
            if dict(sync.imms) != {0: 0, 1: self._lanes + 2 * limits.WARP}:
                raise LeftError("a sync of fewer threads than all", sync.where)
            meets.end(_MORE)

    def _tiles(self) -> None:
        """All go through the same tiles, and each stage has as many loads as there is room for."""
        feed, loops = self._feed, (self._group.loop, self._storer.loop)
        plain = feed.op is DeviceOp.PRODUCE and feed.flags == abi.RING_FLAG_COUNTER | abi.RING_FLAG_PLACED
        if not plain or feed.start != ZERO or feed.offset or feed.stop[1] or any(place.reg or place.base_reg for place in feed.places):
            raise LeftError("loads by more than the number of a tile", feed.where)
        if len(feed.copies) > abi.APPLY_LOADS or feed.nbytes < _BYTES_MIN:
            have, wanted = f"stages of {feed.nbytes:,} bytes", f"{_BYTES_MIN:,} or more, in up to {abi.APPLY_LOADS} loads"
            raise LeftError(f"{have} (loads: {len(feed.copies)}), and not of {wanted}", feed.where)
        for loop in loops:
            if (loop.full, loop.stages, loop.start, loop.stop, loop.step) != (feed.full, feed.stages, ZERO, (INT_MAX, ()), 1):
                raise LeftError("a loop over other stages than those that are loaded", loop.where)

    def _meet(self) -> None:
        """A sync of the group and who stores."""
        for around in (self._group, self._storer):
            sync = around.body.take(DeviceOp.BAR_SYNC)
            if dict(sync.imms) != {0: 1, 1: self._lanes + limits.WARP}:
                raise LeftError("a sync of others than the group", sync.where)

    @staticmethod
    def _load(copy: Copy) -> bytes:
        if copy.kind is not DeviceOp.TENSOR_G2S or copy.tile[1] or copy.mask != ZERO:
            raise LeftError("a load that is no plain one of a whole tile")
        return COPY.pack(copy.map, copy.rank, copy.kind, 0, copy.tile[0], copy.stride, 0, copy.begin, copy.end, NO_REG, NO_REG)

    def _stored(self, op: Op, tile: int, stride: int) -> tuple[bytes, list[Placement]]:
        """The record of the store, and its coordinates, behind those of the loads."""
        slot, chosen = op.slot
        if chosen:
            raise LeftError("an entry of a table of descriptors", op.where)
        at = [self._placed(op, dict(op.exact)[_FIRST_COORDINATE + i], self._storer.loop.tile) for i in reversed(range(op.aux))]
        first = len(self._feed.places)
        return COPY.pack(slot, op.aux, op.op, 0, tile, stride, 0, first, first + op.aux, NO_REG, NO_REG), at

    def _apart(self, op: Op) -> None:
        """The group makes a tile of what is there before any load has landed (kernels/apply.cuh): none of those that are loaded."""
        made = op.where.op
        assert isinstance(made, ops.MapTiles)
        decl = op.where.program.tiles[made.out.tile]
        stages = range(decl.offset, decl.offset + decl.stage_bytes * decl.stages)
        if any(copy.tile[0] in stages for copy in self._feed.copies):
            raise LeftError("a tile that is loaded, too, is made", op.where)

    def _computed(self, op: Op, out: int, strides: Sequence[int]) -> bytes:
        """The record of a map that the whole group does, and what follows it."""
        imms = dict(op.imms)
        if imms[_TOTAL] > self._lanes or imms[_SHARE] != imms[_TOTAL] << 16:
            raise LeftError("a map by a part of the group", op.where)
        head = RECORD.pack(op.op, op.aux, 0, 0, *_NO_REGS, out, imms[_COUNT], imms[_SHARE], imms[_TOTAL], 0)
        offsets = _OFFSETS.unpack_from(op.tail, _UNITS_BYTES)[:_INPUTS]
        places = _OFFSETS.pack(*offsets, *strides, *[0] * (_INPUTS - len(strides)))
        return head + op.tail[:_UNITS_BYTES] + places + op.tail[_UNITS_BYTES + _OFFSETS.size :]

    # ---- values
    def _round(self, op: Op, value: Lin, loop: Repeat, count: int) -> tuple[int, int]:
        """The first of addresses that go round with a loop's turns, `count` of them, and the distance from each to the next."""
        if count == 1 and not value[1]:
            return value[0], 0
        (counter, _), *_ = loop.counter[1]
        if len(value[1]) == 1 and value[1][0][0] == counter and self._values.interval(loop.counter)[1] < count:
            return value[0], value[1][0][1]  # of fewer turns than there are addresses
        found = self._placed(op, value, loop.counter)
        if (found.steps[0], found.offset, found.divisor, found.modulus) != (1, 0, 0, count):
            raise LeftError("a tile or a barrier that does not go round with the tiles", op.where)
        return found.base, found.scale

    def _placed(self, op: Op, value: Lin, by: Lin) -> Placement:
        try:
            found = placement(self._values, value, {by[1][0][0]: 0}, self._values.symbols_of(by))
        except NotPlacedError:
            raise LeftError("a coordinate that is no place of a box in a grid", op.where) from None
        if found.reg or found.base_reg:
            raise LeftError("a coordinate made of more than the tile's number", op.where)
        return found


def _whole(data: bytes) -> bytes:
    """Whole records."""
    return data.ljust(-(-len(data) // abi.RECORD_BYTES) * abi.RECORD_BYTES, b"\0")


@final
class _Around:
    """An agent's one loop over the tiles of a counter: what stands before it, what is in it, and what is behind it."""

    def __init__(self, stream: Stream) -> None:
        loops = [i for i, node in enumerate(stream.nodes) if isinstance(node, Repeat)]
        if len(loops) != 1:
            raise LeftError("more than one loop, or none")
        loop = stream.nodes[loops[0]]
        assert isinstance(loop, Repeat)
        if not loop.stages or not loop.counter[1]:
            raise LeftError("a loop over something else than tiles", loop.where)
        self.loop = loop
        self.before = Line(stream.nodes[: loops[0]], _WHOSE)
        self.body = Line(loop.body, _WHOSE)
        self.behind = Line(stream.nodes[loops[0] + 1 :], _WHOSE)
