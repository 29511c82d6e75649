"""Tokens whose phase cannot be told beforehand: where the state that an arrival returns is kept until somebody waits for it.

A thread class that makes a token and waits for it in the same loops keeps the last one in registers. For other classes, and for waits in
other loops that come to the same iterations, it is put into shared memory, behind the user's: a history of so many entries that none is
overwritten while somebody may ask for it. A wait is right only while its phase is the current or the last one, and in those two no more
arrivals come than twice the barrier's count. Of an array of barriers each element may have as many, where an arrival goes from one to
another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.values import ZERO, Lin, Test, Values
from oxidecopy.errors import DeviceCodeError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.expr import And, Answer, Cond, Const, Not, Or

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.agents import Cast
    from oxidecopy.program.program import Program, Step

WORD: Final = 8
KEPT_MAX: Final = 12  # tokens of one agent: two registers each
_STAMP_BITS: Final = 60  # of all counters around; what is on its way at once differs in the lower ones of each
_COUNTER_BITS: Final = 30  # of one, at most


@final
class History(NamedTuple):
    """Shared offset and entries of a token's `abi.HISTORY`."""

    offset: int
    entries: int


@final
class _Uses(NamedTuple):
    """Who makes a token and who waits for it, among the agents that have code.

    `elsewhere` are those that wait for it in other loops than `loops`, which it is made in; `asked`: whether it is made depends on answers.
    """

    makers: list[int]
    waiters: list[int]
    elsewhere: set[int]
    loops: tuple[int, ...]
    bar: ops.BarrierRef
    asked: bool


@final
class Tokens:
    """The engine's words of shared memory: `at`, and how many. Barriers of threads come first, where there are more agents than warps."""

    def __init__(self, program: Program, cast: Cast, unknown: Collection[int], sm: int) -> None:
        self.at = -(-program.shared_bytes // WORD) * WORD
        self.words = len(cast.numbers) if cast.many else 0
        self.kept: set[tuple[int, int]] = set()  # (token, agent)
        self.shared: dict[int, History] = {}
        self.unknown = frozenset(unknown)
        counts = Counter[int]()
        for token, uses in _uses(program, cast, self.unknown).items():
            here = [agent for agent in uses.waiters if agent in uses.makers and agent not in uses.elsewhere]
            mine = [agent for agent in here if counts[agent] < KEPT_MAX and not uses.asked]
            counts.update(mine)
            self.kept.update([(token, agent) for agent in mine])
            if len(mine) < len(uses.waiters):
                self.shared[token] = self._history(program, cast, uses)
        most = limits.SHARED_BYTES_MAX[sm]
        if self.words and self.shared_bytes > most:
            raise DeviceCodeError(refusals.no_room(program, program.shared_bytes, self.shared_bytes - program.shared_bytes, most))

    @property
    def shared_bytes(self) -> int:
        """What a block needs with them; 0 without."""
        return self.at + WORD * self.words if self.words else 0

    def _history(self, program: Program, cast: Cast, uses: _Uses) -> History:
        inits = [s.op for s in program.walk() if isinstance(s.op, ops.MbarrierInit) and s.op.bar.barrier == uses.bar.barrier]
        count = max([init.count for init in inits], default=1)  # none: nobody ever comes to the op
        entries = 2 * -(-count // min(cast.all[i].count for i in uses.makers)) + len(uses.makers)
        if not isinstance(uses.bar.index, Const):
            entries *= program.barriers[uses.bar.barrier].stages
        made = History(self.at + WORD * self.words, entries)
        self.words += 1 + abi.HISTORY_WORDS * entries
        return made

    # ---- what records say of a token
    def registers(self, token: int) -> tuple[Test, Test]:
        """What stands for the registers of a kept token: its stamp and its state."""
        return Test("stamp", register=token), Test("state", register=token)

    def places(self, token: int, agent: int, *, makes: bool) -> tuple[int, tuple[Test, ...], tuple[tuple[int, int], ...]]:
        """Flags, registers and immediates; no flags where nobody waits for it. Who waits looks in one place."""
        kept = (token, agent) in self.kept
        history = self.shared.get(token) if makes or not kept else None
        flags = abi.TOKEN_KEPT * kept | abi.TOKEN_SHARED * (history is not None)
        return flags, self.registers(token) if kept else (), () if history is None else ((3, history.offset), (4, history.entries))


def stamp_part(counters: int) -> tuple[int, int]:
    """What each of so many counters has of a stamp: bits, and the odd number whose remainder of the counter is in them."""
    bits = min(_COUNTER_BITS, _STAMP_BITS // max(1, counters))
    return bits, max(1, (1 << bits) - 1)


def stamp_of(values: Values, counters: Sequence[str]) -> Lin:
    """The counters of the loops around, outermost first, as one number from 0 on.

    The same in other loops whose counters are the same, and another one in any iteration near this one: of a counter the remainder by an
    odd number, since what loops step by is often a power of two.
    """
    stamp, (bits, odd) = ZERO, stamp_part(len(counters))
    for i, name in enumerate(reversed(counters)):
        counter = values.named(name)
        if counter is not None:
            stamp = values.add(stamp, values.mod(counter, odd), 1 << bits * i)
    return stamp


def _uses(program: Program, cast: Cast, unknown: Collection[int]) -> dict[int, _Uses]:
    """By token. What no kept agent makes or waits for is left out."""
    found: dict[int, _Uses] = {}
    visits = list(_walk(program.steps, _Around(), cast))
    kept = set(cast.kept)
    for op, around in visits:
        if isinstance(op, ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop) and op.token in unknown:
            makers = [i for i in cast.inside(around.scopes) if i in kept]
            found[op.token] = _Uses(makers, [], set(), around.loops, op.bar, around.asked)
    for op, around in visits:  # a wait may stand before the arrival of other threads
        for token in set(op.tokens if isinstance(op, ops.MbarrierWait) else (op.token,) if isinstance(op, ops.MbarrierTestToken) else ()):
            if token in found:
                uses, here = found[token], [i for i in cast.inside(around.scopes) if i in kept]
                uses.waiters.extend(set(here) - set(uses.waiters))
                if around.loops != uses.loops:
                    uses.elsewhere.update(here)
    return {token: uses for token, uses in found.items() if uses.makers and uses.waiters}


@final
class _Around(NamedTuple):
    """The blocks around an op: scopes, loops by identity, and whether a branch depends on answers."""

    scopes: frozenset[int] = frozenset()
    loops: tuple[int, ...] = ()
    asked: bool = False


def _walk(steps: Sequence[Step], around: _Around, cast: Cast) -> Iterator[tuple[ops.Instr, _Around]]:
    for step in steps:
        op = step.op
        yield op, around
        inner = around
        if isinstance(op, ops.Scope):
            inner = around._replace(scopes=around.scopes | {cast.scopes[id(step)]})
        elif isinstance(op, ops.Loop):
            inner = around._replace(loops=(*around.loops, id(step)))
        elif isinstance(op, ops.When):
            inner = around._replace(asked=around.asked or _asks(op.cond))
        yield from _walk(step.body, inner, cast)


def _asks(cond: Cond) -> bool:
    match cond:
        case Answer():
            return True
        case Not(a):
            return _asks(a)
        case And(a, b) | Or(a, b):
            return _asks(a) or _asks(b)
        case _:
            return False
