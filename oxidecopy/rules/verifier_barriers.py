"""Pages of the verifier's rules about barriers: their life, phases, bytes, and threads that wait for ever."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import BY_TEXT, Twins, scripts, twins

_NO_TYPED: Final = BY_TEXT + "the typed handles and the recorder refuse it first (state types, moved handles)."


def _rule(number: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = shown if shown is not None else ("", "")
    return Rule(id=number, title=title, error="VerificationError", why=why, source=source, wrong=wrong, right=right)


_LOAD_TWICE: Final = """
    tiles = cta.shared(src, stages=2)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tiles[0]<gap>)
        src.g2s(leader, tiles[0], (0, 0), token)
        src.g2s(leader, tiles[1], (0, 64), token)
    full.wait(token)
"""

BARRIER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3001",
        "A barrier is used only after its init",
        "The memory holds no mbarrier yet: the first arrival faults, a wait never ends. " + _NO_TYPED,
        "PTX mbarrier (9.7.13.15); measured: fault 719",
    ),
    _rule(
        "OX3002",
        "A barrier is not used after its inval",
        "The object has ceased to exist, its memory may hold something else. " + _NO_TYPED,
        "PTX mbarrier.inval",
    ),
    _rule(
        "OX3003",
        "A barrier is initialised once, by one thread, until its inval",
        "A second init restarts the object under those who wait on it. " + _NO_TYPED,
        "PTX mbarrier.init: undefined on a live object",
    ),
    _rule(
        "OX3004",
        "A sync stands between the init and another thread's first use",
        "Without it the other thread may use memory that is not a barrier yet. " + BY_TEXT + "`init` syncs.",
        "CUDA Programming Guide, TMA examples: init, sync, use",
    ),
    _rule(
        "OX3005",
        "Nobody uses a barrier any more when it is invalidated",
        "A copy under way would signal to memory that is no barrier, a thread that waits would wait for ever.",
        "PTX mbarrier.inval",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, 0), token)
            <gap>
            full.inval()
            """,
            "",
            "full.wait(token)",
        ),
    ),
    _rule(
        "OX3006",
        "A cluster sync stands between the init and the first use by another CTA",
        "The other CTA may not have started, or not have initialised its barrier.",
        "CUDA Programming Guide, clusters; PTX fence.mbarrier_init",
        twins(
            """
            bar = cta.barrier().init(1)
            <gap>
            with cta.elect():
                bar.arrive_remote(1 - cta.cta_rank)
            bar.wait_phase(0)
            """,
            "",
            "cta.cluster_sync()",
            cluster=True,
        ),
    ),
    _rule(
        "OX3007",
        "An index into an array of barriers stays inside it",
        "The op would work on whatever lies behind the array.",
        "PTX mbarrier: undefined on memory that holds no object",
        twins(
            """
            bars = cta.barriers(2).init(1)
            for i in cta.range(n):
                with cta.elect():
                    bars[<gap>].arrive()
                    bars[<gap>].wait_phase(i // 2)
            """,
            "i",
            "i % 2",
        ),
    ),
    _rule(
        "OX3010",
        "A phase gets no more arrivals than init counts",
        "The surplus arrival counts in the next phase, which then ends too early, or it faults.",
        "PTX mbarrier: pending count must not underflow; measured: fault 719",
        twins(
            """
            bar = cta.barrier().init(<gap>)
            token = bar.arrive()
            bar.wait(token)
            """,
            "1",
            "128",
        ),
    ),
    _rule(
        "OX3011",
        "An arrival or a copy can count in one phase only",
        "A thread that has not seen a phase end may arrive before or after its end, as timing has it: in one case the next phase is "
        "short of an arrival, in the other this one has too many. So whoever counts in a phase must have seen the one before end, by "
        "a wait or something that follows from one.",
        "PTX mbarrier: arrivals count in the current phase; for each phase one wait must have returned before any arrival of the next",
        twins(
            """
            bar = cta.barrier().init(1)
            with cta.elect():
                token = bar.arrive()
                <gap>
                bar.arrive()
            """,
            "",
            "bar.wait(token)",
        ),
    ),
    _rule(
        "OX3012",
        "Every phase that is waited for gets all its arrivals",
        "The threads that wait wait for ever: nobody is left who could arrive.",
        "PTX mbarrier: a phase ends when no arrival is pending",
        twins(
            """
            bar = cta.barrier().init(<gap>)
            token = bar.arrive()
            bar.wait(token)
            """,
            "129",
            "128",
        ),
    ),
    _rule(
        "OX3013",
        "Who waits for a phase has seen the one before end",
        "Hardware compares parities. Asked for phase k while phase k - 1 is current, it answers from phase k - 2, which is over: "
        "the wait passes too early.",
        "PTX mbarrier.try_wait.parity; measured",
        twins(
            """
            full, empty = cta.barrier().init(1), cta.barrier().init(1)
            with cta.thread(0):
                token = full.arrive()
                full.wait(token)
                empty.wait_phase(0)
                full.arrive()
            with cta.thread(1):
                <gap>
                empty.arrive()
                full.wait_phase(1)
            """,
            "",
            "full.wait_phase(0)",
        ),
    ),
    _rule(
        "OX3014",
        "Nobody waits for a phase when the one after it can be over",
        "Two phases later the parity reads `not done` again, and the late thread waits for a phase that may never come. "
        "Some arrival of the next phase must follow the wait.",
        "PTX mbarrier: waits for the current or the immediately preceding phase only; measured",
        twins(
            """
            bar = cta.barrier().init(1)
            with cta.elect():
                first = bar.arrive()
                bar.wait(first)
            <gap>
            with cta.elect():
                second = bar.arrive()
                bar.wait(second)
            with cta.thread(64):
                bar.wait_phase(1)
            """,
            "with cta.thread(64):\n    bar.wait_phase(0)",
            "bar.wait_phase(0)\ncta.sync()",
        ),
    ),
    _rule(
        "OX3015",
        "arrive_drop leaves at least one arrival to count",
        "A barrier that counts nothing has no meaning; its next arrival faults.",
        "PTX mbarrier.arrive_drop; measured: fault 719",
        twins(
            """
            bar = cta.barrier().init(<gap>)
            with cta.elect():
                bar.arrive_drop()
            with cta.thread(1), cta.when(n > 100):
                bar.arrive()
            """,
            "1",
            "2",
        ),
    ),
    _rule(
        "OX3016",
        "Arrivals, copies and syncs do not hang on the answer of a test",
        "The answer depends on timing. What other threads wait for must not, or no run proves anything about the next.",
        "the verifier's theory: control flow without timing",
        twins(
            """
            bar, other = cta.barrier().init(1), cta.barrier().init(1)
            with cta.elect():
                token = bar.arrive()
                done = bar.try_wait(token)
                with cta.when(<gap>):
                    other.arrive()
                bar.wait(token)
            """,
            "done",
            "n > 0",
        ),
    ),
    _rule(
        "OX3017",
        "A wait is given tokens of its own barrier",
        "A token names a phase of the barrier it came from; asked of another one it means nothing. " + _NO_TYPED,
        "PTX mbarrier.try_wait: the state operand comes from the same object",
    ),
    _rule(
        "OX3018",
        "An answer is used in the block that asked for it",
        "An answer is a register of the thread that asked. Elsewhere it is not set, or holds the answer of an earlier iteration.",
        "PTX mbarrier.try_wait: the result is a predicate register of the executing thread",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, 0), token)
            <gap>
            with cta.when(done):
                cta.store(out, tile, (0, 0))
            full.wait(token)
            """,
            "with cta.when(n > 0):\n    done = full.try_wait(token)",
            "done = full.try_wait(token)",
        ),
    ),
    _rule(
        "OX3020",
        "A phase expects no more bytes than its copies bring",
        "The phase never ends and all who wait for it hang.",
        "PTX mbarrier: a phase ends when its tx-count is 0; measured: waits for ever",
        twins(
            """
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, <gap>)
                src.g2s(leader, tile, (0, 0), token)
            full.wait(token)
            """,
            "2 * tile.nbytes",
            "tile.nbytes",
        ),
    ),
    _rule(
        "OX3021",
        "A phase expects all the bytes that its copies bring",
        "The phase may end when the announced bytes have landed, before the rest has: whoever reads then reads garbage, by chance. "
        "The surplus spoils the next phase.",
        "PTX mbarrier: complete_tx; measured: early release in some runs, a hang in others",
        twins(_LOAD_TWICE.replace("\n    ", "\n"), "", ", tiles[1]"),
    ),
    _rule(
        "OX3022",
        "An expect_tx is followed by an arrival of its phase",
        "If all arrivals may come before it, the phase can end before the bytes are announced.",
        "PTX mbarrier.expect_tx: counts in the current phase",
        twins(
            """
            bar = cta.barrier().init(1)
            with cta.thread(1) as leader:
                bar.expect_tx(leader, 64)
                bar.complete_tx(leader, 64)
            <gap>
            with cta.thread(0):
                bar.arrive()
            """,
            "",
            "cta.sync()",
        ),
    ),
    _rule(
        "OX3023",
        "The bytes of one phase stay below 2^20",
        "The counter has no room for more, and the hardware faults.",
        "PTX mbarrier: tx-count range; measured: fault 719",
        twins(
            """
            bar = cta.barrier().init(2)
            with cta.elect() as leader:
                bar.arrive_expect_tx(leader, 600_000)
                bar.arrive_expect_tx(leader, <gap>)
                bar.complete_tx(leader, 600_000)
                bar.complete_tx(leader, <gap>)
            """,
            "600_000",
            "400_000",
        ),
    ),
    _rule(
        "OX3030",
        "Some thread can always go on",
        "Everybody waits for somebody who waits as well. The report names who waits for whom, what is missing, and the line that would "
        "have supplied it.",
        "no forward progress: the launch hangs",
        twins(
            """
            full, empty = cta.barrier().init(1), cta.barrier().init(1)
            with cta.thread(0):
                for i in cta.range(n):
                    empty.wait_phase(<gap>)
                    full.arrive()
            with cta.thread(1):
                for i in cta.range(n):
                    full.wait_phase(i)
                    empty.arrive()
            """,
            "i",
            "i - 1",
        ),
    ),
    _rule(
        "OX3031",
        "A sync is reached by all the threads it counts",
        "The threads that come wait for those that never do.",
        "PTX bar.sync, barrier.cluster",
        scripts(
            """
            @ox.pipeline(threads=128)
            def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
                with cta.<gap>:
                    cta.sync()

            kernel[1](dev.empty((64,), ox.f32))
            """,
            "elect()",
            "when(cta.block_idx.x == 0)",
        ),
    ),
    _rule(
        "OX3032",
        "A sync counts the threads that run it",
        "More threads than it counts, or counts that differ, release it at the wrong time or never. Named barriers count whole warps.",
        "PTX bar.sync: the thread count is a multiple of the warp size",
        scripts(
            """
            @ox.pipeline(threads=<gap>)
            def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
                with cta.warps(1, 3) as group:
                    group.sync()

            kernel[1](dev.empty((64,), ox.f32))
            """,
            "80",
            "96",
        ),
    ),
)
