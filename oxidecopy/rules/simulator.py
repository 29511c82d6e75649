"""Rules of the simulator: what ends a run, what a launch must fulfil, and what is found beside a result.

The verifier refuses nearly all of these before a launch. They show on programs that run without it (`explore`), and they are how the two
are checked against each other.
"""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.copies import SIMULATOR_RULES
from oxidecopy.rules.replaced import SIMULATOR_RULES as REPLACED_RULES
from oxidecopy.rules.rule import Rule
from oxidecopy.rules.simulator_scripts import explored, launched
from oxidecopy.rules.verifier_scripts import BY_TEXT, Twins, scripts


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = shown if shown is not None else ("", "")
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=wrong, right=right)


_NOTE: Final = "It is a note (`explore(...).notes`), which stops nothing."
_LOAD: Final = """
tile = cta.shared(src)
full = cta.barrier().init(1)
with cta.elect() as leader:
    token = full.arrive_expect_tx(leader, tile.nbytes)
    src.g2s(leader, tile, (0, 0), token)
"""
_STORE: Final = """
with cta.elect() as leader:
    src.s2g(leader, tile, (0, 0))
    leader.commit_group()
    leader.wait_group_read(0)
"""
_MULTICAST: Final = """
tile = cta.shared(src)
full = cta.barrier().init(1)
cta.cluster_sync()
with cta.elect() as leader:
    token = full.arrive_expect_tx(leader, tile.nbytes)
    with cta.when(cta.cta_rank == 0):
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=<gap> + cta.cta_rank)
full.wait(token)
cta.cluster_sync()
"""

_ENDS: Final = (
    _rule(
        "OX4001",
        "DeadlockError",
        "A run comes to an end",
        "Everybody who has not ended waits for something that cannot come any more: an arrival, bytes, other threads. On the hardware the "
        "launch would hang until the driver's watchdog or for ever. The report says who waits for whom, what has come of what is "
        "needed, which line should have brought the rest, and why it did not; verifier and GPU give the same one (docs/schedules.md).",
        "PTX mbarrier, bar.sync, barrier.cluster: waits without an end",
        explored(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes<gap>)
                src.g2s(leader, tile, (0, 0), token)
            full.wait(token)
            """,
            " + 16",
            "",
        ),
    ),
    _rule(
        "OX4002",
        "ExecutionError",
        "A run stays within the simulator's bound on loop iterations",
        "A loop that never ends would never say so. The bound can be raised with `max_steps`.",
        "the simulator",
        explored("for i in cta.range(n * <gap>):\n    cta.sync()", "1_000_000", "1", options=", max_steps=1_000"),
    ),
    _rule(
        "OX4010",
        "DeviceFaultError",
        "Memory that is touched is mapped (fault 700)",
        "Null, freed and foreign addresses fault, and so does shared memory past the CTA's allocation. "
        + "Arrays keep their memory alive and maps end inside it, so the script binds an address by hand.",
        "measured: CUDA_ERROR_ILLEGAL_ADDRESS",
    ),
    _rule(
        "OX4011",
        "DeviceFaultError",
        "Copies keep the rules of their instruction (fault 715)",
        "An innermost coordinate off the 16-byte grid, a store at a negative coordinate, an extent beyond 2^31, a wrong rank or mode, a "
        "reduction that the element type does not have: the hardware calls each an illegal instruction.",
        "measured: CUDA_ERROR_ILLEGAL_INSTRUCTION",
        explored(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, <gap>), token)
            full.wait(token)
            """,
            "cta.block_idx.x + 2",
            "cta.block_idx.x + 4",
        ),
    ),
    _rule(
        "OX4012",
        "DeviceFaultError",
        "Shared addresses of copies and barriers are aligned (fault 716)",
        "Tensor copies need 128 bytes, mbarriers 8. " + BY_TEXT + "the recorder lays shared memory out.",
        "measured: CUDA_ERROR_MISALIGNED_ADDRESS",
    ),
    _rule(
        "OX4013",
        "DeviceFaultError",
        "Barriers and masks stay in their ranges (fault 719)",
        "More arrivals or bytes than a barrier can count, an arrival on memory that holds none, a multicast mask beyond the cluster.",
        "measured: CUDA_ERROR_LAUNCH_FAILED",
        explored(_MULTICAST, "0b111", "0b11", cluster=True),
    ),
    _rule(
        "OX4014",
        "DeviceFaultError",
        "The driver accepts the launch",
        "A grid that the cluster does not divide, a tensor map that cannot be encoded, an index expression that divides by zero.",
        "CUDA driver API: cuLaunchKernelEx, cuTensorMapEncodeTiled; measured: 912 and 1",
        launched("cta.cluster_sync()", "3", "4"),
    ),
    _rule(
        "OX4015",
        "DeviceFaultError",
        "An index read from memory is inside its array and below its bound",
        "The proof took every value below the bound for possible, and no other: a wrong one ends the launch before it is used.",
        "cta.load_index",
        scripts(
            """
            @ox.pipeline(threads=32)
            def gather(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], rows: ox.GlobalArray[ox.i32, ox.D1]) -> None:
                tile = cta.shared(src)
                full = cta.barrier().init(1)
                row = cta.load_index(rows, cta.block_idx.x, below=src.shape[0])
                with cta.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile.nbytes)
                    src.g2s(leader, tile, (row, 0), token)
                full.wait(token)

            a = dev.array(np.ones((64, 8), np.float32))
            gather[2](ox.TmaDescriptor.tiled(a, box=(1, 8)), dev.array(np.array([3, <gap>], np.int32)))
            """,
            "64",
            "63",
        ),
    ),
    _rule(
        "OX4016",
        "DeviceFaultError",
        "A CTA asks only for tiles that the counter has given it",
        "Behind its last tile there is none. " + BY_TEXT + "the recorder loops over exactly the tiles given.",
        "cta.schedule(order=ox.order.counter())",
    ),
    _rule(
        "OX4020",
        "ExecutionError",
        "A launch is the one that was verified",
        "A proof holds for one grid, one set of extents and strides, one set of index parameters. Anything else needs its own.",
        "oxidecopy: what the verifier assumes, the engine makes true",
        scripts(
            """
            from oxidecopy.engines.sim import SimEngine


            @ox.pipeline(threads=32)
            def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
                tile = cta.shared(ox.f32, (8, 8), align=ox.A128)
                cta.fill(tile, 1.0)
                cta.sync()
                cta.store(out, tile, (cta.block_idx.x * 8, 0))


            first = kernel[1].bind(dev.empty((16, 8), ox.f32))
            second = kernel[2].bind(dev.empty((16, 8), ox.f32))
            <gap>
            """,
            "SimEngine().run(first.verify(), second.bindings)",
            "second.verify()\nsecond()",
        ),
    ),
    _rule(
        "OX4021",
        "UsageError",
        "Host copies stay inside the buffers of the engine",
        "Bytes beyond a buffer belong to nobody.",
        "the simulator",
        scripts(
            """
            from oxidecopy.engines.sim import SimEngine

            engine = SimEngine()
            buffer = engine.allocate(16)
            engine.read(buffer, 0, <gap>)
            """,
            "32",
            "16",
        ),
    ),
)

_TILES: Final = (
    _rule(
        "OX4101",
        "HazardError",
        "Plain accesses to a tile by different threads are ordered",
        "Threads run in no order among themselves, those of one group included.",
        "PTX memory model: causality order",
        explored("tile = cta.shared(src)\ncta.fill(tile, 1.0)\n<gap>\ncta.store(out, tile, (0, 0))", "", "cta.sync()"),
    ),
    _rule(
        "OX4102",
        "HazardError",
        "A tile is read after its load is known to have landed",
        "Before the wait it holds what was there before, or half of each.",
        "PTX cp.async.bulk.tensor: completion is observed by a wait on the mbarrier",
        explored(_LOAD + "<gap>\ncta.sync()\ncta.store(out, tile, (0, 0))\nfull.wait_phase(0)", "", "full.wait_phase(0)"),
    ),
    _rule(
        "OX4103",
        "HazardError",
        "A tile is written after an earlier load into it has landed",
        "Both write at once; which one wins is chance.",
        "PTX memory model: the copy is not ordered with later instructions",
        explored(_LOAD + "    <gap>\n    cta.fill(tile, 0.0)\nfull.wait_phase(0)", "", "full.wait_phase(0)"),
    ),
    _rule(
        "OX4104",
        "HazardError",
        "A tile is written after an earlier store has read it",
        "The store sends what it finds when it gets there.",
        "PTX cp.async.bulk.wait_group.read; measured: without the wait 72 % of the words were wrong",
        explored(
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
        "OX4105",
        "HazardError",
        "Plain writes are fenced before a copy reads or overwrites them",
        "Copies go through the async proxy, which need not see plain writes until their threads have run a proxy fence.",
        "PTX fence.proxy.async; measured: without it 1.3 % of the words were stored stale",
        explored("tile = cta.shared(src)\ncta.fill(tile, 1.0)\n<gap>\ncta.sync()" + _STORE, "", "cta.fence_proxy_async()"),
    ),
    _rule(
        "OX4106",
        "HazardError",
        "A copy is issued after a sync with the threads that used its tile",
        "The issuing thread does not know that the others are through.",
        "PTX memory model: causality order",
        explored("tile = cta.shared(src)\ncta.fill(tile, 1.0)\ncta.fence_proxy_async()\n<gap>" + _STORE, "", "cta.sync()"),
    ),
    _rule(
        "OX4107",
        "HazardError",
        "What is read was written",
        "Shared memory starts with whatever the block before left in it; here with poison.",
        "PTX: shared memory is not initialised",
        explored("tile = cta.shared(src)\n<gap>\ncta.sync()\ncta.store(out, tile, (0, 0))", "", "cta.fill(tile, 1.0)"),
    ),
)

_BARRIERS: Final = (
    _rule(
        "OX4108",
        "HazardError",
        "A wait names the current phase of its barrier or the one before",
        "The hardware keeps one bit of the phase: any other phase looks like one of these two.",
        "PTX mbarrier.test_wait.parity; measured: a waiter two phases late reads 'not done'",
        explored(
            """
            bar = cta.barrier().init(1)
            with cta.thread(0):
                for k in range(3):
                    bar.arrive()
                    bar.wait_phase(k)
                bar.wait_phase(<gap>)
            """,
            "0",
            "2",
        ),
    ),
    _rule(
        "OX4109",
        "HazardError",
        "An arrival counts in one phase, whatever the schedule",
        "A barrier initialised for fewer arrivals than there are threads ends a phase in the middle of them; an arrival that does not wait "
        "for the phase before may come while that one is still open.",
        "PTX mbarrier.arrive",
        explored("bar = cta.barrier().init(<gap>)\nbar.arrive()", "64", "128"),
    ),
    _rule(
        "OX4110",
        "HazardError",
        "A barrier is used between its init and its inval, by threads that see the init",
        "Other threads see the init after a sync; other CTAs after the init's cluster fence and a cluster sync. "
        + BY_TEXT
        + "handles and `init` see to it.",
        "CUDA Programming Guide, TMA examples; PTX fence.mbarrier_init",
    ),
    _rule(
        "OX4111",
        "HazardError",
        "A barrier is invalidated after its last use",
        "A thread that still waits on it would wait on something else. " + BY_TEXT + "`inval` syncs.",
        "PTX mbarrier.inval",
    ),
)

_EXITS: Final = (
    _rule(
        "OX4112",
        "HazardError",
        "A CTA exits after its stores have read shared memory",
        "Shared memory must live until then.",
        "CUDA Programming Guide, TMA: wait_group.read before exit",
        explored(
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
        "OX4113",
        "HazardError",
        "A CTA exits after its loads have landed",
        "A copy still under way writes into shared memory that may already belong to the next block.",
        "no documented guarantee for copies in flight at exit",
        explored(_LOAD + "<gap>", "", "full.wait(token)"),
    ),
    _rule(
        "OX4114",
        "HazardError",
        "A barrier ends with as many bytes landed as announced",
        "The difference is carried into the next phase, which then ends early, late or never.",
        "PTX mbarrier; measured: the running sum must be zero",
        explored(
            """
            bar = cta.barrier().init(1)
            with cta.elect() as leader:
                bar.expect_tx(leader, 16)
                <gap>
            """,
            "",
            "bar.complete_tx(leader, 16)",
        ),
    ),
    _rule(
        "OX4115",
        "HazardError",
        "A peer CTA is touched after it is known to run",
        "Its shared memory need not exist yet. Which of two CTAs starts first is left to chance: the peer may also be there, or the access "
        "fault.",
        "CUDA Programming Guide, distributed shared memory",
    ),
    _rule(
        "OX4116",
        "HazardError",
        "A CTA lives until its peers' arrivals have come",
        "An arrival on a CTA that has exited goes to memory that is gone.",
        "CUDA Programming Guide, distributed shared memory: the target CTA must exist",
        explored(
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
)

_MEMORY: Final = (
    _rule(
        "OX4117",
        "HazardError",
        "Two stores to one place are ordered",
        "Blocks run in any order, and bulk stores land in any order, even those of one thread: which value stays is left to chance.",
        "PTX memory consistency model: bulk copies are not ordered among each other",
        explored(
            """
            tile = cta.shared(src)
            cta.fill(tile, 1.0)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                for _ in range(2):
                    src.s2g(leader, tile, (0, 0))
                    leader.commit_group()
                    <gap>
                leader.wait_group(0)
            """,
            "leader.wait_group_read(0)",
            "leader.wait_group(0)",
        ),
    ),
    _rule(
        "OX4118",
        "HazardError",
        "What a launch stores is loaded inside the same cluster alone, once it is written",
        "Nothing orders clusters: it may get old or new elements. Inside a cluster the store must have been waited for "
        "(`wait_group`), and a sync passed then if it was another CTA's. The verifier refuses such launches first (OX3203).",
        "PTX memory consistency model: blocks of a grid run in any order",
    ),
)

_LAYOUT: Final = (
    _rule(
        "OX4130",
        "HazardError",
        "A swizzled tile begins where its pattern does, in every stage",
        "The pattern goes by the shared address. At another one the bytes are where the copy puts them, but not where those look who count "
        "rows from the start of the tile, as matrix instructions do. " + BY_TEXT + "the recorder aligns tiles.",
        "PTX tensor swizzling modes: the pattern repeats every 256, 512 or 1,024 bytes",
    ),
    _rule(
        "OX4131",
        "HazardError",
        "A store writes only bytes of its own rows, or padding",
        "At the inner edge stores are cut in steps of 16 bytes.",
        "measured: 929 stores",
        scripts(
            """
            from oxidecopy.engines.sim import explore

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
            launch = kernel[1].bind(ox.TmaDescriptor.tiled(a[:, :<gap>], box=(8, 32)))
            explore(launch.program, launch.bindings).check()
            """,
            "30",
            "28",
        ),
    ),
    _rule(
        "OX4132",
        "HazardError",
        "Every element of an output is stored",
        "What no store reaches keeps what it held before, which in new memory is anything. " + _NOTE,
        "the run",
    ),
    _rule(
        "OX4133",
        "HazardError",
        "Every role does something in some CTA",
        "A role that never runs is often a condition the wrong way round, or a loop without iterations. " + _NOTE,
        "the run",
    ),
)

RULES: Final[tuple[Rule, ...]] = (*_ENDS, *_TILES, *_BARRIERS, *_EXITS, *_MEMORY, *SIMULATOR_RULES, *_LAYOUT, *REPLACED_RULES)
