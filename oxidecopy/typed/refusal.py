"""How this room refuses: one diagnostic at the user's line, and the few questions that every entry point asks of its arguments."""

from __future__ import annotations

import operator
from typing import Final, NoReturn, TypeVar

from oxidecopy.errors import ArgumentError, Cause, Diagnostic, OxidecopyError, RecordError, Site
from oxidecopy.typed.sites import caller_site

_T = TypeVar("_T")
_GOT_MAX: Final = 200  # characters of a value's repr in an error: one screen, whatever the user's object is


def refuse(
    error: type[OxidecopyError],
    rule: str,
    what: str,
    *,
    got: str = "",
    required: str = "",
    fix: str = "",
    site: Site | None = None,
    causes: tuple[Cause, ...] = (),
) -> NoReturn:
    """Raises `error` with one diagnostic at `site`, by default the user's line that led here."""
    where = site or caller_site()
    raise error(Diagnostic(rule=rule, what=what, got=got[:_GOT_MAX], required=required, fix=fix, site=where, causes=causes))


def whole(value: object) -> int | None:
    """`value` as an int when it is one (numpy's too, bool is not); a symbolic integer refuses by itself."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # that is the question
    except TypeError as problem:
        if isinstance(problem, OxidecopyError):
            raise
        return None


def require(value: object, cls: type[_T], what: str, fix: str) -> _T:
    """`value`, which must be a `cls`: the run-time twin of an annotated parameter."""
    if not isinstance(value, cls):
        refuse(RecordError, "OX1009", f"{what} takes a {cls.__name__}", got=described(value), required=cls.__name__, fix=fix)
    return value


def flag(value: object, name: str) -> bool:
    """`value`, which must be True or False: a word, or a number, would be taken for True whatever it says."""
    if isinstance(value, bool):
        return value
    refuse(
        ArgumentError,
        "OX5016",
        f"`{name}` is a yes or a no",
        got=f"{name}={described(value)}",
        required="True or False",
        fix=f"{name}=True",
    )


def described(value: object) -> str:
    """A value in words, for `got`."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    shown: str | None = getattr(type(value), "shown_as", None)
    if shown is None and (value is None or isinstance(value, bool | int | float | str | tuple)):
        return f"{value!r} ({type(value).__name__})"
    return shown or type(value).__name__
