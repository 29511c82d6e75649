"""Pages of the verifier's rules about shared tiles, copies, and how a CTA ends."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import BY_TEXT, Twins, twins


def _rule(number: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = shown if shown is not None else ("", "")
    return Rule(id=number, title=title, error="VerificationError", why=why, source=source, wrong=wrong, right=right)


_STORE: Final = """
with cta.elect() as leader:
    src.s2g(leader, tile, (0, 0))
    leader.commit_group()
    leader.wait_group_read(0)
"""

TILE_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3040",
        "A loaded tile is read only after its load has landed",
        "The copy runs on its own. Before the wait for its phase the tile holds what was there before, or half of each.",
        "PTX cp.async.bulk.tensor: completion is observed by a wait on the mbarrier",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, 0), token)
                <gap>
            cta.sync()
            cta.store(out, tile, (0, 0))
            full.wait_phase(0)
            """,
            "",
            "full.wait_phase(0)",
        ),
    ),
    _rule(
        "OX3041",
        "What is read was written",
        "Shared memory starts with whatever the block before left in it.",
        "PTX: shared memory is not initialised",
        twins(
            """
            tile = cta.shared(src)
            <gap>
            cta.sync()
            cta.store(out, tile, (0, 0))
            """,
            "",
            "cta.fill(tile, 1.0)",
        ),
    ),
    _rule(
        "OX3042",
        "A tile is not written while a load into it is in flight",
        "Both write at once; which one wins is chance.",
        "PTX: the copy is not ordered with later instructions before its completion is observed",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, 0), token)
                <gap>
                cta.fill(tile, 0.0)
            full.wait_phase(0)
            """,
            "",
            "full.wait_phase(0)",
        ),
    ),
    _rule(
        "OX3043",
        "A tile is not written while a store still reads it",
        "The store sends what it finds when it gets there. Wait for its group in the thread that issued it, then sync.",
        "PTX cp.async.bulk.wait_group.read; measured: without the wait 72 % of the words were wrong",
        twins(
            """
            tile = cta.shared(src)
            cta.fill(tile, 1.0)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                src.s2g(leader, tile, (0, 0))
                leader.commit_group()
                <gap>
            cta.sync()
            cta.fill(tile, 2.0)
            with cta.elect() as leader:
                leader.wait_group_read(0)
            """,
            "",
            "leader.wait_group_read(0)",
        ),
    ),
    _rule(
        "OX3044",
        "A tile is not overwritten while threads may still read it",
        "A slow reader gets the next tile's data.",
        "PTX: write after read needs an order between the reader and the writer",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            for i in cta.range(n):
                with cta.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile.nbytes)
                    src.g2s(leader, tile, (0, 0), token)
                full.wait(token)
                cta.store(out, tile, (0, 0))
                <gap>
            """,
            "",
            "cta.sync()",
        ),
    ),
    _rule(
        "OX3045",
        "A sync stands between a plain write and another thread's access",
        "Threads run in no order among themselves, those of one group included.",
        "PTX memory model: causality order",
        twins(
            "tile = cta.shared(src)\ncta.fill(tile, 1.0)\ncta.fence_proxy_async()\n<gap>" + _STORE,
            "",
            "cta.sync()",
        ),
    ),
    _rule(
        "OX3046",
        "Plain writes are fenced before a copy reads or overwrites them",
        "Copies go through the async proxy, which need not see what plain stores wrote until the writing threads have run a proxy fence. "
        "Each writer fences, before the sync.",
        "PTX fence.proxy.async; measured: without it 1.3 % of the words were stored stale",
        twins(
            "tile = cta.shared(src)\ncta.fill(tile, 1.0)\n<gap>\ncta.sync()" + _STORE,
            "",
            "cta.fence_proxy_async()",
        ),
    ),
    _rule(
        "OX3047",
        "Stage and part numbers stay inside the tile",
        "The access would hit the neighbour in shared memory, or fault.",
        "PTX: shared addresses inside the CTA's window",
        twins(
            """
            tiles = cta.shared(src, stages=2)
            for i in cta.range(n):
                cta.fill(tiles[<gap>], 0.0)
                cta.sync()
            """,
            "i",
            "i % 2",
        ),
    ),
    _rule(
        "OX3050",
        "Stores are committed and waited for before the end",
        "Shared memory must live until the store has read it.",
        "CUDA Programming Guide, TMA: wait_group.read before exit",
        twins(
            """
            tile = cta.shared(src)
            cta.fill(tile, 1.0)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                src.s2g(leader, tile, (0, 0))
                leader.commit_group()
                <gap>
            """,
            "",
            "leader.wait_group_read(0)",
        ),
    ),
    _rule(
        "OX3051",
        "Loads are waited for before the end",
        "A copy still under way writes into shared memory that may already belong to the next block.",
        "CUDA Programming Guide; no documented guarantee for copies in flight at exit",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, 0), token)
            <gap>
            """,
            "",
            "full.wait(token)",
        ),
    ),
    _rule(
        "OX3052",
        "A CTA lives until its peers' arrivals have come",
        "An arrival on a CTA that has ended goes to memory that is gone.",
        "CUDA Programming Guide, distributed shared memory: the target CTA must exist",
        twins(
            """
            bar = cta.barrier().init(1)
            cta.cluster_sync()
            with cta.elect():
                bar.arrive_remote(1 - cta.cta_rank)
            <gap>
            """,
            "",
            "cta.cluster_sync()",
            cluster=True,
        ),
    ),
    _rule(
        "OX3053",
        "A bulk copy is issued by one thread",
        "Every thread that runs it issues it anew. " + BY_TEXT + "the recorder wants a leader.",
        "PTX cp.async.bulk: each executing thread issues a copy",
    ),
    _rule(
        "OX3054",
        "A reduction exists for the map's element type",
        "The hardware faults on any other pair. " + BY_TEXT + "types and the recorder refuse the pair first.",
        "PTX cp.reduce.async.bulk.tensor; measured: 71 pairs fault with 715",
    ),
    _rule(
        "OX3080",
        "Innermost coordinates are multiples of 16 bytes",
        "The hardware faults, for loads and stores, inside and outside the tensor.",
        "measured: fault 715 for every element size and swizzle",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, cta.block_idx.x * <gap>), token)
            full.wait(token)
            """,
            "62",
            "64",
            grid="2",
        ),
    ),
    _rule(
        "OX3081",
        "Stores and reductions start at coordinates of 0 or more",
        "The hardware faults on a negative start, even when nothing would be written. Loads may start outside.",
        "measured: fault 715",
        twins(
            """
            tile = cta.shared(src)
            cta.fill(tile, 1.0)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                src.s2g(leader, tile, (<gap>, 0))
                leader.commit_group()
                leader.wait_group_read(0)
            """,
            "cta.block_idx.y * 64 - 64",
            "cta.block_idx.y * 64",
        ),
    ),
    _rule(
        "OX3082",
        "Coordinates fit 32 bits",
        "They are signed 32-bit numbers; beyond that they wrap to another place.",
        "PTX cp.async.bulk.tensor: s32 coordinates",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (<gap>, 0), token)
            full.wait(token)
            """,
            "cta.block_idx.y * 3_000_000_000",
            "cta.block_idx.y * 64",
            grid="1, 2",
        ),
    ),
    _rule(
        "OX3083",
        "A multicast mask names CTAs of the cluster only",
        "A bit beyond the cluster faults.",
        "PTX cp.async.bulk.tensor multicast; measured: fault 719",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            cta.cluster_sync()
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                with cta.when(cta.cta_rank == 0):
                    src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=<gap> + cta.cta_rank)
            full.wait(token)
            cta.cluster_sync()
            """,
            "0b111",
            "0b11",
            cluster=True,
        ),
    ),
    _rule(
        "OX3084",
        "A remote op names a CTA of the cluster",
        "There is no such shared memory.",
        "PTX mapa: rank below the cluster size",
        twins(
            """
            bar = cta.barrier().init(1)
            cta.cluster_sync()
            with cta.elect():
                bar.arrive_remote(<gap>)
            cta.cluster_sync()
            """,
            "cta.cta_rank + 1",
            "(cta.cta_rank + 1) % 2",
            cluster=True,
        ),
    ),
    _rule(
        "OX3085",
        "A copy has one coordinate per dimension of its map",
        "The hardware faults on a rank that differs. " + BY_TEXT + "types and the recorder refuse it first.",
        "measured: fault 715",
    ),
)
