"""The part of the pass that calls: who is called, what it takes, what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, final

from mypy.argmap import map_actuals_to_formals
from mypy.nodes import (
    ARG_STAR,
    ARG_STAR2,
    CallExpr,
    Decorator,
    Expression,
    FuncDef,
    MemberExpr,
    NameExpr,
    Node,
    OverloadedFuncDef,
    RefExpr,
    SuperExpr,
    TypeInfo,
    Var,
)
from mypy.types import CallableType, Instance, Type, TypeType, UninhabitedType

from oxidecopy.mypy_plugin import _names
from oxidecopy.mypy_plugin._assigns import Assigns
from oxidecopy.mypy_plugin._domain import ANY, NONE, State, Value, Values, union, unions
from oxidecopy.mypy_plugin._features import leaks, overloads
from oxidecopy.mypy_plugin._takes import Taken
from oxidecopy.mypy_plugin._types import class_of, is_owned, signatures, takes, takes_self


@final
@dataclass(eq=False, slots=True, kw_only=True)
class Callee:
    """Who is called; `bound`: the first formal is filled already; `container`: a method of one of Python's containers."""

    fullname: str = ""
    node: Node | None = None
    receiver: Expression | None = None
    bound: bool = False
    container: bool = False


@final
@dataclass(eq=False, slots=True, kw_only=True)
class Call:
    """One call, for the features: whom, on what, with what, and what came of it."""

    expr: CallExpr
    callee: Callee
    held: Values
    actuals: list[Values]
    arguments: dict[str, list[tuple[Expression, Values]]] = field(default_factory=dict)
    result: Value | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which arguments of a call are which parameters, and which are taken: by number, the same whenever it is executed.

    `lent` are the others of a call that takes some.
    """

    pairs: tuple[tuple[str, int], ...]
    owned: tuple[int, ...]
    lent: tuple[int, ...]
    takes_receiver: bool


# What a call's plan depends on, where a function has one signature: the function, whether it is bound, the names of the arguments.
PlanKey: TypeAlias = "tuple[Node, bool, tuple[str | None, ...]]"
Method: TypeAlias = "tuple[str, Node, bool, bool]"


class Calls(Assigns):
    """Calls. What a call of the library means beyond its signature is in `_features`."""

    shared_plans: dict[PlanKey, Plan]  # of all functions of the file
    shared_methods: dict[tuple[TypeInfo, str], Method | None]
    _plans: dict[CallExpr, Plan]
    _callees: dict[CallExpr, Callee]

    def on_call(self, call: Call, state: State) -> None:
        """Told of every call after its arguments are taken."""

    def resolve(self, e: CallExpr) -> Callee:
        """Who is called, as far as the source says."""
        known = self._callees.get(e)
        if known is None:
            known = self._callees[e] = self._resolve(e)
        return known

    def _resolve(self, e: CallExpr) -> Callee:
        callee = e.callee
        if isinstance(callee, RefExpr) and callee.fullname:
            node = callee.node
            if isinstance(node, TypeInfo):
                found = node.get("__init__")
                return Callee(fullname=node.fullname, node=node if found else None, bound=True)
            on_instance = isinstance(callee, MemberExpr) and isinstance(self.type_of(callee.expr), Instance)
            if isinstance(node, FuncDef | OverloadedFuncDef | Decorator) and not on_instance:
                return Callee(fullname=callee.fullname, node=node)
        if isinstance(callee, MemberExpr):
            t = self.type_of(callee.expr)
            if isinstance(t, TypeType):
                found = t.item.type.get(callee.name) if isinstance(t.item, Instance) else None
                return Callee(fullname=_full(found.node if found else None), node=found.node if found else None)
            info = class_of(t)
            method = self._method(info, callee.name) if info is not None else None
            if method is not None:
                full, declared, bound, container = method
                return Callee(fullname=full, node=declared, receiver=callee.expr, bound=bound, container=container)
        t = self.type_of(callee)
        found = t.type.get("__call__") if isinstance(t, Instance) else None
        if found is not None:
            return Callee(fullname=_full(found.node), node=found.node, bound=True)
        return Callee()

    def _method(self, info: TypeInfo, name: str) -> Method | None:
        """The full name of a method, its node, whether its object is its first parameter, and whether it is one of Python's containers'."""
        key = info, name
        if key not in self.shared_methods:
            found = info.get(name)
            node = found.node if found is not None else None
            self.shared_methods[key] = (_full(node), node, not _is_static(node), _of_container(node)) if node is not None else None
        return self.shared_methods[key]

    def call(self, e: CallExpr, state: State) -> Values:
        """Evaluates a call."""
        callee = self.resolve(e)
        held, called = NONE, NONE
        if callee.receiver is not None:
            held = self.evaluate(callee.receiver, state, whole=callee.bound and not callee.container)
        elif isinstance(e.callee, NameExpr | MemberExpr) or not isinstance(e.callee, SuperExpr):
            called = self.evaluate(e.callee, state)
        actuals = [self.evaluate(arg, state) for arg in e.args]
        if callee.fullname in _names.PASS_ON:
            self.on_call(Call(expr=e, callee=callee, held=held, actuals=actuals), state)
            return unions(actuals)
        if callee.fullname in _names.VIEWS and held and callee.receiver is not None:
            self.use(callee.receiver, held, state, whole=True)
            return held
        if callee.receiver is not None and held and any(actuals) and isinstance(callee.receiver, NameExpr | MemberExpr):
            self.evaluate(callee.receiver, state, whole=False)  # an argument may have taken it meanwhile
        call = Call(expr=e, callee=callee, held=held, actuals=actuals)
        self._pass(call, called, state)
        self._containers(call, state)
        call.result = self._result(call, state)
        leaks.passed(self, call, called, state)
        self.on_call(call, state)
        return NONE if call.result is None else {call.result: None}

    # ---- arguments
    def _pass(self, call: Call, called: Values, state: State) -> None:
        """Matches arguments and parameters, and takes those that are marked Owned."""
        e = call.expr
        taken: Taken = []
        plan = self._plans.get(e) or self._plans.setdefault(e, self._plan_of(call))  # a loop's body is run through several times
        for name, actual in plan.pairs:
            call.arguments.setdefault(name, []).append((e.args[actual], call.actuals[actual]))
        if not (plan.owned or plan.takes_receiver or called):
            return
        what = f'"{call.callee.fullname.rsplit(".", 1)[-1]}"' if call.callee.fullname else f'"{self.text(e.callee)}"'
        for actual in plan.owned:
            take = self.take_elements if e.arg_kinds[actual] == ARG_STAR else self.take
            take(e.args[actual], call.actuals[actual], state, what, e, taken)
        for actual in plan.lent if taken else ():
            self.check_lent(e.args[actual], call.actuals[actual], what, taken)
        if plan.takes_receiver and call.callee.receiver is not None:
            self.take(call.callee.receiver, call.held, state, what, e, taken)
        for value in called:
            if value.method:
                self.take(e.callee, self.slot(value, "()", state), state, f'"{value.method}"', e, taken)

    def _plan_of(self, call: Call) -> Plan:
        """The plan of a function with one signature is the same wherever it is called with as many arguments of the same names."""
        node, e = call.callee.node, call.expr
        if node is None or ARG_STAR in e.arg_kinds or ARG_STAR2 in e.arg_kinds:
            return self._plan(call)
        key = node, call.callee.bound, tuple(e.arg_names)
        known = self.shared_plans.get(key)
        if known is None:
            known = self._plan(call)
            declared = signatures(node)
            if len(declared) == 1 or (declared and not takes(node)):
                self.shared_plans[key] = known  # which overload is called does not matter where none takes anything
        return known

    def _plan(self, call: Call) -> Plan:
        """Of overloads, the one that is called; where that is not known, something is taken if all that may be it take it."""
        e, skip = call.expr, 1 if call.callee.bound else 0
        pairs: dict[tuple[str, int], None] = {}
        owned: list[set[int]] = []
        actual = overloads.Actual(self.types, e)
        called = overloads.called(self._signatures(call), e, actual, self._given(call), skip=skip)
        for signature in called:
            names, types = signature.arg_names[skip:], signature.arg_types[skip:]
            formals = map_actuals_to_formals(e.arg_kinds, e.arg_names, signature.arg_kinds[skip:], names, actual)
            owned.append(set())
            for formal, matched in enumerate(formals):
                pairs.update(dict.fromkeys((names[formal] or f"#{formal}", actual) for actual in matched))
                owned[-1].update(matched if is_owned(types[formal]) else ())
        takes_receiver = call.callee.bound and bool(called) and all(s.arg_types and is_owned(s.arg_types[0]) for s in called)
        taken: set[int] = set.intersection(*owned) if owned else set()
        lent = {actual for _, actual in pairs if taken and not any(actual in some for some in owned)}
        return Plan(pairs=tuple(pairs), owned=tuple(sorted(taken)), lent=tuple(sorted(lent)), takes_receiver=takes_receiver)

    def _given(self, call: Call) -> Type | None:
        """The type of what fills a method's first parameter."""
        return self.type_of(call.callee.receiver) if call.callee.bound and call.callee.receiver is not None else None

    def _signatures(self, call: Call) -> list[CallableType]:
        declared = signatures(call.callee.node)
        if declared:
            return declared
        t = self.type_of(call.expr.callee)
        return [t] if isinstance(t, CallableType) and not call.callee.fullname else []

    def _containers(self, call: Call, state: State) -> None:
        """Python's containers: what is put in can be reached through them; what is cleared away is no longer known."""
        name = call.expr.callee.name if isinstance(call.expr.callee, MemberExpr) else ""
        if not call.held or not name or not call.callee.container:
            return
        if name in _names.ADDING:
            values = unions(call.actuals)
            for owner in call.held:
                if values:
                    state.slots[owner, ANY] = union(state.slots.get((owner, ANY), NONE), values)
                    state.rebound({(owner, ANY): None})
        elif name in _names.FORGETTING:
            for place in [place for place in state.slots if place[0] in call.held and place[1].startswith("[")]:
                del state.slots[place]

    # ---- results
    def _result(self, call: Call, state: State) -> Value | None:
        e = call.expr
        t = self.type_of(e)
        if isinstance(t, UninhabitedType) or not self.tracked(t):
            return None
        result = self.fresh(("call", e), f"{self.text(e.callee)}(...)", t, e, state)
        node = call.callee.node
        if isinstance(node, TypeInfo) and (node.metadata.get("dataclass") or node.is_named_tuple):
            for name, pairs in call.arguments.items():
                held = unions(values for _, values in pairs)
                if held and name in node.names:
                    state.slots[result, f".{name}"] = held
            result.whole = "__post_init__" not in node.names
        return result

    # ---- bound methods
    def bound_method(self, e: MemberExpr, base: Values, state: State) -> Values:
        """`f = r.inval`: calling `f` takes `r`."""
        info = class_of(self.type_of(e.expr))
        found = info.get(e.name) if info is not None else None
        if found is None or isinstance(found.node, Var) or not takes_self(found.node):
            return NONE
        method = self.fresh(("method", e), self.text(e), self.type_of(e), e, state)
        method.method = e.name
        state.slots[method, "()"] = base
        return {method: None}


def _of_container(node: object) -> bool:
    """A method of one of Python's containers."""
    function = node.func if isinstance(node, Decorator) else node
    return isinstance(function, FuncDef | OverloadedFuncDef) and bool(function.info) and function.info.module_name in _names.CONTAINERS


def _is_static(node: object) -> bool:
    function = node.func if isinstance(node, Decorator) else node
    return isinstance(function, FuncDef | OverloadedFuncDef) and function.is_static


def _full(node: object) -> str:
    """Where a method is declared."""
    if isinstance(node, Decorator):
        node = node.func
    if isinstance(node, FuncDef | OverloadedFuncDef):
        return node.fullname
    return node.fullname if isinstance(node, Var) else ""
