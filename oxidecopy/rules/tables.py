"""Pages of the rules about tables of descriptors, from making one to copying through an entry."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins, scripts

_TABLES: Final = "tables of descriptors: `ox.DescriptorTable`"
_MAKE: Final = "def tiled(*shape, box=(8, 8)):\n    return ox.TmaDescriptor.tiled(dev.zeros(shape, ox.f32), box=box)\n"
_KERNEL: Final = (
    _MAKE
    + """
@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, src: ox.DescriptorTable[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src[0])
    full = cta.barrier().init(1)
    <gap>
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[i].g2s(leader, tile, (0, 0), token)
    full.wait(token)

kernel[{blocks}](ox.DescriptorTable([tiled(16, 8), tiled(40, 24)]))
"""
)
_BOXES: Final = (
    _MAKE
    + """
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def kernel(cta: ox.Cta, src: ox.DescriptorTable[ox.f32, ox.D2], dst: ox.DescriptorTable[ox.f32, ox.D2]) -> None:
    i = cta.block_idx.x
    ring = cta.ring(stages=2, tiles=(src[0],))
    with cta.producer() as leader:
        for at in cta.tiles(src[<gap>]):
            with ring.produce(leader) as (slot,):
                slot.load(src[0], at)
    with cta.storer() as leader:
        for at in cta.tiles(src[<gap>]):
            ring.forward(leader, dst[0], at)

kernel[2](ox.DescriptorTable([tiled(16, 8), tiled(40, 24)]), ox.DescriptorTable([tiled(16, 8), tiled(40, 24)]))
"""
)


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins) -> Rule:
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=shown.wrong, right=shown.right)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1150",
        "ShapeError",
        "A table is indexed by entries that it has, counted from 0",
        "Beside a table lies other memory, which a copy would take for a map. Plain numbers are checked at once, recorded ones by the "
        "verifier (OX3089), over all that they can be.",
        _TABLES,
        scripts(_KERNEL.format(blocks=2), "i = 2", "i = 1"),
    ),
    _rule(
        "OX1151",
        "ScopeError",
        "The boxes that are shared out are those of one array for the whole launch",
        "A share is computed by dividing by the number of boxes, and divisors are one value for the launch. Entries of a table have arrays "
        "of different sizes.",
        _TABLES,
        scripts(_BOXES, "i", "0"),
    ),
    _rule(
        "OX2030",
        "DescriptorError",
        "A table holds 1 to 1,024 descriptors",
        "A proof looks at every entry that an index can name, and a launch encodes every one of them.",
        _TABLES,
        scripts(_MAKE + "ox.DescriptorTable([<gap>])\n", "", "tiled(16, 8)"),
    ),
    _rule(
        "OX2031",
        "DescriptorError",
        "The entries of a table agree in all but extents, strides and address",
        "Which entry a copy goes through may be known only while the pipeline runs. The bytes that it announces, the tile it fills and "
        "the layout there are written down before.",
        "PTX cp.async.bulk.tensor: the bytes that a copy reports follow from the map's box",
        scripts(_MAKE + "ox.DescriptorTable([tiled(16, 8), tiled(40, 24<gap>)])\n", ", box=(16, 8)", ""),
    ),
    _rule(
        "OX2032",
        "DescriptorError",
        "The entries of a table point to arrays of one device",
        "A launch runs on one device, and reads that device's memory.",
        _TABLES,
        scripts(
            _MAKE
            + "there = <gap>.zeros((16, 8), ox.f32)\n"
            + "ox.DescriptorTable([tiled(16, 8), ox.TmaDescriptor.tiled(there, box=(8, 8))])\n",
            'ox.Device.open("sim")',
            "dev",
        ),
    ),
)
VERIFIER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3089",
        "VerificationError",
        "Every entry that a copy can go through is in its table",
        "The index is taken over all that it can be in this launch: over all blocks and iterations, and up to the bound of `load_index`.",
        _TABLES,
        scripts(_KERNEL.format(blocks=3), "i = cta.block_idx.x", "i = ox.minimum(cta.block_idx.x, len(src) - 1)"),
    ),
)
