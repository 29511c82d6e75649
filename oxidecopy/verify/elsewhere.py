"""Tokens that are waited for in other loops than they are made in: those of the iteration whose counters are the same.

The co-execution knows iterations by their number. That is as good where the loops begin alike and count alike, and nothing else is taken:
what is recorded has its waits beside its arrivals anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

from oxidecopy.isa.expr import Expr, Sym, SymKind, substitute
from oxidecopy.isa.ops import Loop
from oxidecopy.program.phases import LOCAL, asked
from oxidecopy.program.program import Program, Step
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.report import Collector


@final
class _Place(NamedTuple):
    """A step, and the loops around it, outermost first."""

    step: Step
    loops: tuple[Loop, ...]


def check_elsewhere(program: Program, out: Collector) -> bool:
    """Reports every wait for a token that is made in loops which count otherwise."""
    places = list(_places(program.steps, ()))
    made = {p.step.op.token: p for p in places if isinstance(p.step.op, LOCAL)}
    good = True
    for place in places:
        for token in asked(place.step.op):
            arrival = made.get(token)
            if arrival is None or arrival.loops == place.loops or len(arrival.loops) != len(place.loops):
                continue  # of another depth, or of no iteration: nobody makes it, which the co-execution sees
            if _begins(arrival.loops) != _begins(place.loops):
                good = False
                out.add(
                    ids.DEADLOCK,
                    "a token is waited for in other loops than it is made in, and these begin or count otherwise",
                    step=place.step,
                    got=_words(place.loops),
                    required=f"{_words(arrival.loops)}, as around the arrival",
                    fix="begin both loops alike, or wait beside the arrival",
                )
    return good


def _places(steps: Sequence[Step], loops: tuple[Loop, ...]) -> Iterator[_Place]:
    for step in steps:
        yield _Place(step, loops)
        yield from _places(step.body, (*loops, step.op) if isinstance(step.op, Loop) else loops)


def _begins(loops: tuple[Loop, ...]) -> list[tuple[Expr, int]]:
    """Where each loop begins and how far it steps, with counters by their level."""
    levels: dict[str, Expr] = {loop.counter: Sym(f"loop {level}", SymKind.LOOP) for level, loop in enumerate(loops)}
    return [(substitute(loop.start, levels), loop.step) for loop in loops]


def _words(loops: tuple[Loop, ...]) -> str:
    from oxidecopy.program.text.expressions import format_node  # a launch that goes well has no use for the text form

    return "; ".join(f"start={format_node(loop.start)}, step={loop.step}" for loop in loops)
