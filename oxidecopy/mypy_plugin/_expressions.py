"""The part of the pass that evaluates expressions: a table from mypy's node classes to what each means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from mypy.nodes import (
    LDEF,
    AssertTypeExpr,
    AssignmentExpr,
    AwaitExpr,
    BytesExpr,
    CallExpr,
    CastExpr,
    ComparisonExpr,
    ComplexExpr,
    ConditionalExpr,
    Context,
    DictExpr,
    DictionaryComprehension,
    EllipsisExpr,
    EnumCallExpr,
    Expression,
    FloatExpr,
    GeneratorExpr,
    IndexExpr,
    IntExpr,
    LambdaExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    NamedTupleExpr,
    NameExpr,
    NewTypeExpr,
    OpExpr,
    ParamSpecExpr,
    PromoteExpr,
    RefExpr,
    RevealExpr,
    SetComprehension,
    SetExpr,
    SliceExpr,
    StarExpr,
    StrExpr,
    SuperExpr,
    TemplateStrExpr,
    TempNode,
    TupleExpr,
    TypeAliasExpr,
    TypeApplication,
    TypedDictExpr,
    TypeFormExpr,
    TypeVarExpr,
    TypeVarTupleExpr,
    UnaryExpr,
    Var,
    YieldExpr,
    YieldFromExpr,
)
from mypy.types import Instance
from typing_extensions import override

from oxidecopy.mypy_plugin import _messages
from oxidecopy.mypy_plugin._domain import ANY, NONE, State, Value, Values, join, union, unions
from oxidecopy.mypy_plugin._features import leak_paths, leaks, recorded, symbolic
from oxidecopy.mypy_plugin._patterns import Patterns, UnknownNodeError
from oxidecopy.mypy_plugin._types import shown
from oxidecopy.mypy_plugin._values import settled_on

_PLACES: Final = (NameExpr, MemberExpr, IndexExpr)

Evaluator: TypeAlias = Callable[["Expressions", Expression, State], Values]


class Expressions(Patterns):
    """Evaluation. Every method of the table takes the node, the state and gives what the expression may be."""

    @override
    def evaluate(self, e: Expression | None, state: State, *, whole: bool = True) -> Values:
        if e is None:
            return NONE
        if isinstance(e, _PLACES):
            values = self.place(e, state)
            if values:
                self.use(e, values, state, whole=whole)
            return values
        meaning = MEANINGS.get(type(e))
        if meaning is None:
            raise UnknownNodeError(f"unknown expression {type(e).__name__}")
        return meaning(self, e, state)

    # ---- places
    def place(self, e: NameExpr | MemberExpr | IndexExpr, state: State) -> Values:
        """What a name, an attribute or an element holds."""
        if isinstance(e, NameExpr):
            return self.name(e, state)
        if isinstance(e, IndexExpr):
            return self._index(e, state)
        if isinstance(e.node, Var) and e.fullname and not isinstance(self.type_of(e.expr), Instance) and "." in e.fullname:
            return self.name(e, state)  # module.variable
        base = self.evaluate(e.expr, state, whole=False)
        if not base:
            return NONE
        t = self.type_of(e)
        if not self.tracked(t):
            return self.bound_method(e, base, state)
        return unions(self.slot(owner, f".{e.name}", state, t) for owner in base)

    def name(self, e: RefExpr, state: State) -> Values:
        """What a variable holds."""
        variable = e.node
        if not isinstance(variable, Var):
            return NONE
        held = state.names.get(variable)
        if held is not None:
            return held
        if variable in self.locals or not self.tracked(variable.type):
            return NONE
        if variable in self.outer:
            why = _messages.captured()
        elif self.function is None or e.kind == LDEF:
            return NONE  # the second: it is bound further down
        else:
            why = _messages.module_level()
        value = self.value(("outer", variable), lambda: Value(variable.name, self.type_of(e), borrowed=why))
        state.names[variable] = {value: None}
        return state.names[variable]

    def _index(self, e: IndexExpr, state: State) -> Values:
        if e.analyzed is not None:
            return NONE  # an alias, or a class with its arguments
        base = self.evaluate(e.base, state, whole=False)
        self.evaluate(e.index, state)
        if isinstance(e.index, SliceExpr):
            return self._slice(e, e.index, base, state)
        t = self.type_of(e) if base else None
        if not self.tracked(t):
            return NONE
        part = self.index_part(e)
        values = settled_on(base, unions(self._element(e, {owner: None}, part, t, state) for owner in base))
        if part == ANY:
            # One of the elements that are known by number, too.
            for owner in base:
                for (other, known), held in list(state.slots.items()):
                    if other is owner and known.startswith("[") and known != ANY:
                        values = union(values, {v: m and m.possibly() for v, m in held.items()})
        return values

    def _slice(self, e: IndexExpr, cut: SliceExpr, base: Values, state: State) -> Values:
        """All elements, or some of them: a container of its own then, as two slices need not share an element."""
        stride = 1 if cut.stride is None else self.constant(cut.stride)
        whole = cut.begin_index is None and cut.end_index is None and stride in (1, -1)
        if whole or not base or any(owner.borrowed for owner in base):
            return base
        leaks.escape(self, base, state)
        elements = self._cut(cut, stride, base, state)
        moves = [move for owner in base for move in state.slots.get((owner, ANY), NONE).values() if move is not None]
        made = self.fresh(("slice", e), self.text(e), self.type_of(e), e, state)
        for i, held in enumerate(elements or ()):
            state.slots[made, f"[{i}]"] = held
        made.whole = elements is not None
        if elements is None and moves:  # something is done to all of them, one after the other
            state.slots[made, ANY] = dict.fromkeys(self.slot(made, ANY, state), moves[0].possibly())
        return {made: None}

    def _cut(self, cut: SliceExpr, stride: int | None, base: Values, state: State) -> list[Values] | None:
        """The elements that a slice has, of one container that was written out, by constants."""
        (owner, *others) = base
        elements = {part: held for (other, part), held in state.slots.items() if other is owner and held}
        names = [f"[{i}]" for i in range(len(elements))]
        first, stop = (None if bound is None else self.constant(bound) for bound in (cut.begin_index, cut.end_index))
        unknown = not stride or (first is None and cut.begin_index) or (stop is None and cut.end_index)
        if unknown or others or not owner.whole or elements.keys() != set(names):
            return None
        return [elements[name] for name in names[first:stop:stride]]

    # ---- displays
    def display(self, e: Expression, items: list[Expression], state: State) -> Values:
        """A tuple, list or set: a container of its items."""
        held = [self.evaluate(item, state) for item in items]
        if not any(held):
            if items and not self.tracked(self.type_of(e)):
                return NONE  # an empty one has no type yet
        elif any(isinstance(item, CallExpr) and values for item, values in zip(items, held, strict=True)):
            # A call may have made the newest value of its site: what the names hold is an older one since.
            held = [self.peek(item, state) if isinstance(item, NameExpr) else values for item, values in zip(items, held, strict=True)]
        made = self.fresh(("display", e), "...", self.type_of(e), e, state)
        made.whole = True
        starred = False
        for i, (item, values) in enumerate(zip(items, held, strict=True)):
            starred |= isinstance(item, StarExpr)
            inner = unions(self.slot(owner, ANY, state) for owner in values) if isinstance(item, StarExpr) else values
            if inner:
                part = ANY if starred else f"[{i}]"
                state.slots[made, part] = union(state.slots.get((made, part), NONE), inner)
        if state.apart and not starred:
            state.rebound({(made, f"[{i}]"): self.place_of(item, state) for i, item in enumerate(items)})
        return {made: None}

    def dictionary(self, e: DictExpr, state: State) -> Values:
        """A dict: a container of its values."""
        entries = [(key, self.evaluate(key, state), self.evaluate(value, state)) for key, value in e.items]
        if not any(values for *_, values in entries) and not self.tracked(self.type_of(e)):
            return NONE
        made = self.fresh(("display", e), "...", self.type_of(e), e, state)
        made.whole = True
        for key, _, values in entries:
            number = self.constant(key) if key is not None and not isinstance(key, StrExpr) else None
            part = f"[{key.value!r}]" if isinstance(key, StrExpr) else ANY if number is None else f"[{number}]"
            if values:
                state.slots[made, part] = union(state.slots.get((made, part), NONE), values)
        return {made: None}

    # ---- paths
    def conditional(self, e: ConditionalExpr, state: State) -> Values:
        """`a if c else b`."""
        so, other = self.branches(e.cond, state, "if")
        if other is state:  # of `not c` it is the state in which c is true
            other = state.copy()
        state.become(so)
        left = self.evaluate(e.if_expr, state)
        right = self.evaluate(e.else_expr, other)
        if e in self.chosen:
            state.names[self.chosen[e]], other.names[self.chosen[e]] = left, right
        self.meet(state, other)
        return union(left, right)

    def operator(self, e: OpExpr, state: State) -> Values:
        """`a + b`; `and` and `or` leave their right side out on some path."""
        left = self.evaluate(e.left, state)
        if e.op not in ("and", "or"):
            leaks.escape(self, union(left, self.evaluate(e.right, state)), state)
            return NONE
        symbolic.truth(self, e.left, e.op)
        leaks.escape(self, left, state)
        other = state.copy()
        leak_paths.assume(self, e.left, other, so=e.op == "and")
        leak_paths.assume(self, e.left, state, so=e.op == "or")
        right = self.evaluate(e.right, other)
        self.meet(state, other)
        return union(left, right)

    def condition(self, e: Expression, state: State, where: str) -> None:
        """Evaluates a condition."""
        leaks.escape(self, self.evaluate(e, state), state)
        symbolic.truth(self, e, where)

    def branches(self, e: Expression, state: State, where: str) -> tuple[State, State]:
        """Evaluates a condition; the states in which it is true, and false. `state` is used up."""
        if isinstance(e, OpExpr) and e.op in ("and", "or"):
            so, not_so = self.branches(e.left, state, e.op)
            if e.op == "and":
                so, other = self.branches(e.right, so, where)
                self.meet(not_so, other)
            else:
                other, not_so = self.branches(e.right, not_so, where)
                self.meet(so, other)
        elif isinstance(e, UnaryExpr) and e.op == "not":
            not_so, so = self.branches(e.expr, state, "not")
        else:
            self.condition(e, state, where)
            so, not_so = state, state.copy()
        leak_paths.assume(self, e, so, so=True)
        leak_paths.assume(self, e, not_so, so=False)
        return so, not_so

    def meet(self, state: State, other: State) -> None:
        """Either path may have been taken."""
        joined = join(state, other, self.lazy)
        if joined is not None:
            state.become(joined)

    def unary(self, e: UnaryExpr, state: State) -> Values:
        """`not a`, `-a`."""
        leaks.escape(self, self.evaluate(e.expr, state), state)
        if e.op == "not":
            symbolic.truth(self, e.expr, "not")
        return NONE

    def comparison(self, e: ComparisonExpr, state: State) -> Values:
        """`a < b`."""
        for operand in e.operands:
            leaks.escape(self, self.evaluate(operand, state), state)
        symbolic.comparison(self, e)
        return NONE

    def walrus(self, e: AssignmentExpr, state: State) -> Values:
        """`(a := b)`."""
        values = self.evaluate(e.value, state)
        self.assign(e.target, values, e.value, state)
        return values

    # ---- comprehensions
    def comprehension(self, e: Expression, loop: GeneratorExpr | DictionaryComprehension, outs: list[Expression], state: State) -> Values:
        """Evaluates it twice, for what an iteration does to the next; the result is a container of what comes out."""
        first = self.evaluate(loop.sequences[0], state)
        collected = NONE
        for _ in range(2):
            body = state.copy()
            leak_paths.enter_loop(self, body)
            collected = self._turn(loop, outs, first, collected, body)
            leak_paths.leave_loop(self, state, [body])
            self.meet(state, body)
        if not collected:
            return NONE
        made = self.fresh(("display", e), "...", self.type_of(e), e, state)
        # As they look in the state after: an element of the first round may be gone by now.
        state.slots[made, ANY] = collected
        made.whole = True
        return {made: None}

    def _turn(
        self, loop: GeneratorExpr | DictionaryComprehension, outs: list[Expression], first: Values, collected: Values, body: State
    ) -> Values:
        """One iteration; gives what has come out so far."""
        before = self.loops
        for i, (target, source) in enumerate(zip(loop.indices, loop.sequences, strict=True)):
            values = first if i == 0 else self.evaluate(source, body)
            self.enter_recorded(source, recorded.name(self, source))
            self.bind_element(target, source, values, body)
            for condition in loop.condlists[i]:
                body.become(self.branches(condition, body, "if")[0])
        came = unions(self.evaluate(out, body) for out in outs)
        # What came out of the iteration before, where it or something in it is still owed.
        owed = body.owed.keys()
        older = {
            value: value.older for value in collected if value.older and owed and not owed.isdisjoint(self.reachable([value.older], body))
        }
        collected = {older.get(value, value): move for value, move in collected.items()}
        collected = union(collected, came)
        inner, self.loops = self.loops[len(before) :], before
        for one in reversed(inner):
            self.retire(one, body)
            collected = {value.past or value: move for value, move in collected.items()}
        return collected

    def enter_recorded(self, loop: Context, name: str) -> None:
        """What follows is inside a loop that the device runs, if it has a name."""
        if name:
            self.loops = (*self.loops, loop)
            self.loop_names[loop] = name

    def function_value(self, e: LambdaExpr, state: State) -> Values:
        """A lambda: analysed by itself."""
        self.nested[e] = self.outer | self.locals
        leak_paths.captured(self, e, state)
        return NONE

    def yielded(self, e: YieldExpr | YieldFromExpr, state: State) -> Values:
        """`yield a`: what is yielded is only lent; what comes back is new."""
        leaks.escape(self, self.evaluate(e.expr, state), state)
        t = self.type_of(e)
        return {self.fresh(("yield", e), "...", t, e, state): None} if self.tracked(t) else NONE

    def type_name(self, value: Value) -> str:
        """The class of a value, for messages."""
        return shown(value.type)


def _nothing(_flow: Expressions, _e: Expression, _state: State) -> Values:
    return NONE


def _row(cls: type[Expression], act: Callable[..., Values]) -> tuple[type[Expression], Evaluator]:
    """One row of the table; `act` takes the class that the row is for."""
    return cls, act


def _first(flow: Expressions, e: Expression, state: State, *more: Expression | None) -> Values:
    for one in more:
        flow.evaluate(one, state)
    return flow.evaluate(e, state)


MEANINGS: Final[dict[type[Expression], Evaluator]] = dict(
    (
        _row(CallExpr, lambda f, e, s: f.call(e, s) if e.analyzed is None else f.evaluate(e.analyzed, s)),
        _row(TupleExpr, lambda f, e, s: f.display(e, e.items, s)),
        _row(ListExpr, lambda f, e, s: f.display(e, e.items, s)),
        _row(SetExpr, lambda f, e, s: f.display(e, e.items, s)),
        _row(DictExpr, lambda f, e, s: f.dictionary(e, s)),
        _row(ConditionalExpr, lambda f, e, s: f.conditional(e, s)),
        _row(OpExpr, lambda f, e, s: f.operator(e, s)),
        _row(UnaryExpr, lambda f, e, s: f.unary(e, s)),
        _row(ComparisonExpr, lambda f, e, s: f.comparison(e, s)),
        _row(AssignmentExpr, lambda f, e, s: f.walrus(e, s)),
        _row(StarExpr, lambda f, e, s: f.evaluate(e.expr, s)),
        _row(AwaitExpr, lambda f, e, s: f.evaluate(e.expr, s)),
        _row(CastExpr, lambda f, e, s: f.evaluate(e.expr, s)),
        _row(AssertTypeExpr, lambda f, e, s: f.evaluate(e.expr, s)),
        _row(RevealExpr, lambda f, e, s: f.evaluate(e.expr, s)),
        _row(YieldExpr, lambda f, e, s: f.yielded(e, s)),
        _row(YieldFromExpr, lambda f, e, s: f.yielded(e, s)),
        _row(ListComprehension, lambda f, e, s: f.comprehension(e, e.generator, [e.generator.left_expr], s)),
        _row(SetComprehension, lambda f, e, s: f.comprehension(e, e.generator, [e.generator.left_expr], s)),
        _row(GeneratorExpr, lambda f, e, s: f.comprehension(e, e, [e.left_expr], s)),
        _row(DictionaryComprehension, lambda f, e, s: f.comprehension(e, e, [x for x in (e.key, e.value) if x is not None], s)),
        _row(LambdaExpr, lambda f, e, s: f.function_value(e, s)),
        _row(SliceExpr, lambda f, e, s: _first(f, e.begin_index, s, e.end_index, e.stride)),
        _row(TemplateStrExpr, _nothing),
        *(
            _row(cls, _nothing)
            for cls in (
                IntExpr,
                StrExpr,
                BytesExpr,
                FloatExpr,
                ComplexExpr,
                EllipsisExpr,
                SuperExpr,
                TypeFormExpr,
                TypeApplication,
                TypeVarExpr,
                ParamSpecExpr,
                TypeVarTupleExpr,
                TypeAliasExpr,
                NamedTupleExpr,
                TypedDictExpr,
                EnumCallExpr,
                PromoteExpr,
                NewTypeExpr,
                TempNode,
            )
        ),
    )
)
