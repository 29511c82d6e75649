"""Which phase of its barrier each token names, as an expression over the counters of the loops around its arrival.

The hardware's waits know a parity and nothing else, so what `MbarrierWait` means by a token must be known beforehand. The phase of an
arrival is the number of arrivals before it on the same element since the last init, over the barrier's count. Three arguments tell it:

- all arrivals of a lifetime together are no more than the count: they are in phase 0, in whatever order they come;
- one thread alone arrives: its own program order numbers its arrivals;
- several threads arrive in *rounds*: the arrivals of a round are what the barrier then counts, and between a round and the next every
  thread that ever arrives waits for one of the round's tokens, or syncs with one that did. Nobody can begin a round before the phase of the
  last one is over, so phase p holds nothing but round p, and needs all of it.

Of anything else it is said why it cannot be told: an engine then has to carry what the arrival returns to the wait. Programs are taken to
be verified: nobody arrives before the init, or when a phase is already full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, final

from oxidecopy.isa import ops
from oxidecopy.isa.expr import ZERO, Cond, Const, Expr, SymKind, holds, symbols
from oxidecopy.isa.ops import BarrierRef, Loop, Scope, ThreadSet, When
from oxidecopy.program.counting import (
    CannotCount,
    Sum,
    distance,
    number,
    passes,
    product,
    ring_of,
    sum_of,
    trips,
    turns,
    visits_before,
    visits_per_pass,
)
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import Launch, Program, Step

Local: TypeAlias = ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop
LOCAL: Final = (ops.MbarrierArrive, ops.MbarrierArriveExpectTx, ops.MbarrierArriveDrop)
REMOTE: Final = (ops.MbarrierArriveRemote, ops.MbarrierArriveExpectTxRemote)


@final
class Phases(NamedTuple):
    """Phases by token, and why others have none. A token of a branch that the launch never takes is in neither."""

    known: dict[int, Expr]
    unknown: dict[int, str]


def token_phases(program: Program, launch: Launch) -> Phases:
    """The phase of every token that some op waits for or asks about, by its number.

    Args:
        program: with or without stages; they are expanded.
        launch: decides conditions and divisibility, and nothing else: what is symbolic stays so.
    """
    tree = _Tree(expanded(program), launch)
    found = Phases({}, {})
    for token, uses in tree.used().items():
        arrival = tree.makers.get(token)
        if arrival is None:
            continue  # its arrival is in a branch that this launch never takes
        try:
            phase = _Barrier(tree, arrival).phase()
        except CannotCount as reason:
            found.unknown[token] = str(reason)
            continue
        counters = {s.name for s in symbols(phase) if s.kind is SymKind.LOOP}
        if any(counters - {loop.counter for loop in place.loops()} for place in uses):
            found.unknown[token] = "it is waited for in other loops than it is made in"
        else:
            found.known[token] = phase
    return found


# ---- the program as a list of places
@final
@dataclass(frozen=True, slots=True)
class _Place:
    """An op where it stands: `at` in program order, the loops and branches around it, and who executes it (bit i is thread i)."""

    at: int
    step: Step
    path: tuple[_Place, ...]
    threads: int

    def loops(self, skip: int = 0) -> tuple[Loop, ...]:
        """The loops around, outermost first, without the first `skip`."""
        return tuple(p.step.op for p in self.path if isinstance(p.step.op, Loop))[skip:]


@final
class _Tree:
    """Every place of a program that a launch can reach, blocks included."""

    def __init__(self, program: Program, launch: Launch) -> None:
        self.program = program
        self.env: dict[str, int] = launch.environment()
        self.places: list[_Place] = []
        self._walk(program.steps, (), (1 << program.threads) - 1)
        self.makers = {p.step.op.token: p for p in self.places if isinstance(p.step.op, LOCAL)}

    def _walk(self, steps: Sequence[Step], path: tuple[_Place, ...], threads: int) -> None:
        for step in steps:
            op = step.op
            inner = _bits(op.threads) if isinstance(op, Scope) else threads
            place = _Place(len(self.places), step, path, inner)
            self.places.append(place)
            if isinstance(op, When) and _decided(op.cond, self.env) is False:
                continue
            block = isinstance(op, Loop) or (isinstance(op, When) and _decided(op.cond, self.env) is None)
            self._walk(step.body, (*path, place) if block else path, inner)

    def used(self) -> dict[int, list[_Place]]:
        """Tokens that are waited for or asked about, in order of the first such place, and all of these places."""
        found: dict[int, list[_Place]] = {}
        for p in self.places:
            for token in asked(p.step.op):
                found.setdefault(token, []).append(p)
        return found


def asked(op: ops.Instr) -> tuple[int, ...]:
    """The tokens that an op waits for or asks about."""
    match op:
        case ops.MbarrierWait(tokens=tokens):
            return tokens
        case ops.MbarrierTestToken(token=token):
            return (token,)
        case _:
            return ()


def _decided(cond: Cond, env: Mapping[str, int]) -> bool | None:
    try:
        return holds(cond, env, {})
    except (KeyError, ZeroDivisionError):
        return None


def _ref(place: _Place) -> BarrierRef:
    op = place.step.op
    if not isinstance(op, (*LOCAL, *REMOTE, ops.MbarrierInit)):
        raise TypeError(f"{op.mnemonic} has no barrier here")  # a bug of ours
    return op.bar


# ---- one barrier, seen from one arrival
@final
class _Barrier:
    """The lifetime of the element that `target` arrives on: from its last init, and every arrival on it since."""

    def __init__(self, tree: _Tree, target: _Place) -> None:
        self.tree = tree
        self.target = target
        self.env = tree.env
        here = [p for p in tree.places if isinstance(p.step.op, (*LOCAL, *REMOTE, ops.MbarrierInit)) and self._may_meet(p)]
        inits = [p for p in here if isinstance(p.step.op, ops.MbarrierInit)]
        self.init, self.count = self._last_init(inits)
        self.skip = len(self.init.loops())
        self.end = min((p.at for p in inits if p.at > self.init.at and p.path == self.init.path), default=len(tree.places))
        since = [p for p in here if not isinstance(p.step.op, ops.MbarrierInit) and p.at > self.init.at]
        self.arrivals = [p for p in since if p.at < self.end and self._inside(p)]
        if any(not self._inside(p) and not any(q.at > self.init.at and p.path[: len(q.path)] == q.path for q in inits) for p in since):
            raise CannotCount("the barrier is used on behind the loop or branch that it is initialised in")
        self.local = [p for p in self.arrivals if isinstance(p.step.op, LOCAL)]

    def phase(self) -> Expr:
        if self._all_in_one():
            return ZERO
        if len(self.local) < len(self.arrivals):
            raise CannotCount("other CTAs of the cluster arrive on the barrier too")
        everyone = 0
        for p in self.local:
            everyone |= p.threads
        if everyone.bit_count() == 1:
            return self._dropping() if self._drops() else self._ordinal().divided(self.count)
        if any(_ref(p).index != _ref(self.target).index for p in self.local):
            raise CannotCount("several threads arrive on different elements of the barrier array")
        total = Sum()
        for arrivals in _Rounds(self, everyone).rounds:
            total += self._before(self.target if self.target in arrivals else arrivals[0])
        return total.expr()

    # ---- which ops matter
    def _may_meet(self, place: _Place) -> bool:
        mine, other = _ref(self.target), _ref(place)
        apart = isinstance(mine.index, Const) and isinstance(other.index, Const) and mine.index != other.index
        return mine.barrier == other.barrier and not apart

    def _inside(self, place: _Place) -> bool:
        """True when `place` is in the body of the init, or a block in it."""
        return place.path[: len(self.init.path)] == self.init.path

    def _last_init(self, inits: Sequence[_Place]) -> tuple[_Place, int]:
        """The init that starts the lifetime, and its count. An index that moves needs one for every element, all alike."""
        chains = [p for p in inits if p.at < self.target.at and self.target.path[: len(p.path)] == p.path]
        last: dict[Expr, _Place] = {_ref(p).index: p for p in chains}
        if not last:
            raise CannotCount("no init of the barrier comes before it in the same body")
        newest = max(last.values(), key=lambda p: p.at)
        index, stages = _ref(self.target).index, self.tree.program.barriers[_ref(self.target).barrier].stages
        if last.keys() != {index} and last.keys() != {Const(i) for i in range(stages)}:
            raise CannotCount("not every element of the barrier array is initialised before it, each by its number")
        counts = {p.step.op.count for p in last.values() if isinstance(p.step.op, ops.MbarrierInit)}
        oldest = min(last.values(), key=lambda p: p.at)
        if len(counts) != 1 or any(p.path != newest.path for p in last.values()) or self._between(oldest, newest):
            raise CannotCount("the elements of the barrier array are not initialised together, with one count")
        deeper = set(self.target.path[len(newest.path) :])
        if any(set(p.path) & deeper or (p.at < self.target.at and p not in chains and p.at > newest.at) for p in inits):
            raise CannotCount("the barrier is initialised again in a loop or branch")
        return newest, counts.pop()

    def _between(self, first: _Place, last: _Place) -> bool:
        return any(first.at < p.at < last.at and isinstance(p.step.op, (*LOCAL, *REMOTE)) and self._may_meet(p) for p in self.tree.places)

    def _drops(self) -> bool:
        return any(isinstance(p.step.op, ops.MbarrierArriveDrop) for p in self.local)

    # ---- the arguments
    def _all_in_one(self) -> bool:
        """True when no more arrivals come in the whole lifetime than its first phase takes."""
        total = 0
        for p in self.arrivals:
            times = 1
            for loop in p.loops(self.skip):
                try:
                    times *= number(trips(loop), self.env)
                except CannotCount:
                    return False
            total += times * p.threads.bit_count() * (self.tree.program.cluster_size if isinstance(p.step.op, REMOTE) else 1)
        return total <= self.count

    def _dropping(self) -> Expr:
        """The count shrinks on the way, so one thread's arrivals are gone through one by one."""
        if any(p.path != self.init.path or _ref(p).index != _ref(self.target).index for p in self.local):
            raise CannotCount("the barrier's count changes in a loop or branch")
        phase, pending, expected = 0, self.count, self.count
        for p in self.local:
            if p is self.target:
                break
            expected -= isinstance(p.step.op, ops.MbarrierArriveDrop)
            pending -= 1
            if not pending:
                phase, pending = phase + 1, expected
        return Const(phase)

    def _ordinal(self) -> Sum:
        """Arrivals of the one thread before the one that makes the token."""
        total = Sum()
        for p in self.local:
            total += self._before(p)
        return total

    def _before(self, place: _Place) -> Sum:
        """How often `place` ran on the target's element before the target did, in this iteration."""
        mine, other = self.target.path[len(self.init.path) :], place.path[len(self.init.path) :]
        shared = next((i for i, (a, b) in enumerate(zip(mine, other, strict=False)) if a is not b), min(len(mine), len(other)))
        earlier = place.at < self.target.at
        if not earlier and not any(isinstance(p.step.op, Loop) for p in mine[:shared]):
            return Sum()
        self._check_conditions(mine, other, shared)
        around, own = self.target.loops(self.skip), place.loops(self.skip)
        common = tuple(p.step.op for p in mine[:shared] if isinstance(p.step.op, Loop))
        ring, other_ring = ring_of(_ref(self.target).index, around, self.env), ring_of(_ref(place).index, own, self.env)
        if ring is None and other_ring is None:
            if _ref(self.target).index != _ref(place).index:
                raise CannotCount("two indices of the barrier array may or may not be the same element")
            body = own[len(common) :]
            return product(turns(common) + Sum(const=int(earlier)), passes(body, common)) if place is not self.target else turns(around)
        if ring is None or other_ring is None:
            raise CannotCount("some arrivals on the barrier array go round it and others stay")
        if around == own == common:
            behind = distance(ring, other_ring)
            same = Sum(const=int(earlier and behind == 0))
            return visits_before(ring, behind, self.env) + same
        if common or other_ring.outer or other_ring.modulus != ring.modulus or other_ring.period != other_ring.modulus or not ring.modulus:
            raise CannotCount("two loops go round the barriers in different ways")
        return product(sum_of(visits_per_pass(other_ring, self.env)), passes(other_ring.inner, other_ring.ring))

    def _check_conditions(self, mine: Sequence[_Place], other: Sequence[_Place], shared: int) -> None:
        """A branch must be taken by both or none, and always or never."""
        if any(isinstance(p.step.op, When) for p in other[shared:]):
            raise CannotCount("an earlier arrival on the barrier stands in a branch")
        for i, p in enumerate(mine[:shared]):
            looped = any(isinstance(q.step.op, Loop) for q in mine[:i])
            if isinstance(p.step.op, When) and looped and not _steady(p.step.op.cond):
                raise CannotCount("the arrival stands in a branch of a loop that is not taken in every iteration")


def _steady(cond: Cond) -> bool:
    """True when a CTA takes the branch always or never."""
    return not any(s.kind in (SymKind.LOOP, SymKind.OPAQUE, SymKind.TRIPS) for s in symbols(cond))


# ---- several threads in rounds
@final
class _Rounds:
    """The arrivals of a lifetime in program order, cut into rounds by waits for their own tokens."""

    def __init__(self, barrier: _Barrier, everyone: int) -> None:
        self.barrier = barrier
        self.everyone = everyone
        self.rounds: list[list[_Place]] = []
        self.open: list[_Place] = []
        self.waited = 0  # threads that know the open round's phase to be over
        arrivals = {p.at for p in barrier.local}
        for p in barrier.tree.places[barrier.init.at : barrier.end]:
            if self.open and p.path[: len(self.open[0].path)] != self.open[0].path:
                self._leave_body()
            if p.at in arrivals:
                self._arrival(p)
            elif self.open and p.path == self.open[0].path:
                self._wait(p)
        self._leave_body()
        if self.open:
            self._close()
        self._check_counts()

    def _check_counts(self) -> None:
        """Every round is exactly what its phase counts."""
        expected = self.barrier.count
        for arrivals in self.rounds:
            brought = sum(p.threads.bit_count() for p in arrivals)
            if brought != expected:
                raise CannotCount(f"the threads bring {brought} arrivals between two waits, and the barrier then counts {expected}")
            dropped = sum(p.threads.bit_count() for p in arrivals if isinstance(p.step.op, ops.MbarrierArriveDrop))
            if dropped and arrivals[0].loops(self.barrier.skip):
                raise CannotCount("the barrier's count changes in a loop")
            expected -= dropped

    def _arrival(self, place: _Place) -> None:
        if self.open and not self.everyone & ~self.waited:
            self._close()
        elif self.waited:
            raise CannotCount("some of the threads that arrive do not wait for the phase before they arrive again")
        if self.open and place.path != self.open[0].path:
            raise CannotCount("the arrivals of one phase stand in different loops or branches")
        self.open.append(place)

    def _wait(self, place: _Place) -> None:
        tokens = {p.step.op.token for p in self.open if isinstance(p.step.op, LOCAL)}
        match place.step.op:
            case ops.MbarrierWait(tokens=waited) if tokens & set(waited):
                self.waited |= place.threads
            case ops.BarSync(threads=n) if n == place.threads.bit_count() and place.threads & self.waited:
                self.waited |= place.threads  # none of them passes before the one that has waited
            case ops.ClusterSync() if self.waited:
                self.waited |= place.threads
            case _:
                pass

    def _leave_body(self) -> None:
        """The round's body ends; where it is a loop's, its next round may follow at once."""
        if not self.open:
            return
        if self.everyone & ~self.waited and self.open[0].loops(self.barrier.skip):
            raise CannotCount("some of the threads that arrive do not wait for the phase before the next iteration")
        if not self.everyone & ~self.waited:
            self._close()

    def _close(self) -> None:
        self.rounds.append(self.open)
        self.open, self.waited = [], 0


# ---- sets of threads, bit i for thread i
def _bits(threads: ThreadSet) -> int:
    return sum((1 << high) - (1 << low) for low, high in threads.ranges)
