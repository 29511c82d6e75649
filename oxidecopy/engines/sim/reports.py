"""The words of findings: each function makes one diagnostic from what the clocks saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from oxidecopy.engines.sim.accesses import Access, Kind
from oxidecopy.engines.sim.names import barrier_name, tile_name
from oxidecopy.errors import Cause, Diagnostic, Site

if TYPE_CHECKING:
    from oxidecopy.engines.sim.agents import Agent, Cta
    from oxidecopy.engines.sim.images import TileImage
    from oxidecopy.engines.sim.mbarrier import Mbarrier
    from oxidecopy.program.program import Program

RACE: Final = "OX4101"
READ_BEFORE_LANDING: Final = "OX4102"
OVERWRITTEN_IN_FLIGHT: Final = "OX4103"
OVERWRITTEN_BEFORE_READ: Final = "OX4104"
NO_PROXY_FENCE: Final = "OX4105"
UNORDERED_COPY: Final = "OX4106"
NEVER_WRITTEN: Final = "OX4107"
AMBIGUOUS_PHASE: Final = "OX4108"
SPLIT_ARRIVAL: Final = "OX4109"
NOT_A_BARRIER: Final = "OX4110"
INVAL_IN_USE: Final = "OX4111"
STORE_NOT_DRAINED: Final = "OX4112"
LOAD_NOT_WAITED: Final = "OX4113"
BYTES_LEFT: Final = "OX4114"
PEER_NOT_STARTED: Final = "OX4115"
PEER_MAY_BE_GONE: Final = "OX4116"
STORES_MEET: Final = "OX4117"
LOAD_OF_STORED: Final = "OX4118"
SEND_NOT_WAITED: Final = "OX4119"
MAP_STALE: Final = "OX4120"
MAP_OVERWRITTEN: Final = "OX4121"
MAP_THREADS: Final = "OX4122"
ROTATED: Final = "OX4130"
BEYOND_EDGE: Final = "OX4131"
NOT_COVERED: Final = "OX4132"
IDLE_ROLE: Final = "OX4133"

_DOES: Final = {Kind.READ: "is read", Kind.WRITE: "is written", Kind.LOAD: "is loaded", Kind.STORE: "is stored"}
_DID: Final = {Kind.READ: "read here", Kind.WRITE: "written here", Kind.LOAD: "load issued here", Kind.STORE: "store issued here"}
_RACES: Final[dict[str, tuple[str, str, str]]] = {
    RACE: (
        "with no barrier between it and an access by other threads",
        "a sync of both groups of threads between the two",
        "put cta.sync() between them",
    ),
    READ_BEFORE_LANDING: (
        "before the load into it is known to have landed",
        "a wait for the load's barrier phase first",
        "wait on the barrier that the load reports to",
    ),
    OVERWRITTEN_IN_FLIGHT: (
        "while a load into it may still be landing",
        "a wait for the load's barrier phase first",
        "wait for the earlier load before the tile is used again",
    ),
    OVERWRITTEN_BEFORE_READ: (
        "while a store may still be reading it",
        "wait_group or wait_group_read by the thread that issued the store, then a sync",
        "call leader.wait_group_read(0), and sync, before the tile is written again",
    ),
    NO_PROXY_FENCE: (
        "by the async proxy, without a proxy fence after the plain writes to it",
        "fence_proxy_async by every writing thread, then a sync",
        "call cta.fence_proxy_async() after the writes and before the sync",
    ),
    UNORDERED_COPY: (
        "by a copy whose thread does not know that earlier accesses are over",
        "a sync between those accesses and the copy",
        "put cta.sync(), or an arrive and wait on an mbarrier, between them",
    ),
}


def race(program: Program, agent: Agent, cta: Cta, rule: str, old: Access, new: Access) -> Diagnostic:
    how, required, fix = _RACES[rule]
    where = "" if cta is agent.cta else f" of the CTA of rank {cta.rank}"
    return Diagnostic(
        rule=rule,
        what=f"tile `{tile_name(program, new.low, new.high)}`{where} {_DOES[new.kind]} {how}",
        got=f"by {agent.kind}",
        required=required,
        fix=fix,
        site=new.site,
        causes=(Cause(_DID[old.kind], old.site),),
    )


def never_written(program: Program, agent: Agent, image: TileImage, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=NEVER_WRITTEN,
        what=f"tile `{tile_name(program, image.address, image.end)}` is read but not all of it was ever written",
        got=f"by {agent.kind}",
        required="a load or a write of the whole tile before",
        fix="load or fill the tile first",
        site=site,
    )


def ambiguous_phase(program: Program, agent: Agent, bar: Mbarrier, phase: int, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=AMBIGUOUS_PHASE,
        what=f"a wait on `{barrier_name(program, bar.address)}` names a phase that its parity cannot tell",
        got=f"phase {phase} asked for in phase {bar.phase}, by {agent.kind}",
        required="the current phase or the one before",
        fix="wait for every phase in turn; nobody may be two phases late or ahead",
        site=site,
    )


def late_wait(program: Program, bar: Mbarrier, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=AMBIGUOUS_PHASE,
        what=f"a wait on `{barrier_name(program, bar.address)}` may come two phases late on another schedule",
        got="the phase after the one it waits for can end before the wait is made",
        required="something that the next phase needs and that happens after the wait",
        fix="put cta.sync(), or an arrive on another barrier, between the wait and the next phase",
        site=site,
    )


def split_arrival(program: Program, agent: Agent, bar: Mbarrier, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=SPLIT_ARRIVAL,
        what=f"arrivals on `{barrier_name(program, bar.address)}` that belong together count in different phases",
        got=f"{agent.threads} arrivals by {agent.kind}, {bar.expected} expected per phase",
        required="all threads of one arrive in the same phase",
        fix="initialise the barrier with the number of threads that arrive",
        site=site,
    )


def unordered_arrival(program: Program, agent: Agent, bar: Mbarrier, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=SPLIT_ARRIVAL,
        what=f"an arrival on `{barrier_name(program, bar.address)}` may count in an earlier phase on another schedule",
        got=f"{agent.kind} arrives in phase {bar.phase} without knowing that the one before is over",
        required="a wait for each phase before the next arrival",
        fix="wait for the phase before, or for something that comes after it",
        site=site,
    )


def late_announcement(program: Program, bar: Mbarrier, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=SPLIT_ARRIVAL,
        what=f"an expect_tx on `{barrier_name(program, bar.address)}` may come when its phase is over on another schedule",
        got="no arrival of the phase has to follow it",
        required="an arrival of the same phase after the announcement",
        fix="announce and arrive in one step, arrive_expect_tx, or let the announcing thread arrive after it",
        site=site,
    )


def rotated(program: Program, low: int, high: int, swizzle: str, repeat: int, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=ROTATED,
        what=f"tile `{tile_name(program, low, high)}` lies where swizzle {swizzle} does not begin: its rows are turned like others",
        got=f"shared address {low:#x}",
        required=f"a multiple of {repeat} bytes, in every stage",
        fix=f"align the tile, and the distance of its stages, to {repeat} bytes",
        site=site,
    )


def beyond_the_edge(agent: Agent, bytes_over: int, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=BEYOND_EDGE,
        what="a store writes past the end of its rows, over elements of the array that they are a part of",
        got=f"{bytes_over} bytes behind each row, by {agent.kind}",
        required="rows that are multiples of 16 bytes, or followed by padding only: stores are clipped in steps of 16 bytes",
        fix="store to an array of its own, made with `pad=True`, or store the last columns by plain stores",
        site=site,
    )


def not_covered(name: str, missing: str, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=NOT_COVERED,
        what=f"no store reached some elements of `{name}`: they hold what they held before",
        got=f"nothing in elements {missing}",
        required="every element of an output stored",
        fix="launch enough blocks, and let the loops go to the end; ignore this if a part is meant",
        site=site,
    )


def idle_role(role: str, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=IDLE_ROLE,
        what=f"nothing in this `{role}` block ran",
        got="no thread of any CTA came to an op of it",
        required="at least one op that some CTA runs",
        fix="check the condition or trip count around it",
        site=site,
    )


def foreign_token(program: Program, agent: Agent, bar: Mbarrier, made_on: Mbarrier, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=AMBIGUOUS_PHASE,
        what=f"a wait on `{barrier_name(program, bar.address)}` is given the phase of another barrier",
        got=f"a token of `{barrier_name(program, made_on.address)}`, by {agent.kind}",
        required="a token of the barrier that is waited on",
        fix="wait on the barrier that the token came from",
        site=site,
    )


def init_again(program: Program, agent: Agent, bar: Mbarrier, site: Site | None, made: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=NOT_A_BARRIER,
        what=f"`{barrier_name(program, bar.address)}` is initialised while it is live: it starts again, whatever it had counted",
        got=f"by {agent.kind}",
        required="one thread that initialises, and mbarrier.inval before the next init",
        fix="initialise once, in one thread",
        site=site,
        causes=(Cause("initialised here", made),),
    )


def no_barrier(program: Program, agent: Agent, bar: Mbarrier, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=NOT_A_BARRIER,
        what=f"`{barrier_name(program, bar.address)}` is used but is not initialised",
        got=f"by {agent.kind}",
        required="mbarrier.init before, and no mbarrier.inval between",
        fix="initialise the barrier first",
        site=site,
    )


def init_not_visible(program: Program, agent: Agent, bar: Mbarrier, site: Site | None, made: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=NOT_A_BARRIER,
        what=f"`{barrier_name(program, bar.address)}` is used by threads that may not see its init yet",
        got=f"by {agent.kind}",
        required="a sync after the init",
        fix="put cta.sync() (cta.cluster_sync() for peers) after the init",
        site=site,
        causes=(Cause("initialised here", made),),
    )


def init_not_fenced(program: Program, agent: Agent, bar: Mbarrier, site: Site | None, made: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=NOT_A_BARRIER,
        what=f"`{barrier_name(program, bar.address)}` of a peer is used, but its init was not fenced for the cluster",
        got=f"by {agent.kind}",
        required="fence.mbarrier_init by the initialising thread, then a cluster sync",
        fix="let the thread that initialises fence before the cluster sync",
        site=site,
        causes=(Cause("initialised here", made),),
    )


def inval_in_use(program: Program, agent: Agent, bar: Mbarrier, site: Site | None, used: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=INVAL_IN_USE,
        what=f"`{barrier_name(program, bar.address)}` is invalidated while other threads may still use it",
        got=f"by {agent.kind}",
        required="a sync after its last use",
        fix="put cta.sync() before the inval",
        site=site,
        causes=(Cause("used here", used),),
    )


def store_not_drained(agent: Agent, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=STORE_NOT_DRAINED,
        what="a CTA may exit while a store still reads its shared memory",
        got=f"stores of {agent.kind} that nobody waited for",
        required="commit_group, then wait_group(0) or wait_group_read(0) by the same thread",
        fix="end with leader.commit_group(); leader.wait_group(0)",
        site=site,
    )


def load_not_waited(program: Program, cta: Cta, access: Access) -> Diagnostic:
    return Diagnostic(
        rule=LOAD_NOT_WAITED,
        what=f"a CTA may exit while a load into `{tile_name(program, access.low, access.high)}` is still landing",
        got=f"no thread of the CTA of rank {cta.rank} waited for it",
        required="a wait for the phase that the load reports to",
        fix="wait on its barrier, or leave the load out",
        site=access.site,
    )


def send_not_waited(program: Program, cta: Cta, access: Access) -> Diagnostic:
    return Diagnostic(
        rule=SEND_NOT_WAITED,
        what=f"a CTA may exit while a copy to another CTA still reads `{tile_name(program, access.low, access.high)}`",
        got=f"no thread of the CTA of rank {cta.rank} knows that it has landed",
        required="a cluster sync after the receiving CTA has waited for it",
        fix="end the pipeline with cta.cluster_sync(), behind the receiver's wait",
        site=access.site,
    )


def bytes_left(program: Program, cta: Cta, bar: Mbarrier, site: Site | None) -> Diagnostic:
    side = "announced but never landed" if bar.tx > 0 else "landed but were never announced"
    return Diagnostic(
        rule=BYTES_LEFT,
        what=f"`{barrier_name(program, bar.address)}` ends with a wrong byte count",
        got=f"{abs(bar.tx)} bytes {side} in phase {bar.phase} (CTA of rank {cta.rank})",
        required="announced and landed bytes equal in every phase",
        fix="announce tile.nbytes for every copy that reports to the barrier",
        site=site,
    )


def peer_not_started(agent: Agent, cta: Cta, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=PEER_NOT_STARTED,
        what=f"the CTA of rank {cta.rank} is touched before it is known to have started",
        got=f"by {agent.kind} of the CTA of rank {agent.cta.rank}",
        required="a cluster sync first",
        fix="call cta.cluster_sync() after the barriers are initialised",
        site=site,
    )


def peer_may_be_gone(cta: Cta, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=PEER_MAY_BE_GONE,
        what=f"the CTA of rank {cta.rank} may exit before a peer's arrival reaches it",
        got="no thread of it waited for that arrival",
        required="a cluster sync at the end, or a wait for the peer's last arrival",
        fix="end the pipeline with cta.cluster_sync()",
        site=site,
    )


def stores_meet(agent: Agent, site: Site | None, earlier: Site | None, *, across: bool) -> Diagnostic:
    return Diagnostic(
        rule=STORES_MEET,
        what="two stores to one place in global memory are not ordered: either may be the last",
        got=f"by {agent.kind}, {'and another cluster' if across else 'in one cluster'}",
        required="each element stored once, or the first store waited for with wait_group, and then a sync",
        fix="let coordinates tell blocks and iterations apart, in elements",
        site=site,
        causes=(Cause("the other store", earlier),),
    )


def load_of_stored(agent: Agent, site: Site | None, other: Site | None, did: str, whose: str, *, own: bool = False) -> Diagnostic:
    one, another = ("a CTA", "it") if own else (f"one {whose}", "another one")
    return Diagnostic(
        rule=LOAD_OF_STORED,
        what=f"{one} loads from global memory what {another} stores in the same launch",
        got=f"by {agent.kind}; {did} by {'itself' if own else f'another {whose}'}{', which nothing orders' if whose == 'CTA' else ''}",
        required="loads of what no other cluster stores, and inside a cluster a sync after the `wait_group` of the store",
        fix="store to another array, or use two launches",
        site=site,
        causes=(Cause("stored here", other),) if other is not None else (),
    )


def map_stale(agent: Agent, site: Site | None, released: Site | None, why: str) -> Diagnostic:
    return Diagnostic(
        rule=MAP_STALE,
        what="a copy goes through a map that was replaced and not acquired: it may be what was there before",
        got=f"by {agent.kind}: {why}",
        required="the release, then an acquire by a thread of this CTA that follows it, then the copy",
        fix="call `released.acquire(leader)` behind the release, and use the descriptor that it gives",
        site=site,
        causes=(Cause("released here", released),) if released is not None else (),
    )


def map_overwritten(agent: Agent, site: Site | None, used: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=MAP_OVERWRITTEN,
        what="a map in global memory is written while a copy may still read it, or another write of it is not known to be over",
        got=f"by {agent.kind}",
        required="of each copy through it: its phase waited for, or its bulk group (`wait_group_read`); nothing tells of a prefetch",
        fix="wait for the copies through the old map before the new one is released, or use another slot",
        site=site,
        causes=(Cause("used here", used),) if used is not None else (),
    )


def edited_together(agent: Agent, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=MAP_THREADS,
        what="several threads edit one map: each instruction writes all of it",
        got=f"by {agent.kind}",
        required="one thread",
        fix="edit it inside `with warp.elect() as leader:`",
        site=site,
    )


def not_one_warp(agent: Agent, site: Site | None) -> Diagnostic:
    return Diagnostic(
        rule=MAP_THREADS,
        what="tensormap.cp_fenceproxy is one instruction of a whole warp",
        got=f"by {agent.kind}, and what is in scope with it",
        required="all 32 threads of one warp",
        fix="call it inside `with cta.warps(0, 1) as warp:`",
        site=site,
    )
