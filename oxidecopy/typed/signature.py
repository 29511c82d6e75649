"""What a pipeline function's parameters are, read from its annotations, and which arguments fit them.

Checkers compare a launch with the signature; this module is the same check at run time, for people without one, and decides which
arguments are part of the recording (plain int, bool, str; descriptor types) and which stay symbolic (`Idx`, `Scalar`).
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import CodeType, MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, final

from typing_extensions import override

from oxidecopy.errors import ClusterError, RecordError, Site
from oxidecopy.program.program import RANK_SYMBOL
from oxidecopy.typed.cta import ClusterCta, Cta
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.descriptor_table import DescriptorTable
from oxidecopy.typed.dtypes import DType, element_named
from oxidecopy.typed.geometry import AnyBox, AnySwizzle, box_extents
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.im2col import Im2colDescriptor, Im2colWideDescriptor
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.scalar import ScalarValue
from oxidecopy.typed.symbolic import SymIdx

MAP_CLASSES: Final[dict[str, type]] = {
    "map": TmaDescriptor,
    "im2col": Im2colDescriptor,
    "wide": Im2colWideDescriptor,
    "table": DescriptorTable,
}
# What the brackets of these types, and of arrays, hold in turn.
_PARTS: Final[tuple[tuple[str, type, str], ...]] = (
    ("element type", DType, "a class such as ox.f32"),
    ("shape", tuple, "ox.D1, ox.D2, ... for the number of dimensions"),
    ("swizzle", AnySwizzle, "ox.SwizzleNone, ox.Swizzle32B, ox.Swizzle64B or ox.Swizzle128B"),
    ("box", AnyBox, "a type such as ox.Box2[Literal[64], Literal[32]]"),
)


@final
class Formal(NamedTuple):
    """One parameter after `cta`. None means that the annotation leaves it open.

    Attributes:
        kind: "map", "im2col" (map), "wide" (im2col map), "table" (of maps), "array", "idx", "scalar" or "plain".
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

    @override
    def __str__(self) -> str:
        """As a user would write the annotation."""
        parts = [self.dtype or "?", f"D{self.rank}" if self.rank else "?"]
        match self.kind:
            case "map" | "im2col" | "wide" | "table":
                parts += [f"swizzle {self.swizzle}"] if self.swizzle else []
                parts += [f"box {self.box}"] if self.box else []
                return f"{MAP_CLASSES[self.kind].__name__}[{', '.join(parts)}]"
            case "array":
                return f"GlobalArray[{', '.join(parts)}]"
            case "scalar":
                return f"Scalar[{self.dtype}]"
            case "idx":
                return "Idx"
            case _:
                return self.plain.__name__ if self.plain else "?"


def definition_site(fn: Callable[..., Any]) -> Site | None:
    """Where a function is defined; None when it is no Python function."""
    code = getattr(fn, "__code__", None)
    return Site(code.co_filename, code.co_firstlineno, code.co_name) if isinstance(code, CodeType) else None


def early_formals(
    fn: Callable[..., Any], *, clustered: bool, names: Mapping[str, Any]
) -> tuple[inspect.Signature, tuple[Formal, ...]] | None:
    """`formals` where `fn` is defined: None when an annotation names what comes later in its file."""
    try:
        return formals(fn, clustered=clustered, names=names)
    except RecordError as problem:
        if isinstance(problem.__context__, NameError):
            return None
        raise


def formals(
    fn: Callable[..., Any], *, clustered: bool, names: Mapping[str, Any] = MappingProxyType({})
) -> tuple[inspect.Signature, tuple[Formal, ...]]:
    """The signature without `cta`, and its parameters.

    Args:
        fn: the pipeline function.
        clustered: it is declared with a cluster.
        names: that annotations may use beside those of its module: the locals around its definition.

    Raises:
        RecordError: for a function that is no pipeline.
    """
    if not inspect.isfunction(fn):
        _refuse(fn, "OX1067", "a pipeline is a Python function", got=described(fn), fix="decorate a `def`")
    signature = inspect.signature(fn)
    given = list(signature.parameters.values())
    if not given or given[0].kind is given[0].KEYWORD_ONLY or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in given):
        fix = "write `def pipe(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], ...) -> None:`"
        _refuse(fn, "OX1067", "a pipeline function takes `cta` and named parameters", got=f"{fn.__name__}{signature}", fix=fix)
    hints = _hints(fn, names)
    _check_cta(fn, hints.get(given[0].name), clustered=clustered)
    rest = given[1:]
    for p in rest:
        _check_later(fn, given[0].name, p.name, hints.get(p.name))
    reserved = [p.name for p in rest if p.name == RANK_SYMBOL]
    if reserved:
        _refuse(
            fn,
            "OX1067",
            f"{reserved[0]!r} is the name of a CTA's rank in its cluster",
            got=f"a parameter {reserved[0]!r}",
            fix="rename the parameter",
        )
    return signature.replace(parameters=rest), tuple(_formal(fn, p.name, hints.get(p.name)) for p in rest)


def declared(fn: Callable[..., Any], *, names: Mapping[str, Any]) -> tuple[inspect.Signature, tuple[Formal, ...]]:
    """As `formals`, of a function that is parameters alone: the declaration of a kernel.

    Raises:
        RecordError: for annotations that cannot be evaluated, or mean nothing to a launch.
    """
    signature, hints = inspect.signature(fn), _hints(fn, names)
    return signature, tuple(_formal(fn, name, hints.get(name)) for name in signature.parameters)


def _hints(fn: Callable[..., Any], names: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(fn, localns={**names, **_nonlocals(fn)})
    except Exception as problem:  # an annotation is any expression: it may fail in any way
        fix = "import the names at run time too, and define them before the function is launched"
        _refuse(
            fn, "OX1036", f"the annotations of {fn.__name__!r} cannot be evaluated", got=f"{type(problem).__name__}: {problem}", fix=fix
        )


def _nonlocals(fn: Callable[..., Any]) -> dict[str, Any]:
    """What `fn` takes from functions around it, but for what they have not assigned yet: its body may use that later."""
    found = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _check_cta(fn: Callable[..., Any], hint: object, *, clustered: bool) -> None:
    """The first parameter is a `Cta`, or a `ClusterCta` where there is a cluster."""
    wants_cluster = isinstance(hint, type) and issubclass(hint, ClusterCta)
    if hint in (None, Any) or (isinstance(hint, type) and issubclass(hint, Cta) and (clustered or not wants_cluster)):
        return
    if wants_cluster:
        what = f"{fn.__name__!r} takes a ClusterCta and declares no cluster"
        fix = "declare it with cluster=(2, 1), or take `cta: ox.Cta`"
        refuse(ClusterError, "OX1017", what, got="a pipeline without one", required="`cluster=`", fix=fix, site=definition_site(fn))
    _refuse(fn, "OX1067", "the first parameter of a pipeline function is its `cta`", got=_shown(hint), fix="write `cta: ox.Cta` first")


def _check_later(fn: Callable[..., Any], first: str, name: str, hint: object) -> None:
    """No parameter but the first is a `cta`: then the function is a method, or its parameters are in another order."""
    if isinstance(hint, type) and issubclass(hint, Cta):
        fix = "write a function, or a @staticmethod: what `self` holds is an argument too" if first == "self" else "write it first"
        _refuse(fn, "OX1067", f"`{name}` is not the first parameter of {fn.__name__!r}", got=f"`{first}` before it", fix=fix)


def _formal(fn: Callable[..., Any], name: str, hint: Any) -> Formal:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    cls = origin if origin is not None else hint
    kind = next((word for word, of in MAP_CLASSES.items() if cls is of), "")
    if kind:
        _check_parts(fn, name, hint, args)
        box = box_extents(args[3]) if len(args) > 3 else None
        return Formal(name=name, kind=kind, dtype=_dtype(args, 0), rank=_rank(args, 1), swizzle=_swizzle(args, 2), box=box)
    if hint is GlobalArray or origin is GlobalArray:
        _check_parts(fn, name, hint, args)
        return Formal(name=name, kind="array", dtype=_dtype(args, 0), rank=_rank(args, 1))
    if SymIdx in args:
        return Formal(name=name, kind="idx")
    for member in args:
        if typing.get_origin(member) is ScalarValue and _dtype(typing.get_args(member), 0):
            return Formal(name=name, kind="scalar", dtype=_dtype(typing.get_args(member), 0))
    if hint in (int, bool, str):
        return Formal(name=name, kind="plain", plain=hint)
    got = "none" if hint is None else _shown(hint)
    classes = ", ".join(sorted({cls.__name__ for cls in MAP_CLASSES.values()}))
    fix = f"use {classes}, GlobalArray, Idx, Scalar[ox.f32] (or another element type), int, bool or str"
    _refuse(fn, "OX1036", f"parameter {name!r} has no annotation that a launch understands", got=got, fix=fix)


def _check_parts(fn: Callable[..., Any], name: str, hint: object, args: tuple[object, ...]) -> None:
    """What stands in the brackets of a descriptor's or an array's type is of its kind; else it would be taken for `Any`."""
    for arg, (what, base, fix) in zip(args, _PARTS, strict=False):
        cls = typing.get_origin(arg) or arg
        if arg is Any or isinstance(arg, TypeVar) or (isinstance(cls, type) and issubclass(cls, base)):
            continue
        known = element_named(arg) if base is DType else ""
        _refuse(fn, "OX1036", f"the type of parameter {name!r} names no {what}", got=_shown(hint), fix=f"write {known or fix}")


def _shown(hint: object) -> str:
    """An annotation as it is written, nearly: without the modules, and with the names of shapes."""
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=\w)", "", str(hint))
    index = re.escape("int | SymIdx")
    return re.sub(rf"tuple\[({index}(?:, {index})*)\]", lambda found: f"D{found[1].count('SymIdx')}", text)


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


def _refuse(fn: Callable[..., Any], rule: str, what: str, *, got: str, fix: str) -> typing.NoReturn:
    required = "a function of annotated parameters (a pipeline's first is `cta`) that returns nothing"
    refuse(RecordError, rule, what, got=got, required=required, fix=fix, site=definition_site(fn))
