"""`ox.gather_rows`: rows of a table by their numbers."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn, TypeAlias, overload

from typing_extensions import TypeVar

from oxidecopy.errors import ArgumentError, DTypeError, ShapeError
from oxidecopy.isa.limits import BOX_DIM_MAX, TENSOR_SMEM_ALIGN
from oxidecopy.oneliners.calls import Asked, Work, hot, perform
from oxidecopy.oneliners.explanation import Explanation
from oxidecopy.oneliners.machine import Machine, machine_of
from oxidecopy.oneliners.moving import move
from oxidecopy.oneliners.operands import SHAPES, TYPES, Array, ForeignArray, check_apart, check_shape, check_written, refuse_types, taken
from oxidecopy.oneliners.pipelines import rows_by_number
from oxidecopy.oneliners.spaces import boxes, joint, spread_bytes
from oxidecopy.oneliners.steps import BITS, MapOf, Part, Plan, Step, part_of, why_no_map, why_no_store
from oxidecopy.typed.dtypes import DType, i32, i64, u8, u16, u32, u64
from oxidecopy.typed.geometry import D1
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.symbolic import Idx

if TYPE_CHECKING:
    from oxidecopy.host.pipeline import SupportsCudaStream
    from oxidecopy.oneliners.ready import AnyStream

DT = TypeVar("DT", bound=DType)
_Sh = TypeVar("_Sh", bound=tuple[Idx, ...])
_F = TypeVar("_F", bound=ForeignArray)
Numbers: TypeAlias = (
    GlobalArray[i32, D1] | GlobalArray[i64, D1] | GlobalArray[u32, D1] | GlobalArray[u64, D1] | GlobalArray[u16, D1] | GlobalArray[u8, D1]
)
NO_ROWS: Final = "OX1207"
_INTEGERS: Final = (i32, i64, u32, u64, u16, u8)


@overload
def gather_rows(
    table: GlobalArray[DT, _Sh],
    indices: Numbers,
    /,
    *,
    out: GlobalArray[DT, _Sh] | None = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[DT, _Sh]: ...
@overload
def gather_rows(
    table: ForeignArray,
    indices: ForeignArray | Numbers,
    /,
    *,
    out: _F,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> _F: ...
@overload
def gather_rows(
    table: ForeignArray,
    indices: ForeignArray | Numbers,
    /,
    *,
    out: None = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[False] = ...,
) -> GlobalArray[Any, Any]: ...
@overload
def gather_rows(
    table: object,
    indices: object,
    /,
    *,
    out: Any = ...,
    stream: SupportsCudaStream | int | None = ...,
    tune: bool = ...,
    explain: Literal[True],
) -> Explanation[Any]: ...
def gather_rows(
    table: Any, indices: Any, /, *, out: Any = None, stream: AnyStream = None, tune: bool = False, explain: bool = False
) -> Any:
    """Sets row i of `out` to row `indices[i]` of `table`, and gives `out`. A row is all that lies behind the first index.

    Args:
        table: of rank 2 or more, its rows dense and multiples of 16 bytes apart (`dev.array(x, pad=True)`).
        indices: numbers of rows, of rank 1 and an integer type, each from 0 to the table's last. Others are noticed on the device: the
            launch reports the first of them, and what `out` then holds is not said.
        out: where to; a new array where it is left out.
        stream: a CUDA stream; the call does not wait for it. None waits for the end.
        tune: measure the ways to do it, once for these shapes on this device, and take the fastest from then on.
        explain: give an `Explanation` in place of the array, whose `out` it is.

    Raises:
        DTypeError: for numbers of another type, and an output of another than the table's.
        ShapeError: for shapes that do not fit each other.
        ArgumentError: for a table whose rows no copy can begin at, for memory that is shared, or cannot be written to.
    """
    hurry = not (tune or explain)
    ours = type(out) is GlobalArray and type(table) is GlobalArray and type(indices) is GlobalArray
    if ours and hurry and hot("gather", (out, table, indices), (), stream):
        return out
    asked = Asked.of(stream, explain, tune)
    device, (into, of, numbers) = taken(("out", "table", "indices"), (out, table, indices), stream, left_out=1)
    if not ours and hurry and into is not None and hot("gather", (into, of, numbers), (), stream):
        return out
    _check_numbers(numbers, of)
    shape = (*numbers.shape, *of.shape[1:])
    if into is None:
        into = device.empty(shape, of.dtype, pad=len(shape) == 2)
    check_shape("out", into, shape, "the rows that are asked for")
    if into.dtype is not of.dtype:
        fix = "ox.copy converts: copy it afterwards"
        refuse_types("`out` has another element type than the table", into.dtype.__name__, of.dtype.__name__, fix)
    check_written("out", into, "which one would be left is not known")
    check_apart(("out", "table", "indices"), (into, of, numbers), same=False)
    words = f"gather {numbers.shape[0]:,} rows of {of.dtype.__name__}{list(of.shape)} on {into.device.name}"

    def planned(choice: Any) -> Plan:
        plan = Plan(operands=[into, of, numbers])
        gather(plan, machine_of(into.device), part_of(0, into), part_of(1, of), part_of(2, numbers), choice)
        return plan

    result = into if out is None else out
    said = perform(Work("gather", words, (into, of, numbers), (), planned, "gather", _CHOICES), asked)
    return result if said is None else replace(said, out=result)


def _check_numbers(numbers: Array, table: Array) -> None:
    if numbers.dtype not in _INTEGERS:
        known = ", ".join(t.__name__ for t in _INTEGERS)
        refuse(
            DTypeError,
            TYPES,
            "`indices` are no numbers of rows",
            got=numbers.dtype.__name__,
            required=known,
            fix="ox.copy(ox.i32, indices)",
        )
    if len(numbers.shape) != 1 or len(table.shape) < 2 or table.dtype.info.packed:
        refuse(
            ShapeError,
            SHAPES,
            "rows are gathered from a table of rank 2 or more, of whole bytes, by a list of numbers",
            got=f"a table of {table.dtype.__name__}{table.shape}, indices of shape {numbers.shape}",
            required="a table of rank 2 or more, indices of rank 1",
            fix="table.bytes for packed elements; reshape the numbers before they go to the device",
        )


class Pieces(NamedTuple):
    """How rows are gathered: a CTA for each box of them, of up to `ROWS_MAX`.

    Attributes:
        nbytes: of a box, at most.
        warps: that load its rows side by side, at most.
        part: bytes of a row that one copy takes, at most.
    """

    nbytes: int
    warps: int
    part: int

    @property
    def words(self) -> str:
        """In words."""
        warps = f"{self.warps} warps load" if self.warps > 1 else "a warp loads"
        return f"boxes of up to {self.nbytes:,} bytes, whose rows {warps} in parts of up to {self.part:,} bytes"


ROWS_MAX: Final = 128  # of a box: what four warps load with one index and one copy for each lane
_KB: Final = 1 << 10
# The fastest of many ways for rows of up to so many bytes, 512 MiB of them in no order: NVIDIA H200, 2026-12-01.
_BY_WIDTH: Final = (
    (128, Pieces(8 * _KB, 1, 2 * _KB), "0.45 of cuMemcpyDtoD for rows of 64 bytes, 0.89 of 128"),
    (256, Pieces(32 * _KB, 4, 2 * _KB), "0.95 of cuMemcpyDtoD"),
    (2 * _KB, Pieces(16 * _KB, 4, 2 * _KB), "0.95 to 0.96 of cuMemcpyDtoD"),
    (None, Pieces(32 * _KB, 1, 4 * _KB), "0.95 to 0.96 of cuMemcpyDtoD"),
)
_CHOICES: Final = tuple(
    Pieces(nbytes * _KB, warps, part * _KB)
    for nbytes, warps, part in ((8, 1, 2), (8, 1, 4), (16, 1, 4), (16, 4, 2), (16, 2, 4), (32, 1, 2), (32, 1, 4), (32, 4, 2))
)


def gather(plan: Plan, machine: Machine, out: Part, table: Part, numbers: Part, choice: Pieces | None) -> None:
    """Adds the launches that gather rows."""
    lying = (0, *sorted(range(1, len(table.shape)), key=lambda k: -table.strides_bytes[k]))  # dimensions, as the table's rows lie
    table, out = (p.seen(p.dtype, tuple(p.shape[k] for k in lying), tuple(p.strides_bytes[k] for k in lying)) for p in (table, out))
    row = joint(table.shape[1:], (table.strides_bytes[1:],), leader=0, sizes=(table.size,))
    alike = joint(table.shape[1:], (table.strides_bytes[1:], out.strides_bytes[1:]), leader=0, sizes=(table.size, out.size))
    if row.rank > 1 or row.inner(0) != table.size:
        _refuse_rows(table, "elements of a row do not follow each other")
    width = row.extents[0] * table.size
    word = next(w for w in (4, 2, 1) if not width % w)
    words = width // word
    reason = why_no_map(table.seen(BITS[word], (table.shape[0], words), (table.strides_bytes[0], word)), plan.operands)
    if reason:
        _refuse_rows(table, reason)
    target = out.seen(BITS[word], (out.shape[0], words), (out.strides_bytes[0], word))
    apart = alike.rank > 1 or alike.inner(1) != out.size
    reason = "elements of a row do not follow each other in it as in the table" if apart else why_no_store(target, plan.operands)
    if reason:
        plan.why.append(f"the rows are gathered in an array of their own, and copied to the output by elements: {reason}")
        target = plan.temporary(BITS[word], target.shape)
    plan.steps.append(_step(plan, machine, target, table, numbers, choice))
    if target.operand != out.operand:
        own = target.seen(out.dtype, out.shape, _own_strides(out, target))
        move(plan, machine, out, own)


def _step(plan: Plan, machine: Machine, out: Part, table: Part, numbers: Part, choice: Pieces | None) -> Step:
    """One launch: rows as they are, or, where they are long, as rows of their own."""
    word, words = out.size, out.shape[1]
    known, source = next((pieces, said) for width, pieces, said in _BY_WIDTH if width is None or words * word <= width)
    pieces, measured = (choice, "measured here") if choice else (known, f"{source}: NVIDIA H200")
    unit = TENSOR_SMEM_ALIGN // word  # a row is a part of a tile
    most = spread_bytes(out.shape[0] * words * word, pieces.nbytes, machine.sms)
    across = _piece(words, unit)
    down = words // across if across else 0
    shape: tuple[int, ...] = (words,)
    steps: tuple[int, ...] = (word,)
    piece: tuple[int, ...]
    if down:
        shape, steps = (down, across), (across * word, word)
        piece = (min(down, BOX_DIM_MAX, max(1, min(most, pieces.part) // (across * word))), across)
    else:
        whole = -(-words // -(-words // BOX_DIM_MAX))
        piece = (min(BOX_DIM_MAX, -(-whole // unit) * unit),)
    nbytes = prod(piece) * word
    rows = max(1, min(ROWS_MAX, 1 << (out.shape[0] - 1).bit_length(), 1 << max(1, most // nbytes).bit_length() - 1))
    wanted = table.seen(out.dtype, (table.shape[0], *shape), (table.strides_bytes[0], *steps))
    target = out.seen(out.dtype, (out.shape[0], *shape), (out.strides_bytes[0], *steps))
    box = (rows, *piece)
    count = boxes(target.shape, box)
    if down:
        plan.why.append(f"rows of {words:,} words are copied as {down:,} of {across}: one copy takes {piece[0]:,} of them")
    plan.why.append(f"box {box}: {rows} copies of {nbytes:,} bytes each; {count:,} of them cover {target.shape}")
    plan.why.append(f"{pieces.words} ({measured})")
    return Step(
        pipeline=rows_by_number(rows, min(rows, pieces.warps), whole=out.shape[0] % rows == 0),
        grid=count,
        arguments={"table": MapOf(wanted, (1, *piece)), "indices": numbers, "out": MapOf(target, box)},
        what=f"boxes of {rows} rows, loaded row by row",
    )


def _piece(words: int, unit: int) -> int:
    """Words of a row of rows: the most that divide a long one and are a multiple of `unit`; 0 where that is none."""
    if words <= BOX_DIM_MAX:
        return 0
    return next((n for n in range(BOX_DIM_MAX, unit - 1, -unit) if not words % n), 0)


def _own_strides(out: Part, own: Part) -> tuple[int, ...]:
    """Strides of the output's shape in a temporary of rows."""
    return (own.strides_bytes[0], *(out.size * prod(out.shape[k + 1 :]) for k in range(1, len(out.shape))))


def _refuse_rows(table: Part, reason: str) -> NoReturn:
    refuse(
        ArgumentError,
        NO_ROWS,
        "the rows of the table cannot be copied one by one",
        got=f"{reason}; shape {table.shape}, strides {table.strides_bytes} bytes",
        required="rows of elements that follow each other, multiples of 16 bytes apart",
        fix="dev.array(x, pad=True), or ox.copy(dev.empty(x.shape, dtype, pad=True), x) once",
    )
