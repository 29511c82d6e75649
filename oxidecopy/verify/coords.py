"""Where copies start, over all block indices and iterations: the 16-byte rule, the s32 range, no store from a negative start.

First each copy is judged once with every loop counter over its whole range. A copy that fails there is looked at again, instance by
instance, while the walk runs it: conditions around it may exclude the bad values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from oxidecopy.isa import limits, ops
from oxidecopy.isa.bulk import ALIGN
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Const, Expr, add, mul
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, ArrayInfo, Launch, MapParam, Program, Step, walk
from oxidecopy.program.tensor_map import TILE, TensorMap
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.affine import Range, range_of, shift_of, strided
from oxidecopy.verify.im2col import im2col_faults
from oxidecopy.verify.maps import warn_of_window, window_faults
from oxidecopy.verify.opaque import Opaque
from oxidecopy.verify.report import Collector

_INNER_WORDS = "a multiple of 16 bytes along the innermost dimension"


Through = ops.TensorCopy | ops.TensorPrefetch  # a map
Run = ops.BulkCopy | ops.BulkPrefetch  # of an array
Placed = Through | Run | ops.LoadIndex | ops.TensormapReplaceArray  # ops whose place in global memory is judged here


def doubtful(program: Program, launch: Launch, folded: Mapping[int, ops.Instr], opaque: Opaque, out: Collector) -> set[int]:
    """Ids of the copies and reads whose coordinates must be watched in the walk. Warns of what no walk can see."""
    found: set[int] = set()
    edges = dict(launch.edges)
    unknown = {name: bound for name, bound in launch.maps if edges.get(name, "unknown") == "unknown"}

    def visit(steps: tuple[Step, ...], env: dict[str, Range]) -> None:
        for step in steps:
            op = folded[id(step)]
            try:
                if isinstance(op, ops.Loop):
                    visit(step.body, {**env, op.counter: counter_range(op, env)})
                elif isinstance(op, Placed):
                    found.update(_look(program, launch, step, op, env, unknown, out))
                else:
                    visit(step.body, env)
            except ZeroDivisionError:  # it may never run
                found.update(id(inner) for inner in walk((step,)) if isinstance(folded[id(inner)], Placed))

    visit(program.steps, everywhere(program, launch, opaque))
    return found


def _look(
    program: Program, launch: Launch, step: Step, op: Placed, env: Mapping[str, Range], unknown: Mapping[str, TensorMap], out: Collector
) -> list[int]:
    """The id of a step whose coordinates must be watched, if they must. `unknown`: maps for which nobody knows what lies behind rows."""
    broken = any(True for _ in faults(program, launch, op, env))
    if isinstance(op, ops.TensormapReplaceArray):
        warn_of_window(program, launch, step, op, env, out)
    if isinstance(op, Through):
        _unscaled(program, launch, step, op, out)
        _edges(step, op, [(name, unknown[name]) for name in _through(program, op, env) if name in unknown], out)
    return [id(step)] if broken else []


def _through(program: Program, op: Through, env: Mapping[str, Range]) -> tuple[str, ...]:
    """The maps that a copy may go through: of a table all entries that its index can name."""
    names = program.maps[op.map.name].bound_names
    if op.map.slot is not None:
        return ()  # its rows are those of a window
    if op.map.index is None:
        return names
    at = range_of(op.map.index, env)
    return names[at.lo : at.hi + 1 : at.step or 1] if at.lo >= 0 else names


def everywhere(program: Program, launch: Launch, opaque: Opaque) -> dict[str, Range]:
    """What is not a loop counter, over all CTAs of the launch."""
    grid = {name: strided(0, n - 1, 1) for name, n in zip(BLOCK_SYMBOLS, launch.grid, strict=True)}
    given = {opaque.trips: strided(0, opaque.tiles, 1)} if opaque.trips else {}
    return {**grid, RANK_SYMBOL: strided(0, program.cluster_size - 1, 1), **opaque.ranges, **given}


def counter_range(loop: ops.Loop, env: Mapping[str, Range]) -> Range:
    """A superset of the values of a loop's counter, when the symbols around it range over `env`."""
    first, stop = range_of(loop.start, env), range_of(loop.stop, env)
    if loop.step < 0:
        return strided(stop.lo + 1, first.hi, 1)
    return strided(first.lo, stop.hi - 1, loop.step if first.single else 1)


def faults(program: Program, launch: Launch, op: Placed, env: Mapping[str, Range]) -> Iterator[tuple[str, str, str, str, str]]:
    """Rule, sentence, got, required and fix of each broken rule of the coordinates over `env`."""
    if isinstance(op, ops.LoadIndex):
        yield from _outside(launch, op, env)
        return
    if isinstance(op, Run):
        yield from _run(launch, op, env)
        return
    if isinstance(op, ops.TensormapReplaceArray):
        yield from window_faults(launch, op, env)
        return
    yield from _of_map(program, launch, op, env)


def _of_map(program: Program, launch: Launch, op: Through, env: Mapping[str, Range]) -> Iterator[tuple[str, str, str, str, str]]:
    """The rules of copies through a map."""
    param = program.maps[op.map.name]
    if op.map.index is not None:
        yield from _no_entry(op.map.index, param, env)
    if param.mode != TILE:
        yield from im2col_faults(op, param.name, dict(launch.maps)[param.name], env)
    info = DTYPES[param.dtype]
    need = info.grid
    spans = [range_of(e, env) for e in op.coords]
    inner = spans[-1]
    sliced = param.interleave != "none"  # the inner coordinate then counts slice pixels
    if not sliced and (inner.lo % need or inner.step % need):
        bad, grid = inner.lo if inner.lo % need else inner.lo + inner.step, "grid of its rows" if info.padded else "16-byte grid"
        yield (
            ids.COORD_INNER,
            f"a copy through {param.name!r} starts off the {grid}, where the hardware faults",
            f"innermost coordinate {bad}" + ("" if info.packed else f", {bad * info.nbytes} bytes"),
            f"{'whole rows of a padded type' if info.padded else _INNER_WORDS}: a multiple of {need} elements",
            f"step the innermost coordinate by multiples of {need}",
        )
    for axis, r in enumerate(spans):
        if r.lo < limits.COORD_MIN or r.hi > limits.COORD_MAX:
            yield (
                ids.COORD_RANGE,
                f"coordinate {axis} of a copy through {param.name!r} leaves 32 bits",
                f"{r.lo} to {r.hi}",
                f"{limits.COORD_MIN} to {limits.COORD_MAX}",
                "split the tensor, or launch fewer blocks",
            )
        if r.lo < 0 and isinstance(op, ops.TensorStore):
            yield (
                ids.COORD_NEGATIVE,
                f"a store through {param.name!r} starts at a negative coordinate, where the hardware faults",
                f"coordinate {axis} is {r.lo}",
                "0 or more in every dimension (loads may start outside, stores may not)",
                "guard the store with `cta.when(...)`, or shift the tensor",
            )
    if isinstance(op, ops.TensorStore) and not sliced:
        yield from _over_elements(program, launch, op, inner, env)


def _over_elements(
    program: Program, launch: Launch, op: ops.TensorStore, inner: Range, env: Mapping[str, Range]
) -> Iterator[tuple[str, str, str, str, str]]:
    """A store whose box reaches over the end of the rows, where the array goes on that they are a part of."""
    maps, edges = dict(launch.maps), dict(launch.edges)
    for name in _through(program, op, env):
        bound = maps[name]
        over = -bound.row_bytes % limits.STORE_EDGE_BYTES
        if edges.get(name) == "elements" and inner.hi + bound.box_dim[-1] > bound.global_dim[-1] > inner.lo:
            yield (
                ids.STORE_OVER,
                f"a store through {name!r} writes past the end of its rows, over elements of the array that they are a part of",
                f"rows of {bound.row_bytes} bytes: {over} bytes more are written",
                "rows that are multiples of 16 bytes, or followed by padding only: stores are clipped in steps of 16 bytes",
                "store to an array of its own, made with `pad=True`, or the last columns by `cta.store`",
            )


def _run(launch: Launch, op: Run, env: Mapping[str, Range]) -> Iterator[tuple[str, str, str, str, str]]:
    """A run of an array: it starts on the 16-byte grid and ends inside, as nothing is clipped."""
    name, info = op.array.name, dict(launch.arrays)[op.array.name]
    place: Expr = ZERO
    for e, stride in zip(op.coords, info.strides_bytes, strict=True):
        place = add(place, mul(e, Const(stride)))
    start = range_of(place, env)
    if info.align % ALIGN:
        yield (
            ids.COORD_INNER,
            f"a plain bulk copy goes through {name!r}, which itself starts off the 16-byte grid, where the hardware faults",
            f"an address that is a multiple of {info.align} bytes",
            "a multiple of 16 bytes",
            "copy through a view that starts on the grid, or copy the array: `dev.array(x)`",
        )
    if start.lo % ALIGN or start.step % ALIGN:
        yield (
            ids.COORD_INNER,
            f"a plain bulk copy of {name!r} starts off the 16-byte grid, where the hardware faults",
            f"byte {start.lo if start.lo % ALIGN else start.lo + start.step}",
            "a multiple of 16 bytes from the start of the array",
            "start at multiples of 16 bytes, in an array whose rows are (`dev.array(x, pad=True)`)",
        )
    inside = _dense(info)
    axes = [(start, info.shape[0] * info.strides_bytes[0], "")] if inside else []
    if not inside:
        spans = [range_of(e, env) for e in op.coords]
        axes = [(r, n, f"coordinate {i} is ") for i, (r, n) in enumerate(zip(spans[:-1], info.shape[:-1], strict=True))]
        size = info.strides_bytes[-1]
        inner = spans[-1]
        axes.append((Range(inner.lo * size, inner.hi * size, inner.step * size), info.shape[-1] * size, "of a row, "))
    for i, (r, extent, where) in enumerate(axes):
        taken = op.nbytes if i == len(axes) - 1 else 1
        if r.lo < 0 or r.hi + taken > extent:
            yield (
                ids.BULK_BOUNDS,
                f"a plain bulk copy leaves {name!r}: nothing is clipped or filled",
                f"{where}{r.lo} to {r.hi + taken - 1}" + ("" if taken == 1 else " (bytes)"),
                f"0 to {extent - 1}",
                "copy what is there, guard the last one with `cta.when(...)`, or use a descriptor, whose copies are clipped",
            )


def _dense(info: ArrayInfo) -> bool:
    """True when the elements of an array follow each other without gaps."""
    step = DTYPES[info.dtype].nbytes
    for n, stride in zip(reversed(info.shape), reversed(info.strides_bytes), strict=True):
        if stride != step:
            return False
        step *= n
    return True


def _no_entry(index: Expr, table: MapParam, env: Mapping[str, Range]) -> Iterator[tuple[str, str, str, str, str]]:
    at, entries = range_of(index, env), table.entries or 0
    if at.lo < 0 or at.hi >= entries:
        yield (
            ids.ENTRY_RANGE,
            f"a copy goes through an entry that table {table.name!r} does not have",
            f"entry {at.lo}" if at.single else f"entries {at.lo} to {at.hi}",
            f"0 to {entries - 1}",
            f"launch as many blocks as there are entries, clamp, or read the index with `below=len({table.name})`",
        )


def _outside(launch: Launch, op: ops.LoadIndex, env: Mapping[str, Range]) -> Iterator[tuple[str, str, str, str, str]]:
    extent = dict(launch.arrays)[op.array.name].shape[0]
    at = range_of(op.index, env)
    if at.lo < 0 or at.hi >= extent:
        yield (
            ids.INDEX_RANGE,
            f"an index is read from outside {op.array.name!r}",
            f"element {at.lo}" if at.single else f"elements {at.lo} to {at.hi}",
            f"0 to {extent - 1}",
            "read fewer, or clamp: `ox.minimum(i, n - 1)`",
        )


def report_faults(program: Program, launch: Launch, step: Step, op: Placed, env: Mapping[str, Range], out: Collector) -> bool:
    """Reports what `faults` finds; True when that was anything."""
    found = False
    for rule, what, got, required, fix in faults(program, launch, op, env):
        out.add(rule, what, step=step, got=got, required=required, fix=fix)
        found = True
    return found


# ---- warnings
def _unscaled(program: Program, launch: Launch, step: Step, op: Through, out: Collector) -> None:
    """Coordinates are elements: a bare block index moves a wide box by one element per block."""
    box = program.maps[op.map.name].box_dim
    if isinstance(op, ops.TensorGather4 | ops.TensorScatter4) or program.maps[op.map.name].mode != TILE:
        return  # rows are chosen one by one, pixels by a walk
    for axis, (e, wide) in enumerate(zip(op.coords, box, strict=True)):
        for name, n in zip(BLOCK_SYMBOLS, launch.grid, strict=True):
            if wide > 1 and n > 1 and shift_of(e, {name: 1}) == 1:
                out.add(
                    ids.UNSCALED,
                    f"coordinate {axis} moves by one element from block to block along {name}, but the box is {wide} wide",
                    step=step,
                    got=f"{name} unscaled",
                    required="coordinates in elements",
                    fix=f"multiply: `{name.replace('block_idx', 'cta.block_idx')} * {wide}`",
                )


def _edges(step: Step, op: Through, through: Iterable[tuple[str, TensorMap]], out: Collector) -> None:
    """Stores are clipped at the inner edge in 16-byte steps (measured): up to 15 bytes behind a row are written."""
    for name, bound in through:
        strides = bound.global_strides
        row = bound.row_bytes
        written = -(-row // limits.STORE_EDGE_BYTES) * limits.STORE_EDGE_BYTES
        if not isinstance(op, ops.TensorStore) or row == written or not strides or strides[-1] == written:
            continue
        out.add(
            ids.STORE_EDGE,
            f"a store through {name!r} writes past the end of its rows, into what may be live data",
            step=step,
            got=f"rows of {row} bytes, {strides[-1]} bytes apart: {written - row} bytes more are written",
            required="rows that are multiples of 16 bytes, or followed by padding only",
            fix="store to an array made with `pad=True`, or to whole rows",
        )
