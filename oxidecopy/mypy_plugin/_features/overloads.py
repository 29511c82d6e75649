"""Which of several overloads a call is of: mypy chooses one, and does not say which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from mypy.argmap import map_actuals_to_formals
from mypy.erasetype import erase_typevars
from mypy.nodes import CallExpr, Expression
from mypy.subtypes import is_proper_subtype, is_subtype
from mypy.types import AnyType, CallableType, Type, TypeOfAny

from oxidecopy.mypy_plugin._types import is_owned


@final
class Actual:
    """The type of an actual argument, for mypy's matching of star arguments."""

    def __init__(self, types: Mapping[Expression, Type], e: CallExpr) -> None:
        self._types = types
        self._args = e.args

    def __call__(self, index: int) -> Type:
        return self._types.get(self._args[index]) or AnyType(TypeOfAny.special_form)


def called(declared: Sequence[CallableType], e: CallExpr, actual: Actual, given: Type | None, *, skip: int) -> Sequence[CallableType]:
    """The one that is called, or all that may be it. `given` is what a method is called on, which fills its first parameter."""
    if len(declared) < 2 or not any(is_owned(t) for signature in declared for t in signature.arg_types):
        return declared
    found: list[CallableType] = []
    for signature in declared:
        pairs = _pairs(signature, e, actual, given, skip)
        if pairs is None or not all(is_subtype(mine, theirs) for mine, theirs in pairs):
            continue
        found.append(signature)
        if all(is_proper_subtype(mine, theirs) for mine, theirs in pairs):
            break  # mypy takes the first one that fits; only where a type is not known, others may be meant
    return found or declared


def _pairs(signature: CallableType, e: CallExpr, actual: Actual, given: Type | None, skip: int) -> list[tuple[Type, Type]] | None:
    """The types of arguments and of their parameters; None when there are too many or too few."""
    kinds, names, types = signature.arg_kinds[skip:], signature.arg_names[skip:], [erase_typevars(t) for t in signature.arg_types]
    formals = map_actuals_to_formals(e.arg_kinds, e.arg_names, kinds, names, actual)
    starred = any(kind.is_star() for kind in e.arg_kinds)
    matched = {number for numbers in formals for number in numbers}
    missing = any(kind.is_required() and not numbers for kind, numbers in zip(kinds, formals, strict=True))
    if (missing and not starred) or len(matched) < len(e.args):
        return None
    pairs = [
        (actual(number), types[skip + formal])
        for formal, numbers in enumerate(formals)
        for number in numbers
        if not e.arg_kinds[number].is_star()
    ]
    return [*pairs, (given, types[0])] if given is not None and skip else pairs
