"""Pages of the verifier's rules about global memory: where the stores of a whole launch land."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import WARNS, Twins, scripts, twins

_ORDER: Final = "PTX memory consistency model: bulk copies are not ordered among each other; blocks of a grid run in any order"
_STORE: Final = """
tile = cta.shared(src)
cta.fill(tile, 1.0)
cta.fence_proxy_async()
cta.sync()
with cta.elect() as leader:
"""


def _rule(number: str, title: str, why: str, source: str, shown: Twins) -> Rule:
    wrong, right = shown
    return Rule(id=number, title=title, error="VerificationError", why=why, source=source, wrong=wrong, right=right)


OUTPUT_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3201",
        "Each element is stored by one CTA",
        "Blocks run in any order, and their stores land in any order: which value stays is left to chance. Mostly a coordinate does not "
        "tell the blocks apart. Reductions of one operation may meet.",
        _ORDER,
        twins(
            "tile = cta.shared(src)\ncta.fill(tile, 1.0)\ncta.sync()\ncta.store(out, tile, (cta.block_idx.y * 64, <gap>))",
            "0",
            "cta.block_idx.x * 64",
            grid="2, 2",
        ),
    ),
    _rule(
        "OX3202",
        "A store to where this thread stored before waits for the earlier one",
        "Bulk stores are not ordered, not even those of one thread: `wait_group_read` says that the tile was read, only `wait_group` says "
        "that the result is written.",
        "PTX cp.async.bulk.wait_group: `.read` waits for the reads alone",
        twins(
            _STORE
            + """    for i in cta.range(2):
        src.s2g(leader, tile, (cta.block_idx.y * 64, cta.block_idx.x * 64))
        leader.commit_group()
        <gap>""",
            "leader.wait_group_read(0)",
            "leader.wait_group(0)",
        ),
    ),
    _rule(
        "OX3203",
        "What a launch stores is loaded by the CTA alone that stored it, once it is written",
        "It may get old or new elements: nothing orders blocks. Working in place is fine where each block loads what it stores itself, and "
        "before it does; to load it again the store must have been waited for, by `wait_group` and not by `wait_group_read`.",
        _ORDER,
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (<gap>, cta.block_idx.x * 64), token)
                full.wait(token)
                src.s2g(leader, tile, (cta.block_idx.y * 64, cta.block_idx.x * 64))
                leader.commit_group()
                leader.wait_group(0)
            """,
            "(1 - cta.block_idx.y) * 64",
            "cta.block_idx.y * 64",
            grid="2, 2",
        ),
    ),
    _rule(
        "OX3204",
        "An output shares no memory with other views",
        "Two views of one memory have the same elements at different coordinates, so that nothing can be said about loads and stores that "
        "meet. The very same view may be bound twice.",
        "the launch's arguments: addresses, extents and strides",
        scripts(
            """
            @ox.pipeline(threads=32)
            def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
                tile = cta.shared(src)
                full = cta.barrier().init(1)
                with cta.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile.nbytes)
                    src.g2s(leader, tile, (0, 0), token)
                full.wait(token)
                cta.store(out, tile, (0, 0))

            a, b = dev.zeros((9, 8), ox.f32), dev.zeros((9, 8), ox.f32)
            kernel[1](ox.TmaDescriptor.tiled(a[:8], box=(8, 8)), <gap>[1:])
            """,
            "a",
            "b",
        ),
    ),
    _rule(
        "OX3205",
        "A store's edge touches no elements but its own",
        "At the inner edge stores and reductions are cut in steps of 16 bytes: up to 15 bytes behind each row are written. Behind an "
        "array's own rows that is padding; behind those of a view that ends in the middle of a unit it is the array that it is a view of.",
        "measured: 929 stores",
        scripts(
            """
            @ox.pipeline(threads=32)
            def kernel(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
                tile = cta.shared(dst)
                cta.fill(tile, 1.0)
                cta.fence_proxy_async()
                cta.sync()
                with cta.elect() as leader:
                    dst.s2g(leader, tile, (0, 0))
                    leader.commit_group()
                    leader.wait_group_read(0)

            a = dev.zeros((8, 32), ox.f32)
            kernel[1](ox.TmaDescriptor.tiled(a[:, :<gap>], box=(8, 32)))
            """,
            "30",
            "28",
        ),
    ),
    _rule(
        "OX3206",
        "A thread stores to what it loads only when the load has landed",
        "Copies run on their own: a load that was issued before the store may still read what the store left.",
        "PTX cp.async.bulk: completion is observed by a wait on the mbarrier",
        twins(
            """
            tile, other = cta.shared(src), cta.shared(src)
            cta.fill(other, 1.0)
            cta.fence_proxy_async()
            cta.sync()
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, 0), token)
                <gap>
                src.s2g(leader, other, (0, 0))
                leader.commit_group()
                leader.wait_group(0)
            full.wait_phase(0)
            """,
            "",
            "full.wait_phase(0)",
        ),
    ),
    Rule(
        id="OX3106",
        title="Every element of an output is stored",
        error="VerificationError",
        why="What no store reaches keeps what it held before, which in new memory is anything. Often the grid is a block short, or a loop "
        "ends early. " + WARNS,
        source="the program and its launch",
    ),
    Rule(
        id="OX3107",
        title="Whether stores meet is known",
        error="VerificationError",
        why="Coordinates that are read from memory, and very many boxes, are not compared: then whoever wrote the program must know "
        "that no two stores meet. Plain stores of several threads of a CTA to one place are defined where these threads meet in "
        "between (PTX's causality order: `bar.sync` orders what was written before it with what is written behind it), and "
        "where each thread stores its own elements again (program order); that is accepted. Otherwise they are a race, whose "
        "outcome PTX leaves open, unless an mbarrier orders them, which is not followed for global memory: so it is a warning, "
        "and no error. " + WARNS,
        source="PTX memory consistency model: causality order, data races; the program and its launch",
    ),
    Rule(
        id="OX3108",
        title="A window of a replaced descriptor has elements",
        error="VerificationError",
        why="Where its ends are read from memory, only the launch can tell: it looks, and ends with an error where there are none. "
        + WARNS,
        source="a map cannot be empty: extent 0 is stored as 2^32 - 1 (measured)",
    ),
    Rule(
        id="OX3109",
        title="An epilogue's arrays reach as far as its result",
        error="VerificationError",
        why="Behind their end an epilogue reads zeros, as loads do. An array that is shorter than the result is mostly the wrong one, or "
        "given by `per_row` where it belongs to the columns. " + WARNS,
        source="the program and its launch",
    ),
)
