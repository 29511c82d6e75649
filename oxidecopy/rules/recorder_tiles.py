"""Pages of the recorder's rules about tiles, copies and plain accesses."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins, scripts, twins

_TENSOR: Final = "PTX ISA 5.5 and 9.7.9.27, tensor copies"


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins) -> Rule:
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=shown.wrong, right=shown.right)


_LOAD: Final = """
    tile = cta.shared(<gap>)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)
"""
_FILL: Final = """
    tile = cta.shared(src)
    <gap>
    cta.sync()
    cta.store(out, tile, (cta.block_idx.y * 64, cta.block_idx.x * 64))
"""

TILE_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1010",
        "AlignmentError",
        "A tile is aligned as its copies need it",
        "Tensor copies fault on shared addresses that are no multiples of 128 bytes. Under a swizzle the pattern follows the address, so "
        "that a tile aligned to less than the pattern's repeat would be read in another order than it was written in.",
        f"{_TENSOR}; measured: fault 716",
        twins(_LOAD, "ox.f32, (64, 64), align=ox.A16", "ox.f32, (64, 64), align=ox.A128"),
    ),
    _rule(
        "OX1011",
        "DTypeError",
        "Tile, map, array and value have one element type",
        "Copies do not convert: the bytes of one type would be read as another.",
        _TENSOR,
        twins(_LOAD, "ox.f16, (64, 64), align=ox.A128", "ox.f32, (64, 64), align=ox.A128"),
    ),
    _rule(
        "OX1012",
        "ShapeError",
        "A tile has the shape of its map's box",
        "The hardware always moves the whole box: into a smaller tile it would overwrite what lies behind it.",
        _TENSOR,
        twins(_LOAD, "ox.f32, (64, 32), align=ox.A128", "ox.f32, (64, 64), align=ox.A128"),
    ),
    _rule(
        "OX1013",
        "ShapeError",
        "Coordinates and tile have the rank of the array",
        "Each dimension has a coordinate, outermost first, in elements. The instruction for another rank faults when it meets the map.",
        f"{_TENSOR}; measured: fault 715",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
                src.g2s(leader, tile, <gap>, token)
            full.wait(token)
            """,
            "(0,)",
            "(0, 0)",
        ),
    ),
    _rule(
        "OX1016",
        "DTypeError",
        "A reduction is one that its element type has",
        "The hardware has no such instruction: it faults. f32 can be added, but has no minimum.",
        "PTX ISA, cp.reduce.async.bulk.tensor; measured for every pair of operation and type",
        twins(
            """
            tile = cta.shared(src)
            cta.fill(tile, 1)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                src.reduce(ox.reduce.<gap>, leader, tile, (cta.block_idx.y * 64, cta.block_idx.x * 64))
                leader.commit_group()
                leader.wait_group(0)
            """,
            "min",
            "add",
        ),
    ),
    _rule(
        "OX1037",
        "RecordError",
        "A tile is copied with one swizzle mode",
        "A swizzle says where in the tile an element lies. What one mode wrote another would read in a different order.",
        f"{_TENSOR}: swizzle",
        scripts(
            """
            @ox.pipeline(threads=128)
            def pipe(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
                tile = cta.shared(src)
                full = cta.barrier().init(1)
                with cta.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile)
                    src.g2s(leader, tile, (0, 0), token)
                    full.wait(token)
                    dst.s2g(leader, tile, (0, 0))
                    leader.commit_group()
                    leader.wait_group(0)

            a = dev.array(np.ones((64, 32), np.float32))
            src = ox.TmaDescriptor.tiled(a, box=(64, 32), swizzle=<gap>)
            dst = ox.TmaDescriptor.tiled(dev.empty((64, 32), ox.f32), box=(64, 32), swizzle=ox.Swizzle128B)
            pipe[1](src, dst)
            """,
            "ox.SwizzleNone",
            "ox.Swizzle128B",
        ),
    ),
    _rule(
        "OX1038",
        "ShapeError",
        "A tile is cut into equal parts of its outermost dimension",
        "Each part is a tile of its own: whole rows, all parts of one size.",
        "the recorder: `tile.part`",
        twins(
            """
            tile = cta.shared(src)
            cta.fill(tile.part(0, of=<gap>), 0)
            """,
            "3",
            "4",
        ),
    ),
    _rule(
        "OX1042",
        "ShapeError",
        "A plain index is within its array",
        "As with a list, but at once: a symbolic index is checked by the verifier.",
        "the recorder: `tiles[i]`, `bars[i]`, `tile.part(i, of=n)`",
        twins(
            """
            tiles = cta.shared(src, stages=2)
            cta.fill(tiles[<gap>], 0)
            """,
            "2",
            "1",
        ),
    ),
    _rule(
        "OX1048",
        "RecordError",
        "The number of stages is a constant, from 1 to 1,024",
        "Shared memory is laid out while the pipeline is recorded.",
        "the recorder: `cta.shared(desc, stages=n)`, `cta.barriers(n)`",
        twins(
            """
            tiles = cta.shared(src, stages=<gap>)
            """,
            "0",
            "2",
        ),
    ),
    _rule(
        "OX1056",
        "DTypeError",
        "A tile is made of a descriptor or of an element type",
        "numpy's dtypes have no name for most element types: `ox.f32`, `ox.bf16` and the others name them.",
        "the recorder: `cta.shared`",
        twins(_LOAD, "np.float32, (64, 64), align=ox.A128", "ox.f32, (64, 64), align=ox.A128"),
    ),
    _rule(
        "OX1057",
        "ShapeError",
        "A box is a tuple of 1 to 5 positive integers",
        "They are its extents in elements, outermost dimension first.",
        f"{_TENSOR}: rank",
        twins(_LOAD, "ox.f32, (64, 128 / 2), align=ox.A128", "ox.f32, (64, 128 // 2), align=ox.A128"),
    ),
    _rule(
        "OX1061",
        "ShapeError",
        "`iota` counts along an axis of the tile",
        "Axis 0 is the outermost dimension.",
        "the recorder: `cta.iota`",
        twins(_FILL, "cta.iota(tile, 2)", "cta.iota(tile, 1)"),
    ),
    _rule(
        "OX1064",
        "RecordError",
        "The number of groups left pending is a constant, from 0 to 15",
        "It is part of the instruction.",
        "PTX ISA, cp.async.bulk.wait_group: an immediate; the recorder's bound",
        twins(
            """
            with cta.elect() as leader:
                leader.wait_group(<gap>)
            """,
            "16",
            "15",
        ),
    ),
    _rule(
        "OX1072",
        "DTypeError",
        "Element types are named, not called",
        "They stand for what the hardware moves; there are no values of them in Python. Plain numbers are rounded where they are used.",
        "the typed surface",
        twins(_FILL, "cta.fill(tile, ox.f32(0.5))", "cta.fill(tile, 0.5)"),
    ),
    _rule(
        "OX1066",
        "DTypeError",
        "A fill value fits the element type",
        "Integers are whole and in range; floats take any number, which is rounded.",
        "the recorder: `cta.fill`",
        twins(_FILL, 'cta.fill(tile, "1")', "cta.fill(tile, 1)"),
    ),
)
