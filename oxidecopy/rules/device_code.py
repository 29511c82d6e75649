"""Pages of the rules about code for a GPU: what a program must be so that it can be written as such."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

# Emitting is a command: it works on a file.
_WIDE: Final = '''
from pathlib import Path
from oxidecopy.cli import invoke

Path("mine.py").write_text("""
import numpy as np, oxidecopy as ox
@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1], n: ox.Idx) -> None:
    tile = cta.shared(ox.f32, (64,), align=ox.A128)
    cta.fill(tile, 1)
    cta.sync()
    cta.store(out, tile, (cta.block_idx.x * {factor},))

@kernel.recipe
def recipe(dev: ox.Device) -> ox.Recipe:
    return ox.Recipe(launch=kernel[2].bind(dev.zeros((64,), ox.f32), 1 << 60), outputs={{}})
""")
invoke("emit", "mine.py", "-o", "mine.cu")
'''

# Making device code needs no GPU.
_CODE: Final = "from oxidecopy.engines.cuda.code import encode\n"
_TOKEN: Final = (
    _CODE
    + """
@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.u8, ox.D2]) -> None:
    tiles = cta.shared(src, stages=226)
    more = cta.shared(ox.u8, ({more},), align=ox.A128)
    full = cta.barrier().init(1)
    cta.fill(more, 0)
    for i in cta.range(4):
        with cta.when(i % 3 == 0):
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tiles[0].nbytes)
                src.g2s(leader, tiles[0], (0, 0), token)
            full.wait(token)
            cta.fill(tiles[0], 1)
            cta.fence_proxy_async()
            cta.sync()

encode(kernel[1].bind(ox.TmaDescriptor.tiled(dev.zeros((256, 256), ox.u8), box=(4, 256))).verify())
"""
)
_PLACE: Final = (
    _CODE
    + """
@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1], n: ox.Idx) -> None:
    tile = cta.shared(ox.f32, (64,), align=ox.A128)
    cta.fill(tile, 1)
    cta.sync()
    cta.store(out, tile, (cta.block_idx.x * n,))

encode(kernel[3].bind(dev.zeros((64,), ox.f32), {n}).verify())
"""
)
_INDICES: Final = (
    _CODE
    + """
@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, rows: ox.GlobalArray[ox.i32, ox.D1], out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
    tile = cta.shared(ox.f32, (4,), align=ox.A128)
    cta.fill(tile, 1)
    cta.sync()
    for at in [cta.load_index(rows, i, below=64) for i in range({count})]:
        cta.store(out, tile, (at,))

encode(kernel[1].bind(dev.zeros((128,), ox.i32), dev.zeros((64,), ox.f32)).verify())
"""
)
_QUOTIENTS: Final = (
    _CODE
    + """
def again(v):
    made = v = v.cast(ox.f64)
    for _ in range({depth}):
        made = v / made
    return made.cast(ox.f32)

@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    ring, outs = cta.ring(stages=2, tiles=(src,)), cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,), outs.put(group, at) as made:
                group.map(again, tile, out=made)

a, b = dev.array(np.ones((32, 32), np.float32)), dev.zeros((32, 32), ox.f32)
encode(kernel[1].bind(ox.TmaDescriptor.tiled(a, box=(32, 32)), ox.TmaDescriptor.tiled(b, box=(32, 32))).verify())
"""
)
_MACHINE: Final = "the interpreter's device code, oxidecopy.engines.cuda.abi"


def _rule(number: int, title: str, why: str, wrong: str = "", right: str = "") -> Rule:
    return Rule(id=f"OX55{number:02}", title=title, error="DeviceCodeError", why=why, source=_MACHINE, wrong=wrong, right=right)


_FLIP: Final = (
    _CODE
    + """
@ox.pipeline(threads={threads})
def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile, made = cta.shared(ox.f32, (32, 16), align=ox.A128), cta.shared(ox.f32, (16, 32), align=ox.A128)
    cta.fill(tile, 1)
    cta.sync()
    cta.transpose(tile, out=made)
    cta.sync()
    cta.store(out, made, (0, 0))

encode(kernel[1].bind(dev.zeros((16, 32), ox.f32)).verify())
"""
)
RULES: Final[tuple[Rule, ...]] = (
    _rule(
        1,
        "A program leaves shared memory for what its threads have to tell each other",
        "Where it cannot be told which phase of its barrier a token names, as of one made in a branch that some iterations take, the "
        "state that its arrival returned is put into shared memory for other threads that wait for it. Blocks with more than 32 classes of "
        "threads count there who has come to a barrier of threads. All that takes a few bytes behind the program's own.",
        _TOKEN.format(more=1008),
        _TOKEN.format(more=896),
    ),
    _rule(
        3,
        "Every integer of device code fits 64 bits",
        "A program means whole numbers without end. Code with registers of 32 bits becomes code with 64 where a launch needs them; what "
        "blocks and loops could make larger than that is refused, not wrapped. Divisors are not 0.",
        _PLACE.format(n="(1 << 63) - 1"),
        _PLACE.format(n="1 << 33"),
    ),
    _rule(
        4,
        "No class of threads keeps more integers at once than there are registers",
        "Loop counters and their ends, indices that are read and answers of tests are kept; anything else is computed again when it is "
        "needed and there is no register left.",
        _INDICES.format(count=70),
        _INDICES.format(count=8),
    ),
    _rule(
        5,
        "The element expression of a map needs at most 8 values at once and 4,096 operations",
        "Where vectors in registers do not hold it, it is computed on a stack of 8. Sums and products are reordered to need less; "
        "quotients cannot be.",
        _QUOTIENTS.format(depth=9),
        _QUOTIENTS.format(depth=3),
    ),
    _rule(
        6,
        "A program has at most 65,535 records of device code",
        "Records are numbered with 16 bits. Loops that Python unrolls make so many; recording them takes half a minute.",
    ),
    _rule(
        7,
        "A tensor copy is issued by one thread",
        "Each thread in scope would copy. The verifier refuses such programs before, so the script is a program text.",
    ),
    _rule(
        8,
        "A launch uses at most 255 descriptors",
        "Records name them with 8 bits.",
    ),
    _rule(
        9,
        "Arrays and constants fit in the launch's parameter beside what else lies there",
        "A long program lies in device memory, and its launch has a parameter of 1,024 bytes.",
    ),
    Rule(
        id="OX5510",
        title="Every index of emitted code fits 64 bits, in every step of its calculation",
        error="DeviceCodeError",
        why="The program means whole numbers without end, which no GPU has: what the launch makes larger than 64 bits would wrap silently.",
        source="C++: signed overflow is undefined",
        wrong=_WIDE.format(factor="n * 64"),
        right=_WIDE.format(factor="64"),
    ),
    _rule(
        11,
        "The same threads meet at a barrier of threads each time",
        "Device code counts the warps that come, and leaves out threads that have nothing to do, so it must know who comes. What the "
        "recorder makes names all threads in scope, so the script is a program text.",
    ),
    _rule(
        30,
        "Plain accesses to tiles know their swizzle",
        "Device code computes the 32B, 64B and 128B modes itself; the modes with wider atoms are left to copies.",
    ),
    _rule(
        32,
        "Wide im2col copies run on the simulator, and as emitted code",
        "The kernels of this version have none.",
    ),
    _rule(
        69,
        "Products on tensor cores are computed by `contract` as a whole, and by the kernels of this package",
        "Sums live in registers of a warpgroup from the first product to the epilogue, which no sequence of ops could keep there. Emitted "
        "code has a function for each PTX instruction, and none for a mainloop. Typed pipelines record `contract`.",
    ),
    Rule(
        id="OX5533",
        title="Device code with transposes and reductions has at most 21 warps, integers of 32 bits, and tokens of known phase",
        error="DeviceCodeError",
        why="The kernels that have them keep a block of a tile in 96 registers of each thread, and a multiprocessor has 65,536.",
        source="oxidecopy.engines.cuda.abi: RESHAPE_WARPS",
        wrong=_FLIP.format(threads=704),
        right=_FLIP.format(threads=672),
    ),
)
