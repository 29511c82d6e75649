"""Rules of roles, rings and schedules (recorder side)."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_DESIGN: Final = "design of the ring: stage k of a ring of S uses slot k % S, phase k // S (PTX mbarrier, phases)"
_ARRAYS: Final = "a = dev.array(np.ones((128, 64), np.float32))\nsrc = ox.TmaDescriptor.tiled(a, box=(32, 32))\n"
_HEAD: Final = (
    "@ox.pipeline(warps=ox.roles(producer=1, consumers=2))\n"
    "def copy(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:\n"
    "    ring = cta.ring(stages=2, tiles=(src,))\n"
)
_PRODUCER: Final = (
    "    with cta.producer() as leader:\n"
    "        for at in cta.tiles(src):\n"
    "            with ring.produce(leader) as (slot,):\n"
    "                slot.load(src, at)\n"
)
_CONSUMER: Final = (
    "    with cta.consumers() as group:\n"
    "        for at in cta.tiles(src):\n"
    "            with ring.consume(group) as (tile,):\n"
    "                cta.store(out, tile, at)\n"
)
_EACH: Final = "for at in cta.tiles(src):\n"
_LAUNCH: Final = "\n\n" + _ARRAYS + "copy[2](src, dev.zeros((128, 64), ox.f32))\n"
_GOOD: Final = _HEAD + _PRODUCER + _CONSUMER + _LAUNCH
_COUNTED: Final = (
    "@ox.pipeline(warps=ox.roles(producer=1, consumers=2))\n"
    "def copy(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:\n"
    "    ring = cta.ring(stages=2, tiles=(src,))\n"
    "    work = cta.schedule(src, order=ox.order.counter())\n"
    "    with cta.producer() as leader:\n"
    "        for at in work:\n"
    "            with ring.produce(leader) as (slot,):\n"
    "                slot.load(src, at)\n"
    "    with cta.consumers() as group:\n"
    "        for stage in ring.stages(group, work):\n"
    "            cta.store(out, stage.tiles[0], stage.at)\n" + _LAUNCH
)
_MULTICAST: Final = """\
@ox.pipeline(warps=ox.roles(producer=1, consumers=2), cluster=2)
def copy(cta: ox.ClusterCta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    ring = cta.multicast_ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, per="cluster", box=(64, 32)):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src, per="cluster", box=(64, 32)):
            with ring.consume(group) as (tile,), cta.when(cta.cta_rank == 0):
                cta.store(out, tile, at)


a = dev.array(np.ones((128, 64), np.float32))
copy[4](ox.TmaDescriptor.tiled(a, box=(32, 32)), dev.empty((128, 64), ox.f32))
"""
_GATHER: Final = """\
@ox.pipeline(threads=32)
def gather(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], rows: ox.GlobalArray[ox.i32, ox.D1]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    row = cta.load_index(rows, cta.block_idx.x, below=src.shape[0])
    for _ in cta.range(2):
        cta.sync()
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (row, 0), token)
    full.wait(token)


a = dev.array(np.ones((64, 8), np.float32))
gather[2](ox.TmaDescriptor.tiled(a, box=(1, 8)), dev.array(np.array([3, 60], np.int32)))
"""


def _program(producer: str = _PRODUCER, consumer: str = _CONSUMER, head: str = _HEAD) -> str:
    return head + producer + consumer + _LAUNCH


_ELEMENTS: Final = "the rules of element expressions, oxidecopy.isa.elem"


def _map(line: str) -> str:
    """A group does `line` with a filled tile."""
    return (
        "@ox.pipeline(threads=32)\n"
        "def scale(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:\n"
        "    tile = cta.shared(ox.f32, (32, 32), align=ox.A128)\n"
        "    cta.fill(tile, 1)\n"
        "    cta.sync()\n"
        "    with cta.warps(0, 1) as group:\n"
        f"        {line}\n"
        "    cta.sync()\n"
        "    cta.store(out, tile, (0, 0))\n\n\n"
        "scale[1](dev.zeros((32, 32), ox.f32))\n"
    )


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="OX1101",
        title="Roles are one or more whole warps each and share none; register hints are of roles that are there",
        error="UsageError",
        why="A warp in two roles would have to run two loops at once; a role without warps would never run. "
        "Register hints are what the hardware can give: 65,536 for all threads of a CTA.",
        source="PTX: warps of 32 threads; setmaxnreg: 24 to 256 registers in steps of 8. CUDA Programming Guide: 64 K registers per block",
        wrong="ox.roles(producer=range(0, 1), consumers=range(0, 4))\n",
        right="ox.roles(producer=range(4, 5), consumers=range(0, 4))\n",
    ),
    Rule(
        id="OX1102",
        title="A stage's tiles and slots are used inside its block",
        error="ScopeError",
        why="Behind the block the stage has been given back: the producer may be loading the next tile into the same memory.",
        source=_DESIGN,
        wrong=_program(consumer=_CONSUMER.replace("                cta.store", "                pass\n            cta.store")),
        right=_GOOD,
    ),
    Rule(
        id="OX1103",
        title="A slot is loaded by a descriptor of the element type, box and swizzle it was made for",
        error="ShapeError",
        why="The stage announces exactly the bytes of that box, and its readers undo that swizzle.",
        source=_DESIGN,
        wrong=(
            "@ox.pipeline(warps=ox.roles(producer=1, consumers=2))\n"
            "def copy(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], half: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:\n"
            "    ring = cta.ring(stages=2, tiles=(src,))\n"
            "    with cta.producer() as leader, ring.produce(leader) as (slot,):\n"
            "        slot.load(half, (0, 0))\n\n\n" + _ARRAYS + "copy[2](src, ox.TmaDescriptor.tiled(a, box=(16, 32)))\n"
        ),
        right=_GOOD,
    ),
    Rule(
        id="OX1104",
        title="A ring is consumed by the groups it was made for",
        error="ScopeError",
        why="Its empty barriers count one arrival per declared group: one more or one fewer and a slot is freed too early or never.",
        source=_DESIGN,
        wrong=_program(head=_HEAD.replace("consumers=2", "consumers=(1, 1)").replace("tiles=(src,)", "tiles=(src,), consumers=1"))
        .replace("    with cta.consumers() as group:", "    for i in range(2):\n     with cta.consumers(i) as group:")
        .replace("cta.store(out, tile, at)", "cta.store(out, tile.part(i, of=2), (at[0] + 16 * i, at[1]))"),
        right=_program(head=_HEAD.replace("consumers=2", "consumers=(1, 1)"))
        .replace("    with cta.consumers() as group:", "    for i in range(2):\n     with cta.consumers(i) as group:")
        .replace("cta.store(out, tile, at)", "cta.store(out, tile.part(i, of=2), (at[0] + 16 * i, at[1]))"),
    ),
    Rule(
        id="OX1105",
        title="Stages are taken in loops, and under no condition but one that is around all roles of the ring",
        error="RecordError",
        why="Producer and consumers count stages on their own: a condition that skipped one on one side would set them apart.",
        source=_DESIGN,
        wrong=_program(producer=_PRODUCER.replace("ring.produce(leader) as", "cta.when(cta.block_idx.x == 0), ring.produce(leader) as")),
        right=_GOOD,
    ),
    Rule(
        id="OX1106",
        title="A nested loop takes a number of stages that is one value for the launch",
        error="RecordError",
        why="The number of a stage is written as an affine expression of the loop counters, so that every role computes it alike.",
        source=_DESIGN,
        wrong=_program(producer=_PRODUCER.replace(_EACH, _EACH + "          for _ in cta.range(cta.block_idx.x):\n")),
        right=_program(
            producer=_PRODUCER.replace(_EACH, _EACH + "          for _ in cta.range(2):\n"),
            consumer=_CONSUMER.replace(_EACH, _EACH + "          for _ in cta.range(2):\n"),
        ),
    ),
    Rule(
        id="OX1107",
        title="Every slot of a produced stage is loaded exactly once, or under conditions of which one holds",
        error="RecordError",
        why="The stage has announced the bytes of all its slots: a missing load hangs the consumers, a second one frees them too early.",
        source="PTX mbarrier: a phase ends when announced and delivered bytes are equal",
        wrong=_program(producer=_PRODUCER.replace("slot.load(src, at)", "pass")),
        right=_GOOD,
    ),
    Rule(
        id="OX1108",
        title="A consumer holds fewer stages than the ring has, and looks back no further than it holds",
        error="ScopeError",
        why="With all stages held none is ever free, and the producer waits for ever.",
        source=_DESIGN,
        wrong=_program(consumer=_CONSUMER.replace("ring.consume(group)", "ring.consume(group, keep=2)")),
        right=_program(consumer=_CONSUMER.replace("ring.consume(group)", "ring.consume(group, keep=1)")),
    ),
    Rule(
        id="OX1109",
        title="A ring has a producer and all its consumer groups",
        error="RecordError",
        why="Whoever is there waits for the missing one for ever.",
        source=_DESIGN,
        wrong=_program(consumer="    with cta.consumers():\n        pass\n"),
        right=_GOOD,
    ),
    Rule(
        id="OX1110",
        title="An order gives one tile index per dimension",
        error="UsageError",
        why="Each visit is turned into the coordinates of a box's corner.",
        source="cta.tiles",
        wrong=_program().replace("cta.tiles(src)", "cta.tiles(src, order=ox.order.grouped(0))"),
        right=_program().replace("cta.tiles(src)", "cta.tiles(src, order=ox.order.grouped(2))"),
    ),
    Rule(
        id="OX1111",
        title="A role's block names a role of the pipeline",
        error="ScopeError",
        why="Roles are warps that the pipeline's declaration has set aside.",
        source="ox.roles",
        wrong=_program(consumer=_CONSUMER.replace("cta.consumers()", "cta.consumers(1)")),
        right=_GOOD,
    ),
    Rule(
        id="OX1112",
        title="Every declared role has a block",
        error="RecordError",
        why="Its warps would start and end without doing anything; barriers that count them would never complete.",
        source="ox.roles",
        wrong=_program(head=_HEAD.replace("consumers=2", "consumers=2, store=1")),
        right=_GOOD,
    ),
    Rule(
        id="OX1113",
        title="A ring has 1 to 64 stages of 1 to 3 tiles, a store ring 1 to 16 stages",
        error="ArgumentError",
        why="A store ring counts its stages by wait_group_read, which leaves at most 15 groups pending.",
        source="PTX cp.async.bulk.wait_group; types of one-, two- and three-tile stages",
        wrong=_program(head=_HEAD.replace("stages=2", "stages=0")),
        right=_GOOD,
    ),
    Rule(
        id="OX1114",
        title="A pipeline declares either threads or roles",
        error="UsageError",
        why="Roles say how many threads there are; a second number could only contradict them.",
        source="ox.pipeline",
        wrong="ox.pipeline(threads=128, warps=ox.roles(producer=1, consumers=4))\n",
        right="ox.pipeline(warps=ox.roles(producer=1, consumers=4))\n",
    ),
    Rule(
        id="OX1140",
        title="A value read from memory chooses coordinates and nothing else",
        error="RecordError",
        why="What threads wait for, skip and repeat must be known to the proof. Data is not: the proof takes it over its whole range.",
        source="design: control flow depends on neither data nor timing",
        wrong=_GATHER.replace("cta.range(2)", "cta.range(row)"),
        right=_GATHER,
    ),
    Rule(
        id="OX1141",
        title="Tiles by a counter are visited through a schedule that the roles share",
        error="ScopeError",
        why="A counter gives a CTA its tiles once. Roles that asked for themselves would each get other ones.",
        source="cta.schedule",
        wrong=_COUNTED.replace("for at in work", "for at in cta.tiles(src, order=ox.order.counter())"),
        right=_COUNTED,
    ),
    Rule(
        id="OX1142",
        title="`load_index` reads a 1-D integer array, below a bound that is one value for the launch",
        error="DTypeError",
        why="The bound is what the proof knows of the value; it must be known when the launch is proven.",
        source="cta.load_index",
        wrong=_GATHER.replace("below=src.shape[0]", "below=cta.block_idx.x"),
        right=_GATHER,
    ),
    Rule(
        id="OX1143",
        title="A pipeline has at most one schedule by a counter, and then no cluster",
        error="ScopeError",
        why="The proof goes over every number of tiles that a CTA may get: one number. The CTAs of a cluster would get different ones.",
        source="bound of the verifier",
        wrong=_COUNTED.replace("    with cta.producer()", "    cta.schedule(src, order=ox.order.counter())\n    with cta.producer()"),
        right=_COUNTED,
    ),
    Rule(
        id="OX1144",
        title="The tiles of a counter are claimed once, and visited in the outermost loop",
        error="ScopeError",
        why="A second visit would ask the counter for more tiles, not for the same ones: they are told by the stages that carry them.",
        source="ring.stages",
        wrong=_COUNTED.replace(
            "for stage in ring.stages(group, work):\n",
            "for at in work:\n            pass\n        for stage in ring.stages(group, work):\n",
        ),
        right=_COUNTED,
    ),
    Rule(
        id="OX1145",
        title="A ring that tells of a counter's tiles is filled once for each tile claimed",
        error="RecordError",
        why="A consumer learns from a stage which tile it brings, and from the last one that no more come.",
        source="ring.stages",
        wrong=_COUNTED.replace("            with ring.produce", "          for _ in cta.range(2):\n            with ring.produce"),
        right=_COUNTED,
    ),
    Rule(
        id="OX1146",
        title="A value is used in the block that it was read in",
        error="ScopeError",
        why="A loop reads another value in each iteration, a role for itself: behind the block there is no one value.",
        source="cta.load_index",
        wrong=_GATHER.replace(
            "    full.wait",
            "    with cta.elect():\n        row = cta.load_index(rows, 1, below=8)\n    cta.load_index(rows, row, below=8)\n    full.wait",
        ),
        right=_GATHER,
    ),
    Rule(
        id="OX1147",
        title="The CTAs of a cluster load slices of one tile into a stage of a multicast ring",
        error="ClusterError",
        why="Each CTA's slice goes to all of them: with different corners a tile would be put together from parts of different tiles.",
        source="cta.multicast_ring",
        wrong=_MULTICAST.replace('per="cluster", ', ""),
        right=_MULTICAST,
    ),
    Rule(
        id="OX1120",
        title="A map takes one to four tiles and `out`, all of one shape",
        error="ShapeError",
        why="Element (i, j) of `out` is made from elements (i, j) of the tiles: where one of them has none there is nothing to read.",
        source=_ELEMENTS,
        wrong=_map("group.map(lambda v: v * 2, tile, out=tile.part(0, of=2))"),
        right=_map("group.map(lambda v: v * 2, tile, out=tile)"),
    ),
    Rule(
        id="OX1121",
        title="A group maps, copies and fills in its own block",
        error="ScopeError",
        why="The threads of the group share the elements out; in a narrower block some of them never come.",
        source=_ELEMENTS,
        wrong=_map("with group.elect():\n            group.map(lambda v: v * 2, tile, out=tile)"),
        right=_map("group.map(lambda v: v * 2, tile, out=tile)"),
    ),
    Rule(
        id="OX1122",
        title="The function of a map does not ask for the value of an element",
        error="SymbolicError",
        why="It is called once, to record what it does; the values are there only when the pipeline runs, a different one in every thread.",
        source=_ELEMENTS,
        wrong=_map("group.map(lambda v: v if v > 0 else -v, tile, out=tile)"),
        right=_map("group.map(lambda v: -v, tile, out=tile)"),
    ),
    Rule(
        id="OX1123",
        title="Both sides of an operator have one element type",
        error="DTypeError",
        why="Which of the two is rounded to the other changes the result, so the program says it.",
        source=_ELEMENTS,
        wrong=_map("group.map(lambda v: (v.cast(ox.f16) + v).cast(ox.f32), tile, out=tile)"),
        right=_map("group.map(lambda v: v.cast(ox.f16).cast(ox.f32) + v, tile, out=tile)"),
    ),
    Rule(
        id="OX1124",
        title="fp8, tf32 and flushing types are only cast; integers have no division and no functions, floats no bits",
        error="DTypeError",
        why="Their arithmetic would be f32's with one more rounding that nobody sees; a division of integers could round either way.",
        source=_ELEMENTS,
        wrong=_map("group.map(lambda v: (v.cast(ox.i32) / 2).cast(ox.f32), tile, out=tile)"),
        right=_map("group.map(lambda v: v / 2, tile, out=tile)"),
    ),
    Rule(
        id="OX1125",
        title="The function of a map takes one element per tile, and gives what it makes of them",
        error="RecordError",
        why="An element of another map stands for another tile's; a plain number would need no map.",
        source=_ELEMENTS,
        wrong=_map("group.map(lambda v, w: v + w, tile, out=tile)"),
        right=_map("group.map(lambda v, w: v + w, tile, tile, out=tile)"),
    ),
    Rule(
        id="OX1126",
        title="The function of a map gives the element type that `out` holds",
        error="DTypeError",
        why="Bits of one type read as another are noise; a cast that nobody wrote would round without being seen.",
        source=_ELEMENTS,
        wrong=_map("group.map(lambda v: v.cast(ox.i32), tile, out=tile)"),
        right=_map("group.map(lambda v: v.cast(ox.i32).cast(ox.f32), tile, out=tile)"),
    ),
    Rule(
        id="OX1127",
        title="The function of a map is at most 64 operations deep and 4,096 large",
        error="RecordError",
        why="Engines hold the whole expression in registers or interpret it for every element; a value doubled 40 times has no end.",
        source="the op table, oxidecopy.program.nesting",
        wrong=_map("group.map(lambda v: sum([v] * 100, start=v), tile, out=tile)"),
        right=_map("group.map(lambda v: v * 101, tile, out=tile)"),
    ),
    Rule(
        id="OX1128",
        title="`cast` names a type of elements",
        error="DTypeError",
        why="Packed types have no element that a thread could write by itself.",
        source=_ELEMENTS,
        wrong=_map('group.map(lambda v: v.cast("bf16").cast(ox.f32), tile, out=tile)'),
        right=_map("group.map(lambda v: v.cast(ox.bf16).cast(ox.f32), tile, out=tile)"),
    ),
    Rule(
        id="OX1180",
        title="`select` takes an element, then an element or a number",
        error="RecordError",
        why="The element says which type the result has; a number takes the type of what it stands beside.",
        source=_ELEMENTS,
        wrong=_map("group.map(lambda v: (v > 1).select(1.0, v), tile, out=tile)"),
        right=_map("group.map(lambda v: (v <= 1).select(v, 1.0), tile, out=tile)"),
    ),
    Rule(
        id="OX1181",
        title="A vector of a map lies in another tile than `out`",
        error="ShapeError",
        why="Each element of a vector is read by many threads, while others write: which of the two comes first is not said.",
        source=_ELEMENTS,
        wrong=_map("group.map(lambda v, w: v + w, tile, ox.per_column(tile.part(0, of=32)), out=tile)"),
        right=_map("group.map(lambda v, w: v + w, tile, tile, out=tile)"),
    ),
)
