"""A barrier in the wrong state, in plain words: which one, where its state came from, what to call first."""

from __future__ import annotations

import re
from typing import Final

from mypy.nodes import CallExpr, Expression, IndexExpr, MemberExpr, NameExpr, Var
from mypy.types import Instance

from oxidecopy.mypy_plugin import _messages, _names
from oxidecopy.mypy_plugin._features.found import Source
from oxidecopy.mypy_plugin._types import fullname

# As mypy shows types; the module stands before the name where two have the same.
_BARRIER: Final = (
    r"(?:[\w.]+\.)?(?P<{0}>ManagedBarriers?)\[(?:[\w.]+\.)?(?P<{0}_state>Uninit|Ready|Invalidated), (?:[\w.]+\.)?(?P<{0}_kind>\w+)"
)
_SELF: Final = re.compile(
    rf'Invalid self argument "{_BARRIER.format("given")}.*?" to attribute function "(?P<method>\w+)" with type '
    rf'"[^\[]*\[?\[?[^\[]*?{_BARRIER.format("asked")}'
)
_ARGUMENT: Final = re.compile(
    rf'Argument (?P<what>.+) has incompatible type "{_BARRIER.format("given")}[^"|]*"; expected "{_BARRIER.format("asked")}[^"|]*"$'
)
_ASSIGNMENT: Final = re.compile(
    r"Incompatible types in assignment "
    rf'\(expression has type "{_BARRIER.format("given")}[^"|]*", variable has type "{_BARRIER.format("asked")}[^"|]*"\)$'
)
_INDEXING: Final[dict[str, str]] = {"__getitem__": "an index", "__iter__": "a loop over them", "__len__": "`len`"}


def said(text: str, source: Source) -> str | None:
    """The message in other words, if it is one of these."""
    if found := _SELF.match(text):
        method = found["method"]
        e = source.name() if method in _INDEXING else source.receiver(method)
        return _words(found, _INDEXING.get(method, f'"{method}"'), e, source)
    if found := _ARGUMENT.match(text):
        return _words(found, f"argument {found['what']}", source.name(), source)
    if (found := _ASSIGNMENT.match(text)) and found["given"] == found["asked"] and found["given_state"] != found["asked_state"]:
        return _messages.state_of_variable(found["given_state"], found["asked_state"])
    return None


def _words(found: re.Match[str], asks: str, e: Expression | None, source: Source) -> str | None:
    if found["given"] != found["asked"]:
        return None
    noun = "barrier" if found["given"] == "ManagedBarrier" else "barriers"
    name = _shown(e)
    if found["given_state"] != found["asked_state"]:
        return _messages.wrong_state(noun, name, found["given_state"], _origin(e, found["given_state"], source), asks, found["asked_state"])
    if found["given_kind"] != found["asked_kind"] == "TmaBarrier":
        return _messages.wrong_kind(noun, name, found["given_kind"], asks)
    return None


def _shown(e: Expression | None) -> str:
    """A name, an attribute or an element; others have no name."""
    if isinstance(e, NameExpr):
        return e.name
    if isinstance(e, MemberExpr):
        return f"{inner}.{e.name}" if (inner := _shown(e.expr)) else ""
    if isinstance(e, IndexExpr):
        return f"{inner}[...]" if (inner := _shown(e.base)) else ""
    return ""


def _origin(e: Expression | None, state: str, source: Source) -> str:
    """What made it so, where the source says it plainly."""
    if not isinstance(e, NameExpr) or not isinstance(e.node, Var):
        return ""
    made = source.made(e.node)
    if made is None:
        return _messages.state_declared() if source.declared(e.node) else ""
    value = made.rvalue
    t = source.type_of(value)
    so = isinstance(t, Instance) and t.type.fullname in _names.BARRIER_CLASSES and fullname(t.args[0]).endswith(f".{state}")
    if so and isinstance(value, CallExpr) and isinstance(value.callee, MemberExpr | NameExpr):
        return _messages.state_made(value.callee.name, made.line, state)
    return ""
