"""What can be judged without running anything: the launch, the shared layout, and each copy against its map and tile."""

from __future__ import annotations

from collections.abc import Container

from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.program import ArrayParam, IdxParam, Launch, MapParam, Program, Step, TileDecl
from oxidecopy.program.required import unmet
from oxidecopy.program.tensor_map import IM2COL_WIDE, TensorMap
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.code import answers
from oxidecopy.verify.copies import check_copy, check_issuers
from oxidecopy.verify.elsewhere import check_elsewhere
from oxidecopy.verify.maps import check_maps
from oxidecopy.verify.report import Collector


def check_static(program: Program, launch: Launch, out: Collector) -> bool:
    """Reports what is wrong before a step is taken; False when a walk would make no sense."""
    good = all([_grid(program, launch, out), _threads(program, out), _bindings(program, launch, out), _arch(program, launch, out)])
    if good:
        _requirements(program, launch, out)
    _shared(program, launch, out)
    good = check_issuers(program.steps, program.threads, out) and good
    good = _answers(program.steps, frozenset(), out) and good
    good = check_elsewhere(program, out) and good
    good = good and check_maps(program, launch, out)
    for step in program.walk():
        if isinstance(step.op, ops.BarSync):
            _sync(program, step, step.op, out)
        elif isinstance(step.op, ops.Copy) and good:
            good = check_copy(program, launch, step, step.op, out) and good
        elif isinstance(step.op, ops.StoreGlobal | ops.Iota) and good:
            good = _plain(program, step, step.op, out) and good
    return good


# ---- the launch
def _grid(program: Program, launch: Launch, out: Collector) -> bool:
    bounds = (limits.GRID_X_MAX, limits.GRID_YZ_MAX, limits.GRID_YZ_MAX)
    good = True
    for axis, n, bound in zip("xyz", launch.grid, bounds, strict=True):
        if not 1 <= n <= bound:
            good = False
            out.add(
                ids.GRID,
                f"grid dimension {axis} cannot be launched",
                site=program.site,
                got=n,
                required=f"1 to {bound}",
                fix="count tiles with a ceiling division, and launch at least one" if n < 1 else "loop inside the CTA instead",
                key=axis,
            )
    for axis, n, c in zip("xyz", launch.grid, program.cluster, strict=True):
        if c < 1 or (good and n % c):
            good = False
            out.add(
                ids.CLUSTER_GRID,
                f"the cluster does not divide the grid along {axis}",
                site=program.site,
                got=f"grid {n}, cluster {c}",
                required="a multiple of the cluster",
                fix=f"launch {-(-n // c) * c if c > 0 else n} blocks along {axis} and let the surplus ones do harmless work",
                key=axis,
            )
    if program.cluster_size > limits.CLUSTER_MAX:
        good = False
        out.add(
            ids.CLUSTER_SIZE,
            "the cluster is larger than any GPU takes",
            site=program.site,
            got=f"{program.cluster_size} CTAs",
            required=f"at most {limits.CLUSTER_MAX}",
            fix="use a smaller cluster",
        )
    elif program.cluster_size > limits.CLUSTER_PORTABLE_MAX:
        out.add(
            ids.NON_PORTABLE,
            "the cluster is larger than every GPU must take",
            site=program.site,
            got=f"{program.cluster_size} CTAs",
            required=f"{limits.CLUSTER_PORTABLE_MAX} to be portable",
            fix="use 8 CTAs, or check that the device can launch it",
        )
    return good


def _requirements(program: Program, launch: Launch, out: Collector) -> None:
    """What the recorder asks of a launch. The walk goes on: what else is wrong does not follow from it."""
    for requirement, got in unmet(program, launch):
        from oxidecopy.program.text.expressions import format_node  # a launch that goes well has no use for the text form

        out.add(
            ids.REQUIREMENT,
            requirement.what,
            site=requirement.site,
            got=f"{got} does not hold",
            required=format_node(requirement.cond),
            fix=requirement.fix,
            key=requirement.cond,
        )


def _threads(program: Program, out: Collector) -> bool:
    if not 1 <= program.threads <= limits.THREADS_MAX:
        out.add(
            ids.THREADS,
            "a CTA cannot have that many threads",
            site=program.site,
            got=program.threads,
            required=f"1 to {limits.THREADS_MAX}",
            fix=f"use at most {limits.THREADS_MAX} threads",
        )
        return False
    good = True
    for step in program.walk():
        if isinstance(step.op, ops.Scope) and not (
            step.op.threads.ranges and all(0 <= lo < hi <= program.threads for lo, hi in step.op.threads.ranges)
        ):
            good = False
            out.add(
                ids.THREADS,
                f"`{step.op.role}` names threads that the CTA does not have",
                step=step,
                got=step.op.threads.ranges,
                required=f"0 to {program.threads - 1}",
                fix="launch more threads or narrow the role",
            )
    return good


def _recorded(m: MapParam | TensorMap) -> tuple[object, ...]:
    """What a recording holds of a map."""
    return (m.dtype, m.box_dim, m.element_strides, m.interleave, m.swizzle, m.oob_fill, m.mode)


def _bindings(program: Program, launch: Launch, out: Collector) -> bool:
    """Every parameter is bound to something of the recorded kind."""
    maps, arrays, idx = dict(launch.maps), dict(launch.arrays), dict(launch.idx)
    wrong: list[tuple[str, object, object]] = []
    for p in program.params:
        if isinstance(p, MapParam):
            want = _recorded(p)
            found = {name: (bound and _recorded(bound)) for name in p.bound_names for bound in [maps.get(name)]}
            wrong += [(name, got, want) for name, got in found.items() if got != want]
        elif isinstance(p, ArrayParam):
            info = arrays.get(p.name)
            if info is None or (info.dtype, len(info.shape)) != (p.dtype, p.rank):
                wrong.append((p.name, info and (info.dtype, len(info.shape)), (p.dtype, p.rank)))
        elif isinstance(p, IdxParam) and p.name not in idx:
            wrong.append((p.name, None, "an integer"))
    for name, got, asked in wrong:
        out.add(
            ids.BINDING,
            f"parameter {name!r} is not bound to what the program was recorded for",
            site=program.site,
            got=got if got is not None else "nothing",
            required=asked,
            fix="record the program again for these arguments",
            key=name,
        )
    return not wrong


def _map_arch(program: Program, launch: Launch, name: str, bound: TensorMap, out: Collector) -> bool:
    """The device has what the map is for."""
    least = max(DTYPES[bound.dtype].min_sm, EVERY_SWIZZLE[bound.swizzle].min_sm, 100 if bound.mode in IM2COL_WIDE else 90)
    consumer, large = launch.sm >= limits.CONSUMER_SM, "sm_100, sm_103 or sm_110 (PTX, notes on targets and restrictions of tensor copies)"
    words = f"{bound.mode} of {bound.dtype} with swizzle {bound.swizzle}"
    missing = (
        (least > launch.sm, f"{words}, is none that this device can copy through", f"sm_{least} or newer"),
        (consumer and bound.mode == IM2COL_WIDE[1], "is for copies of 128 pixels (im2col::w::128), which this device does not have", large),
        (consumer and DTYPES[bound.dtype].packed and _loaded(program, name), f"is of {bound.dtype}, which this device only stores", large),
    )
    for broken, what, required in missing:
        if broken:
            fix = "use another map, or Device.open('sim', arch=100)"
            out.add(ids.ARCH, f"map {name!r}, {what}", site=program.site, got=f"sm_{launch.sm}", required=required, fix=fix, key=name)
    if launch.sm < 100 and max(bound.global_dim) > limits.GLOBAL_DIM_USABLE_SM90:
        out.add(
            ids.EXTENT,
            f"map {name!r} has an extent beyond what the hardware copies from: every copy through it faults",
            site=program.site,
            got=max(bound.global_dim),
            required=f"at most 2^31 = {limits.GLOBAL_DIM_USABLE_SM90}",
            fix="view the tensor with one more dimension",
            key=name,
        )
    return not any(broken for broken, _, _ in missing)


def _arch(program: Program, launch: Launch, out: Collector) -> bool:
    judged = [_map_arch(program, launch, name, bound, out) for name, bound in launch.maps]  # each says what is wrong with it
    good = all(judged)
    for step in program.walk():
        if step.op.min_sm > launch.sm:
            out.add(
                ids.ARCH,
                f"`{step.op.mnemonic}` does not exist on this device",
                step=step,
                got=f"sm_{launch.sm}",
                required=f"sm_{step.op.min_sm} or newer",
                fix="launch on a newer device",
            )
    if launch.sm not in limits.SHARED_BYTES_MAX:
        good = False
        out.add(
            ids.ARCH,
            "this compute capability is unknown",
            site=program.site,
            got=f"sm_{launch.sm}",
            required=", ".join(f"sm_{sm}" for sm in limits.SHARED_BYTES_MAX),
            fix="use a listed device",
        )
    return good


def _loaded(program: Program, name: str) -> bool:
    """Some copy loads through a map."""
    found = (step.op for step in program.walk() if isinstance(step.op, ops.TensorLoad))
    return any(name in program.maps[op.map.name].bound_names for op in found)


# ---- shared memory
def _shared(program: Program, launch: Launch, out: Collector) -> None:
    bound = limits.SHARED_BYTES_MAX.get(launch.sm)
    if bound is not None and program.shared_bytes > bound:
        largest = sorted(program.tiles, key=lambda t: -t.stages * t.stage_bytes)
        out.add(
            ids.SHARED_TOTAL,
            "the pipeline needs more shared memory than a CTA can have",
            site=program.site,
            got=f"{program.shared_bytes} bytes",
            required=f"at most {bound} on sm_{launch.sm}",
            fix="use fewer stages or smaller boxes: " + ", ".join(f"{t.name} has {t.stages} x {t.stage_bytes} bytes" for t in largest[:3]),
        )
    spans: list[tuple[int, int, str]] = []
    for tile in program.tiles:
        end = tile.offset + (tile.stages - 1) * tile.stage_bytes + tile.layout.footprint_bytes
        spans.append((tile.offset, end, tile.name))
        _tile(tile, out)
    for bar in program.barriers:
        spans.append((bar.offset, bar.offset + bar.stages * limits.MBARRIER_BYTES, bar.name))
        if bar.offset % limits.MBARRIER_BYTES:
            out.add(
                ids.BARRIER_ALIGN,
                f"barrier {bar.name!r} lies at an address that mbarriers cannot have",
                site=bar.site,
                got=f"offset {bar.offset}",
                required=f"a multiple of {limits.MBARRIER_BYTES}",
                fix="let the recorder lay out shared memory",
                key=bar.name,
            )
    spans.sort()
    last = (program.shared_bytes, 0, "the end of shared memory")
    for (lo, hi, name), (nxt, _, other) in zip(spans, [*spans, last][1:], strict=True):
        if hi > nxt or lo < 0:
            out.add(
                ids.OVERLAP,
                f"{name!r} runs into {other!r}",
                site=program.site,
                got=f"bytes {lo} to {hi - 1}",
                required=f"an end at or before {nxt}",
                fix="let the recorder lay out shared memory",
                key=name,
            )


def _tile(tile: TileDecl, out: Collector) -> None:
    if tile.stages > 1 and tile.stage_bytes < tile.layout.footprint_bytes:
        out.add(
            ids.OVERLAP,
            f"the stages of tile {tile.name!r} run into each other",
            site=tile.site,
            got=f"{tile.stage_bytes} bytes apart",
            required=f"at least {tile.layout.footprint_bytes}",
            fix="let the recorder lay out shared memory",
            key=("stages", tile.name),
        )
    for i in range(tile.stages):
        if (tile.offset + i * tile.stage_bytes) % tile.align:
            out.add(
                ids.TILE_ALIGN,
                f"stage {i} of tile {tile.name!r} is not aligned as asked for",
                site=tile.site,
                got=f"offset {tile.offset + i * tile.stage_bytes}",
                required=f"a multiple of {tile.align}",
                fix="let the recorder lay out shared memory",
                key=tile.name,
            )


# ---- ops
def _sync(program: Program, step: Step, op: ops.BarSync, out: Collector) -> None:
    required = ""
    if op.number == 0 and op.threads != program.threads:
        required = f"all {program.threads} threads: barrier 0 is the CTA's"
    elif op.threads > program.threads:
        required = f"at most {program.threads}"
    elif op.number and op.threads % limits.WARP:
        required = f"a multiple of {limits.WARP} for a named barrier (PTX bar)"
    if required:
        out.add(
            ids.SYNC_COUNT,
            "a sync counts threads that cannot come",
            step=step,
            got=f"{op.threads} threads on barrier {op.number}",
            required=required,
            fix="sync whole warps",
        )


def _answers(steps: tuple[Step, ...], known: frozenset[int], out: Collector) -> bool:
    """An answer is used in the block that asked for it, where it cannot be another thread's or iteration's; `known` come from around."""
    good = True
    for step in steps:
        if isinstance(step.op, ops.MbarrierTestToken | ops.MbarrierTestParity):
            known |= {step.op.pred}
        elif isinstance(step.op, ops.When) and not answers(step.op.cond) <= known:
            good = False
            out.add(
                ids.ANSWER,
                "a condition uses an answer of try_wait or test_wait outside the block that asked for it",
                step=step,
                required="an answer that these threads asked for, in this iteration, before this line",
                fix="ask in the same block as the condition, or around it",
            )
        good = _answers(step.body, known, out) and good
    return good


def _plain(program: Program, step: Step, op: ops.StoreGlobal | ops.Iota, out: Collector) -> bool:
    """A plain access has the rank of its tile, a store also its element type."""
    tile = program.tiles[op.tile.tile]
    rank = len(tile.shape)
    if isinstance(op, ops.Iota):
        wanted = op.axis < rank
        got = f"axis {op.axis} of a tile of rank {rank}"
    else:
        array = program.arrays[op.array.name]
        wanted = len(op.coords) == array.rank == rank
        got = f"{len(op.coords)} coordinates, an array of rank {array.rank}, a tile of rank {rank}"
        if array.dtype != tile.dtype:
            out.add(
                ids.SWIZZLE_DIFFERS,
                f"array {op.array.name!r} and tile {tile.name!r} have different element types",
                step=step,
                got=array.dtype,
                required=tile.dtype,
                fix="store to an array of the tile's element type",
                causes=[("the tile", Step(op, tile.site))],
            )
    if not wanted:
        out.add(
            ids.COORD_RANK,
            f"`{op.mnemonic}` does not fit the rank of tile {tile.name!r}",
            step=step,
            got=got,
            required=f"rank {rank} throughout",
            fix="give one coordinate per dimension of the tile, outermost first",
        )
    return wanted


def check_idle(program: Program, ran: Container[int], out: Collector) -> None:
    """Warns of roles in which nothing ran, in any CTA. Blocks inside loops and conditions are spared: a prologue may well be empty."""

    def leaves(step: Step) -> list[Step]:
        return [s for b in step.body for s in leaves(b)] if isinstance(step.op, ops.BLOCKS) else [step]

    def visit(steps: tuple[Step, ...]) -> None:
        for step in steps:
            if isinstance(step.op, ops.Scope):
                inner = leaves(step)
                if inner and not any(id(s) in ran for s in inner):
                    out.add(
                        ids.IDLE_ROLE,
                        f"nothing in this `{step.op.role}` block ever runs in this launch",
                        step=step,
                        required="at least one op that some CTA runs",
                        fix="check the condition or trip count around it",
                    )
                    continue
                visit(step.body)

    visit(program.steps)
