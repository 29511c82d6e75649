"""Tokens whose phase cannot be told beforehand: where the state that an arrival returns is kept until somebody waits for it.

A thread class that makes a token and waits for it keeps it in registers. For other classes it is put into shared memory, behind the user's:
a history of so many entries that none is overwritten while somebody may ask for it. A wait is right only while its phase is the current or
the last one, and in those two no more arrivals come than twice the barrier's count.
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
from oxidecopy.isa.expr import And, Answer, Cond, Not, Or

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.agents import Cast
    from oxidecopy.program.program import Program, Step

WORD: Final = 8
KEPT_MAX: Final = 12  # tokens of one agent: two registers each
_STAMPS: Final = 1 << 40  # of iterations that are told apart: more than can be on their way at once


@final
class History(NamedTuple):
    """Shared offset and entries of a token's `abi.HISTORY`."""

    offset: int
    entries: int


@final
class _Uses(NamedTuple):
    """Who makes a token and who waits for it, among the agents that have code; `asked`: whether it is made depends on answers."""

    makers: list[int]
    waiters: list[int]
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
            mine = [agent for agent in uses.waiters if agent in uses.makers and counts[agent] < KEPT_MAX and not uses.asked]
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


def stamp_of(values: Values, counters: Sequence[str]) -> Lin:
    """The iteration of the loops around, outermost first, as one number from 0 on, which no two iterations near each other share."""
    stamp, step = ZERO, 1
    for name in reversed(counters):
        counter = values.named(name)
        if counter is None or step > _STAMPS:
            break
        low, high = values.interval(counter)
        stamp = values.add(stamp, (counter[0] - low, counter[1]), step)
        step *= high - low + 1
    return stamp


def _uses(program: Program, cast: Cast, unknown: Collection[int]) -> dict[int, _Uses]:
    """By token, in the program's order. What no kept agent makes or waits for is left out."""
    found: dict[int, _Uses] = {}
    for op, scopes, asked in _walk(program.steps, frozenset(), cast, asked=False):
        here = [i for i in cast.inside(scopes) if i in set(cast.kept)]
        match op:
            case ops.MbarrierArrive() | ops.MbarrierArriveExpectTx() | ops.MbarrierArriveDrop() if op.token in unknown:
                found[op.token] = _Uses(here, [], op.bar, asked)
            case ops.MbarrierWait(tokens=tokens):
                for token in set(tokens) & found.keys():
                    found[token].waiters.extend(set(here) - set(found[token].waiters))
            case ops.MbarrierTestToken(token=token) if token in found:
                found[token].waiters.extend(set(here) - set(found[token].waiters))
            case _:
                pass
    return {token: uses for token, uses in found.items() if uses.makers and uses.waiters}


def _walk(steps: Sequence[Step], scopes: frozenset[int], cast: Cast, *, asked: bool) -> Iterator[tuple[ops.Instr, frozenset[int], bool]]:
    for step in steps:
        op = step.op
        yield op, scopes, asked
        inner = scopes | {cast.scopes[id(step)]} if isinstance(op, ops.Scope) else scopes
        yield from _walk(step.body, inner, cast, asked=asked or (isinstance(op, ops.When) and _asks(op.cond)))


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
