"""Program -> one list of closures per thread class: blocks become jumps, scopes that leave the class out disappear.

The other `lower_*` modules hold what each op does. Every closure takes the agent and returns where to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import final

from oxidecopy.engines.base import BoundArray
from oxidecopy.engines.sim.agents import ENDED, SYMBOL_SLOTS, Agent, Code, Op, TokenKey
from oxidecopy.engines.sim.classes import ThreadClass
from oxidecopy.engines.sim.exprs import Scope as Symbols
from oxidecopy.engines.sim.exprs import Value, asks
from oxidecopy.engines.sim.footprints import Touches, exit_touches, touches
from oxidecopy.engines.sim.lower_ops import lower_op
from oxidecopy.engines.sim.machine import Machine, OutOfSteps
from oxidecopy.engines.sim.memory import GlobalMemory
from oxidecopy.engines.sim.packed import PackedPlan
from oxidecopy.engines.sim.pixels import PixelPlan
from oxidecopy.engines.sim.tma import TensorPlan
from oxidecopy.errors import Site
from oxidecopy.isa.expr import Expr
from oxidecopy.isa.limits import MBARRIER_BYTES, SHARED_BASE
from oxidecopy.isa.ops import BarrierRef, ClusterSync, Loop, Scope, Stage, TileRef, When
from oxidecopy.program.program import Program, Step, TileDecl, walk
from oxidecopy.program.tensor_map import TileLayout


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """A launch: the program, its constants by symbol, and its arguments."""

    program: Program
    memory: GlobalMemory
    constants: Mapping[str, int]
    plans: Mapping[str, TensorPlan | PixelPlan | PackedPlan]
    arrays: Mapping[str, BoundArray]
    scalars: Mapping[str, int | float]


@final
@dataclass(frozen=True, slots=True)
class Share:
    """Which part of a cooperative access a class does: threads `low` .. `high`-1 of `total` threads in scope."""

    low: int
    high: int
    total: int

    def rows(self, rows: int) -> tuple[int, int]:
        return rows * self.low // self.total, rows * self.high // self.total


@final
class Lowering:
    """Lowers a program for one class."""

    def __init__(
        self,
        bound: Bound,
        machine: Machine,
        classes: tuple[ThreadClass, ...],
        me: int,
        *,
        footprints: bool = False,
        named: bool = False,
    ) -> None:
        self.bound = bound
        self.machine = machine
        self.clocks = machine.clocks
        self.classes = classes
        self.kind = classes[me]
        self.threads = len(self.kind.threads)
        self.me = me
        self.loops: list[int] = []  # slots of the counters of the enclosing loops
        self.site: Site | None = None
        self._slots = dict(SYMBOL_SLOTS)
        self._symbols = Symbols(bound.constants, self._slots)
        self._footprints = footprints
        self._named = named
        self._names: list[Mapping[str, int]] = []
        self.ops: list[Op] = []
        self._steps: list[Step | None] = []
        self._touches: list[Touches | None] = []
        self._around: list[tuple[int, ...]] = []
        self._asking: set[int] = set()
        self._scope_number = 0
        self._in_scope = [frozenset(range(len(classes)))]
        self._first_slot = len(SYMBOL_SLOTS)
        self._env_size = 0

    def run(self) -> Code:
        self._block(self.bound.program.steps)
        syncs = any(isinstance(step.op, ClusterSync) for step in self.bound.program.walk())
        self._emit(lambda _agent: ENDED, None, exit_touches(self.threads, cluster_sync=syncs))
        asking, names = frozenset(self._asking), tuple(self._names)
        return Code(self.ops, tuple(self._steps), self._env_size, tuple(self._touches), tuple(self._around), asking, names)

    # ---- blocks
    def _block(self, steps: tuple[Step, ...]) -> None:
        outside = dict(self._slots)
        for step in steps:
            self._step(step)
        # What an op names is known to the end of the body it stands in.
        self._slots.clear()
        self._slots.update(outside)

    def _step(self, step: Step) -> None:
        op = step.op
        if isinstance(op, Scope):
            self._scope(step)
        elif isinstance(op, When):
            self._when(op, step)
        elif isinstance(op, Loop):
            self._loop(op, step)
        elif isinstance(op, Stage):
            raise TypeError("stages are expanded before a program is lowered")  # a bug of ours
        else:
            self.site = step.site
            made = lower_op(self, op)
            touched = touches(self, op) if self._footprints and made else (None,) * len(made)
            for make, touch in zip(made, touched, strict=True):
                self._emit(make(len(self.ops) + 1), step, touch)
                if len(self._in_scope) > 1 and self.machine.ran is not None:
                    self.machine.ran.watched(self.ops, len(self.ops) - 1, step)

    def _emit(self, op: Op, step: Step | None, touch: Touches | None = None) -> None:
        self.ops.append(op)
        self._steps.append(step)
        if self._named:
            self._names.append(dict(self._slots))
        if self._footprints:
            self._touches.append(touch)
            self._around.append(tuple(self.loops))

    def _scope(self, step: Step) -> None:
        number = self._scope_number
        self._scope_number += 1
        if number not in self.kind.scopes:
            self._scope_number += sum(isinstance(s.op, Scope) for s in walk(step.body))
            return
        self._in_scope.append(frozenset(i for i in self._in_scope[-1] if number in self.classes[i].scopes))
        self._block(step.body)
        self._in_scope.pop()

    def _when(self, op: When, step: Step) -> None:
        holds = self._symbols.truth(op.cond)
        target = [0]
        inside = len(self.ops) + 1
        if asks(op.cond):
            self._asking.add(len(self.ops))
        self._emit(lambda agent: inside if holds(agent.env, agent.answers) else target[0], step)
        self._block(step.body)
        target[0] = len(self.ops)

    def _loop(self, op: Loop, step: Step) -> None:
        start, stop, by = self.value(op.start), self.value(op.stop), op.step
        counter = self._first_slot + self._env_size
        limit = counter + 1
        self._env_size += 2
        outer = self._slots.get(op.counter)
        self._slots[op.counter] = counter
        target = [0]
        machine = self.machine

        def enter(agent: Agent) -> int:
            env = agent.env
            env[counter], env[limit] = start(env), stop(env)
            return head

        def test(agent: Agent) -> int:
            env = agent.env
            if (env[counter] < env[limit]) if by > 0 else (env[counter] > env[limit]):
                machine.steps_left -= 1
                if machine.steps_left < 0:
                    raise OutOfSteps(agent)
                return body
            return target[0]

        def again(agent: Agent) -> int:
            agent.env[counter] += by
            return head

        self._emit(enter, step)
        head = len(self.ops)
        self._emit(test, step)
        body = len(self.ops)
        self.loops.append(counter)
        self._block(step.body)
        self.loops.pop()
        self._emit(again, step)
        target[0] = len(self.ops)
        if outer is None:
            del self._slots[op.counter]
        else:
            self._slots[op.counter] = outer

    def name(self, name: str) -> int:
        """A slot for an integer that an op names; to be asked for once that op's own operands are lowered."""
        self._slots[name] = slot = self._first_slot + self._env_size
        self._env_size += 1
        return slot

    # ---- operands
    @property
    def share(self) -> Share:
        """This class's part of what all threads in scope do together."""
        before = sum(len(self.classes[i].threads) for i in self._in_scope[-1] if i < self.me)
        total = sum(len(self.classes[i].threads) for i in self._in_scope[-1])
        return Share(before, before + self.threads, total)

    def value(self, e: Expr) -> Value:
        return self._symbols.value(e)

    def barrier_address(self, ref: BarrierRef) -> Value:
        """Shared address (in the CTA's window) of a barrier element."""
        decl = self.bound.program.barriers[ref.barrier]
        base = SHARED_BASE + decl.offset
        index = self.value(ref.index)
        known = self._symbols.constant(ref.index)
        if known is not None:
            address = base + known * MBARRIER_BYTES
            return lambda _env: address
        return lambda env: base + index(env) * MBARRIER_BYTES

    def tile(self, ref: TileRef) -> TileDecl:
        return self.bound.program.tiles[ref.tile]

    def tile_layout(self, ref: TileRef) -> TileLayout:
        """The layout that plain accesses see: the declared one, or a part of it."""
        layout = self.tile(ref).layout
        if ref.part is None:
            return layout
        return replace(layout, shape=(layout.shape[0] // ref.part.of, *layout.shape[1:]))

    def tile_address(self, ref: TileRef) -> Value:
        """Shared address (in the CTA's window) of a tile stage or part."""
        decl = self.tile(ref)
        base = SHARED_BASE + decl.offset
        stage = decl.stage_bytes
        index = self.value(ref.index)
        known = self._symbols.constant(ref.index)
        if ref.part is None:
            if known is not None:
                address = base + known * stage
                return lambda _env: address
            return lambda env: base + index(env) * stage
        rank = self.value(ref.part.rank)
        layout = decl.layout
        whole = layout.rows * layout.pitch_bytes if len(layout.shape) > 1 else layout.row_bytes
        part_bytes = whole // ref.part.of
        return lambda env: base + index(env) * stage + rank(env) * part_bytes

    @property
    def token_key(self) -> Callable[[int, list[int]], TokenKey]:
        """How a token is named at run time: its number, and the counters of the loops around it."""
        match self.loops:
            case []:
                return lambda token, _env: token
            case [one]:
                return lambda token, env: (token, env[one])
            case _:
                slots = tuple(self.loops)
                return lambda token, env: (token, *[env[slot] for slot in slots])
