"""What is owed at one point of a function: values that somebody must use up, by the paths on which nobody has yet.

A path is what it found conditions to be, so that `if c: make` ... `if c: use up` owes nothing: no path has `c` both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, final

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._domain import Value

Fact: TypeAlias = "tuple[str, bool]"  # a condition as it is written, and what it was
Path: TypeAlias = "frozenset[Fact]"

START: Final[Path] = frozenset()
PATHS_MAX: Final = 8  # more paths than this are not told apart: nothing is said of the value then
GIVEN_UP: Final[frozenset[Path]] = frozenset()

TOKEN: Final = "token"
BARRIER: Final = "barrier"
GROUP: Final = "commit group"


@final
@dataclass(frozen=True, slots=True)
class Debt:
    """One value that is to be used up.

    Attributes:
        kind: TOKEN, BARRIER or GROUP.
        paths: on which it still is; none when there were too many.
        carried: the loop around has gone on since the value was made, or has only been entered.
        lent: a copy was issued with the token, whose barrier somebody may wait for by number.
    """

    kind: str
    paths: frozenset[Path]
    carried: bool = False
    lent: bool = False


Debts: TypeAlias = "dict[Value, Debt]"


def either(a: Debt, b: Debt) -> Debt:
    """Owed on the paths of both."""
    paths = simple(a.paths | b.paths) if a.paths and b.paths else GIVEN_UP
    return Debt(a.kind, paths, a.carried and b.carried, a.lent or b.lent)


def join(a: Mapping[Value, Debt], b: Mapping[Value, Debt]) -> Debts:
    """After one of two paths: what is owed on one of them is owed."""
    joined = dict(a)
    for value, debt in b.items():
        known = joined.get(value)
        joined[value] = debt if known is None or known == debt else either(known, debt)
    return joined


def simple(paths: frozenset[Path]) -> frozenset[Path]:
    """The same paths in fewer: one that has a condition both ways does not depend on it."""
    todo = set(paths)
    while len(todo) > 1:
        merged = next(
            (
                (p, path ^ {fact, _other(fact)}, fact)
                for path in todo
                for fact in path
                for p in [path]
                if path ^ {fact, _other(fact)} in todo
            ),
            None,
        )
        if merged is not None:
            path, opposite, fact = merged
            todo -= {path, opposite}
            todo.add(path - {fact})
            continue
        wider = {p for p in todo if any(q < p for q in todo)}  # a path with fewer conditions includes those with more
        if not wider:
            break
        todo -= wider
    return frozenset(todo) if len(todo) <= PATHS_MAX else GIVEN_UP


def _other(fact: Fact) -> Fact:
    return fact[0], not fact[1]


def assume(owed: Debts, facts: Iterable[Fact]) -> Debts:
    """What is owed where these conditions are so: paths on which they were not do not come here."""
    found = frozenset(facts)
    if not found or not owed:
        return owed
    against = {_other(fact) for fact in found}
    left: Debts = {}
    for value, debt in owed.items():
        paths = frozenset(path | found for path in debt.paths if against.isdisjoint(path))
        if paths or not debt.paths:
            left[value] = replace(debt, paths=paths)
    return left


def forget(owed: Debts, keys: frozenset[str]) -> Debts:
    """These conditions may have changed since."""
    if not any(fact[0] in keys for debt in owed.values() for path in debt.paths for fact in path):
        return owed
    return {
        value: replace(debt, paths=simple(frozenset(frozenset(f for f in path if f[0] not in keys) for path in debt.paths)))
        for value, debt in owed.items()
    }


def carried(owed: Debts) -> Debts:
    """Into the body of a loop."""
    return {value: debt if debt.carried else replace(debt, carried=True) for value, debt in owed.items()}


def renamed(owed: Debts, twins: Mapping[Value, Value]) -> Debts:
    """Values that are older ones, or of a past iteration, from here on."""
    found: Debts = {}
    for value, debt in owed.items():
        twin = twins.get(value, value)
        new = debt if twin is value else replace(debt, carried=True)
        found[twin] = either(found[twin], new) if twin in found else new
    return found
