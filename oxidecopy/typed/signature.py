"""What a pipeline function's parameters are, read from its annotations, and which arguments fit them.

Checkers compare a launch with the signature; this module is the same check at run time, for people without one, and decides which
arguments are part of the recording (plain int, bool, str; descriptor types) and which stay symbolic (`Idx`, `Scalar`).
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from oxidecopy.errors import Diagnostic, RecordError, Site
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import AnySwizzle, box_extents
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.symbolic import ScalarValue, SymIdx


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Formal:
    """One parameter after `cta`. None means that the annotation leaves it open.

    Attributes:
        kind: "map", "array", "idx", "scalar" or "plain".
        dtype: element type's name.
        rank: dimensions.
        swizzle: mode's name.
        box: extents, when the annotation names them all.
        plain: the class of a plain parameter.
    """

    name: str
    kind: str
    dtype: str | None = None
    rank: int | None = None
    swizzle: str | None = None
    box: tuple[int, ...] | None = None
    plain: type | None = None

    def __str__(self) -> str:
        """As a user would write the annotation."""
        parts = [self.dtype or "?", f"D{self.rank}" if self.rank else "?"]
        match self.kind:
            case "map":
                parts += [f"swizzle {self.swizzle}"] if self.swizzle else []
                parts += [f"box {self.box}"] if self.box else []
                return f"TmaDescriptor[{', '.join(parts)}]"
            case "array":
                return f"GlobalArray[{', '.join(parts)}]"
            case "scalar":
                return f"Scalar[{self.dtype}]"
            case "idx":
                return "Idx"
            case _:
                return self.plain.__name__ if self.plain else "?"


def definition_site(fn: Callable[..., Any]) -> Site:
    code = fn.__code__ if hasattr(fn, "__code__") else None
    return Site(code.co_filename, code.co_firstlineno, fn.__name__) if code else Site("?", 0, repr(fn))


def formals(fn: Callable[..., Any]) -> tuple[inspect.Signature, tuple[Formal, ...]]:
    """The signature without `cta`, and its parameters."""
    signature = inspect.signature(fn)
    names = list(signature.parameters.values())
    if not names or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in names):
        _refuse(fn, "a pipeline function takes `cta` and named parameters", got=f"{fn.__name__}{signature}")
    hints = _hints(fn)
    rest = names[1:]
    return signature.replace(parameters=rest), tuple(_formal(fn, p.name, hints.get(p.name)) for p in rest)


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    closure = inspect.getclosurevars(fn).nonlocals if hasattr(fn, "__code__") else {}
    try:
        return typing.get_type_hints(fn, localns=dict(closure))
    except (NameError, AttributeError, TypeError) as problem:
        _refuse(fn, "the annotations of a pipeline function cannot be evaluated", got=str(problem), fix="import the names at run time too, at module level")


def _formal(fn: Callable[..., Any], name: str, hint: Any) -> Formal:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is TmaDescriptor or origin is TmaDescriptor:
        return Formal(name=name, kind="map", dtype=_dtype(args, 0), rank=_rank(args, 1), swizzle=_swizzle(args, 2), box=box_extents(args[3]) if len(args) > 3 else None)
    if hint is GlobalArray or origin is GlobalArray:
        return Formal(name=name, kind="array", dtype=_dtype(args, 0), rank=_rank(args, 1))
    if SymIdx in args:
        return Formal(name=name, kind="idx")
    for member in args:
        if typing.get_origin(member) is ScalarValue:
            return Formal(name=name, kind="scalar", dtype=_dtype(typing.get_args(member), 0))
    if hint in (int, bool, str):
        return Formal(name=name, kind="plain", plain=hint)
    _refuse(
        fn, f"parameter {name!r} has no annotation that a pipeline understands", got="none" if hint is None else str(hint),
        fix="use TmaDescriptor, GlobalArray, Idx, Scalar[...], int, bool or str",
    )  # fmt: skip


def _dtype(args: tuple[Any, ...], i: int) -> str | None:
    dtype = args[i] if len(args) > i else None
    return dtype.info.name if isinstance(dtype, type) and issubclass(dtype, DType) and "info" in dtype.__dict__ else None


def _rank(args: tuple[Any, ...], i: int) -> int | None:
    shape = args[i] if len(args) > i else None
    parts = typing.get_args(shape)
    return len(parts) if typing.get_origin(shape) is tuple and Ellipsis not in parts else None


def _swizzle(args: tuple[Any, ...], i: int) -> str | None:
    mode = args[i] if len(args) > i else None
    return mode.info.name if isinstance(mode, type) and issubclass(mode, AnySwizzle) and "info" in mode.__dict__ else None


def _refuse(fn: Callable[..., Any], what: str, *, got: str = "", fix: str = "") -> typing.NoReturn:
    raise RecordError(Diagnostic(rule="OX1036", what=what, got=got, fix=fix, site=definition_site(fn)))
