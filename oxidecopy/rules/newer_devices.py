"""Pages of the rules about what compute capability 10.0 brought: packed elements, swizzles with a flip, wide im2col copies."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins, scripts

_PACKED: Final = "PTX ISA 5.5.1.1, packed types, and 9.7.9.27, restrictions on tensor copies"
_LOADED: Final = """
dev = ox.Device.open("sim", arch=100)

@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.u4x16_align8b, ox.D2], out: ox.GlobalArray[ox.u8, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)
    cta.store(out, <gap>, (0, 0))

a = dev.zeros((8, 64), ox.u4x16_align8b)
kernel[1](ox.TmaDescriptor.tiled(a, box=(8, 64)), dev.zeros((8, 32), ox.u8))
"""
_COPIED: Final = """
from typing import Any

dev = ox.Device.open("sim", arch=100)

@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[Any, ox.D2], dst: ox.TmaDescriptor[Any, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0), token)
        full.wait(token)
        dst.s2g(leader, {tile}, (0, 0))
        leader.commit_group()
        leader.wait_group(0)

a, b = dev.zeros((8, 128), {source}), dev.zeros((8, 128), {target})
kernel[1](*(ox.TmaDescriptor.tiled(x, box=(8, 128), swizzle={swizzle}) for x in (a, b)))
"""
_WIDE: Final = """
dev = ox.Device.open("sim", arch=100)

@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, src: ox.Im2colWideDescriptor[ox.f16, ox.D4]) -> None:
    tile = cta.shared(src, halo=2)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0, 0, 0), token, halo=<gap>)
    full.wait(token)

a = dev.zeros((2, 8, 8, 64), ox.f16)
kernel[1](ox.TmaDescriptor.im2col_wide(a, lower=0, upper=0, channels=64, pixels=16, swizzle=ox.Swizzle128B))
"""


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins) -> Rule:
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=shown[0], right=shown[1])


def _copied(wrong: dict[str, str], right: dict[str, str]) -> Twins:
    usual = {"tile": "tile", "source": "ox.u8", "target": "ox.u8", "swizzle": "ox.Swizzle128B"}
    return Twins(*(_COPIED.format(**usual | change).lstrip("\n") for change in (wrong, right)))


RECORDER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1049",
        "DTypeError",
        "Plain accesses take packed elements as the bytes that they lie in",
        "Elements of 4 and 6 bits have no address of their own: only tensor copies know them. `tile.bytes` is the same tile as bytes.",
        _PACKED,
        scripts(_LOADED, "tile", "tile.bytes"),
    ),
    _rule(
        "OX1165",
        "DTypeError",
        "4-bit elements with gaps are loaded, not stored",
        "Tensor copies put a gap of 8 bytes behind each 8 bytes of u4x16_align16b, and there is no store that takes it out again.",
        _PACKED,
        _copied(
            {"source": "ox.u4x16_align16b", "target": "ox.u4x16_align16b"},
            {"source": "ox.u4x16_align8b", "target": "ox.u4x16_align8b"},
        ),
    ),
    _rule(
        "OX1166",
        "ShapeError",
        "The halo of a wide im2col copy is a plain number of pixels",
        "It says how many rows the tile has, so it is known while the pipeline is recorded: 0 to 511, in mode w128 0 to 31.",
        "PTX ISA 5.5.5, wHalo",
        scripts(_WIDE, "600", "2"),
    ),
)
VERIFIER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3098",
        "VerificationError",
        "A store goes through what stores have",
        "The swizzle that flips 8 bytes, and 4-bit elements with gaps, are for loads alone.",
        "PTX ISA 5.5.7, 32-byte atomicity with 8-byte flip, and 9.7.9.27, restrictions on tensor copies",
        _copied({"swizzle": "ox.Swizzle128BAtom32BFlip8B"}, {"swizzle": "ox.Swizzle128BAtom32B"}),
    ),
    _rule(
        "OX3099",
        "VerificationError",
        "6-bit elements are stored from a tile of their own",
        "Loads leave 12 packed bytes and a gap of 4, stores take one value from each of 16 bytes: what was loaded is no tile to store.",
        _PACKED,
        _copied(
            {"source": "ox.u6x16_align16b", "target": "ox.u6x16_align16b", "tile": "tile.bytes"},
            {"target": "ox.u6x16_align16b"},
        ),
    ),
)
