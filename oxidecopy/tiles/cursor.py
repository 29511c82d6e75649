"""Numbers the stages of a ring: an expression for `how many have been used before this one`, wherever recording stands.

Inside a recorded loop the number at the start of an iteration depends on how many stages one iteration uses, which is known only when the
loop closes. Until then a placeholder symbol stands for it; closing the loop replaces it in everything recorded inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from oxidecopy.errors import Cause, Diagnostic, RecordError
from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import ONE, ZERO, Answer, Cond, Const, Expr, Sym, SymKind
from oxidecopy.isa.rewrite import rewrite
from oxidecopy.isa.rewriter import Rewriter
from oxidecopy.program.expansion import ALWAYS
from oxidecopy.program.nesting import fits, nodes
from oxidecopy.program.program import Step
from oxidecopy.typed.refusal import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oxidecopy.typed.frames import Frame
    from oxidecopy.typed.recorder import Recorder


@final
@dataclass(slots=True)
class _Level:
    """One open loop (or the pipeline itself): the number at its iteration's start, and the stages used in it so far."""

    frame: Frame
    entry: Expr
    used: Expr = ZERO


@final
@dataclass(slots=True)
class Conditions:
    """The conditions around everything that is done with a ring: the same for all its roles, and outside every loop."""

    around: tuple[Cond, ...] | None = None  # None until the first stage is taken

    def apart(self, frames: Sequence[Frame]) -> Frame | None:
        """The block that sets one role's count apart from the others', if there is one."""
        found = [(f, f.op.cond) for f in frames if isinstance(f.op, ops.When) and f.op.cond != ALWAYS]
        conditions = tuple(cond for _, cond in found)
        if self.around is None and all(map(_is_settled, conditions)):
            self.around = conditions
        loop = next((f for f in frames if f.is_loop), None)
        inside = next((f for f, _ in found if loop is not None and f.number > loop.number), None)
        if inside is not None or conditions == self.around:
            return inside
        return found[-1][0] if found else frames[-1]


def _is_settled(cond: Cond) -> bool:
    """True for a condition that all roles answer alike."""
    return fits(cond) and not any(isinstance(node, Answer) for node, _ in nodes(cond))


@final
class Cursor:
    """Counts the stages that one role takes from one ring, in program order; `conditions` are those of the ring."""

    def __init__(self, recorder: Recorder, name: str, conditions: Conditions | None = None) -> None:
        self._recorder = recorder
        self._name = name
        self._conditions = conditions or Conditions()
        self._levels = [_Level(recorder.frames[0], ZERO)]
        self.taken = False

    def take(self, count: Expr = ONE) -> Expr:
        """The number of the next stage; counts it, and with `count` as many."""
        self._open()
        self.taken = True
        top = self._levels[-1]
        number = expr.add(top.entry, top.used)
        top.used = expr.add(top.used, count)
        return number

    def _open(self) -> None:
        """Opens a level for each loop entered since the last stage, and refuses conditions: they would let the roles' numbers differ."""
        recorder = self._recorder
        apart = self._conditions.apart(recorder.frames)
        if apart is not None:
            conditional = isinstance(apart.op, ops.When)
            how = "under" if conditional else "outside"
            refuse(
                RecordError,
                "OX1105",
                f"a stage of {self._name} is taken {how} a condition: the other roles would count another stage",
                required="stages taken in loops only; a condition is around all roles of the ring, or around none",
                fix="move the condition inside the stage's block, into the loop's bounds, or around all roles that use the ring",
                causes=(Cause("the condition" if conditional else "this block is outside of it", apart.site),),
            )
        loops = [f for f in recorder.frames if f.is_loop]
        for frame in loops[len(self._levels) - 1 :]:
            assert isinstance(frame.op, ops.Loop)  # is_loop
            self._levels.append(_Level(frame, Sym(f"{self._name}@{frame.op.counter}", SymKind.STAGE)))
            frame.closing.append(self._close)

    def _close(self, frame: Frame) -> None:
        """The loop ends: its iterations used `level.used` stages each."""
        level = self._levels.pop()
        loop, outer = frame.op, self._levels[-1]
        assert isinstance(loop, ops.Loop)  # only loops are opened
        assert isinstance(level.entry, Sym)  # the placeholder of _open
        if not expr.is_launch_constant(level.used):
            raise RecordError(
                Diagnostic(
                    rule="OX1106",
                    what=f"one iteration of this loop takes a number of stages of {self._name} that is not one value for the launch",
                    required="inner trip counts that are one value for the launch",
                    fix="make one loop of the two, or let the inner bounds depend on `Idx` parameters and extents only",
                    site=frame.site,
                )
            )
        span = expr.sub(loop.stop, loop.start) if loop.step > 0 else expr.sub(loop.start, loop.stop)
        size = abs(loop.step)
        given = isinstance(loop.stop, Sym) and loop.stop.kind is SymKind.TRIPS and (loop.start, loop.step) == (ZERO, 1)
        # How many tiles a counter gives is never negative; said so plainly, the proof sees that one tile more is one stage more.
        trips = loop.stop if given else expr.maximum(ZERO, expr.floordiv(expr.add(span, Const(size - 1)), Const(size)))
        counter: Expr = Sym(loop.counter, SymKind.LOOP)
        turn = expr.floordiv(expr.sub(counter, loop.start) if loop.step > 0 else expr.sub(loop.start, counter), Const(size))
        start = expr.add(expr.add(outer.entry, outer.used), expr.mul(turn, level.used))
        frame.steps[:] = _rewritten(frame.steps, Rewriter({level.entry.name: start}))
        outer.used = expr.add(outer.used, expr.mul(trips, level.used))


def _rewritten(steps: list[Step] | tuple[Step, ...], known: Rewriter) -> list[Step]:
    return [Step(rewrite(s.op, known), s.site, tuple(_rewritten(s.body, known))) for s in steps]
