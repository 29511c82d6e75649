"""The part of the pass that binds the names of a `case`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy.nodes import NameExpr, TypeInfo, Var
from mypy.patterns import (
    AsPattern,
    ClassPattern,
    MappingPattern,
    OrPattern,
    Pattern,
    SequencePattern,
    SingletonPattern,
    StarredPattern,
    ValuePattern,
)
from mypy.types import Instance, LiteralType, TupleType, get_proper_type

from oxidecopy.mypy_plugin._calls import Calls
from oxidecopy.mypy_plugin._domain import ANY, NONE, State, Values, unions


class UnknownNodeError(Exception):
    """mypy has a kind of node that the pass does not know."""


class Patterns(Calls):
    """What a pattern binds is the subject, or a part of it."""

    def bind_pattern(self, pattern: Pattern, subject: Values, state: State) -> None:
        """Binds the names of a `case`."""
        bind = BINDERS.get(type(pattern))
        if bind is None:
            raise UnknownNodeError(f"unknown pattern {type(pattern).__name__}")
        bind(self, pattern, subject, state)

    def bind_as(self, pattern: AsPattern, subject: Values, state: State) -> None:
        """`case P as name`, `case name`, `case _`."""
        if pattern.pattern is not None:
            self.bind_pattern(pattern.pattern, subject, state)
        if pattern.name is not None:
            self.capture(pattern.name, subject, state)

    def bind_or(self, pattern: OrPattern, subject: Values, state: State) -> None:
        """`case P | Q`."""
        for alternative in pattern.patterns:
            self.bind_pattern(alternative, subject, state)

    def bind_sequence(self, pattern: SequencePattern, subject: Values, state: State) -> None:
        """`case [a, *rest]`."""
        star = next((i for i, p in enumerate(pattern.patterns) if isinstance(p, StarredPattern)), len(pattern.patterns))
        for i, part in enumerate(pattern.patterns):
            self.bind_pattern(part, self.parts(subject, f"[{i}]" if i < star else ANY, state), state)

    def bind_star(self, pattern: StarredPattern, _subject: Values, state: State) -> None:
        """`*rest`."""
        if pattern.capture is not None:
            self.capture(pattern.capture, NONE, state)

    def bind_mapping(self, pattern: MappingPattern, subject: Values, state: State) -> None:
        """`case {"a": P, **rest}`."""
        for part in pattern.values:
            self.bind_pattern(part, self.parts(subject, ANY, state), state)
        if pattern.rest is not None:
            self.capture(pattern.rest, NONE, state)

    def bind_class(self, pattern: ClassPattern, subject: Values, state: State) -> None:
        """`case C(P, name=Q)`; `__match_args__` says which attribute `P` stands for."""
        for name, part in zip(pattern.keyword_keys, pattern.keyword_values, strict=True):
            self.bind_pattern(part, self.parts(subject, f".{name}", state), state)
        names = _match_args(pattern.class_ref.node)
        for i, part in enumerate(pattern.positionals):
            self.bind_pattern(part, self.parts(subject, f".{names[i]}", state) if i < len(names) else NONE, state)

    def parts(self, subject: Values, part: str, state: State) -> Values:
        """A part of the subject."""
        return unions(self.slot(owner, part, state) for owner in subject)

    def capture(self, name: NameExpr, values: Values, state: State) -> None:
        """Binds one name."""
        self.assign(name, values if self.tracked(self.type_of(name)) else NONE, None, state)


def _match_args(node: object) -> list[str]:
    """The attributes that positional patterns of a class stand for; mypy knows them of dataclasses and named tuples."""
    found = node.get("__match_args__") if isinstance(node, TypeInfo) else None
    t = get_proper_type(found.node.type) if found is not None and isinstance(found.node, Var) else None
    items = [get_proper_type(item) for item in t.items] if isinstance(t, TupleType) else []
    values = [item.last_known_value if isinstance(item, Instance) else item for item in items]
    return [value.value if isinstance(value, LiteralType) and isinstance(value.value, str) else "" for value in values]


def _value(flow: Patterns, pattern: ValuePattern, _subject: Values, state: State) -> None:
    flow.evaluate(pattern.expr, state)


def _nothing(_flow: Patterns, _pattern: Pattern, _subject: Values, _state: State) -> None:
    """`case None`."""


BINDERS: Final[dict[type[Pattern], Callable[..., None]]] = {
    AsPattern: Patterns.bind_as,
    OrPattern: Patterns.bind_or,
    SequencePattern: Patterns.bind_sequence,
    StarredPattern: Patterns.bind_star,
    MappingPattern: Patterns.bind_mapping,
    ClassPattern: Patterns.bind_class,
    ValuePattern: _value,
    SingletonPattern: _nothing,
}
