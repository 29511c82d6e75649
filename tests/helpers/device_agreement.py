"""Device code held against the program it was made from: every agent of every block does the same, number by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from random import Random

from oxidecopy.engines.cuda.abi import APPLY_FAMILY, COMPUTE_FAMILY, MMA_FAMILY, RECORD_BYTES, RESHAPE_FAMILY, DeviceOp
from oxidecopy.engines.cuda.code import Image, encode_program
from oxidecopy.engines.cuda.code.contract import WHOLE, gathered
from oxidecopy.engines.cuda.code.trim import trimmed
from oxidecopy.isa import ops
from oxidecopy.isa.expr import evaluate
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Launch, Program
from tests.helpers.device_emulator import Emulator, Event
from tests.helpers.device_walk import IDLE, Walk, places

WARP = 32
TOKENS = ("mbarrier_wait_token", "mbarrier_test_token")


def check(program: Program, launch: Launch, dealt: Sequence[list[int]] | None = None) -> Image:
    """Encodes and compares; `dealt` are the tiles that a counter deals each block."""
    image = encode_program(program, launch, whole=False)
    compare(program, launch, image, dealt)
    return image


def deal(program: Program, launch: Launch, seed: int) -> list[list[int]]:
    """What a counter might deal each block: every tile to one, ascending."""
    walk = Walk(program, launch)
    (share,) = [step.op for step in walk.program.walk() if isinstance(step.op, ops.ShareTiles)]
    blocks = len(list(places(walk.program, launch)))
    dealt: list[list[int]] = [[] for _ in range(blocks)]
    random = Random(seed)
    for tile in range(evaluate(share.tiles, launch.environment())):
        dealt[random.randrange(blocks) if seed else 0].append(tile)
    return dealt


def compare(program: Program, launch: Launch, image: Image, dealt: Sequence[list[int]] | None = None) -> None:
    """AssertionError at the first difference."""
    computes = image.family.startswith((APPLY_FAMILY, COMPUTE_FAMILY, RESHAPE_FAMILY))
    mapped = any(isinstance(step.op, ops.Made) for step in program.walk())
    contracting = image.family == MMA_FAMILY
    walk = Walk(gathered(expanded(program, WHOLE)) if contracting else trimmed(expanded(program)) if mapped else program, launch)
    numbers: dict[int, int] = {}  # what the barriers of device code are in the program
    idle = {warp.agent for warp in image.warps if not warp.threads}  # they fill a warpgroup up
    agents = {agent.words: i for i, agent in enumerate(image.agents) if i not in idle}
    sizes = {str(c): len(c.threads) for c in walk.classes}
    lanes = {words: WARP * sum(warp.agent == i for warp in image.warps) for words, i in agents.items()}
    assert min(1024, sum(lanes.values())) == image.threads - WARP * sum(warp.agent in idle for warp in image.warps)
    assert set(agents) <= set(sizes)
    for place in places(walk.program, launch):
        tiles = None if dealt is None else dealt[place.number]
        emulator = Emulator(image, place.block, place.rank, tiles)
        for who in walk.classes:
            wanted = walk.events(who, place, tiles)
            if computes:
                wanted = list(computed(wanted, maps=not any(image.code[pc * RECORD_BYTES] == DeviceOp.MAP_TILES for pc in image.sites)))
            if str(who) not in agents:
                nothing = {event[0] for event in wanted} <= IDLE
                assert nothing or len(agents) == 1, f"{who} was left out"
                continue
            got = sorted_rows(sorted_inits(plainly(emulator.agent(agents[str(who)]))))
            for i, (given, theirs) in enumerate(zip_longest(got, sorted_rows(sorted_inits(synced(wanted, sizes, lanes))))):
                mine = given
                if given is not None and theirs is not None and given[0] == theirs[0] == "bar_sync":
                    assert numbers.setdefault(given[1], theirs[1]) == theirs[1], "one number of device code for two of the program"
                    mine = ("bar_sync", numbers[given[1]], given[2])
                if mine is not None and theirs is not None and mine[0] == theirs[0] and mine[0] in TOKENS:
                    how, which = mine[2][:2]  # of what lies in shared memory `device_machine` knows whose it is
                    mine = (*mine[:2], theirs[2] if how == "shared" else which, *mine[3:])
                assert mine == theirs, f"{who} of block {place.number}, event {i}: {mine}, not {theirs}"


def computed(events: list[Event], *, maps: bool) -> Iterator[Event]:
    """Events where a group's part in a tile says nothing of layouts and shares, and one thread beside others leaves it to those.

    `maps`: they, too, are run by the fast machine.
    """
    for event in events:
        if event[0] not in ("transpose", "fold", "stencil", "map_tiles" if maps else ""):
            yield event
            continue
        low, high, total = event[3] if event[0] == "map_tiles" else event[-1]
        if high - low > 1 or total == 1:
            yield ("compute", event[1], tuple([at for at, _ in event[2]])) if event[0] == "map_tiles" else event[:-1]


def plainly(events: list[Event]) -> Iterator[Event]:
    """Events without the code of maps, and without the syncs of single warps, which fused loops leave out."""
    for event in events:
        if event[0] == "map_tiles":
            yield event[:5]
        elif event[0] not in ("last_wait", "last_arrive", "token") and (event[0] != "bar_sync" or event[1] is not None):
            yield event


def sorted_inits(events: Iterable[Event]) -> list[Event]:
    """Events with inits that follow each other in order of their barriers: which of them comes first is of no matter."""
    made: list[Event] = []
    for inits, group in groupby(events, lambda event: bool(event[0] == "mbarrier_init")):
        run = list(group)
        made += sorted(run) if inits else run
    return made


def sorted_rows(events: Iterable[Event]) -> list[Event]:
    """Events with indices and loads that follow each other in order, each index once: lanes read and issue them side by side."""
    made: list[Event] = []
    for rows, group in groupby(events, lambda event: event[0] in ("load_index", "load")):
        run = list(group)
        many = rows and any(event[0] == "load_index" for event in run)
        indices = sorted({event for event in run if event[0] == "load_index"}) if many else []
        made += [*indices, *sorted((event for event in run if event[0] == "load"), key=repr)] if many else run
    return made


def synced(events: list[Event], sizes: dict[str, int], lanes: dict[str, int]) -> Iterator[Event]:
    """The program's events with the hardware threads that meet at barriers."""
    for event in events:
        if event[0] != "bar_sync":
            yield event
            continue
        _, number, threads, here = event
        exact = sum(sizes[words] for words in here) == threads
        # Else it is reached by several lines; the tests that do it have two classes, which meet.
        meeting = sum(lanes.get(words, 0) for words in here) if exact else sum(lanes.values())
        if meeting > WARP:
            yield ("bar_sync", number, meeting)
