"""`ox.transform`: a function of the elements of arrays, computed on their way from array to array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from dis import get_instructions
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, final, overload

import numpy as np
from typing_extensions import TypeVar

from oxidecopy.errors import ArgumentError, ShapeError
from oxidecopy.isa import elem
from oxidecopy.oneliners.calls import Asked, Work, hot, perform
from oxidecopy.oneliners.computing import SHAPES as SHAPES_TUNED
from oxidecopy.oneliners.computing import Operand, compute, operations_of
from oxidecopy.oneliners.explanation import Explanation
from oxidecopy.oneliners.operands import (
    SHAPES,
    Array,
    ForeignArray,
    are_ours,
    check_apart,
    check_shape,
    check_written,
    new_output,
    refuse_types,
    taken,
)
from oxidecopy.oneliners.steps import Plan
from oxidecopy.tiles.elem import Elem
from oxidecopy.tiles.mapping import trace
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.symbolic import Idx
from oxidecopy.typed.values import misfit, plain_number

if TYPE_CHECKING:
    from oxidecopy.host.pipeline import SupportsCudaStream
    from oxidecopy.oneliners.ready import AnyStream

DT = TypeVar("DT", bound=DType)
_D1 = TypeVar("_D1", bound=DType)
_D2 = TypeVar("_D2", bound=DType)
_D3 = TypeVar("_D3", bound=DType)
_D4 = TypeVar("_D4", bound=DType)
_DO = TypeVar("_DO", bound=DType)
_Sh = TypeVar("_Sh", bound=tuple[Idx, ...])
INPUTS: Final = "OX1205"
INPUTS_MAX: Final = 4
_PLAIN: Final = frozenset((int, float, bool, str, np.float64))  # what `repr` says all of: a class derived from one may have more to it
_ABSENT: Final = object()  # in place of a global that there is not
# Nobody sets what is in them; of others an attribute may be another one next time.
_FIXED_MODULES: Final = ("oxidecopy", "math", "builtins")


@final
class Value(Generic[DT]):
    """A number of an element type, for `transform`: another one at the next call needs no new recording. Made by `value`."""

    __slots__ = ("dtype", "number")

    def __init__(self, number: float, dtype: type[DT]) -> None:
        self.number = number
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"ox.value({self.number!r}, ox.{self.dtype.__name__})"


def value(number: float, dtype: type[DT], /) -> Value[DT]:
    """`number` as an argument of `transform`, rounded to `dtype` when it is used.

    Raises:
        ArgumentError: for what is no number of that type.
    """
    known: object = dtype
    named = (
        isinstance(known, type) and issubclass(known, DType) and "info" in known.__dict__ and known.info.name in elem.FLOATS | elem.INTEGERS
    )
    problem = misfit(number, dtype.info.name) if named else "an element type that is computed with, such as ox.f32"
    plain = plain_number(number)
    if problem or plain is None:
        refuse(
            ArgumentError,
            INPUTS,
            "this is no number of an element type",
            got=f"{described(number)} as {described(dtype)}",
            required=problem,
            fix="ox.value(0.5, ox.f32)",
        )
    # Python's own, as numbers are told apart by how they are written: numpy's float16 has another 0.1.
    return Value(int(plain) if isinstance(plain, int) else float(plain), dtype)


@overload
def transform(
    fn: Callable[[Elem[_D1]], Elem[_DO]],
    a: GlobalArray[_D1, _Sh],
    /,
    *,
    out: GlobalArray[_DO, _Sh] | None = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[_DO, _Sh]: ...
@overload
def transform(
    fn: Callable[[Elem[_D1], Elem[_D2]], Elem[_DO]],
    a: GlobalArray[_D1, _Sh],
    b: GlobalArray[_D2, Any] | Value[_D2],
    /,
    *,
    out: GlobalArray[_DO, _Sh] | None = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[_DO, _Sh]: ...
@overload
def transform(
    fn: Callable[[Elem[_D1], Elem[_D2], Elem[_D3]], Elem[_DO]],
    a: GlobalArray[_D1, _Sh],
    b: GlobalArray[_D2, Any] | Value[_D2],
    c: GlobalArray[_D3, Any] | Value[_D3],
    /,
    *,
    out: GlobalArray[_DO, _Sh] | None = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[_DO, _Sh]: ...
@overload
def transform(
    fn: Callable[[Elem[_D1], Elem[_D2], Elem[_D3], Elem[_D4]], Elem[_DO]],
    a: GlobalArray[_D1, _Sh],
    b: GlobalArray[_D2, Any] | Value[_D2],
    c: GlobalArray[_D3, Any] | Value[_D3],
    d: GlobalArray[_D4, Any] | Value[_D4],
    /,
    *,
    out: GlobalArray[_DO, _Sh] | None = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[_DO, _Sh]: ...
@overload
def transform(
    fn: Callable[..., Elem[Any]],
    a: ForeignArray,
    /,
    *rest: ForeignArray | GlobalArray[Any, Any] | Value[Any],
    out: Any = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> Any: ...
@overload
def transform(
    fn: Callable[..., Elem[Any]],
    /,
    *inputs: ForeignArray | GlobalArray[Any, Any] | Value[Any],
    out: Any = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[True],
) -> Explanation[Any]: ...
def transform(fn: Any, /, *inputs: Any, out: Any = None, stream: AnyStream = None, tune: bool = False, explain: bool = False) -> Any:
    """Sets every element of `out` to `fn` of the elements of one to four arrays at the same place, and gives `out`.

    `fn` is called once with an `Elem` for each input, as that of `group.map`; it is recorded, and is so again only when it, or a plain
    number that it takes from outside, is another one. Inputs of fewer elements are repeated as numpy does it: (n,) for every row, (m, 1)
    for every column. `value(x, ox.f32)` is a number that may be another one at each call.

    Args:
        fn: of as many elements as there are inputs.
        inputs: arrays and values; the first is an array. Arrays of other libraries will do.
        out: where to; a new array where it is left out. It may be an input, element for element.
        stream: a CUDA stream; the call does not wait for it. None waits for the end.
        tune: measure the ways to do it, once for these shapes on this device, and take the fastest from then on.
        explain: give an `Explanation` in place of the array, whose `out` it is.

    Raises:
        DTypeError: when `fn` does not give what `out` holds.
        ShapeError: for shapes that do not fit each other.
        ArgumentError: for memory that is shared otherwise than in place, or cannot be written to.
        RecordError: for what `fn` does that no map can.
    """
    plain = are_ours(inputs)
    if plain:
        numbers, scalars, arrays = _NO_NUMBERS, _NO_SCALARS, inputs
    else:
        numbers = tuple([i.number for i in inputs if type(i) is Value])
        scalars = tuple([i.dtype if type(i) is Value else None for i in inputs])
        arrays = tuple([i for i in inputs if type(i) is not Value])
    key = _key_of(fn, scalars, len(inputs))
    hurry = key is not None and not (tune or explain)
    ours = type(out) is GlobalArray and (plain or are_ours(arrays))
    if ours and hurry and hot(key, (out, *arrays), numbers, stream):
        return out
    asked = Asked.of(stream, explain, tune)
    if not callable(fn):
        got, fix = f"{described(fn)} first", "ox.transform(lambda v: v * 2, a)"
        refuse(ArgumentError, INPUTS, "`transform` takes the function first", got=got, required="a function, then its inputs", fix=fix)
    _check_inputs(inputs)
    names = [f"input {k}" for k, i in enumerate(inputs) if not isinstance(i, Value)]
    device, (into, *given) = taken(("out", *names), (out, *arrays), stream, left_out=1)
    told = (key, *[a.dtype for a in given])
    if hurry and into is None and told in _results:
        into = new_output(device, _common(given), _results[told], given)
    if not ours and hurry and into is not None and hot(key, (into, *given), numbers, stream):
        return into if out is None else out
    operands = _operands(inputs, given)
    node = _checked(fn, operands, names, into, given)
    if into is None:
        into = new_output(device, _common(given), _element_type(node), given)
    if key is not None:
        _remember(told, into.dtype)
    result = into if out is None else out
    said = perform(_work(key if key is not None else (node, scalars), node, fn, into, given, _Inputs(operands, numbers)), asked)
    return result if said is None else replace(said, out=result)


_NO_NUMBERS: Final[tuple[float, ...]] = ()
_NO_SCALARS: Final[tuple[type[DType] | None, ...]] = ()
_results: dict[object, type[DType]] = {}  # of functions that were traced, by what tells them and their inputs' element types


def _remember(told: object, dtype: type[DType]) -> None:
    if len(_results) >= _CODES_MAX:
        _results.clear()
    _results[told] = dtype


def _checked(fn: Any, operands: Sequence[Operand], names: Sequence[str], into: Array | None, given: Sequence[Array]) -> elem.Elem:
    """The function as it was traced, for an output that it fits where there is one."""
    nodes = [
        elem.Parameter(f"x{k}", i.dtype.info.name) if i.scalar else elem.Input(i.number, i.dtype.info.name, elem.Along.ALL)
        for k, i in enumerate(operands)
    ]
    node = trace(None, fn, nodes)
    shape = _common(given)
    if into is not None:
        check_shape("out", into, shape, "what the inputs make together")
        check_written("out", into, "which one would be left is not known")
        if node.dtype != into.dtype.info.name:
            refuse_types(
                "the function does not give what `out` holds",
                node.dtype,
                into.dtype.info.name,
                f"cast its result: `.cast(ox.{into.dtype.__name__})`",
            )
        check_apart(("out", *names), (into, *given), same=True)
    return node


class _Inputs(NamedTuple):
    """The arguments of a function, and the numbers among them."""

    operands: tuple[Operand, ...]
    numbers: tuple[float, ...]


def _check_inputs(inputs: Sequence[object]) -> None:
    arrays = [i for i in inputs if not isinstance(i, Value)]
    if not 1 <= len(inputs) <= INPUTS_MAX or not arrays or isinstance(inputs[0], Value):
        refuse(
            ArgumentError,
            INPUTS,
            "`transform` takes one to four inputs, the first of which is an array",
            got=", ".join(map(described, inputs)) or "none",
            required=f"1 to {INPUTS_MAX} arrays and values",
            fix="split the work, or let the function close over plain numbers",
        )
    # numpy's numbers, and its arrays of no dimensions, have `item`
    plain = [i.item() if hasattr(i, "item") else i for i in arrays if isinstance(i, int | float) or getattr(i, "shape", None) == ()]
    if plain:
        refuse(
            ArgumentError,
            INPUTS,
            "a plain number has no element type",
            got=described(plain[0]),
            required="an array, or a number with its type",
            fix=f"ox.value({plain[0]!r}, ox.f32); or use it inside the function: it is recorded as what it is then",
        )


def _operands(inputs: Sequence[Any], arrays: Sequence[Array]) -> tuple[Operand, ...]:
    left = iter(enumerate(arrays, 1))
    numbers = iter(range(len(inputs)))
    made = []
    for i in inputs:
        if isinstance(i, Value):
            made.append(Operand(next(numbers), i.dtype, scalar=True))
        else:
            number, array = next(left)
            made.append(Operand(number, array.dtype))
    return tuple(made)


def _common(arrays: Sequence[Array]) -> tuple[int, ...]:
    """The shape that all are repeated to."""
    rank = max(len(a.shape) for a in arrays)
    extents: list[int] = []
    for axis in range(-rank, 0):
        found = {a.shape[axis] for a in arrays if len(a.shape) >= -axis} - {1}
        if len(found) > 1:
            refuse(
                ShapeError,
                SHAPES,
                f"the inputs do not fit each other in dimension {axis}",
                got=", ".join(str(a.shape) for a in arrays),
                required="equal extents, or 1 where an input is repeated",
                fix="permute and slices give other views; a[:, :1] keeps one element of a dimension",
            )
        extents.append(found.pop() if found else 1)
    return tuple(extents)


def _element_type(node: elem.Elem) -> type[DType]:
    from oxidecopy.typed import dtypes

    found: type[DType] = getattr(dtypes, node.dtype)
    return found


def _work(kind: object, node: elem.Elem, fn: Callable[..., Any], into: Array, given: Sequence[Array], inputs: _Inputs) -> Work:
    name = getattr(fn, "__name__", "function").strip("<>")
    words = f"transform by `{name}` {', '.join(f'{a.dtype.__name__}{list(a.shape)}' for a in given)}"
    words += f" to {into.dtype.__name__}{list(into.shape)} on {into.device.name}"

    def planned(choice: Any) -> Plan:
        plan = Plan(operands=[into, *given])
        called = f"transform_{name}" if name.isidentifier() and name != "lambda" else "transform"
        compute(plan, fn, inputs.operands, called, choice, operations=operations_of(node))
        return plan

    in_place = any(a.buffer is into.buffer for a in given)
    return Work(kind, words, (into, *given), inputs.numbers, planned, repr(node), SHAPES_TUNED, repeatable=not in_place)


# ---- what a function is
def _key_of(fn: Any, scalars: tuple[object, ...], inputs: int) -> object:
    """What tells that `fn` records the same again for so many inputs, without calling it; None where only a call would tell."""
    if type(fn) is not FunctionType:  # a bound method has its function's code, and an object besides
        return None
    code = fn.__code__
    told = _looked_up.get(id(code))
    if told is None:
        told = _names_in(code)
    if told.alone == inputs:
        return (told, scalars) if scalars else told
    if told.names is None or fn.__defaults__ or fn.__kwdefaults__:
        return None
    known = fn.__globals__
    values: list[object] = [known.get(name, _ABSENT) for name in told.names]
    try:
        values += [cell.cell_contents for cell in fn.__closure__ or ()]
    except ValueError:  # not assigned yet
        return None
    seen = tuple([(type(value), repr(value)) if type(value) in _PLAIN else value for value in values])  # -0.0 equals 0.0
    return (told, seen, scalars) if all([_is_told(value) for value in values]) else None  # noqa: C419  # as above


def _is_told(value: object) -> bool:
    """It records the same as long as it is the same."""
    if isinstance(value, BuiltinFunctionType):
        value = value.__self__
    if isinstance(value, ModuleType):
        return value.__name__ in _FIXED_MODULES
    return type(value) in _PLAIN or value is _ABSENT or (isinstance(value, type) and issubclass(value, DType))


@final
class _Code:
    """What a function looks up, by its code; one for each code, which it keeps, so that the code's id stays its own.

    Attributes:
        names: outside of it that it, or a function inside it, may look up; None when it imports or evaluates what nobody knows before.
        alone: how many inputs it takes by position, where it looks up nothing and closes over nothing: given as many it records the same
            each time, whatever its defaults are. Else -1.
    """

    __slots__ = ("alone", "code", "names")

    def __init__(self, code: CodeType, names: tuple[str, ...] | None) -> None:
        self.code = code
        self.names = names
        plain = not (names or names is None or code.co_freevars or code.co_kwonlyargcount)
        self.alone = code.co_argcount if plain else -1


_looked_up: dict[int, _Code] = {}
_CODES_MAX: Final = 1_024
_LOADS: Final = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_LOOKS: Final = frozenset(("__import__", "eval", "exec", "globals"))  # what they give may be another thing at each call


def _names_in(code: CodeType) -> _Code:
    names: dict[str, None] = {}
    found, imports = [code], False
    while found:
        part = found.pop()
        for step in get_instructions(part):
            imports = imports or step.opname == "IMPORT_NAME"
            if step.opname in _LOADS:  # not names of attributes, as `.cast(...)`, which a global may happen to have as well
                names[step.argval] = None
        found += [c for c in part.co_consts if isinstance(c, CodeType)]
    if len(_looked_up) >= _CODES_MAX:
        _looked_up.clear()
    made = _looked_up[id(code)] = _Code(code, None if imports or not _LOOKS.isdisjoint(names) else tuple(names))
    return made
