"""A proof for every number of tiles that a counter may give a CTA: 0 to all of them.

F(T) is the co-execution for T tiles. It is run for T = 0, 1, 2, ... up to where all larger T repeat smaller ones. The argument:

1. F(N), N being all tiles, is run until its state at the end of an iteration repeats: at turns k and k + P of one loop over the share, with
   every agent that has such a loop inside it, P iterations further. Up to there nothing asked for T but the loops, which went on. So F(T)
   runs alike up to turn k for every T >= T1, where T1 is more than any agent had iterated at turn k, and up to turn k + P for T >= T1 + P.
2. Take T >= T1 + P. What F(T) does from turn k + P on, F(T - P) does from turn k on: the states are the same up to order of times, and up
   to a shift of loop counters and T by P and of each barrier's phase by what the P iterations moved it. No op tells them apart when every
   expression that steers (asked by F(T - P) from turn k on, to its end) is indifferent to the shift: an index or a truth does not change,
   a phase moves as its barrier does. So F(T) is as free of violations as F(T - P), and asks the same expressions, shifted.
3. Hence F(0) to F(T1 + P - 1), run one by one, cover all T by induction. What is indifferent only within bounds (`i - 2 >= 0`) is judged
   over all values up to N.

Where a program does not settle like that, all F(T) are run if they are few, else it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from oxidecopy.isa import expr, ops
from oxidecopy.program.program import Launch
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.affine import Range
from oxidecopy.verify.build import Compiled, build
from oxidecopy.verify.code import Control
from oxidecopy.verify.ending import check_ending
from oxidecopy.verify.opaque import over_share
from oxidecopy.verify.periods import Judge, has_parity
from oxidecopy.verify.report import Collector
from oxidecopy.verify.snapshot import Snapshot, snapshot
from oxidecopy.verify.state import Agent, At, Machine, Mark
from oxidecopy.verify.walk import run

WALKS_MAX: Final = 257  # numbers of tiles that are tried one by one when no period is found

_FIRST: Final = 2  # numbers up to this one are tried before the search for a period


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The state of F(N) at turn `turn` of a loop of an agent is that at `turn` + `period`."""

    agent: int
    counter: str
    turn: int
    period: int
    first: int  # T1: F(T) gets there for every T from here on
    deltas: list[dict[str, int]]  # of the symbols that the shift moves, by agent
    phases: list[int]  # by which each barrier's phase moves


class _RepeatsError(Exception):
    """Ends the walk of F(N)."""

    def __init__(self, repeat: Repeat) -> None:
        super().__init__()
        self.repeat = repeat


@final
@dataclass(slots=True)
class _Saved:
    """What a state leaves out: where it was, with the counters and phases it had."""

    turn: int
    counters: list[dict[str, int]]
    phases: list[int]
    lives: list[Mark | None]


@final
class _Probe:
    """Watches the first loop over the share that comes to the end of an iteration, and keeps the state at each end."""

    def __init__(self, machine: Machine, waiting: Mapping[int, At]) -> None:
        self.machine = machine
        self.waiting = waiting
        self.parity = has_parity(machine.program)
        self.watched: tuple[int, str] | None = None
        self.saved: dict[Snapshot, _Saved] = {}
        machine.log, machine.all_phases = [], True

    def edge(self, agent: Agent, op: ops.Loop) -> None:
        if not over_share(op):
            return
        if self.watched is None:
            self.watched = (agent.id, op.counter)
        turn = agent.turns[op.counter]
        if self.watched != (agent.id, op.counter) or turn >= WALKS_MAX:
            return
        machine = self.machine
        state = snapshot(machine, self.waiting, parity=self.parity)
        repeat = self._repeat(agent, op, self.saved[state], turn) if state in self.saved else None
        if repeat is not None:
            raise _RepeatsError(repeat)
        phases, lives = [b.phase - b.base for b in machine.bars], [b.born for b in machine.bars]
        self.saved[state] = _Saved(turn, _counters(machine), phases, lives)

    def _repeat(self, agent: Agent, op: ops.Loop, saved: _Saved, turn: int) -> Repeat | None:
        """The period, if every agent with a loop over the share moved by it, and nothing but going on in such loops hung on T so far."""
        machine, period = self.machine, turn - saved.turn
        first = 0
        for a, now, before in zip(machine.agents, _counters(machine), saved.counters, strict=True):
            mine = {i.op.counter for i in a.code if i.control is Control.ENTER and isinstance(i.op, ops.Loop) and over_share(i.op)}
            inside = mine & now.keys()
            if len(mine) > 1 or inside != mine or any(now[n] - before[n] != (period if n in mine else 0) for n in now):
                return None
            first = max([first, *(before[n] + 1 for n in inside)])
        if any(b.born is not born for b, born in zip(machine.bars, saved.lives, strict=True)):
            return None
        loops = [(i, i.op) for a in machine.agents for i in a.code if isinstance(i.op, ops.Loop) and over_share(i.op)]
        going = {id(i.more) for i, _ in loops}
        for asked in machine.log or ():
            if any(s.kind is expr.SymKind.TRIPS for s in expr.symbols(asked.expr)) and not (id(asked.expr) in going and asked.truth):
                return None
        shift = {loop.counter: period for _, loop in loops}
        shift[machine.trips] = period
        phases = [b.phase - b.base - before for b, before in zip(machine.bars, saved.phases, strict=True)]
        return Repeat(
            agent=agent.id, counter=op.counter, turn=saved.turn, period=period, first=first,
            deltas=[shift for _ in machine.agents], phases=phases,
        )  # fmt: skip


@final
class _Tail:
    """Keeps the expressions asked from the turn on at which F(N) began to repeat."""

    def __init__(self, machine: Machine, repeat: Repeat) -> None:
        self.machine = machine
        self.repeat = repeat
        machine.all_phases = True

    def edge(self, agent: Agent, op: ops.Loop) -> None:
        at = self.repeat
        if self.machine.log is None and (agent.id, op.counter, agent.turns[op.counter]) == (at.agent, at.counter, at.turn):
            self.machine.log = []

    def follows(self, largest: int) -> bool:
        """Whether step 2 of the argument holds from here up to `largest` tiles."""
        machine, at = self.machine, self.repeat
        if machine.log is None:
            return False
        asked = list({(q.agent, q.use, id(q.expr), q.bar, *q.counters.values()): q for q in machine.log}.values())
        judge = Judge(machine, at.deltas, at.phases, asked)
        periods = (largest - machine.count) // at.period
        return judge.moves_along() and judge.holds(periods)


@final
class _Still:
    """A walk that nobody watches: small enough to be run in full."""

    def edge(self, agent: Agent, op: ops.Loop) -> None:
        pass


@final
class Counts:
    """The walks of one piece of the grid."""

    def __init__(self, launch: Launch, compiled: Compiled, box: tuple[Range, ...], out: Collector, ran: dict[int, int]) -> None:
        self.launch = launch
        self.compiled = compiled
        self.box = box
        self.out = out
        self.ran = ran

    def walk(self) -> bool:
        """Runs what step 3 asks for; False when something was found."""
        tiles = self.compiled.opaque.tiles if self.compiled.opaque is not None else 0
        # Small numbers first: what is wrong for none or one tile is said in terms of that.
        if not all(self._clean(count) for count in range(min(_FIRST, tiles) + 1)):
            return False
        repeat = self._probe(tiles)
        if self.out.report().violations:
            return False
        if repeat is not None and self._by_induction(repeat, tiles):
            self._tell(repeat, tiles)
            return True
        if self.out.report().violations:
            return False
        if tiles >= WALKS_MAX:
            return self._refuse("no state repeats" if repeat is None else "what runs after many tiles differs from few", tiles)
        return all(self._clean(count) for count in range(_FIRST + 1, tiles + 1))

    def _tell(self, repeat: Repeat, tiles: int) -> None:
        ran = repeat.first + repeat.period - 1
        if ran < tiles:
            self.out.bound(
                f"of 0 to {tiles} tiles that the counter may give a CTA, 0 to {ran} are run",
                f"{repeat.period} more {'lead' if repeat.period > 1 else 'leads'} to the same state: larger numbers run as smaller ones do",
                key="tiles",
            )

    def _by_induction(self, repeat: Repeat, tiles: int) -> bool:
        """Steps 2 and 3: F(0) to F(T1 + P - 1) are clean, and where there are larger T the last P of these lead to them."""
        for count in range(min(tiles, repeat.first + repeat.period - 1) + 1):
            tail = repeat if count >= repeat.first and count + repeat.period <= tiles else None
            if (tail is not None or count > _FIRST) and not self._clean(count, tail):
                return False
        return True

    def _probe(self, tiles: int) -> Repeat | None:
        out = Collector()
        try:
            run(build(self.launch, self.compiled, self.box, out, count=tiles), _Probe)
        except _RepeatsError as found:
            return found.repeat
        finally:
            self._keep(out, tiles)
        return None

    def _clean(self, count: int, tail: Repeat | None = None) -> bool:
        """F(count) has no violation, and what step 2 asks of its tail holds."""
        tiles = self.compiled.opaque.tiles if self.compiled.opaque is not None else 0
        out = Collector()
        machine = build(self.launch, self.compiled, self.box, out, count=count)
        edges = _Tail(machine, tail) if tail is not None else _Still()
        try:
            run(machine, lambda _machine, _waiting: edges)
            if not machine.lost and all(a.done for a in machine.agents):
                check_ending(machine)
        finally:
            self._keep(out, count)
        self.ran.update(machine.ran)
        if self.out.report().violations:
            return False
        return not isinstance(edges, _Tail) or edges.follows(tiles)

    def _keep(self, found: Collector, count: int) -> None:
        """Takes over what is new, and says of violations for which number of tiles they are. With no tile there is no warning either."""
        report = found.report()
        for key, bound in found.bounds.items():
            self.out.bounds.setdefault(key, bound)
        word = "no tile" if count == 0 else "1 tile" if count == 1 else f"{count} tiles"
        self.out.found += [replace(d, what=f"{d.what} (when the counter gives this CTA {word})") for d in report.violations]
        self.out.found += [d for d in report.warnings if count and d not in self.out.found]

    def _refuse(self, why: str, tiles: int) -> bool:
        self.out.add(
            ids.COUNTS,
            "the pipeline cannot be proven for every number of tiles that its counter may give a CTA",
            site=self.compiled.program.site,
            got=f"{why}, and there are {tiles} tiles",
            required=f"a state that repeats from tile to tile, or fewer than {WALKS_MAX} tiles",
            fix="make barrier and stage indices periodic in the tile's number, and loop over the schedule once in each role",
        )
        return False


def _counters(machine: Machine) -> list[dict[str, int]]:
    return [{n: a.env[n] for n in a.turns} for a in machine.agents]
