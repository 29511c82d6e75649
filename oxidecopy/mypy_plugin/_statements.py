"""The part of the pass that runs statements: a table from mypy's node classes to what each does to a state.

A statement gives the state after it, or None where nothing comes after it (return, raise, endless loops).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias, final

from mypy.nodes import (
    AssertStmt,
    AssignmentStmt,
    Block,
    BreakStmt,
    ClassDef,
    ConditionalExpr,
    ContinueStmt,
    Decorator,
    DelStmt,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    GlobalDecl,
    IfStmt,
    Import,
    ImportAll,
    ImportFrom,
    IndexExpr,
    IntExpr,
    MatchStmt,
    MemberExpr,
    NameExpr,
    NonlocalDecl,
    OperatorAssignmentStmt,
    OverloadedFuncDef,
    PassStmt,
    RaiseStmt,
    ReturnStmt,
    Statement,
    TryStmt,
    TupleExpr,
    TypeAliasStmt,
    Var,
    WhileStmt,
    WithStmt,
)
from mypy.types import UninhabitedType, get_proper_type

from oxidecopy.mypy_plugin._debts import Debts
from oxidecopy.mypy_plugin._domain import NONE, State, Values, join
from oxidecopy.mypy_plugin._expressions import Expressions
from oxidecopy.mypy_plugin._features import blocks, copies, leak_paths, leaks, recorded, symbolic
from oxidecopy.mypy_plugin._patterns import UnknownNodeError
from oxidecopy.mypy_plugin._settled import nothing_for_the_next, reached

Runner: TypeAlias = Callable[["Statements", Statement, State], "State | None"]
ROUNDS_MAX: Final = 12  # a loop that has not settled then has no more to say: its states only grow


@final
class Exits:
    """States that leave a stretch of code other than by its end."""

    def __init__(self) -> None:
        self.breaks: list[State] = []
        self.continues: list[State] = []


class Statements(Expressions):
    """Statements in order, with all the ways out of them."""

    loop_exits: list[Exits]
    returns: list[State]
    raising: list[list[State]]
    pinned: list[Values]  # what loops go over and blocks gave, whatever names it has
    chains: dict[IfStmt, list[State | None]]  # how the branches before an `elif` end

    def block(self, block: Block | None, state: State | None) -> State | None:
        """The body of something."""
        if block is None or state is None:
            return state
        return None if block.is_unreachable else self.run(block.body, state)

    def run(self, body: Iterable[Statement], state: State | None) -> State | None:
        """Statements one after the other."""
        for statement in body:
            if state is None:
                return None
            if self.raising:
                self._may_raise(state)
            runner = RUNNERS.get(type(statement))
            if runner is None:
                raise UnknownNodeError(f"unknown statement {type(statement).__name__}")
            state = runner(self, statement, state)
        return state

    def _may_raise(self, state: State) -> None:
        """Every statement may raise; a handler sees the state before it: a call that raises has taken nothing."""
        if self.raising:
            self.raising[-1].append(state.copy())

    def either(self, a: State | None, b: State | None) -> State | None:
        """One of two paths."""
        return join(self._alive(a), self._alive(b), self.lazy)

    def _alive(self, state: State | None) -> State | None:
        """Without what was taken from containers and objects that nothing leads to any more: on the other path it may be still there."""
        if state is None:
            return None
        touched = {owner for (owner, _), held in state.slots.items() if owner.known_site and any(held.values())}
        if not touched:
            return state
        roots = {value for held in (*state.names.values(), *self.pinned) for value in held}
        dead = touched - roots
        if dead:
            dead -= reached(state, roots | {owner for owner, _ in state.slots if not owner.known_site})
        if not dead:
            return state
        rest = state.copy()
        rest.slots = {slot: held for slot, held in state.slots.items() if slot[0] not in dead}
        rest.made -= dead
        return rest

    def any_of(self, states: Iterable[State | None]) -> State | None:
        """One of many paths."""
        joined: State | None = None
        for state in states:
            joined = self.either(joined, state)
        return joined

    # ---- simple ones
    def expression(self, s: ExpressionStmt, state: State) -> State | None:
        """A call that never returns ends the path."""
        leaks.discarded(self, self.evaluate(s.expr, state), state)
        return None if isinstance(get_proper_type(self.types.get(s.expr)), UninhabitedType) else state

    def assignment(self, s: AssignmentStmt, state: State) -> State:
        """`a = b = c`."""
        if s.is_alias_def:
            return state
        if not isinstance(s.rvalue, ConditionalExpr):
            values = self.evaluate(s.rvalue, state)
            for target in s.lvalues:
                self.assign(target, values, s.rvalue, state)
            return state
        # Until it has a name, what was chosen has one of its own: it is apart from other places on both paths.
        unnamed = self.chosen[s.rvalue] = Var("...")
        values = self.evaluate(s.rvalue, state)
        for target in s.lvalues:
            self.assign(target, values, s.rvalue, state)
        state.names.pop(unnamed, None)
        state.rebound({unnamed: None})
        return state

    def augmented(self, s: OperatorAssignmentStmt, state: State) -> State:
        """`a += b`."""
        self.evaluate(s.lvalue, state)
        leaks.escape(self, self.evaluate(s.rvalue, state), state)
        if isinstance(s.lvalue, NameExpr) and isinstance(s.lvalue.node, Var):
            leak_paths.rebound(self, s.lvalue.node, state)
        return state

    def leave(self, s: ReturnStmt, state: State) -> None:
        """`return a`."""
        leaks.escape(self, self.evaluate(s.expr, state), state)
        self.returns.append(state)

    def throw(self, s: RaiseStmt, state: State) -> None:
        """`raise a from b`."""
        self.evaluate(s.expr, state)
        self.evaluate(s.from_expr, state)
        self._may_raise(state)

    def check(self, s: AssertStmt, state: State) -> State:
        """`assert a`."""
        return self.branches(s.expr, state, "assert")[0]

    def delete(self, s: DelStmt, state: State) -> State:
        """`del a, b[0], c.d`."""
        for target in s.expr.items if isinstance(s.expr, TupleExpr) else [s.expr]:
            if isinstance(target, NameExpr) and isinstance(target.node, Var):
                state.names.pop(target.node, None)
            elif isinstance(target, IndexExpr | MemberExpr):
                inner = target.base if isinstance(target, IndexExpr) else target.expr
                part = self.index_part(target) if isinstance(target, IndexExpr) else f".{target.name}"
                for owner in self.evaluate(inner, state, whole=False):
                    state.slots[owner, part] = NONE
        return state

    def define(self, s: FuncDef | Decorator, state: State) -> State:
        """A function: analysed by itself, when this one is done."""
        function = s.func if isinstance(s, Decorator) else s
        self.nested[function] = self.outer | (self.locals if self.function is not None else frozenset())
        leak_paths.captured(self, function, state)
        return state

    def overloads(self, s: OverloadedFuncDef, state: State) -> State:
        """Overloads, or a property."""
        for item in [*s.items, s.impl]:
            if item is not None:
                self.define(item, state)
        return state

    # ---- branches
    def branch(self, s: IfStmt, state: State) -> State | None:
        """`if`, `elif`, `else`."""
        ends: list[State | None] = []
        before = self.chains.pop(s, [])
        rest: State | None = state
        for condition, body in zip(s.expr, s.body, strict=True):
            if rest is None:
                break
            start, rest = self.branches(condition, rest, "if")
            ends.append(self.block(body, start))
            if always(condition):
                rest = None
        if s.else_body is not None and len(s.else_body.body) == 1 and isinstance(s.else_body.body[0], IfStmt):
            self.chains[s.else_body.body[0]] = [*before, *ends]
        elif s.else_body is None and rest is not None and before:
            leak_paths.only_if_in_any(rest, [*before, *ends])  # nobody writes `else` after all that there is
        if not s.unreachable_else:
            ends.append(self.block(s.else_body, rest) if s.else_body is not None else rest)
        return self.any_of(ends)

    def match(self, s: MatchStmt, state: State) -> State | None:
        """`match`: every case may be the one; none of them too, unless one takes all."""
        subject = self.evaluate(s.subject, state)
        leaks.escape(self, subject, state)
        ends: list[State | None] = []
        for pattern, guard, body in zip(s.patterns, s.guards, s.bodies, strict=True):
            case = state.copy()
            symbolic.pattern(self, s.subject, pattern)
            self.bind_pattern(pattern, subject, case)
            if guard is not None:
                case = self.branches(guard, case, "if")[0]
            leak_paths.matched(self, s.subject, pattern, case)
            ends.append(self.block(body, case))
        none = state.copy()
        leak_paths.only_if_in_any(none, ends)
        return self.any_of([*ends, none])

    # ---- loops
    def loop(self, s: WhileStmt | ForStmt, state: State) -> State | None:
        """Runs the body until nothing new is found."""
        source = self.evaluate(s.expr, state) if isinstance(s, ForStmt) else NONE
        name = recorded.name(self, s.expr) if isinstance(s, ForStmt) else ""
        head, exits = state, Exits()
        entry = state.owed
        self.pinned.append(source)
        for turn in range(ROUNDS_MAX):
            body, exits = head.copy(), Exits()
            leak_paths.enter_loop(self, body)
            returned = len(self.returns)
            self.loop_exits.append(exits)
            with self._recorded(s, name):
                if isinstance(s, ForStmt):
                    self.bind_element(s.index, s.expr, source, body)
                else:
                    body = self.branches(s.expr, body, "while")[0]
                end = self.any_of([self.block(s.body, body), *exits.continues])
                if end is not None:
                    blocks.end_of_iteration(self, s, end)
            self.loop_exits.pop()
            if end is not None and name:
                self.retire(s, end)
            leak_paths.leave_loop(self, head, [end, *exits.breaks, *self.returns[returned:]])
            settled = self.either(head, end)
            if settled is None:
                break
            if turn:
                copies.widen(head, settled)
            done = (end is not None and nothing_for_the_next(self, s, head, end, source)) or settled.same(head)
            head = settled
            if done:
                break
        self.pinned.pop()
        return self._after_loop(s, head, exits, entry)

    def _after_loop(self, s: WhileStmt | ForStmt, head: State, exits: Exits, entry: Debts) -> State | None:
        out: State | None = head.copy()
        if isinstance(s, WhileStmt) and out is not None:
            out = None if always(s.expr) else self.branches(s.expr, out, "while")[1]
        out = self.block(s.else_body, out) if s.else_body is not None else out
        out = self.any_of([out, *exits.breaks])
        leak_paths.restore(entry, out)
        return out

    @contextmanager
    def _recorded(self, s: WhileStmt | ForStmt, name: str) -> Iterator[None]:
        """Inside the body of a loop that the device runs."""
        before = self.loops
        self.enter_recorded(s, name)
        try:
            yield
        finally:
            self.loops = before

    def leave_loop(self, _: BreakStmt, state: State) -> None:
        """`break`."""
        if self.loop_exits:
            self.loop_exits[-1].breaks.append(state)

    def next_round(self, _: ContinueStmt, state: State) -> None:
        """`continue`."""
        if self.loop_exits:
            self.loop_exits[-1].continues.append(state)

    # ---- with, try
    def with_(self, s: WithStmt, state: State) -> State | None:
        """`with`: what the library's blocks gave ends with them."""
        given = []
        before = dict(state.bytes) if blocks.conditional(self, s) else None
        for e, target in zip(s.expr, s.target, strict=True):
            leaks.escape(self, self.evaluate(e, state), state)
            if target is not None:
                given.append((e, blocks.enter(self, e, target, state)))
        self.pinned += [values for _, values in given]
        end = self._with_body(s, given, state)
        if before is not None and end is not None:
            copies.joined(before, end)
        return end

    def _with_body(self, s: WithStmt, given: list[tuple[Expression, blocks.Given]], state: State) -> State | None:
        """The body, and what ends with it."""
        if not blocks.swallows(self, s):
            return self._leave_blocks(s, given, self.block(s.body, state))
        self.swallowing.add(s)
        points: list[State] = []
        self.raising.append(points)
        end = self.block(s.body, state)
        self.raising.pop()
        for point in points:
            self._may_raise(point)
        leak_paths.interrupted(end, points)
        if blocks.always_raises(self, s) and points:
            end = None
        return self._leave_blocks(s, given, self.any_of([end, *points]))

    def _leave_blocks(self, s: WithStmt, given: list[tuple[Expression, blocks.Given]], end: State | None) -> State | None:
        del self.pinned[len(self.pinned) - len(given) :]
        if end is not None:
            for e, values in given:
                blocks.leave(self, s, e, values, end)
        return end

    def try_(self, s: TryStmt, state: State) -> State | None:
        """`try`: a handler begins with any state of the body; `finally` runs on every way out."""
        marks = (len(self.returns), [(len(x.breaks), len(x.continues)) for x in self.loop_exits])
        points: list[State] = []
        self.raising.append(points)
        body = self.block(s.body, state.copy())
        self.raising.pop()
        leak_paths.interrupted(body, [state, *points])
        raised = self.any_of([state, *points])
        unhandled: list[State] = []
        self.raising.append(unhandled)
        out = self.block(s.else_body, body) if s.else_body is not None else body
        for variable, handler in zip(s.vars, s.handlers, strict=True):
            if raised is not None:
                start = raised.copy()
                if variable is not None:
                    self.assign(variable, NONE, None, start)
                out = self.either(out, self.block(handler, start))
        self.raising.pop()
        passing = self.any_of([raised, *unhandled])
        if s.finally_body is not None:
            out, passing = self._finally(s.finally_body, out, passing, marks)
        if passing is not None:
            self._may_raise(passing)
        return out

    def _finally(
        self, body: Block, out: State | None, passing: State | None, marks: tuple[int, list[tuple[int, int]]]
    ) -> tuple[State | None, State | None]:
        """Runs it after the normal end first, so that what it says is said of that, then on all other ways out."""
        if out is not None:
            out = self.block(body, out)
        self._through(body, self.returns, marks[0])
        for exits, (breaks, continues) in zip(self.loop_exits, marks[1], strict=True):
            self._through(body, exits.breaks, breaks)
            self._through(body, exits.continues, continues)
        # On its way to a handler further out: what went wrong may have been before anything was taken or after.
        quiet, self.reports.quiet = self.reports.quiet, True
        passing = self.block(body, passing.copy() if passing is not None else None)
        self.reports.quiet = quiet
        return out, passing

    def _through(self, body: Block, states: list[State], start: int) -> None:
        """`finally` on the states from `start` on."""
        leaving = states[start:]
        if leaving:
            del states[start:]
            after = self.block(body, self.any_of(leaving))
            if after is not None:
                states.append(after)

    def class_(self, s: ClassDef, state: State) -> State | None:
        """A class: its body runs here; its methods are functions of their own."""
        before = state.owed
        end = self.block(s.defs, state)
        leak_paths.kept(end, before)
        return end


def always(e: Expression) -> bool:
    """A condition that is true as written."""
    return (isinstance(e, NameExpr) and e.fullname == "builtins.True") or (isinstance(e, IntExpr) and e.value != 0)


def _nothing(_flow: Statements, _s: Statement, state: State) -> State:
    return state


def _row(cls: type[Statement], act: Callable[..., State | None]) -> tuple[type[Statement], Runner]:
    return cls, act


RUNNERS: Final[dict[type[Statement], Runner]] = dict(
    (
        _row(ExpressionStmt, Statements.expression),
        _row(AssignmentStmt, Statements.assignment),
        _row(OperatorAssignmentStmt, Statements.augmented),
        _row(ReturnStmt, Statements.leave),
        _row(RaiseStmt, Statements.throw),
        _row(AssertStmt, Statements.check),
        _row(DelStmt, Statements.delete),
        _row(FuncDef, Statements.define),
        _row(Decorator, Statements.define),
        _row(OverloadedFuncDef, Statements.overloads),
        _row(ClassDef, Statements.class_),
        _row(IfStmt, Statements.branch),
        _row(MatchStmt, Statements.match),
        _row(WhileStmt, Statements.loop),
        _row(ForStmt, Statements.loop),
        _row(BreakStmt, Statements.leave_loop),
        _row(ContinueStmt, Statements.next_round),
        _row(WithStmt, Statements.with_),
        _row(TryStmt, Statements.try_),
        _row(Block, Statements.block),
        *(_row(cls, _nothing) for cls in (PassStmt, Import, ImportFrom, ImportAll, GlobalDecl, NonlocalDecl, TypeAliasStmt)),
    )
)
