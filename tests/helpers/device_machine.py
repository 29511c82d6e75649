"""All agents of a launch's blocks together, for tests: waits wait, arrivals are counted, copies land at once. No data moves.

It ends when everybody has, and fails when nobody can go on: so thread counts of barriers, arrivals of warps and the numbers that a counter
hands on are right together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import final

from oxidecopy.engines.cuda.code import Image
from oxidecopy.program.program import Launch, Program
from tests.helpers.device_emulator import Emulator, Event
from tests.helpers.device_walk import Place, places

WARP = 32


class StuckError(Exception):
    """Nobody can go on."""


@final
class Barrier:
    """An mbarrier: arrivals and bytes that the phase still needs."""

    def __init__(self, count: int) -> None:
        self.count = self.pending = count
        self.bytes = 0
        self.phase = 0

    def change(self, arrivals: int, nbytes: int = 0) -> None:
        if self.pending < arrivals:
            raise StuckError("more arrivals than a phase takes")
        self.pending -= arrivals
        self.bytes += nbytes
        if not self.pending and not self.bytes:
            self.phase, self.pending = self.phase + 1, self.count

    def over(self, phase: int) -> bool:
        return (self.phase & 1) != (phase & 1)


@final
class Block:
    """A block of the launch; `peers` are those of its cluster, by rank."""

    def __init__(self, emulator: Emulator, lanes: dict[int, int]) -> None:
        self.agents = {i: emulator.running(i) for i in lanes}
        self.lanes = lanes
        self.barriers: dict[int, Barrier] = {}
        self.kept: dict[tuple[int, int], int] = {}  # by agent and arrival: the phase that it counted in
        self.histories: dict[int, list[tuple[int, int] | None]] = {}  # (stamp, phase), round and round
        self.put: dict[int, int] = {}
        self.meeting: dict[int, set[int]] = {}
        self.peers: list[Block] = []
        self.synced: set[int] = set()


def run(program: Program, launch: Launch, image: Image, dealt: Sequence[list[int]] | None = None, seed: int = 0) -> None:
    """Runs every cluster to its end, its agents in random order; StuckError when they cannot get there."""
    x, y, z = program.cluster
    clusters: dict[tuple[int, int, int], list[tuple[Place, Block]]] = {}
    lanes = {i: WARP * sum(warp.agent == i for warp in image.warps) for i in range(len(image.agents))}
    for place in places(program, launch):
        tiles = None if dealt is None else dealt[place.number]
        block = Block(Emulator(image, place.block, place.rank, tiles), lanes)
        bx, by, bz = place.block
        clusters.setdefault((bx // x, by // y, bz // z), []).append((place, block))
    for members in clusters.values():
        blocks = [block for _, block in sorted(members, key=lambda m: m[0].rank)]
        for block in blocks:
            block.peers = blocks
        Cluster(program, blocks, Random(seed)).run()


@final
class Cluster:
    """The blocks of one cluster, running."""

    def __init__(self, program: Program, blocks: list[Block], random: Random) -> None:
        self.landing = {name: param.layout.nbytes for param in program.maps.values() for name in param.bound_names}
        self.blocks = blocks
        self.random = random
        self.waiting: dict[tuple[int, int], Event] = {}
        self.arrived: set[tuple[int, int]] = set()  # who waits at a barrier of threads

    def run(self) -> None:
        going: list[tuple[int, int]] = [(b, a) for b, block in enumerate(self.blocks) for a in block.agents]
        while going:
            self.random.shuffle(going)
            before = len(going)
            moved = False
            for who in list(going):
                ended = False
                while not ended:
                    event = self.waiting.get(who) or next(self.blocks[who[0]].agents[who[1]], None)
                    if event is None:
                        going.remove(who)
                        ended = True
                    elif self.passes(who, event):
                        self.waiting.pop(who, None)
                        moved = True
                    else:
                        self.waiting[who] = event
                        ended = True
            if not moved and len(going) == before:
                raise StuckError([(who, self.waiting[who]) for who in going])

    def passes(self, who: tuple[int, int], event: Event) -> bool:  # noqa: C901 - one case per sort of event
        block = self.blocks[who[0]]
        match event:
            case ("mbarrier_wait_phase" | "mbarrier_wait_parity" | "last_wait", at, phase):
                return phase < 0 or block.barriers[at].over(phase)
            case ("token", at, number, shared):
                self.note(who, block, number, shared, block.barriers[at].phase)
            case ("mbarrier_wait_token", at, (how, place, *stamp)):
                phase = block.kept.get((who[1], place)) if how == "kept" else self.found(block, place, *stamp)
                return phase is not None and block.barriers[at].over(phase)
            case ("bar_sync", number, lanes):
                return number is None or self.meet(who, block.meeting.setdefault(number, set()), lanes, block)
            case ("cluster_sync", _):
                return self.meet_all(who)
            case ("mbarrier_init", at, count):
                block.barriers[at] = Barrier(count)
            case ("mbarrier_inval", at):
                del block.barriers[at]
            case ("mbarrier_arrive", at, _, _, threads):
                block.barriers[at].change(threads)
            case ("last_arrive", at):
                block.barriers[at].change(1)
            case ("mbarrier_arrive_expect_tx", at, nbytes, _, threads):
                block.barriers[at].change(threads, nbytes * threads)
            case ("mbarrier_expect_tx", at, nbytes, _, threads):
                block.barriers[at].bytes += nbytes * threads
            case ("mbarrier_complete_tx", at, nbytes, _, threads):
                block.barriers[at].change(0, -nbytes * threads)
            case ("mbarrier_arrive_drop", at, _, _, threads):
                block.barriers[at].count -= threads
                block.barriers[at].change(threads)
            case ("mbarrier_arrive_remote", at, rank, _, threads):
                block.peers[rank].barriers[at].change(threads)
            case ("mbarrier_arrive_expect_tx_remote", at, rank, nbytes, threads):
                block.peers[rank].barriers[at].change(threads, nbytes * threads)
            case ("load", name, _, _, at, mask):
                for peer in self.receivers(block, mask):
                    peer.barriers[at].change(0, -self.landing[name])
            case (kind, where, _, _, int(at), third, _, _, _, nbytes, _, _, _):
                self.landed(block, kind, where, at, third, nbytes)
            case _:
                pass
        return True

    def landed(self, block: Block, kind: str, where: str, at: int, third: int | None, nbytes: int | None) -> None:
        """A copy of the kinds that are none of the move family's tells the barriers that it names."""
        if nbytes is None:
            nbytes = self.landing[where] * (4 if kind.endswith("gather4") else 1)
        receivers = [block.peers[third or 0]] if kind.endswith("s2s") else self.receivers(block, third)
        for peer in receivers:
            peer.barriers[at].change(0, -nbytes)

    @staticmethod
    def note(who: tuple[int, int], block: Block, number: int, shared: tuple[int, int, int] | None, phase: int) -> None:
        """Keeps the phase of the arrival that follows, as the state that it returns would."""
        block.kept[who[1], number] = phase
        if shared is not None:
            at, entries, stamp = shared
            history = block.histories.setdefault(at, [None] * entries)
            turn = block.put[at] = block.put.get(at, -1) + 1
            history[turn % entries] = (stamp, phase)

    @staticmethod
    def found(block: Block, at: int, stamp: int) -> int | None:
        return next((entry[1] for entry in block.histories.get(at, ()) if entry is not None and entry[0] == stamp), None)

    def receivers(self, block: Block, mask: int | None) -> Iterator[Block]:
        yield from [block] if mask is None else [peer for i, peer in enumerate(block.peers) if mask >> i & 1]

    def meet(self, who: tuple[int, int], here: set[int], lanes: int, block: Block) -> bool:
        """Arrives; the last one lets all go."""
        if who in self.arrived:
            if who[1] in here:
                return False
            self.arrived.remove(who)
            return True
        here.add(who[1])
        found = sum(block.lanes[a] for a in here)
        if found > lanes:
            raise StuckError(f"{found} threads come to a barrier of {lanes}")
        if found == lanes:
            here.clear()
            return True
        self.arrived.add(who)
        return False

    def meet_all(self, who: tuple[int, int]) -> bool:
        block = self.blocks[who[0]]
        if who in self.arrived:
            if who[1] in block.synced:
                return False
            self.arrived.remove(who)
            return True
        block.synced.add(who[1])
        if all(len(b.synced) == len(b.agents) for b in self.blocks):
            for b in self.blocks:
                b.synced.clear()
            return True
        self.arrived.add(who)
        return False
