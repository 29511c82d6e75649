"""Maps that a program replaces: who edits them where, what they may point at, and that no copy goes through a stale or a changing one.

A place in global memory belongs to one CTA, so what is known of it is kept by CTA. The order is: copies through the old map are over,
release by a warp, acquire by a thread that follows it, copies by threads that follow the acquire (PTX 9.7.13.16, CUDA Programming Guide).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd
from typing import Final

from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Const, Expr, Max, Min, add, mul
from oxidecopy.isa.ops import SlotRef, ThreadSet
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.program import ArrayInfo, Launch, MapParam, Program, Step
from oxidecopy.program.replaced import SLOT_BYTES, pointed_at, slots_per_cta
from oxidecopy.program.tensor_map import TILE
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.affine import Range, gather_terms, point, range_of
from oxidecopy.verify.report import Collector
from oxidecopy.verify.state import LOAD, Access, Agent, At, Machine, Mark, Place

Fault = tuple[str, str, str, str, str]
_USING: Final = (*ops.EDITS, ops.TensormapCpFenceproxy)
_KIND: Final = ("dtype", "box_dim", "element_strides", "interleave", "swizzle", "oob_fill", "mode")  # of a map what copies rely on


# ---- without running anything
def check_maps(program: Program, launch: Launch, out: Collector) -> bool:
    """Reports what is wrong with the ops on maps; False when a walk would make no sense."""
    if not any(isinstance(step.op, (*_USING, ops.FenceProxyTensormap)) for step in program.walk()):
        return True
    good = all([_threads(program.steps, ThreadSet(((0, program.threads),)), out), _tiles(program, out), _fields(program, launch, out)])
    return all([good, _places(program, launch, out), _kinds(program, out)])


def _threads(steps: tuple[Step, ...], threads: ThreadSet, out: Collector) -> bool:
    good = True
    for step in steps:
        op = step.op
        if isinstance(op, ops.EDITS) and len(threads) > 1:
            good = False
            _wrong_threads(step, "a map is edited by several threads, and each instruction writes all of it", threads, "one thread", out)
        elif isinstance(op, ops.TensormapCpFenceproxy) and not _is_warp(threads):
            good = False
            what = "tensormap.cp_fenceproxy is one instruction of a whole warp"
            _wrong_threads(step, what, threads, "the 32 threads of one warp, all of them", out)
        inside = op.threads if isinstance(op, ops.Scope) else threads
        good = _threads(step.body, inside, out) and good
    return good


def _is_warp(threads: ThreadSet) -> bool:
    return len(threads.ranges) == 1 and len(threads) == limits.WARP and threads.first % limits.WARP == 0


def _wrong_threads(step: Step, what: str, threads: ThreadSet, required: str, out: Collector) -> None:
    fix = "inside `with cta.warps(0, 1) as warp:` edit with `warp.elect()`, and release with `warp`"
    out.add(ids.MAP_THREADS, what, step=step, got=f"threads {threads.ranges}", required=required, fix=fix)


def _tiles(program: Program, out: Collector) -> bool:
    """Tiles with maps in them are 128 bytes at multiples of 128, and hold nothing else."""
    edited = {step.op.tile.tile for step in program.walk() if isinstance(step.op, _USING)}
    good = True
    for step in program.walk():
        op = step.op
        refs = [*op.inputs, op.out] if isinstance(op, ops.Made) else [op.into] if isinstance(op, ops.Send) else []
        tile = getattr(op, "tile", None)
        for ref in [*refs, *([tile] if tile is not None else [])]:
            if ref.tile not in edited:
                continue
            decl = program.tiles[ref.tile]
            whole = decl.layout.nbytes == decl.layout.footprint_bytes == SLOT_BYTES and ref.part is None
            fits = whole and all((decl.offset + i * decl.stage_bytes) % SLOT_BYTES == 0 for i in range(decl.stages))
            if not fits or not isinstance(op, _USING):
                good = False
                what = f"tile {decl.name!r} holds maps" if fits else f"a map does not fit into tile {decl.name!r}"
                got = f"`{op.mnemonic}`" if fits else f"{decl.shape} {decl.dtype} at offset {decl.offset}"
                required = "ops on maps only" if fits else "128 bytes in one run, at a multiple of 128"
                out.add(ids.MAP_PLACE, what, step=step, got=got, required=required, fix="let `cta.tensormap` set it aside")
    return good


def _fields(program: Program, launch: Launch, out: Collector) -> bool:
    """What maps are made from, and what they are pointed at."""
    arrays, good = dict(launch.arrays), True
    for step in program.walk():
        wrong: tuple[str, str, str] | None = None
        match step.op:
            case ops.TensormapReplace(field=name):
                wrong = (f"`tensormap.replace` writes {name} alone", name, "address, extents and strides of an array, all at once")
            case ops.TensormapCopy(map=ref):
                wrong = _template(program.maps[ref.name])
            case ops.TensormapReplaceArray(array=array):
                wrong = _source(array.name, arrays[array.name], launch.sm)
            case _:
                pass
        if wrong is not None:
            good = False
            what, got, required = wrong
            out.add(ids.MAP_DIFFERS, what, step=step, got=got, required=required, fix="use `draft.replace(leader, array, first, stop)`")
    return good


def _template(param: MapParam) -> tuple[str, str, str] | None:
    if param.mode == TILE and param.interleave == "none" and param.swizzle in SWIZZLES:
        return None
    required = "a tiled map without interleave, its swizzle none, 32B, 64B or 128B (PTX tensormap.replace has .tile only)"
    got = f"{param.mode}, interleave {param.interleave}, swizzle {param.swizzle}"
    return f"{param.name!r} is no map that can be replaced", got, required


def _source(name: str, info: ArrayInfo, sm: int) -> tuple[str, str, str] | None:
    """The rules of tiled maps for an array (tma.md A.5): dense innermost, strides on the grid, extents that can be counted."""
    size, align = DTYPES[info.dtype].nbytes, limits.GLOBAL_STRIDE_ALIGN
    what = f"no map can point at {name!r}"
    if info.strides_bytes[-1] != size:
        return what, f"{info.strides_bytes[-1]} bytes from one element to the next", f"{size}: a dense innermost dimension"
    wrong = [s for s in info.strides_bytes[:-1] if s % align or not 0 <= s < limits.GLOBAL_STRIDE_LIMIT]
    if wrong:
        return what, f"a stride of {wrong[0]} bytes", f"multiples of {align} below 2^40: `dev.array(x, pad=True)`"
    most = limits.GLOBAL_DIM_USABLE_SM90 if sm < 100 else limits.GLOBAL_DIM_MAX
    if max(info.shape) > most:
        return what, f"{max(info.shape)} elements along a dimension", f"at most {most}"
    return None


def _places(program: Program, launch: Launch, out: Collector) -> bool:
    """Arrays of maps: rows of 128 bytes that nothing else touches, as many as all CTAs need."""
    arrays, good = dict(launch.arrays), True
    x, y, z = launch.grid
    for name, count in slots_per_cta(program).items():
        info, rows = arrays[name], count * x * y * z
        wrong = (
            f"rows of {info.shape[1]} bytes, {info.strides_bytes[0]} bytes apart" if (info.shape[1], *info.strides_bytes) != (128, 128, 1)
            else f"{info.shape[0]} rows" if info.shape[0] < rows
            else f"an address that is a multiple of {info.align} bytes" if info.align < SLOT_BYTES
            else ""
        )  # fmt: skip
        if wrong:
            good = False
            out.add(
                ids.MAP_PLACE,
                f"the maps of this launch cannot lie in {name!r}",
                site=program.site,
                got=wrong,
                required=f"{rows} rows of 128 bytes without gaps ({count} for each of {x * y * z} blocks), at a multiple of 128 bytes",
                fix=f"dev.empty(({rows}, 128), ox.u8)",
                key=name,
            )
        for step in program.walk():
            if getattr(getattr(step.op, "array", None), "name", None) == name:
                good = False
                what = f"{name!r} holds the maps of this launch, and `{step.op.mnemonic}` uses it, too"
                out.add(ids.MAP_SHARED, what, step=step, required="an array for maps alone", fix="pass another array")
        pairs = [*launch.overlapping, *(group for group in launch.same if len(group) > 1)]
        if any(name in pair for pair in pairs):
            good = False
            other = next(n for pair in pairs if name in pair for n in pair if n != name)
            what = f"{name!r} holds the maps of this launch, and shares memory with {other!r}"
            out.add(ids.MAP_SHARED, what, site=program.site, required="memory for maps alone", fix="pass another array", key=name)
    return good


def _kinds(program: Program, out: Collector) -> bool:
    """What a copy's place may hold is of the kind that the copy was recorded for."""
    found, good = pointed_at(program), True
    for step in program.walk():
        op = step.op
        if not isinstance(op, ops.Through) or op.map.slot is None:
            continue
        param = program.maps[op.map.name]
        for name in found.get(op.map.slot, ()):
            other = program.maps.get(name)
            if other is not None:
                different = [field for field in _KIND if getattr(other, field) != getattr(param, field)]
            else:
                array = program.arrays[name]
                different = [field for field in ("dtype", "rank") if getattr(array, field) != getattr(param, field)]
            if different:
                good = False
                out.add(
                    ids.MAP_DIFFERS,
                    f"a copy goes through a map of {param.name!r}'s kind, and finds one of {name!r}",
                    step=step,
                    got=f"another {', '.join(different)}",
                    required="maps of one kind in a place",
                    fix="use a slot for each kind: `cta.tensormap(desc, slots)`",
                    key=(name, step.site or id(step)),
                )
    return good


# ---- windows
def window_faults(launch: Launch, op: ops.TensormapReplaceArray, env: Mapping[str, Range]) -> Iterator[Fault]:
    """Rule, sentence, got, required and fix of what is wrong with a window over `env`."""
    name, info = op.array.name, dict(launch.arrays)[op.array.name]
    place: Expr = ZERO
    for e, stride in zip(op.first, info.strides_bytes, strict=True):
        place = add(place, mul(e, Const(stride)))
    start, grid = range_of(place, env), limits.GLOBAL_ADDRESS_ALIGN
    if info.align % grid or start.lo % grid or start.step % grid:
        yield (
            ids.MAP_WINDOW,
            f"a map is pointed off the 16-byte grid of {name!r}, where no map can start",
            f"byte {start.lo if start.lo % grid else start.lo + start.step}, of an address that is a multiple of {info.align}",
            "multiples of 16 bytes",
            "let windows start at rows that are multiples of 16 bytes (`dev.array(x, pad=True)`)",
        )
    for axis, (a, b, n) in enumerate(zip(op.first, op.stop, info.shape, strict=True)):
        low, high = range_of(a, env), range_of(b, env)
        if low.lo < 0 or high.hi > n:
            yield (
                ids.MAP_WINDOW,
                f"a map is pointed outside {name!r}",
                f"dimension {axis}: from {low.lo}, to {high.hi}",
                f"0 to {n}",
                f"clamp the window: `ox.minimum(stop, {name}.shape[{axis}])`, or read its ends with `below={name}.shape[{axis}] + 1`",
            )
        if extent(a, b, env).hi < 1:
            yield (
                ids.MAP_WINDOW,
                f"a map is pointed at no elements of {name!r}: a map cannot be empty",
                f"dimension {axis}: {low.lo} to {high.hi}",
                "one element at least",
                "check the order: the first element, then the end",
            )


def extent(first: Expr, stop: Expr, env: Mapping[str, Range]) -> Range:
    """The range of `stop - first`, where each may be a minimum or maximum of something that cancels."""
    if isinstance(stop, Min | Max):
        return _picked(type(stop), extent(first, stop.a, env), extent(first, stop.b, env))
    if isinstance(first, Min | Max):
        return _picked(Min if isinstance(first, Max) else Max, extent(first.a, stop, env), extent(first.b, stop, env))
    total, terms = point(0), dict[Expr, int]()
    gather_terms(stop, 1, terms)
    gather_terms(first, -1, terms)
    for atom, factor in terms.items():
        of = range_of(atom, env)
        low, high = sorted((factor * of.lo, factor * of.hi))
        total = Range(total.lo + low, total.hi + high, gcd(total.step, factor * of.step))
    return total


def _picked(which: type[Min | Max], a: Range, b: Range) -> Range:
    pick = min if which is Min else max
    low, high = pick(a.lo, b.lo), pick(a.hi, b.hi)
    return Range(low, high, 1 if low < high else 0)


def warn_of_window(
    program: Program, launch: Launch, step: Step, op: ops.TensormapReplaceArray, env: Mapping[str, Range], out: Collector
) -> None:
    """What may go wrong with a window, though not for certain."""
    sizes = [extent(a, b, env) for a, b in zip(op.first, op.stop, strict=True)]
    for axis, size in enumerate(sizes):
        if size.lo < 1 <= size.hi:
            out.add(
                ids.MAP_MAY_BE_EMPTY,
                f"a window of {op.array.name!r} may have no elements along dimension {axis}: the launch then ends with an error",
                step=step,
                got=f"{size.lo} to {size.hi} elements",
                required="one at least: a map cannot be empty",
                fix="leave empty pieces out of the list of work",
                key=(axis, step.site or id(step)),
            )
    info = dict(launch.arrays)[op.array.name]
    width = DTYPES[info.dtype].nbytes
    odd = sizes[-1].lo * width % limits.STORE_EDGE_BYTES or sizes[-1].step * width % limits.STORE_EDGE_BYTES
    if odd and _is_stored_to(program, op):
        out.add(
            ids.STORE_EDGE,
            f"a store through a window of {op.array.name!r} may write up to 15 bytes behind its rows",
            step=step,
            got=f"rows of {sizes[-1].lo} to {sizes[-1].hi} elements of {width} bytes",
            required="rows that are multiples of 16 bytes, or followed by padding only",
            fix="let windows be as wide as multiples of 16 bytes",
        )


def _is_stored_to(program: Program, op: ops.TensormapReplaceArray) -> bool:
    """Some store goes through a place where the window may be."""
    places = {s.op.slot for s in program.walk() if isinstance(s.op, ops.TensormapCpFenceproxy) and s.op.tile.tile == op.tile.tile}
    return any(isinstance(s.op, ops.TensorStore) and s.op.map.slot in places for s in program.walk())


# ---- while it runs
def place_of(machine: Machine, at: At, slot: SlotRef) -> Place:
    """What is known of a place of the agent's CTA."""
    return machine.places.setdefault((at.agent.rank, slot.array, slot.number), Place())


def slot_of(op: ops.Instr) -> SlotRef | None:
    """The place that a copy goes through."""
    return op.map.slot if isinstance(op, ops.Through) else None


def acquired(machine: Machine, at: At) -> None:
    """A copy's map was released, and acquired by a thread that the issuing one follows."""
    slot = slot_of(at.op)
    if slot is None:
        return
    place = place_of(machine, at, slot)
    if machine.lost or any(machine.order(at.agent, mark) for mark in place.acquired):
        return
    released = place.released
    got = (
        "nothing was released there"
        if released is None
        else "an acquire that this thread is not known to follow"
        if place.acquired
        else "released, and not acquired by a thread of this CTA that follows the release"
    )
    machine.out.add(
        ids.MAP_STALE,
        f"a copy goes through the map in {slot.array}[{slot.number}], which may be what was there before",
        step=at.step,
        got=got,
        required="the release by a warp, then an acquire, then the copy, each ordered behind the other",
        fix="use the descriptor that `released.acquire(leader)` gives; for other threads sync after it",
        causes=[("released here", released.step)] if released is not None else (),
        key=(slot, at.step.site or id(at.step)),
    )


def releasable(machine: Machine, at: At) -> None:
    """No copy may still read the map that is overwritten, and the last writer is known to be done."""
    assert isinstance(at.op, ops.TensormapCpFenceproxy)
    place = place_of(machine, at, at.op.slot)
    if machine.lost:
        return
    used = next((use for use in place.uses if not _read(machine, at.agent, use)), None)
    mark = place.fetched or (used.mark if used is not None else None)
    if mark is None and place.released is not None and not machine.order(at.agent, place.released):
        mark = place.released
    if mark is None:
        return
    machine.out.add(
        ids.MAP_IN_USE,
        f"the map in {at.op.slot.array}[{at.op.slot.number}] is replaced while it may still be read or written",
        step=at.step,
        got="a prefetch through it, which never tells that it is over" if place.fetched is not None else "no wait that this warp follows",
        required="of each copy through it its phase waited for, or its bulk group (`wait_group_read`), then a sync with this warp",
        fix="wait for the copies of the round before, or give each round a slot of its own",
        causes=[("used here", mark.step)],
        key=(at.op.slot, at.step.site or id(at.step)),
    )


def _read(machine: Machine, agent: Agent, use: Access) -> bool:
    if use.way is LOAD:
        return machine.over(agent, machine.bars[use.bar]) >= use.until
    return use.done >= 0 and machine.order(agent, Mark(use.mark.agent, use.done, use.mark.step))


def release(machine: Machine, at: At) -> None:
    """The effect of tensormap.cp_fenceproxy on its place."""
    assert isinstance(at.op, ops.TensormapCpFenceproxy)
    place = place_of(machine, at, at.op.slot)
    place.released, place.fetched = at.mark, None
    place.acquired.clear()
    place.uses.clear()


def acquire(machine: Machine, at: At) -> None:
    """Counts where the release is ordered before it; of an agent's acquires the first is as good as any."""
    assert isinstance(at.op, ops.FenceProxyTensormap)
    place = place_of(machine, at, at.op.slot)
    known = place.released is not None and machine.order(at.agent, place.released)
    if known and not any(mark.agent == at.agent.id for mark in place.acquired):
        place.acquired.append(at.mark)


def use(machine: Machine, at: At, access: Access | None) -> None:
    """A copy goes through a place; `access` says when it is over. Of those that are over in turn the last stands for all."""
    slot = slot_of(at.op)
    if slot is None:
        return
    place = place_of(machine, at, slot)
    if access is None:
        place.fetched = place.fetched or at.mark
        return
    key = (access.way, access.mark.agent, access.bar)
    place.uses[:] = [u for u in place.uses if (u.way, u.mark.agent, u.bar) != key]
    place.uses.append(access)
