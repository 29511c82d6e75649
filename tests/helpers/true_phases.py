"""What the simulator knows and the hardware does not: the phase that each token names, noted while a program runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from oxidecopy.engines.sim.agents import Cta, TokenKey
from oxidecopy.engines.sim.mbarrier import Mbarrier
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Expr, evaluate
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Launch, Program, Step


@dataclass(slots=True)
class Notes:
    """Block, rank and key of each token that was made, with the phase it names."""

    seen: list[tuple[tuple[int, int, int], int, TokenKey, int]] = field(default_factory=list)


class _Tokens(dict[TokenKey, tuple[Mbarrier, int]]):
    def __init__(self, cta: Cta, notes: Notes) -> None:
        super().__init__()
        self.cta, self.notes = cta, notes

    def __setitem__(self, key: TokenKey, value: tuple[Mbarrier, int]) -> None:
        self.notes.seen.append((self.cta.block, self.cta.rank, key, value[1]))
        super().__setitem__(key, value)


@contextmanager
def noted() -> Iterator[Notes]:
    """All runs inside note their tokens."""
    notes, reset = Notes(), Cta.reset

    def renewed(cta: Cta, block: tuple[int, int, int]) -> None:
        reset(cta, block)
        cta.tokens = _Tokens(cta, notes)

    Cta.reset = renewed  # type: ignore[method-assign,assignment]
    try:
        yield notes
    finally:
        Cta.reset = reset  # type: ignore[method-assign]


def loops_of(program: Program) -> dict[int, tuple[str, ...]]:
    """The counters around the op that makes each token."""
    found: dict[int, tuple[str, ...]] = {}

    def walk(steps: tuple[Step, ...], around: tuple[str, ...]) -> None:
        for s in steps:
            if isinstance(s.op, ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop):
                found[s.op.token] = around
            walk(s.body, (*around, s.op.counter) if isinstance(s.op, ops.Loop) else around)

    walk(expanded(program).steps, ())
    return found


def disagreements(notes: Notes, program: Program, launch: Launch, phases: Mapping[int, Expr]) -> list[str]:
    """Tokens whose computed phase is not the true one."""
    loops = loops_of(program)
    wrong = []
    for block, rank, key, phase in notes.seen:
        token, *counters = key if isinstance(key, tuple) else (key,)
        if token in phases:
            env = launch.environment() | dict(zip(BLOCK_SYMBOLS, block, strict=True)) | {RANK_SYMBOL: rank}
            env |= dict(zip(loops[token], counters, strict=True))
            if evaluate(phases[token], env) != phase:
                wrong.append(f"%{token} at {env}: {phases[token]} is not {phase}")
    return wrong
