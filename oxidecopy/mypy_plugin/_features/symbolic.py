"""Python's control flow on recorded values, and floats for integer scalars (`oxidecopy-symbolic`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy.argmap import map_actuals_to_formals
from mypy.nodes import ArgKind, CallExpr, ComparisonExpr, Expression, GeneratorExpr, ListExpr, OpExpr, SetExpr, TupleExpr
from mypy.patterns import AsPattern, OrPattern, Pattern, ValuePattern
from mypy.types import AnyType, CallableType, Instance, Parameters, Type, TypeOfAny, UnionType, get_proper_type

from oxidecopy.mypy_plugin import _codes, _messages, _names
from oxidecopy.mypy_plugin._types import fullname
from oxidecopy.mypy_plugin._types import symbolic as kind_of

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._calls import Call
    from oxidecopy.mypy_plugin._domain import State
    from oxidecopy.mypy_plugin._expressions import Expressions
    from oxidecopy.mypy_plugin._flow import Flow

_ORDERED: Final = frozenset({"in", "not in"})


def truth(flow: Expressions, e: Expression, where: str) -> None:
    """`e` is asked for its truth."""
    if isinstance(e, OpExpr) and e.op in ("and", "or"):
        truth(flow, e.right, where)  # its left side has been asked already
        return
    kind = kind_of(flow.type_of(e))
    if kind:
        flow.reports.say(_codes.SYMBOLIC, e, _messages.tested(kind, where), _messages.tested_note(kind))


def comparison(flow: Expressions, e: ComparisonExpr) -> None:
    """`a <= i < b` asks for the truth of its first part; `i in xs` for that of every comparison."""
    kinds = [kind_of(flow.type_of(operand)) for operand in e.operands]
    for i, operator in enumerate(e.operators):
        recorded = kinds[i] or kinds[i + 1]
        if operator in ("is", "is not") or not recorded:
            continue
        if operator in _ORDERED:
            if kinds[i]:
                flow.reports.say(_codes.SYMBOLIC, e, _messages.tested(kinds[i], operator), _messages.tested_note(kinds[i]))
        elif i + 1 < len(e.operators):
            flow.reports.say(_codes.SYMBOLIC, e, _messages.chained(), _messages.CHAINED_NOTE)


def pattern(flow: Expressions, subject: Expression, p: Pattern) -> None:
    """`match i: case 0:` compares."""
    if isinstance(p, OrPattern):
        for alternative in p.patterns:
            pattern(flow, subject, alternative)
    elif isinstance(p, AsPattern) and p.pattern is not None:
        pattern(flow, subject, p.pattern)
    elif isinstance(p, ValuePattern):
        kind = kind_of(flow.type_of(subject))
        if kind:
            flow.reports.say(_codes.SYMBOLIC, p, _messages.matched(kind), _messages.tested_note(kind))


def ordered(flow: Flow, call: Call, state: State) -> None:  # the shape of a feature
    """`min(i, 3)` asks which is smaller."""
    args = call.expr.args
    kinds = _elements(flow, args[0]) if len(args) == 1 else [kind_of(flow.type_of(arg)) for arg in args]
    kind = next(filter(None, kinds), "")
    if kind:
        name = call.callee.fullname
        better = _names.COMPARING.get(name)
        use = f"a.{better}(b)" if kind == "element" else f"ox.{better}(a, b)"
        notes = (f"use `{use}`",) if better else ()
        flow.reports.say(_codes.SYMBOLIC, call.expr, _messages.compared(name.rpartition(".")[2], kind), *notes)


def asked(flow: Flow, call: Call, state: State) -> None:
    """`bool(i)`, `any([i == 0])`."""
    name = call.callee.fullname.removesuffix(".__new__").rpartition(".")[2]
    for arg in call.expr.args:
        kinds = [kind_of(flow.type_of(arg))] if name == "bool" else _elements(flow, arg)
        kind = next(filter(None, kinds), "")
        if kind:
            flow.reports.say(_codes.SYMBOLIC, arg, _messages.tested(kind, f"{name}()"), _messages.tested_note(kind))


def _elements(flow: Flow, e: Expression) -> list[str]:
    """What kinds of values an iterable has, as far as it is written here or its type says."""
    if isinstance(e, ListExpr | TupleExpr | SetExpr):
        return [kind_of(flow.type_of(item)) for item in e.items]
    if isinstance(e, GeneratorExpr):
        return [kind_of(flow.type_of(e.left_expr))]
    t = flow.type_of(e)
    return [kind_of(a) for a in t.args] if isinstance(t, Instance) else []


def launch(flow: Flow, call: Call, state: State) -> None:
    """`pipe[grid](..., 2.5)` where the pipeline declares `Scalar[i32]`: mypy lets it pass, Scalar is `ScalarValue[i32] | float`."""
    e = call.expr
    formals = _formals(flow, e)
    if formals is None:
        return
    kinds, names, types = formals
    matched = map_actuals_to_formals(e.arg_kinds, e.arg_names, kinds, names, lambda _: AnyType(TypeOfAny.special_form))
    for formal, actuals in enumerate(matched):
        dtype = _integer_scalar(types[formal])
        for actual in actuals if dtype else ():
            if fullname(flow.type_of(e.args[actual])) == "builtins.float":
                flow.reports.say(_codes.SYMBOLIC, e.args[actual], _messages.float_scalar(names[formal] or "", dtype))


def _formals(flow: Flow, e: CallExpr) -> tuple[list[ArgKind], list[str | None], list[Type]] | None:
    """The parameters of the pipeline that is launched or bound."""
    t = flow.type_of(e.callee)
    if isinstance(t, Instance) and t.type.fullname == _names.LAUNCHABLE and t.args:
        given = get_proper_type(t.args[0])
        return (given.arg_kinds, given.arg_names, given.arg_types) if isinstance(given, Parameters) else None
    if isinstance(t, CallableType):
        return t.arg_kinds, t.arg_names, t.arg_types
    return None


def _integer_scalar(t: Type) -> str:
    """The element type of a `Scalar[...]` of integers."""
    p = get_proper_type(t)
    for item in p.items if isinstance(p, UnionType) else []:
        member = get_proper_type(item)
        if isinstance(member, Instance) and member.type.fullname == _names.SCALAR and member.args:
            dtype = get_proper_type(member.args[0])
            if isinstance(dtype, Instance) and dtype.type.module_name == _names.DTYPES and dtype.type.name[0] in "iu":
                return dtype.type.name
    return ""
