"""Pages of the verifier's rules about the launch, the shared layout, the bounds of a proof, and its warnings."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import BY_TEXT, WARNS, Twins, scripts, twins

_LAYOUT: Final = BY_TEXT + "the recorder lays out shared memory so that it holds."
_HOST: Final = BY_TEXT + "`@ox.pipeline`, the grid in brackets or the descriptor's validator refuses it first."


def _rule(number: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = shown if shown is not None else ("", "")
    return Rule(id=number, title=title, error="VerificationError", why=why, source=source, wrong=wrong, right=right)


LAUNCH_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3060",
        "Tiles of tensor copies lie at multiples of 128 bytes, in every stage and part",
        "The hardware faults on any other shared address.",
        "measured: fault 716",
        scripts(
            """
            @ox.pipeline(threads=128)
            def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
                tile = cta.shared(ox.f32, (4, <gap>), align=ox.A128)
                full = cta.barrier().init(1)
                with cta.elect() as leader:
                    part = tile.part(cta.block_idx.x, of=4)
                    token = full.arrive_expect_tx(leader, part.nbytes)
                    src.g2s(leader, part, (0, 0), token)
                full.wait(token)

            a = dev.array(np.ones((64, 64), np.float32))
            kernel[2](ox.TmaDescriptor.tiled(a, box=(1, <gap>)))
            """,
            "16",
            "32",
        ),
    ),
    _rule(
        "OX3061",
        "A swizzled tile lies at a multiple of its pattern, in every stage",
        "The pattern hangs on address bits: off its repeat the rows come out rotated, without a fault. " + _LAYOUT,
        "PTX 5.5.7; measured: 256, 512 and 1,024 bytes for 32B, 64B and 128B",
    ),
    _rule(
        "OX3062",
        "Barriers lie at multiples of 8 bytes",
        "The hardware faults on any other address. " + _LAYOUT,
        "PTX mbarrier; measured: fault 716",
    ),
    _rule(
        "OX3063",
        "Tiles and barriers fit into the shared memory of one CTA",
        "The launch would be refused by the driver.",
        "CUDA Programming Guide, compute capabilities: 227 KiB on 9.0 and 10.x, 99 KiB on 12.x",
        twins("cta.shared(src, stages=<gap>)", "15", "14"),
    ),
    _rule(
        "OX3064",
        "A tile holds all that a copy writes into it",
        "The copy moves its whole box whatever the tile's size. Swizzled rows lie one span apart, so short rows take more room than "
        "their bytes. " + _LAYOUT,
        "PTX tensor copies; measured: row pitch under a swizzle",
    ),
    _rule(
        "OX3065",
        "Tiles and barriers do not overlap",
        "Two objects at one place destroy each other. " + _LAYOUT,
        "shared-memory layout of the program",
    ),
    _rule(
        "OX3066",
        "The maps of a tile agree with its element type, rows and swizzle",
        "Plain accesses and copies would see different elements at one address. " + _LAYOUT,
        "PTX 5.5.7: the swizzle is a property of the map",
    ),
    _rule(
        "OX3070",
        "Grid dimensions are 1 or more, and within CUDA's limits",
        "There is nothing to launch. " + _HOST,
        "CUDA Programming Guide, technical specifications",
    ),
    _rule(
        "OX3071",
        "The cluster divides the grid",
        "The driver refuses the launch (CUDA_ERROR_INVALID_CLUSTER_SIZE).",
        "CUDA Programming Guide, thread block clusters; measured: error 912",
        scripts(
            """
            @ox.pipeline(threads=32, cluster=(2, 1))
            def kernel(cta: ox.ClusterCta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
                cta.cluster_sync()

            kernel[<gap>](dev.empty((64,), ox.f32))
            """,
            "3",
            "4",
        ),
    ),
    _rule("OX3072", "A cluster has at most 16 CTAs", "No GPU launches more. " + _HOST, "CUDA driver API, non-portable cluster size"),
    _rule(
        "OX3073",
        "A CTA has at most 1,024 threads, and roles name threads it has",
        "The driver refuses the launch. " + _HOST,
        "CUDA Programming Guide, technical specifications",
    ),
    _rule("OX3074", "Ops and element types exist on the device", "The instruction would be illegal. " + _HOST, "PTX target tables"),
    _rule(
        "OX3075",
        "Extents stay within 2^31 on compute capability 9.0",
        "Every copy through such a map faults, even at coordinate 0. " + _HOST,
        "measured: fault 715",
    ),
    _rule(
        "OX3076",
        "Every parameter is bound to what the program was recorded for",
        "The proof would be about other boxes. " + _HOST,
        "the program's parameters",
    ),
    _rule(
        "OX3077",
        "A launch is one that the calls of the pipeline make sense for",
        "An order that gives each CTA one box leaves the others out when there are more boxes than CTAs: nothing would say so.",
        "ox.order.once",
        scripts(
            """
            @ox.pipeline(threads=32)
            def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D1]) -> None:
                for at in cta.tiles(src, order=ox.order.once):
                    cta.sync()

            kernel[<gap>](ox.TmaDescriptor.tiled(dev.array(np.ones(256, np.float32)), box=(64,)))
            """,
            "3",
            "4",
        ),
    ),
    _rule(
        "OX3090",
        "The proof looks at 4,096 boxes of block indices at most",
        "What runs is checked for each set of blocks that run alike. A program whose every block runs differently has too many of them "
        "for a large grid.",
        "bound of the verifier",
        scripts(
            """
            @ox.pipeline(threads=32)
            def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
                for i in cta.range(cta.block_idx.x % <gap>):
                    cta.sync()

            kernel[20_000](dev.empty((64,), ox.f32))
            """,
            "10_000",
            "8",
        ),
    ),
    _rule(
        "OX3091",
        "The proof takes 100,000 steps of one cluster at most",
        "Loops are followed until the state repeats. One that never repeats, and is long, cannot be followed to its end.",
        "bound of the verifier",
        scripts(
            """
            @ox.pipeline(threads=32)
            def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
                bar = cta.barrier().init(1_000_000)
                with cta.elect():
                    for i in cta.range(<gap>):
                        bar.arrive()

            kernel[1](dev.empty((64,), ox.f32))
            """,
            "200_000",
            "100",
        ),
    ),
    _rule(
        "OX3092",
        "Divisors are not 0",
        "The value would be undefined.",
        "PTX div, rem: undefined for 0",
        twins(
            """
            tiles = cta.shared(src, stages=4)
            cta.fill(tiles[cta.block_idx.x % <gap>], 0.0)
            """,
            "(n - 4)",
            "n",
        ),
    ),
    _rule(
        "OX3101",
        "Coordinates count elements, not boxes",
        "A bare block index moves a wide box by one element per block, so that blocks overlap almost wholly. " + WARNS,
        "PTX tensor copies: coordinates in elements",
    ),
    _rule(
        "OX3102",
        "Every role does something in some CTA",
        "A role that never runs is often a condition the wrong way round, or a loop without iterations. " + WARNS,
        "the program and its launch",
    ),
    _rule(
        "OX3103",
        "A store writes only bytes of its own rows",
        "At the inner edge stores are cut in steps of 16 bytes, so up to 15 bytes behind a row are written, which in a view of a wider "
        "array are live data. " + WARNS,
        "measured: 929 stores",
    ),
    _rule(
        "OX3104",
        "Groups are waited for by the thread that committed them",
        "Bulk groups belong to a thread: another one's wait returns at once. " + WARNS,
        "PTX cp.async.bulk.wait_group",
    ),
    _rule(
        "OX3105",
        "Clusters of more than 8 CTAs are not portable",
        "Not every GPU launches them, and only with an attribute set. " + WARNS,
        "CUDA Programming Guide, thread block clusters",
    ),
)
