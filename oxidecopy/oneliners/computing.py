"""Plans that compute: a function of the elements of up to four arrays, vectors and numbers, box by box through rings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple, final

from oxidecopy.isa.elem import Along, Cast, Elem, Fn, Parameter, Unary, operands_of
from oxidecopy.isa.limits import BOX_DIM_MAX, GLOBAL_ADDRESS_ALIGN
from oxidecopy.oneliners.machine import Machine, machine_of
from oxidecopy.oneliners.moving import Block, blocks, move
from oxidecopy.oneliners.operands import Array
from oxidecopy.oneliners.pipelines import CTA_BYTES, SHARED_SM, Input, elements
from oxidecopy.oneliners.spaces import Space, box_of, boxes, joint
from oxidecopy.oneliners.steps import BITS, Argument, Given, MapOf, Part, Plan, Step, part_of, why_no_map, why_no_store
from oxidecopy.typed.dtypes import DType

_STAGE_ALIGN: Final = 1_024  # bytes
_UNIT: Final = 16  # elements that rows of boxes are a multiple of: 16 bytes of the smallest type


class Shape(NamedTuple):
    """How boxes are computed on.

    Attributes:
        elements: of a box, at most.
        stages: of the rings that load.
        out_stages: of the store ring.
        warps: that compute.
        per_sm: CTAs for each multiprocessor, as far as shared memory goes.
    """

    elements: int = 4_096
    stages: int = 2
    out_stages: int = 2
    warps: int = 8
    per_sm: int = 2

    @property
    def words(self) -> str:
        """In words."""
        rings = f"{self.stages} stages, {self.out_stages} of stores"
        return f"boxes of up to {self.elements:,} elements, {rings}, {self.warps} warps that compute, {self.per_sm} CTAs on an SM"


DEFAULT: Final = Shape()
# What is read for an element decides: of two f32, 96 KiB on their way to one block of a multiprocessor are what memory likes best.
_WIDE: Final = Shape(elements=6_144, warps=12, per_sm=1)  # 8 bytes and more
_ROOM: Final = 12  # of so many bytes there is no room for a box of that size
_MIDDLE: Final = Shape(elements=6_144, stages=3, warps=12, per_sm=1)
_NARROW: Final = Shape(elements=8_192, stages=4, warps=16, per_sm=1)  # less than 4 bytes
_ALONE: Final = Shape(stages=3)  # of one input
_FEW: Final = 6  # operations: with more of them it is lanes that count
SHAPES: Final = tuple(
    Shape(*numbers)
    for numbers in (
        (4_096, 2, 2, 8, 2), (4_096, 3, 2, 8, 2), (6_144, 2, 2, 12, 1), (6_144, 3, 2, 12, 1), (4_096, 2, 2, 4, 3),
        (2_048, 2, 2, 4, 4), (8_192, 2, 2, 8, 2), (8_192, 2, 1, 16, 1), (8_192, 4, 2, 16, 1),
    )
)  # fmt: skip
_FUNCTION: Final = 16
_SHORT: Final = frozenset({Fn.ABS, Fn.NOT})
_SOURCE: Final = "docs/performance.md, maps, NVIDIA H200"


@final
class Operand(NamedTuple):
    """One argument of the function: operand `number` of the plan, or the number given with the call."""

    number: int
    dtype: type[DType]
    scalar: bool = False


class _Function(NamedTuple):
    """What is computed, and how."""

    fn: Callable[..., Any]
    inputs: tuple[Operand, ...]
    name: str
    shape: Shape


class _Source(NamedTuple):
    """An input over the space of the output: where it is, and how it is spread."""

    part: Part
    along: Along
    strides: tuple[int, ...]  # of the space


def cast(into: Array, of: Array, choice: Shape | None) -> Plan:
    """The copy of `of` to `into`, whose element type is another one."""
    plan = Plan(operands=[into, of])
    dtype = into.dtype
    name = f"cast_{of.dtype.info.name}_{dtype.info.name}"
    plan.why.append(f"{of.dtype.__name__} becomes {dtype.__name__} in shared memory, between load and store")
    compute(plan, lambda v: v.cast(dtype), (Operand(1, of.dtype),), name, choice)
    return plan


def pick(plan: Plan, machine: Machine, dst: Part, src: Part) -> bool:
    """Adds the launches that copy elements 2, 4 or 8 bytes apart, as parts of words of so many bytes; False where that cannot be."""
    size = src.size
    space = joint(dst.shape, (dst.strides_bytes, src.strides_bytes), leader=0, sizes=(size, size))
    step = space.inner(1)
    lead = src.address(plan.operands) % step if step in BITS else 0
    if step not in BITS or step <= size or space.inner(0) != size:
        return False
    words = src.seen(BITS[step], space.extents, space.strides[1], -lead)
    whole = plan.operands[src.operand]
    first = whole.offset_bytes + words.offset_bytes
    last = first + sum((n - 1) * s for n, s in zip(words.shape, words.strides_bytes, strict=True)) + step
    if first < 0 or last > whole.buffer.nbytes or why_no_map(words, plan.operands):
        return False
    narrow = BITS[size]
    plan.why.append(
        f"every element is a part of a word of {step} bytes, which begins {lead} bytes before it: words are loaded and parts kept"
    )
    target = final = dst.seen(narrow, space.extents, space.strides[0])
    reason = why_no_store(target, plan.operands)
    if reason:
        plan.why.append(f"the parts go through an array of their own: {reason}")
        target = plan.temporary(narrow, space.extents)
        space = Space(space.extents, (target.strides_bytes, space.strides[1]))
    shift = 8 * lead
    function = _Function(lambda v: (v >> shift).cast(narrow), (Operand(src.operand, BITS[step]),), "copy_parts", DEFAULT)
    source = _Source(words, Along.ALL, space.strides[1])
    plan.steps.append(_step(plan, machine, Block(space, (0, 0)), target, [source], function))
    if reason:
        move(plan, machine, final, target)
    return True


def compute(plan: Plan, fn: Callable[..., Any], inputs: Sequence[Operand], name: str, choice: Shape | None, *, operations: int = 1) -> None:
    """Adds the launches that set operand 0 to `fn` of the inputs, each of its shape or repeated along dimensions of one element."""
    out = part_of(0, plan.operands[0])
    arrays = [i for i in inputs if not i.scalar]
    sources = [(part_of(i.number, plan.operands[i.number]), _spread(plan.operands[i.number], out.shape)) for i in arrays]
    shape = choice or _usual([part for part, _ in sources], operations)
    _compute(plan, out, sources, _Function(fn, tuple(inputs), name, shape))
    plan.why.append(f"{shape.words} ({'measured here' if choice else _SOURCE})")


def convert(plan: Plan, dst: Part, src: Part) -> None:
    """Adds the launches that copy `src` to `dst`, of one shape and different element types."""
    function = _Function(lambda v: v.cast(dst.dtype), (Operand(src.operand, src.dtype),), "convert", _usual([src]))
    _compute(plan, dst, [(src, src.strides_bytes)], function)


def operations_of(e: Elem) -> int:
    """How many operations an element takes, about: a function is as many as it has instructions."""
    own = 0 if isinstance(e, Parameter | Cast) else _FUNCTION if isinstance(e, Unary) and e.fn not in _SHORT else 1
    parts = operands_of(e)
    return (own if parts else 0) + sum(operations_of(part) for part in parts)


def _usual(inputs: Sequence[Part], operations: int = 1) -> Shape:
    """What was fastest for elements of such sizes."""
    read = sum(part.size for part in inputs)
    if operations > _FEW:
        return DEFAULT if len(inputs) > 1 else _ALONE
    return DEFAULT if read >= _ROOM else _WIDE if read >= 8 else _MIDDLE if read >= 4 else _NARROW


def _compute(plan: Plan, out: Part, given: Sequence[tuple[Part, tuple[int, ...]]], function: _Function) -> None:
    """`given` are the arrays among the inputs, with their strides over the shape of the output."""
    machine = machine_of(plan.operands[0].device)
    sizes = (out.size, *(part.size for part, _ in given))
    space = joint(out.shape, [out.strides_bytes, *(strides for _, strides in given)], leader=0, sizes=sizes)
    if space.extents != out.shape:
        plan.why.append(f"shape {out.shape} is {space.extents} once dimensions that follow each other in all arrays are one")
    target = final = out.seen(out.dtype, space.extents, space.strides[0])
    reason = why_no_store(target, plan.operands)
    if reason:
        plan.why.append(f"the result goes through an array of its own, and is copied to the output by elements: {reason}")
        target = plan.temporary(out.dtype, space.extents)
        space = Space(space.extents, (target.strides_bytes, *space.strides[1:]))
    sources = [_source(plan, machine, space, v, part) for v, (part, _) in enumerate(given, 1)]
    space = Space(space.extents, (space.strides[0], *(s.strides for s in sources)))
    for block in blocks(space, sizes) if all(s.along is Along.ALL for s in sources) else [Block(space, (0,) * len(sizes))]:
        plan.steps.append(_step(plan, machine, block, target, sources, function))
    if reason:
        move(plan, machine, final, target)


def _spread(a: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of `a` over `shape`: 0 where it is repeated."""
    added = len(shape) - len(a.shape)
    own = [0 if n == 1 else s for n, s in zip(a.shape, a.strides_bytes, strict=True)]
    return (*(0,) * added, *own)


def _source(plan: Plan, machine: Machine, space: Space, view: int, whole: Part) -> _Source:
    """An input as it is loaded; through an array of its own where no map can be made of it."""
    strides, size = space.strides[view], whole.size
    part, along = _seen(space, strides, whole)
    reason = why_no_map(part, plan.operands) if part is not None else "its elements are repeated along rows, and lie apart from row to row"
    if part is not None and not reason:
        return _Source(part, along, strides)
    # The innermost dimension is written out: a row of the array that is made has a map whatever the input is.
    extents = tuple(1 if s == 0 and k < space.rank - 1 else n for k, (n, s) in enumerate(zip(space.extents, strides, strict=True)))
    plan.why.append(f"an input of {whole.dtype.__name__} is copied to an array of its own first: {reason}")
    made = plan.temporary(whole.dtype, extents)
    move(plan, machine, made, whole.seen(whole.dtype, extents, strides))
    steps = tuple(0 if n == 1 and extent > 1 else s for n, extent, s in zip(extents, space.extents, made.strides_bytes, strict=True))
    part, along = _seen(space, (*steps[:-1], size), made)
    return _Source(part or made, along, (*steps[:-1], size))


def _seen(space: Space, strides: tuple[int, ...], whole: Part) -> tuple[Part | None, Along]:
    """The part that is loaded for a box, and how it is spread over it; no part where rows repeat elements that lie apart."""
    size, rank = whole.size, space.rank
    if strides[-1] == size or space.extents[-1] == 1:
        strides = (*strides[:-1], size)
        if rank > 1 and not any(strides[:-1]):
            return whole.seen(whole.dtype, space.extents[-1:], (size,)), Along.COLUMN
        return whole.seen(whole.dtype, space.extents, strides), Along.ALL
    if rank > 1 and strides[-1] == 0 and strides[-2] == size:
        return whole.seen(whole.dtype, space.extents[:-1], strides[:-1]), Along.ROW
    return None, Along.ALL


def _step(plan: Plan, machine: Machine, block: Block, target: Part, sources: Sequence[_Source], function: _Function) -> Step:
    """One launch."""
    space, shape = block.space, function.shape
    box = _box(space, sources, shape, target.size)
    tiles = [_of_box(box, s.along) for s in sources]
    shared = _shared_bytes(box, sources, shape, target.size)
    per_sm = max(1, min(shape.per_sm, SHARED_SM // shared))
    whole = space.extents == target.shape
    into = target if whole else target.seen(target.dtype, space.extents, space.strides[0], block.offsets[0])
    arguments: dict[str, Argument] = {"out": MapOf(into, box)}
    declared: list[Input] = []
    left = iter(enumerate(sources))
    for k, i in enumerate(function.inputs):
        label = f"x{k}"
        if i.scalar:
            declared.append(Input(label, Along.ALL, i.dtype, scalar=True))
            arguments[label] = Given(i.number)
            continue
        v, source = next(left)
        part = source.part if whole else source.part.seen(i.dtype, space.extents, space.strides[v + 1], block.offsets[v + 1])
        declared.append(Input(label, source.along, i.dtype))
        arguments[label] = MapOf(part, tiles[v])
    count = boxes(space.extents, box)
    pipe = elements(function.fn, declared, name=function.name, stages=shape.stages, out_stages=shape.out_stages, warps=shape.warps)
    grid = min(count, per_sm * machine.sms)
    plan.why.append(
        f"box {box}: {count:,} of them cover {space.extents}; {shared:,} bytes of shared memory, {per_sm} CTAs for each multiprocessor"
    )
    return Step(pipeline=pipe, grid=grid, arguments=arguments, what=f"boxes {box}, computed in shared memory")


def _shared_bytes(box: tuple[int, ...], sources: Sequence[_Source], shape: Shape, out_size: int) -> int:
    """What a CTA takes: each stage of a tile begins at a multiple of `_STAGE_ALIGN`."""
    loaded = sum(_padded(prod(_of_box(box, s.along)) * s.part.size) for s in sources)
    return loaded * shape.stages + _padded(prod(box) * out_size) * shape.out_stages + CTA_BYTES


def _padded(nbytes: int) -> int:
    return -(-nbytes // _STAGE_ALIGN) * _STAGE_ALIGN


def _box(space: Space, sources: Sequence[_Source], shape: Shape, out_size: int) -> tuple[int, ...]:
    """A box for all tiles, for which a CTA has room: of as many elements as the shape says, and of fewer rows where those are too many."""
    unit, box = _widest(space, sources, shape, (out_size, *(s.part.size for s in sources)))
    while len(box) > 1 and box[-2] > unit and _shared_bytes(box, sources, shape, out_size) > SHARED_SM:
        box = (*box[:-2], box[-2] - unit, box[-1])
    return box


def _widest(space: Space, sources: Sequence[_Source], shape: Shape, sizes: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """What rows come in, and a box whose rows are whole 16 bytes of every type, as are the vectors that go along its rows."""
    bytes_each = sum(sizes[1:]) * shape.stages + sizes[0] * shape.out_stages
    room = max(256, min(shape.elements, (SHARED_SM - CTA_BYTES) // max(1, bytes_each)))
    by_rows = [GLOBAL_ADDRESS_ALIGN // s.part.size for s in sources if s.along is Along.ROW]
    if not by_rows:
        return 1, box_of(space, room, unit=_UNIT, element_bytes=max(sizes), full=True)
    row = box_of(Space(space.extents[-1:], tuple(s[-1:] for s in space.strides)), room, unit=_UNIT, element_bytes=max(sizes))[0]
    unit = max(by_rows)
    rows = min(BOX_DIM_MAX, -(-min(space.extents[-2], max(1, room // row)) // unit) * unit)
    return unit, (*(1,) * (space.rank - 2), rows, row)


def _of_box(box: tuple[int, ...], along: Along) -> tuple[int, ...]:
    """The box of an input's map."""
    if along is Along.ALL:
        return box
    return (*(1,) * (len(box) - 2), box[-2]) if along is Along.ROW else box[-1:]
