"""Questions to mypy's types: what is tracked, what takes its argument, what is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

from mypy.nodes import Decorator, FuncDef, Node, OverloadedFuncDef, TypeInfo, Var
from mypy.types import (
    CallableType,
    Instance,
    LiteralType,
    Overloaded,
    ProperType,
    TupleType,
    Type,
    TypeAliasType,
    TypeType,
    TypeVarType,
    UnionType,
    get_proper_type,
)

from oxidecopy.mypy_plugin import _names

_NO_USERS: Final = (
    "builtins.",
    "typing.",
    "contextlib.",
    "numpy.",
    _names.PREFIX,
)  # classes of these take nothing of ours, and need no look
_DEPTH_MAX: Final = 5  # types nest without end where classes name themselves
_HOLDING: Final = (TupleType, UnionType, TypeVarType)  # types without a class of their own whose values may hold some


def is_owned(t: Type | None) -> bool:
    """`Owned[...]`, which mypy keeps as the alias that it is, through its cache too."""
    return isinstance(t, TypeAliasType) and t.alias is not None and t.alias.fullname == _names.OWNED


def signatures(node: object) -> list[CallableType]:
    """The declared signatures of what a name stands for."""
    if isinstance(node, Decorator):
        declared = get_proper_type(node.var.type)
        node = node.var if isinstance(declared, CallableType | Overloaded) else node.func
    if isinstance(node, TypeInfo):
        found = node.get("__new__" if node.is_named_tuple else "__init__")
        node = found.node if found else None
    t = get_proper_type(node.type) if isinstance(node, FuncDef | OverloadedFuncDef | Var) else None
    if isinstance(t, CallableType):
        return [t]
    return list(t.items) if isinstance(t, Overloaded) else []


def takes(node: object) -> bool:
    """Does calling it take anything?"""
    return any(is_owned(argument) for signature in signatures(node) for argument in signature.arg_types)


def takes_self(node: object) -> bool:
    """A method that takes its object."""
    return any(s.arg_types and is_owned(s.arg_types[0]) for s in signatures(node))


def fullname(t: Type | None) -> str:
    """The class of an instance, else nothing."""
    p = get_proper_type(t)
    return p.type.fullname if isinstance(p, Instance) else ""


def symbolic(t: Type | None) -> str:
    """What kind of recorded value all values of this type are: "integer", "condition", "element" and such, or nothing."""
    p = get_proper_type(t)
    if isinstance(p, UnionType):
        kinds = {symbolic(item) for item in p.items}
        return min(kinds) if kinds and "" not in kinds else ""
    return _names.SYMBOLIC.get(p.type.fullname, "") if isinstance(p, Instance) else ""


def literal(t: Type | None) -> int | None:
    """The integer of a literal type."""
    p = get_proper_type(t)
    if isinstance(p, Instance) and p.last_known_value is not None:
        p = p.last_known_value
    return p.value if isinstance(p, LiteralType) and type(p.value) is int else None


def shown(t: Type | None, depth: int = 0) -> str:
    """A type in few words; an alias may name itself, so there is an end."""
    p = get_proper_type(t)
    if depth > _DEPTH_MAX:
        return "..."
    if isinstance(p, UnionType):
        return " | ".join(shown(item, depth + 1) for item in p.items)
    if not isinstance(p, Instance):
        return str(p)
    return p.type.name + (f"[{', '.join(shown(a, depth + 1) for a in p.args)}]" if p.args else "")


@final
class Tracking:
    """Which types hold values that can go. Answers are kept by class for one file."""

    def __init__(self, *, everything: bool = False) -> None:
        self.everything = everything
        self.extra: set[TypeInfo] = set()  # classes that some Owned[...] parameter names
        self._known: dict[TypeInfo, bool] = {}
        self._taking: dict[Node, bool] = {}  # functions that were looked at
        self._answers: dict[int, tuple[Type, bool]] = {}  # by identity, which is quicker than a type's hash; the type is kept alive

    def tracked(self, t: Type | None) -> bool:
        """May a value of this type go, or hold one that can?"""
        if t is None:
            return False
        p = get_proper_type(t)
        if isinstance(p, Instance):
            # Nearly all types are these, so they have a short way.
            known = self._known.get(p.type)
            if known or not p.args:
                return self.class_tracked(p.type) if known is None else known
        elif not isinstance(p, _HOLDING):
            return False
        answer = self._answers.get(id(t))
        if answer is None:
            answer = self._answers[id(t)] = t, self._holds(p, 0)
        return answer[1]

    def _holds(self, p: ProperType, depth: int) -> bool:
        """A class in the type, or in its arguments, is tracked."""
        if isinstance(p, Instance):
            known = self._known.get(p.type)
            if known or (known is None and self.class_tracked(p.type)):
                return True
            parts: Sequence[Type] = p.args
        elif isinstance(p, TupleType | UnionType):
            parts = p.items
        elif isinstance(p, TypeVarType):
            parts = (p.upper_bound,)
        else:
            return False
        if depth < _DEPTH_MAX:
            for part in parts:
                if self._holds(get_proper_type(part), depth + 1):
                    return True
        return False

    def class_tracked(self, info: TypeInfo) -> bool:
        """The same for a class, whatever its arguments: it, or what it can reach through attributes, can go."""
        known = self._known.get(info)
        if known is None:
            known = self._known[info] = self._search(info)
        return known

    def _search(self, start: TypeInfo) -> bool:
        """Looks at all classes that can be reached; when none can go, that is known of all of them at once."""
        if self.everything:
            return True
        seen, todo = {start}, [start]
        while todo:
            info = todo.pop()
            if self._known.get(info) or self._goes(info):
                return True
            reached = {r for r in _members(info) if r not in seen and self._known.get(r) is not False}
            seen |= reached
            todo += reached
        self._known.update(dict.fromkeys(seen, False))
        return False

    def _goes(self, info: TypeInfo) -> bool:
        """A class of the library's handles, or one whose values some parameter or method takes."""
        return any(base.fullname in _names.NOUNS or base in self.extra or _takes_its_object(base) for base in info.mro)

    def interesting(self, p: ProperType) -> bool:
        """Is an expression of this type a reason to analyse the function that it is in?"""
        if isinstance(p, Instance):
            known = self._known.get(p.type)
            if known is None:
                known = self.class_tracked(p.type)
            return known or p.type.fullname in _names.LOOKED_AT or (bool(p.args) and self._interesting_arguments(p.args))
        if isinstance(p, TupleType | UnionType):
            return self._interesting_arguments(p.items)
        if isinstance(p, CallableType):
            return self._takes(p)
        if isinstance(p, Overloaded):
            found = {self._takes(item) for item in p.items}  # all of them: each may name a class
            return True in found
        if isinstance(p, TypeType):
            return False
        return self.everything

    def _interesting_arguments(self, types: Iterable[Type]) -> bool:
        return any(self.tracked(t) or fullname(t) in _names.SYMBOLIC for t in types)

    def _takes(self, signature: CallableType) -> bool:
        """Does it take something? The classes of what it takes are noted, once for each function."""
        declared = signature.definition
        found = self._taking.get(declared) if declared is not None else None
        if found is None:
            taken = [argument for argument in signature.arg_types if is_owned(argument)]
            for argument in taken:
                self.own(argument)
            found = bool(taken)
            if declared is not None and not (taken and signature.variables):
                self._taking[declared] = found
        return found

    def own(self, t: Type | None) -> None:
        """A parameter takes values of this type: they are tracked from here on."""
        p = get_proper_type(t)
        if isinstance(p, Instance) and p.type not in self.extra and not p.type.fullname.startswith("builtins."):
            self.extra.add(p.type)
            self._known.clear()  # what holds one is tracked too
            self._answers.clear()


def _classes(t: Type | None) -> Iterator[TypeInfo]:
    """The classes in a type: of the value, and of what a container's arguments say that it holds."""
    todo = [(t, 0)]
    while todo:
        found, depth = todo.pop()
        if found is None or depth > _DEPTH_MAX:
            continue
        p = get_proper_type(found)
        if isinstance(p, Instance):
            yield p.type
            todo += [(a, depth + 1) for a in p.args]
        elif isinstance(p, TupleType | UnionType):
            todo += [(item, depth + 1) for item in p.items]
        elif isinstance(p, TypeVarType):
            todo.append((p.upper_bound, depth + 1))


def _members(info: TypeInfo) -> set[TypeInfo]:
    """The classes of a class's attributes. What the library keeps inside its own is not the user's."""
    found: set[TypeInfo] = set()
    for base in info.mro:
        if not base.fullname.startswith(_NO_USERS):
            found |= {c for symbol in base.names.values() if isinstance(symbol.node, Var) for c in _classes(symbol.node.type)}
    return found


def _takes_its_object(info: TypeInfo) -> bool:
    """Has a class a method with an Owned self?"""
    if info.fullname.startswith(_NO_USERS):
        return False  # those of the library that go are known by name
    nodes = (symbol.node for symbol in info.names.values())
    return any(isinstance(node, FuncDef | OverloadedFuncDef | Decorator) and takes_self(node) for node in nodes)


def class_of(t: ProperType | None) -> TypeInfo | None:
    """Where the attributes of a value of this type are declared."""
    if isinstance(t, UnionType):
        t = next((p for p in map(get_proper_type, t.items) if isinstance(p, Instance)), None)
    if isinstance(t, TypeVarType):
        t = get_proper_type(t.upper_bound)
    if isinstance(t, TupleType):
        return t.partial_fallback.type
    return t.type if isinstance(t, Instance) else None
