"""Plans of copies that change no element: by boxes where tensor maps can be made of both sides, by other ways where they cannot."""

from __future__ import annotations

from math import gcd, prod
from typing import Any, Final, NamedTuple, NoReturn

from oxidecopy.errors import ArgumentError
from oxidecopy.isa.limits import BOX_DIM_MAX, GLOBAL_ADDRESS_ALIGN, MAX_RANK
from oxidecopy.oneliners.machine import Machine
from oxidecopy.oneliners.measured import Way, measured, ways_for
from oxidecopy.oneliners.pipelines import (
    Shift,
    boxes_once,
    boxes_ring,
    grid_for,
    padding_for,
    plain_stores,
    shifted_boxes,
    shifted_rows,
    turned_boxes,
)
from oxidecopy.oneliners.spaces import Space, box_of, boxes, joint, spread_bytes
from oxidecopy.oneliners.steps import BITS, Argument, MapOf, Part, Plan, Step, why_no_map, why_no_store
from oxidecopy.typed.reduce import ReduceOp
from oxidecopy.typed.refusal import refuse

NO_WAY: Final = "OX1203"
_COLUMNS: Final = (16_384, 8_192, 4_096, 2_048, 1_024)  # of one long row, seen as rows: widths at which copies were fastest
_LONG: Final = 16 * _COLUMNS[-1]  # elements: shorter rows stay what they are
_PLAIN_STAGES: Final = 4
_PLAIN_PER_SM: Final = 0  # CTAs at once on a multiprocessor whose threads store elements; 0: as many as fit
_PLAIN_BYTES: Final = 32 << 10  # of their boxes
_PLAIN_WARPS: Final = 4
_RUNS_PER_SM: Final = 8
_PLAIN_SOURCE: Final = "up to 2.7 TB/s, less for short rows: NVIDIA H200"
_APART: Final = 1 << 20  # bytes: rows that begin at the same place have a launch of their own where they are so many
_TURNED: Final = {1: (256, 256), 2: (128, 256), 4: (128, 128), 8: (64, 128)}  # rows and columns of transposed boxes, by an element's bytes
_STRIPS: Final = {1: 512, 2: 256, 4: 256, 8: 128}  # columns that are walked from top to bottom before those beside them, likewise
_STRIPS_FROM: Final = 8  # boxes for each multiprocessor
_TURNED_LEAST: Final = 128  # bytes of a row of such a box, where there are few of them
_TURNED_STAGES: Final = 2
_TURNED_WARPS: Final = 8
_TURNED_SOURCE: Final = "0.93 to 0.95 of cuMemcpyDtoD in strips, else 0.89: NVIDIA H200"
_WORDS: Final = (4, 2, 1)  # bytes of the elements that memory is moved as, best first


class Block(NamedTuple):
    """A part of a space: its extents, and how many bytes behind the space's first element it begins in each view."""

    space: Space
    offsets: tuple[int, ...]


def blocks(space: Space, sizes: tuple[int, ...]) -> list[Block]:
    """A long row as rows of a good width and what is left of it; any other space as it is."""
    none = (0,) * len(sizes)
    n = space.extents[-1]
    if space.rank > 1 or n < _LONG or any(s[-1] != size for s, size in zip(space.strides, sizes, strict=True)):
        return [Block(space, none)]
    width = next(
        (w for w in _COLUMNS if n % w == 0 and n // w >= _COLUMNS[-1] // 64), _COLUMNS[0] if n >= 64 * _COLUMNS[0] else _COLUMNS[-1]
    )
    rows = n // width
    found = [Block(Space((rows, width), tuple((width * size, size) for size in sizes)), none)]
    if n % width:
        found.append(Block(Space((n % width,), tuple((size,) for size in sizes)), tuple(rows * width * size for size in sizes)))
    return found


def move(plan: Plan, machine: Machine, dst: Part, src: Part, *, way: Way | None = None) -> None:
    """Adds the launches that copy `src` to `dst`, both of one shape and of elements of one size."""
    if (dst.address(plan.operands), dst.strides_bytes) == (src.address(plan.operands), src.strides_bytes):
        plan.why.append("source and destination are the same elements: nothing is copied")
        return
    sizes = (dst.size, src.size)
    space = joint(dst.shape, (dst.strides_bytes, src.strides_bytes), leader=0, sizes=sizes)
    if space.extents != dst.shape:
        plan.why.append(f"shape {dst.shape} is {space.extents} once dimensions that follow each other in both arrays are one")
    reason = _by_boxes(plan, machine, space, dst, src, way)
    if reason:
        from oxidecopy.oneliners.computing import pick  # which moves what it cannot load

        plan.why.append(f"not by boxes alone: {reason}")
        if not (_by_turning(plan, machine, dst, src) or pick(plan, machine, dst, src)):
            _by_elements(plan, machine, dst, src)


def _by_boxes(plan: Plan, machine: Machine, space: Space, dst: Part, src: Part, way: Way | None) -> str:
    """Boxes through a map on either side; where that cannot be, why not."""
    if space.extents[-1] > 1 and (space.inner(0), space.inner(1)) != (dst.size, src.size):
        return f"elements that follow each other in the destination are {space.inner(1)} bytes apart in the source"
    word = next(w for w in _WORDS if not space.extents[-1] * dst.size % w)
    words = Space((*space.extents[:-1], space.extents[-1] * dst.size // word), tuple((*strides[:-1], word) for strides in space.strides))
    if word != dst.size:
        plan.why.append(f"elements of {dst.size} bytes are moved as words of {word}: bits do not change")
    found = blocks(words.walked(), (word, word))
    parts = [[p.seen(BITS[word], b.space.extents, b.space.strides[v], b.offsets[v]) for v, p in enumerate((dst, src))] for b in found]
    for to, of in parts:
        reason = why_no_store(to, plan.operands)
        if reason:
            return f"destination: {reason}"
        reason = why_no_map(of, plan.operands)
        if reason:
            return f"source: {reason}"
    for block, (to, of) in zip(found, parts, strict=True):
        plan.why += _seen_as(words, block.space)
        plan.steps.append(copy_step(plan, machine, block.space, to, of, way))
    return ""


def _seen_as(words: Space, block: Space) -> list[str]:
    """What became of a space, in words."""
    if block.rank != words.rank:
        rows, width = (1, *block.extents)[-2:]
        return [f"one row of {words.extents[-1]:,} words is copied as rows: {rows:,} of {width:,}"]
    if block.extents != words.extents:
        return [
            f"boxes are visited along dimensions of extents {block.extents}: pieces are longer in both arrays than along {words.extents}"
        ]
    return []


def copy_step(
    plan: Plan, machine: Machine, space: Space, dst: Part, src: Part, way: Way | None = None, op: ReduceOp[Any] | None = None
) -> Step:
    """The launch that copies, or reduces, by boxes; the way is that of the measured table where none is given.

    What is reduced into repeats along some dimensions, of which a box has one element: no two of its elements are the same.
    """
    size = dst.size
    nbytes = space.elements * size
    ways = ways_for(space.rank, nbytes, machine.sms)
    if op is not None:
        ways = tuple(w for w in ways if w.schedule == "one-shot") or ways
    chosen = way or ways[0]
    most = [1 if s == 0 else n for n, s in zip(space.extents[:-1], space.strides[0], strict=False)] if op is not None else ()
    box = box_of(space, chosen.box_bytes // size, unit=max(1, GLOBAL_ADDRESS_ALIGN // size), element_bytes=size, most=most)
    count = boxes(space.extents, box)
    taken = prod(box) * size
    plan.why.append(_chosen(chosen, ways, nbytes, machine, given=way is not None))
    plan.why.append(f"box {box} of {dst.dtype.__name__}, {taken:,} bytes: {count:,} of them cover {space.extents}")
    if chosen.schedule == "one-shot" or op is not None:
        pipe, grid = boxes_once(padding_for(chosen.per_sm, taken), op), count
    else:
        pipe, grid = boxes_ring(chosen.stages, chosen.schedule), min(count, chosen.per_sm * machine.sms)
    what = f"{op.name} boxes {box} into the output" if op is not None else f"boxes {box} from tensor map to tensor map"
    return Step(pipeline=pipe, grid=grid, arguments={"src": MapOf(src, box), "dst": MapOf(dst, box)}, what=what)


def _chosen(way: Way, ways: tuple[Way, ...], nbytes: int, machine: Machine, *, given: bool) -> str:
    if given:
        return f"{way.words}: as it was asked for"
    table = measured()
    said = f"{way.words}: the fastest of {len(ways)} ways measured for rank {way.rank} with enough boxes for {machine.sms} multiprocessors"
    return f"{said} ({way.tb_s:.2f} TB/s, {way.of_memcpy:.3f} of cuMemcpyDtoD; {table.source}, {table.device}; this copy: {nbytes:,} bytes)"


# ---- where elements that follow each other in one do not in the other
def _by_turning(plan: Plan, machine: Machine, dst: Part, src: Part) -> bool:
    """Boxes through a map on either side, transposed in shared memory; False where that cannot be."""
    size = dst.size
    space = joint(dst.shape, (dst.strides_bytes, src.strides_bytes), leader=1, sizes=(size, size))
    units = [next((k for k in reversed(range(space.rank)) if strides[k] == size), None) for strides in space.strides]
    if None in units or units[0] == units[1]:
        return False
    order = [k for k in range(space.rank) if k not in units] + [k for k in units if k is not None]
    space = space.in_order(order)
    of, to = _either_way(space, dst, src)
    reason = why_no_map(of, plan.operands) or why_no_store(to, plan.operands)
    if reason:
        plan.why.append(f"boxes are not transposed in shared memory: {reason}")
        return False
    unit = GLOBAL_ADDRESS_ALIGN // size
    rows, row = (min(n, -(-extent // unit) * unit) for n, extent in zip(_TURNED[size], space.extents[-2:], strict=True))
    while boxes(space.extents, (*(1,) * (space.rank - 2), rows, row)) < machine.sms and max(rows, row) > _TURNED_LEAST // size:
        rows, row = (-(-rows // 2 // unit) * unit, row) if rows >= row else (rows, -(-row // 2 // unit) * unit)
    count, strip = boxes(space.extents, (*(1,) * (space.rank - 2), rows, row)), _STRIPS[size]
    if space.rank < MAX_RANK and space.extents[-1] % strip == 0 and count >= _STRIPS_FROM * machine.sms:
        *outer, height, width = space.extents
        strides = tuple([(*s[:-2], strip * s[-1], *s[-2:]) for s in space.strides])
        space = Space((*outer, width // strip, height, strip), strides)
        of, to = _either_way(space, dst, src)
        plan.why.append(
            f"strips of {strip} columns are walked from top to bottom, so that boxes at work lie close to each other on both sides"
        )
    box = (*(1,) * (space.rank - 2), rows, row)
    plan.why.append(f"boxes {box} are transposed in shared memory between load and store ({_TURNED_SOURCE}); {count:,} of them")
    arguments: dict[str, Argument] = {"src": MapOf(of, box), "dst": MapOf(to, (*box[:-2], row, rows))}
    pipe = turned_boxes(_TURNED_STAGES, _TURNED_WARPS)
    plan.steps.append(
        Step(pipeline=pipe, grid=min(count, machine.sms), arguments=arguments, what=f"boxes {box}, transposed in shared memory")
    )
    return True


def _either_way(space: Space, dst: Part, src: Part) -> tuple[Part, Part]:
    """The source as the space is, and the destination with its last two dimensions swapped."""
    bits, turned = BITS[src.size], space.in_order([*range(space.rank - 2), space.rank - 1, space.rank - 2])
    return src.seen(bits, space.extents, space.strides[1]), dst.seen(bits, turned.extents, turned.strides[0])


# ---- where one of the two has no map
def _by_elements(plan: Plan, machine: Machine, dst: Part, src: Part) -> None:
    """Loads in the order of the source's memory; threads store each element where the destination has it."""
    space = joint(dst.shape, (dst.strides_bytes, src.strides_bytes), leader=1, sizes=(dst.size, src.size))
    unit = next((k for k in reversed(range(space.rank)) if space.strides[1][k] == src.size), None)
    if unit is None and space.rank == MAX_RANK:
        _refuse_rank(space, src)
    space = space.with_one((dst.size, src.size)) if unit is None else space.with_last(unit)
    word = _widest(space, dst, src, plan)
    if word != dst.size:
        space = Space((*space.extents[:-1], space.extents[-1] * dst.size // word), tuple((*s[:-1], word) for s in space.strides))
    to, of = (p.seen(BITS[word], space.extents, space.strides[v]) for v, p in enumerate((dst, src)))
    reason = why_no_map(of, plan.operands)
    if not reason:
        box = box_of(
            space,
            spread_bytes(space.elements * word, _PLAIN_BYTES, machine.sms) // word,
            unit=max(1, GLOBAL_ADDRESS_ALIGN // word),
            element_bytes=word,
        )
        grid, pipe = boxes(space.extents, box), plain_stores(_PLAIN_WARPS, padding_for(_PLAIN_PER_SM, prod(box) * word))
        plan.why.append(f"boxes {box} are loaded in the order of the source; {_PLAIN_WARPS} warps store their elements ({_PLAIN_SOURCE})")
        arguments: dict[str, Argument] = {"src": MapOf(of, box), "out": to}
        plan.steps.append(Step(pipeline=pipe, grid=grid, arguments=arguments, what=f"boxes {box}, stored by threads"))
        return
    plan.why.append(f"no map of the source: {reason}")
    _shifted(plan, machine, space, to, of)


def _widest(space: Space, dst: Part, src: Part, plan: Plan) -> int:
    """Bytes of the widest elements that both sides can be seen as: wider than theirs only where rows follow each other in both."""
    size = dst.size
    rows_follow = space.inner(0) == space.inner(1) == size and space.extents[-1] > 1
    if not rows_follow:
        return size
    places = [
        dst.address(plan.operands),
        src.address(plan.operands),
        space.extents[-1] * size,
        *space.strides[0][:-1],
        *space.strides[1][:-1],
    ]
    return next((w for w in _WORDS if not any(n % w for n in places)), 1) if size < 8 else size


def _shifted(plan: Plan, machine: Machine, space: Space, dst: Part, src: Part) -> None:
    """The memory of the source is loaded from multiples of 16 bytes on, and stored where its elements belong."""
    lead_bytes = src.address(plan.operands) % GLOBAL_ADDRESS_ALIGN
    whole = plan.operands[src.operand]
    if whole.offset_bytes + src.offset_bytes < lead_bytes:
        _refuse_start(lead_bytes)
    for block in blocks(space, (dst.size, src.size)):
        to, of = (
            p.seen(p.dtype, block.space.extents, s, o) for p, s, o in zip((dst, src), block.space.strides, block.offsets, strict=True)
        )
        if not _shifted_boxes(plan, machine, block.space, to, of):
            _shifted_runs(plan, machine, block.space, to, of)


def _shifted_boxes(plan: Plan, machine: Machine, space: Space, dst: Part, src: Part) -> bool:
    """By boxes of rows that begin at the same place behind a multiple of 16 bytes; False where rows are short, or begin everywhere.

    Of rows that are no multiple of 16 bytes apart every second, fourth, ... is: these make a dimension, and those between them another.
    """
    steps = space.strides[1]
    uneven = [k for k, s in enumerate(steps[:-1]) if s % GLOBAL_ADDRESS_ALIGN]
    if space.rank < 2 or len(uneven) > 1 or space.rank + len(uneven) > MAX_RANK:
        return False
    if not uneven:
        _shifted_step(plan, machine, space, dst, src, -1)
        return True
    (axis,) = uneven
    step, n = steps[axis], space.extents[axis]
    turn = GLOBAL_ADDRESS_ALIGN // gcd(step, GLOBAL_ADDRESS_ALIGN)
    if step < GLOBAL_ADDRESS_ALIGN:
        return False
    before, behind = space.extents[:axis], space.extents[axis + 1 :]
    if space.elements * src.size >= turn * _APART and n >= turn:  # fewer dimensions are twice as fast
        split = tuple((*s[:axis], turn * s[axis], *s[axis + 1 :]) for s in space.strides)
        for k in range(turn):
            part = Space((*before, (n - k + turn - 1) // turn, *behind), split)
            _shifted_step(plan, machine, part, *_later(dst, src, k, space, axis), -1)
        return True
    split = tuple((*s[:axis], turn * s[axis], *s[axis:]) for s in space.strides)
    if n >= turn:
        _shifted_step(plan, machine, Space((*before, n // turn, turn, *behind), split), dst, src, axis + 1)
    if n % turn:
        rest = Space((*before, n % turn, *behind), space.strides)
        _shifted_step(plan, machine, rest, *_later(dst, src, n // turn * turn, space, axis), axis)
    return True


def _later(dst: Part, src: Part, index: int, space: Space, axis: int) -> tuple[Part, Part]:
    """The views from an index of a dimension on."""
    to, of = (p.seen(p.dtype, p.shape, p.strides_bytes, index * s[axis]) for p, s in zip((dst, src), space.strides, strict=True))
    return to, of


def _shifted_step(plan: Plan, machine: Machine, space: Space, dst: Part, src: Part, axis: int) -> None:
    """One launch; rows begin further and further behind a multiple of 16 bytes along `axis` (-1: all at the same place)."""
    size, unit, (*outer, inner) = src.size, GLOBAL_ADDRESS_ALIGN // src.size, space.extents
    lead_bytes = src.address(plan.operands) % GLOBAL_ADDRESS_ALIGN
    steps = list(space.strides[1])
    more = steps[axis] % GLOBAL_ADDRESS_ALIGN if axis >= 0 else 0
    if axis >= 0:
        steps[axis] -= more
    shift = Shift(lead_bytes // size, axis, more // size, unit)
    width = shift.lead + (outer[axis] - 1) * shift.step + inner if axis >= 0 else shift.lead + inner
    memory = src.seen(src.dtype, (*outer, width), tuple(steps), -lead_bytes)
    run = min(BOX_DIM_MAX, -(-(inner + unit - 1) // unit) * unit)
    box = [*(1 for _ in outer), run]
    along = max((k for k in range(len(outer)) if k != axis), key=lambda k: (outer[k] > 1, k), default=None)
    if along is not None:
        box[along] = min(outer[along], BOX_DIM_MAX, max(1, spread_bytes(space.elements * size, _PLAIN_BYTES, machine.sms) // (run * size)))
    counts = (*(-(-n // b) for n, b in zip(outer, box, strict=False)), -(-(inner + unit - 1) // run))
    count = prod(counts)
    plan.why.append(
        f"boxes {tuple(box)} of {space.extents} are loaded from multiples of {GLOBAL_ADDRESS_ALIGN} bytes on; {_PLAIN_WARPS} warps store "
        f"their elements: {count:,} loads ({_PLAIN_SOURCE})"
    )
    plan.steps.append(
        Step(
            pipeline=shifted_boxes(_PLAIN_WARPS, padding_for(_PLAIN_PER_SM, prod(box) * size), tuple(box), counts, shift),
            grid=grid_for(counts),
            arguments={"src": MapOf(memory, tuple(box)), "out": dst.seen(dst.dtype, space.extents, space.strides[0])},
            what=f"boxes {tuple(box)}, stored by threads",
        )
    )


def _shifted_runs(plan: Plan, machine: Machine, space: Space, dst: Part, src: Part) -> None:
    """Runs of the source's memory, a row at a time."""
    size = src.size
    unit = GLOBAL_ADDRESS_ALIGN // size
    lead_bytes = src.address(plan.operands) % GLOBAL_ADDRESS_ALIGN
    lead = lead_bytes // size
    steps = tuple(s // size for s in space.strides[1])
    length = lead + sum((n - 1) * s for n, s in zip(space.extents, steps, strict=True)) + 1
    run = min(BOX_DIM_MAX, -(-(space.extents[-1] + unit - 1) // unit) * unit)
    ones = (1,) * (space.rank - 1)
    memory = src.seen(src.dtype, (*ones, length), (*(length * size,) * len(ones), size), -lead_bytes)
    total = prod(space.extents[:-1]) * -(-(space.extents[-1] + unit - 1) // run)
    plan.why.append(
        f"runs of {run} elements are loaded from multiples of {GLOBAL_ADDRESS_ALIGN} bytes; 128 threads store those that belong to a row: "
        f"{total:,} loads ({_PLAIN_STAGES} stages, not measured; slow for short rows)"
    )
    pipe = shifted_rows(_PLAIN_STAGES, extents=space.extents, strides=steps, lead=lead, unit=unit, run=run)
    plan.steps.append(
        Step(
            pipeline=pipe,
            grid=min(total, _RUNS_PER_SM * machine.sms),
            arguments={"src": MapOf(memory, (*ones, run)), "out": dst},
            what=f"runs of {run} elements, stored by threads",
        )
    )


def _refuse_rank(space: Space, src: Part) -> NoReturn:
    refuse(
        ArgumentError,
        NO_WAY,
        "no elements of the source follow each other, and there is no dimension left to say so by",
        got=f"extents {space.extents}, strides {space.strides[1]} bytes",
        required=f"{MAX_RANK - 1} dimensions, or one along which elements are {src.size} bytes apart",
        fix="copy it in parts, by a.select(0, i)",
    )


def _refuse_start(lead_bytes: int) -> NoReturn:
    refuse(
        ArgumentError,
        NO_WAY,
        "the source begins between multiples of 16 bytes, and the memory before it is not known to be there",
        got=f"{lead_bytes} bytes behind a multiple of 16",
        required="memory that begins at a multiple of 16 bytes, or an array that is part of such memory",
        fix="borrow the whole array, and slice that: dev.borrow(x, ...)[1:]",
    )
