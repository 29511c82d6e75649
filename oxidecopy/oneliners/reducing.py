"""`ox.reduce_into`: many elements into each of an output, by stores that combine."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from typing_extensions import TypeVar

from oxidecopy.errors import ArgumentError, ShapeError
from oxidecopy.isa.limits import MAX_RANK
from oxidecopy.oneliners.calls import Asked, Work, hot, perform
from oxidecopy.oneliners.computing import convert
from oxidecopy.oneliners.explanation import Explanation
from oxidecopy.oneliners.machine import Machine, machine_of
from oxidecopy.oneliners.measured import Way, ways_for
from oxidecopy.oneliners.moving import copy_step, move
from oxidecopy.oneliners.operands import SHAPES, Array, ForeignArray, check_apart, check_written, refuse_types, taken
from oxidecopy.oneliners.pipelines import sums_of_columns, sums_of_rows
from oxidecopy.oneliners.spaces import Space, joint
from oxidecopy.oneliners.steps import MapOf, Part, Plan, Step, part_of, why_no_map, why_no_store
from oxidecopy.typed.descriptor_checks import reduction
from oxidecopy.typed.dtypes import DType, bf16, f16, f32
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.reduce import ReduceOp, add
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.symbolic import Idx

if TYPE_CHECKING:
    from oxidecopy.host.pipeline import SupportsCudaStream
    from oxidecopy.oneliners.ready import AnyStream

DT = TypeVar("DT", bound=DType)
_Sh = TypeVar("_Sh", bound=tuple[Idx, ...])
_F = TypeVar("_F", bound=ForeignArray)
NO_REDUCTION: Final = "OX1206"
_SUMMED: Final = (64, 128)
_SUMMED_STAGES: Final = 3
_SUMMED_WARPS: Final = 8
_SUMMED_SOURCE: Final = "0.95 of the copy's speed in bytes, NVIDIA H200: docs/performance.md"
_COLUMNS: Final = (64, 256)  # rows and columns of boxes whose columns are summed
_COLUMNS_PER_SM: Final = 1
_COLUMN_TURNS: Final = 4  # boxes below each other, at least: fewer rows are added by the memory system
_NARROW: Final = (f16, bf16)  # added up in f32
_COLUMNS_SOURCE: Final = "4.09 TB/s, NVIDIA H200"
_SEVERAL: Final = 64  # rows that very many are combined into first: one row would be written to by all at once
_SEVERAL_BYTES: Final = 16 << 20  # of them, at most: they are to stay in L2
_PARTIAL: Final = 1_024  # elements of a row that others are combined into, where all are combined into one
_NOT_SIDE_BY_SIDE: Final = "elements that follow each other in it are combined with each other, or lie apart in the output"


@overload
def reduce_into(
    out: GlobalArray[DT, _Sh],
    x: GlobalArray[DT, Any],
    op: ReduceOp[DT],
    /,
    *,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[DT, _Sh]: ...
@overload
def reduce_into(
    out: _F,
    x: ForeignArray | GlobalArray[Any, Any],
    op: ReduceOp[Any],
    /,
    *,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> _F: ...
@overload
def reduce_into(
    out: object, x: object, op: ReduceOp[Any], /, *, stream: SupportsCudaStream | int | None = ..., tune: bool = ..., explain: Literal[True]
) -> Explanation[Any]: ...
def reduce_into(out: Any, x: Any, op: Any, /, *, stream: AnyStream = None, tune: bool = False, explain: bool = False) -> Any:
    """Combines every element of `x` with an element of `out`, which keeps what it held before as one more, and gives `out`.

    Where `out` has one element along a dimension, all of `x` along it are combined; leading dimensions that `out` has not are as such.
    So `out` of shape (1, n), or (n,), collects the rows of an `x` of shape (m, n), and one of its own shape is combined element by element.

    Args:
        out: what is combined into; it begins with what changes nothing (0 for `ox.reduce.add`), or with what else is to take part.
        x: of the element type of `out`.
        op: `ox.reduce.add`, `min`, `max`, `bit_and`, `bit_or`, `bit_xor`, as far as the hardware has it for the type. Floats are added in
            no certain order: their sums differ in the last bits from run to run. Halves are added up in f32, and their sum is rounded once.
        stream: a CUDA stream; the call does not wait for it. None waits for the end.
        tune: measure the ways to do it, once for these shapes on this device, and take the fastest from then on.
        explain: give an `Explanation` in place of the array, whose `out` it is.

    Raises:
        DTypeError: for different element types, and for types that have no such operation.
        ShapeError: for shapes that do not fit each other.
        ArgumentError: for memory that both share, or that cannot be written to.
    """
    hurry = isinstance(op, ReduceOp) and not (tune or explain)
    ours = type(out) is GlobalArray and type(x) is GlobalArray
    if ours and hurry and hot(("reduce", op), (out, x), (), stream):
        return out
    asked = Asked.of(stream, explain, tune)
    _, (into, of) = taken(("out", "x"), (out, x), stream)
    if not ours and hurry and hot(("reduce", op), (into, of), (), stream):
        return out
    if into.dtype is not of.dtype:
        fix = f"ox.copy(ox.{into.dtype.__name__}, x) converts it first"
        refuse_types("`x` has another element type than `out`", of.dtype.__name__, into.dtype.__name__, fix)
    name = reduction(op, into.dtype.info.name)
    if name in ("inc", "dec"):
        fix = "dst.reduce in a pipeline does it"
        refuse(
            ArgumentError,
            NO_REDUCTION,
            f"`{name}` counts, and does not combine elements",
            got=repr(op),
            required="add, min, max, bit_and, bit_or or bit_xor",
            fix=fix,
        )
    _check_shapes(into, of)
    check_written("out", into, "what is combined into one of them would be so into all")
    check_apart(("out", "x"), (into, of), same=False)
    words = f"{name} {of.dtype.__name__}{list(of.shape)} into {into.dtype.__name__}{list(into.shape)} on {into.device.name}"

    def planned(choice: Any) -> Plan:
        plan = Plan(operands=[into, of])
        machine, to, source = machine_of(into.device), part_of(0, into), part_of(1, of)
        if op is add and into.dtype in _NARROW and prod(into.shape) < prod(of.shape):
            _in_f32(plan, machine, to, source)
        else:
            combine(plan, machine, to, source, op, choice)
        return plan

    nbytes = prod(of.shape) * of.dtype.info.nbytes
    ways = [w for w in ways_for(len(of.shape), nbytes, machine_of(into.device).sms) if w.schedule == "one-shot"]
    said = perform(Work(("reduce", op), words, (into, of), (), planned, f"reduce {name}", ways, repeatable=False), asked)
    return out if said is None else replace(said, out=out)


def _check_shapes(out: Array, x: Array) -> None:
    added = len(x.shape) - len(out.shape)
    if added >= 0 and all(n in (1, m) for n, m in zip(out.shape, x.shape[added:], strict=True)):
        return
    kept = (*out.shape, *[1] * added)
    leading = added > 0 and out.shape == x.shape[: len(out.shape)]
    refuse(
        ShapeError,
        SHAPES,
        "`x` does not fit `out`",
        got=f"{x.shape} into {out.shape}",
        required="equal extents from the last dimension on, or 1 in `out` where elements are combined",
        fix=f"an `out` of shape {kept}, whose dimensions of 1 are combined" if leading else "permute moves the dimensions of x",
    )


def _in_f32(plan: Plan, machine: Machine, out: Part, x: Part) -> None:
    """Sums of halves: in an array of f32, which begins as the output, so that each sum is rounded once."""
    plan.why.append(f"it is added up in an array of f32, which begins as a copy of the output: a sum of {x.dtype.__name__} is rounded once")
    own = _like(plan, f32, out)
    convert(plan, own, out)
    _accumulate(plan, machine, own, x)
    convert(plan, out, own)


def _accumulate(plan: Plan, machine: Machine, own: Part, x: Part) -> None:
    """Adds the launches that add halves to an array of f32: by sums in shared memory, else as a copy of f32."""
    space = joint(x.shape, (_steps(own, x), x.strides_bytes), leader=1, sizes=(own.size, x.size))
    if _by_sums(plan, machine, space, own, x) or _by_columns(plan, machine, space, own, x):
        return
    if not any(space.strides[0]) and space.rank == 1 and space.extents[0] >= _COLUMN_TURNS * _COLUMNS[0] * _PARTIAL:
        n, step = space.extents[0], space.strides[1][0]
        rows = n // _PARTIAL
        plan.why.append(f"{rows:,} rows of {_PARTIAL:,} are added up into one first, which begins as a copy of the first row")
        row = plan.temporary(f32, (_PARTIAL,))
        convert(plan, row, x.seen(x.dtype, (_PARTIAL,), (step,)))
        _accumulate(plan, machine, row, x.seen(x.dtype, (rows - 1, _PARTIAL), (_PARTIAL * step, step), _PARTIAL * step))
        element = own.seen(own.dtype, (1,), (own.size,))
        combine(plan, machine, element, row, add, None)
        if n % _PARTIAL:
            _accumulate(plan, machine, element, x.seen(x.dtype, (n % _PARTIAL,), (step,), rows * _PARTIAL * step))
        return
    plan.why.append("`x` is copied to an array of f32 first")
    wide = plan.temporary(f32, x.shape)
    convert(plan, wide, x)
    combine(plan, machine, own, wide, add, None)


def _steps(out: Part, x: Part) -> tuple[int, ...]:
    """The output's strides over the shape of `x`: 0 where elements are combined."""
    added = len(x.shape) - len(out.shape)
    return (*(0,) * added, *(0 if n == 1 and m > 1 else s for n, m, s in zip(out.shape, x.shape[added:], out.strides_bytes, strict=True)))


def combine(plan: Plan, machine: Machine, out: Part, x: Part, op: ReduceOp[Any], way: Way | None) -> None:
    """Adds the launches that combine `x` into `out`, both of one element type."""
    steps = _steps(out, x)
    reason = why_no_store(_in_order(out), plan.operands)
    if reason:
        _by_copy(plan, machine, out, x, op, way, reason)
        return
    space = joint(x.shape, (steps, x.strides_bytes), leader=1, sizes=(out.size, x.size))
    unit = next((k for k in reversed(range(space.rank)) if space.strides[0][k] == space.strides[1][k] == out.size), None)
    if unit is not None:
        space = space.with_last(unit)
    elif not any(space.strides[0]) and (space.rank > 1 or space.extents[0] >= 2 * _PARTIAL):
        _by_partials(plan, machine, space, out, x, op, way)
        return
    if unit is None and op is add and _by_sums(plan, machine, space, out, x):
        return
    if unit is not None and op is add and _by_columns(plan, machine, space, out, x):
        return
    if unit is not None and _by_several(plan, machine, space, out, x, op):
        return
    reason = _NOT_SIDE_BY_SIDE if unit is None else why_no_map(x.seen(x.dtype, space.extents, space.strides[1]), plan.operands)
    _by_boxes(plan, machine, _turned_space(out, x, steps) if reason else space, out, x, op, way, copied=reason)


def _by_boxes(plan: Plan, machine: Machine, space: Space, out: Part, x: Part, op: ReduceOp[Any], way: Way | None, *, copied: str) -> None:
    """Each box of `x`, or of a copy of it, is loaded once and combined into the output. `copied`: why of a copy, in words."""
    to = out.seen(out.dtype, space.extents, space.strides[0])
    uneven = why_no_map(to, plan.operands)  # rows that follow each other count as one, but not where a dimension of `x` is between them
    if uneven and out.operand == 0:  # an array of its own has rows that a map can be made of
        _by_copy(plan, machine, out, x, op, way, uneven)
        return
    if copied:
        plan.why.append(f"`x` is copied to an array of its own, with the dimensions of the output innermost: {copied}")
        own = plan.temporary(x.dtype, space.extents)
        move(plan, machine, own, x.seen(x.dtype, space.extents, space.strides[1]))
        space, of = Space(space.extents, (space.strides[0], own.strides_bytes)), own
    else:
        of = x.seen(x.dtype, space.extents, space.strides[1])
    plan.steps.append(copy_step(plan, machine, space, to, of, way, op))
    plan.why.append("each box is loaded once, and combined by the memory system: floats in no certain order")


def _by_copy(plan: Plan, machine: Machine, out: Part, x: Part, op: ReduceOp[Any], way: Way | None, reason: str) -> None:
    """Combines in an array whose rows begin at multiples of 16 bytes."""
    plan.why.append(f"it is combined in an array of its own, which begins as a copy of the output: {reason}")
    own = _like(plan, out.dtype, out)
    move(plan, machine, own, out)
    combine(plan, machine, own, x, op, way)
    move(plan, machine, out, own)


def _like(plan: Plan, dtype: type[DType], out: Part) -> Part:
    """An array of its own, of the output's shape. To have rows, it has the dimensions of one element outermost."""
    order = sorted(range(len(out.shape)), key=lambda k: out.shape[k] > 1)
    made = plan.temporary(dtype, tuple(out.shape[k] for k in order))
    steps = dict(zip(order, made.strides_bytes, strict=True))
    return made.seen(dtype, out.shape, tuple(steps[k] for k in range(len(out.shape))))


def _in_order(out: Part) -> Part:
    """The output's own elements in the order of its memory."""
    space = joint(out.shape, (out.strides_bytes,), leader=0, sizes=(out.size,))
    return out.seen(out.dtype, space.extents, space.strides[0])


def _by_sums(plan: Plan, machine: Machine, space: Space, out: Part, x: Part) -> bool:
    """Rows are summed in shared memory, and their sums are added to an output of f32; False where that cannot be."""
    if not _in_shared(space, out, x) or space.strides[0] != (out.size, 0) or space.inner(1) != x.size:
        return False
    of = x.seen(x.dtype, space.extents, space.strides[1])
    to = out.seen(out.dtype, space.extents[:1], space.strides[0][:1])
    if why_no_map(of, plan.operands) or why_no_store(to, plan.operands):
        return False
    rows, columns = _SUMMED[0], _SUMMED[1] * f32.info.nbytes // x.size
    count = -(-space.extents[0] // rows)
    plan.why.append(f"sums of {rows} rows at a time, by boxes of {columns} columns ({_SUMMED_SOURCE}); {count:,} of them")
    plan.steps.append(
        Step(
            pipeline=sums_of_rows(columns, _SUMMED_STAGES, _SUMMED_WARPS),
            grid=count,
            arguments={"src": MapOf(of, (rows, columns)), "dst": MapOf(to, (rows,))},
            what=f"boxes {rows, columns}, rows summed in shared memory",
        )
    )
    return True


def _in_shared(space: Space, out: Part, x: Part) -> bool:
    """Sums in shared memory are of these."""
    return out.dtype is f32 and x.dtype in (f32, *_NARROW) and space.rank == 2


def _by_columns(plan: Plan, machine: Machine, space: Space, out: Part, x: Part) -> bool:
    """Columns are summed in shared memory, and their sums are added to an output of f32; False where there are few rows, or no maps."""
    rows, columns = _COLUMNS
    if not _in_shared(space, out, x) or space.strides[0] != (0, out.size) or space.extents[0] < _COLUMN_TURNS * rows:
        return False
    of = x.seen(x.dtype, space.extents, space.strides[1])
    to = out.seen(out.dtype, space.extents[1:], space.strides[0][1:])
    if why_no_map(of, plan.operands) or why_no_store(to, plan.operands):
        return False
    across, down = -(-space.extents[1] // columns), -(-space.extents[0] // rows)
    parts = max(1, min(down, _COLUMNS_PER_SM * machine.sms // across))
    plan.why.append(
        f"sums of columns, by boxes of {rows} rows and {columns} columns; {parts} CTAs for each {columns} columns ({_COLUMNS_SOURCE})"
    )
    plan.steps.append(
        Step(
            pipeline=sums_of_columns(rows, columns, parts, _SUMMED_STAGES, _SUMMED_WARPS),
            grid=across * parts,
            arguments={"src": MapOf(of, _COLUMNS), "dst": MapOf(to, (columns,))},
            what=f"boxes {_COLUMNS}, columns summed in shared memory",
        )
    )
    return True


def _by_several(plan: Plan, machine: Machine, space: Space, out: Part, x: Part, op: ReduceOp[Any]) -> bool:
    """Very many rows into several first, which stand side by side in memory, and those into one; False where there are fewer."""
    zeros = [k for k, s in enumerate(space.strides[0]) if s == 0]
    if len(zeros) != 1 or space.rank == MAX_RANK or space.extents[zeros[0]] < 4 * _SEVERAL:
        return False
    (axis,) = zeros
    n, step = space.extents[axis], space.strides[1][axis]
    extents = [m for k, m in enumerate(space.extents) if k != axis]
    steps = [s for k, s in enumerate(space.strides[1]) if k != axis]
    if prod(extents) * x.size * _SEVERAL > _SEVERAL_BYTES:
        return False
    turns, left = divmod(n, _SEVERAL)
    plan.why.append(
        f"{turns:,} times {_SEVERAL} rows are combined side by side, beginning as a copy of the first ones, and those then into one"
    )
    rows = plan.temporary(x.dtype, (_SEVERAL, *extents))
    first = x.seen(x.dtype, (_SEVERAL, *extents), (step, *steps))
    move(plan, machine, rows, first)
    rest = x.seen(x.dtype, (turns - 1, _SEVERAL, *extents), (step * _SEVERAL, step, *steps), step * _SEVERAL)
    combine(plan, machine, rows, rest, op, None)
    result = out.seen(out.dtype, tuple(extents), tuple(s for k, s in enumerate(space.strides[0]) if k != axis))
    combine(plan, machine, result, rows, op, None)
    if left:
        combine(plan, machine, result, x.seen(x.dtype, (left, *extents), (step, *steps), turns * _SEVERAL * step), op, None)
    return True


def _by_partials(plan: Plan, machine: Machine, space: Space, out: Part, x: Part, op: ReduceOp[Any], way: Way | None) -> None:
    """All of `x` into one element: rows into a row first, and so on until few are left."""
    extents, strides = space.extents, space.strides[1]
    left = 0
    if space.rank == 1:
        n, step = extents[0], strides[0]
        left = n % _PARTIAL
        extents, strides = (n // _PARTIAL, _PARTIAL), (_PARTIAL * step, step)
    plan.why.append(f"{extents[0]:,} rows of {extents[1:]} are combined into one first, which begins as a copy of the first row")
    row = plan.temporary(x.dtype, extents[1:])
    move(plan, machine, row, x.seen(x.dtype, extents[1:], strides[1:]))
    if extents[0] > 1:
        combine(plan, machine, row, x.seen(x.dtype, (extents[0] - 1, *extents[1:]), strides, strides[0]), op, way)
    element = out.seen(out.dtype, (1,), (out.size,))
    combine(plan, machine, element, row, op, way)
    if left:
        combine(plan, machine, element, x.seen(x.dtype, (left,), strides[1:], extents[0] * strides[0]), op, way)


def _turned_space(out: Part, x: Part, steps: tuple[int, ...]) -> Space:
    """With the innermost dimension of the output, one element long where it has none."""
    space = joint(x.shape, (steps, x.strides_bytes), leader=0, sizes=(out.size, x.size))
    return space if space.inner(0) == out.size else space.with_one((out.size, x.size))
