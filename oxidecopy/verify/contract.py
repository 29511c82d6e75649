"""What products on tensor cores need that no state decides: the device, who runs them, operands that fit, arrays that nobody writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from oxidecopy.isa import elem, limits, mma, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import evaluate
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.destinations import REDUCES, STORES, destinations
from oxidecopy.program.expansion import operand
from oxidecopy.program.program import Launch, Program, Step, TileDecl
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.report import Collector

OPS = ops.Contract | ops.ContractDrain | ops.Mma
_WHICH: Final = {elem.Along.ALL: "for each element", elem.Along.ROW: "for each row", elem.Along.COLUMN: "for each column"}


def check_contracts(program: Program, launch: Launch, out: Collector) -> bool:
    """Judges every contraction, before it is expanded; False when a walk would make no sense."""
    found = list(_found(program.steps, ThreadSet(((0, program.threads),))))
    if not found:
        return True
    good = _arch(found[0][0], launch, out)
    for step, threads in found:
        good = _group(step, threads, out) and good
        if isinstance(step.op, ops.Contract | ops.MmaStep):
            good = _operands(program, step, step.op, out) and good
        if isinstance(step.op, ops.Contract):
            good = _steps(step, step.op, launch, out) and good
        if isinstance(step.op, ops.Contract | ops.MmaOut):
            good = _result(program, step, step.op, out) and good
            _arrays(program, launch, step, step.op, out)
        if isinstance(step.op, ops.Contract):
            _beyond(program, launch, step, step.op, out)
    return good


def _found(steps: tuple[Step, ...], threads: ThreadSet) -> Iterator[tuple[Step, ThreadSet]]:
    for step in steps:
        if isinstance(step.op, OPS):
            yield step, threads
        yield from _found(step.body, step.op.threads if isinstance(step.op, ops.Scope) else threads)


def _arch(step: Step, launch: Launch, out: Collector) -> bool:
    if launch.sm == mma.SM:
        return True
    out.add(
        ids.CONTRACT_ARCH,
        "this device has no such tensor cores: contractions are made of `wgmma`, which Hopper GPUs alone have",
        step=step,
        got=f"sm_{launch.sm}",
        required=f"sm_{mma.SM}",
        fix="run it on an H100, H200 or the simulator as one; Blackwell GPUs need `tcgen05`, which is planned (docs/contract.md)",
    )
    return False


def _group(step: Step, threads: ThreadSet, out: Collector) -> bool:
    first = threads.first if threads.ranges else 0
    if threads.ranges == ((first, first + mma.WARPGROUP),) and first % mma.WARPGROUP == 0:
        op = step.op
        named = (op.threads, op.lane) if isinstance(op, ops.Contract | ops.ContractDrain) else (mma.WARPGROUP, first)
        if named == (mma.WARPGROUP, first):
            return True
    out.add(
        ids.CONTRACT_GROUP,
        "a product on tensor cores is computed by one warpgroup",
        step=step,
        got=f"threads {', '.join(f'{lo} to {hi - 1}' for lo, hi in threads.ranges)}",
        required="4 warps whose first one is a multiple of 4, all of them, and their own lane and sync",
        fix="give each warpgroup a role of its own: `ox.roles(consumers=(4, 4))`",
    )
    return False


def _steps(step: Step, op: ops.Contract, launch: Launch, out: Collector) -> bool:
    """At least one stage is multiplied, where that is known before the launch."""
    try:
        count = evaluate(op.steps, launch.environment())
    except (KeyError, ZeroDivisionError):
        return True  # it hangs on the block or a counter, or is reported for another reason
    if count >= 1:
        return True
    out.add(
        ids.CONTRACT_OPERANDS,
        "a contraction multiplies no stage",
        step=step,
        got=f"{count} steps",
        required="1 or more",
        fix="leave it out where there is nothing to multiply: fewer blocks for a K that is split",
    )
    return False


def _operands(program: Program, step: Step, op: ops.Contract | ops.MmaStep, out: Collector) -> bool:
    wrong = "; ".join(operand_problems(program, op))
    if wrong:
        out.add(
            ids.CONTRACT_OPERANDS,
            "the operands of a contraction do not fit each other, or the tensor cores",
            step=step,
            got=wrong,
            required=f"rows of {mma.DEPTH_BYTES} bytes of K (or blocks of as many columns), swizzle {mma.SWIZZLE}, one type on both sides",
            fix="see docs/contract.md for what fits",
        )
    return not wrong


def operand_problems(program: Program, op: ops.Contract | ops.MmaStep) -> Iterator[str]:
    """What is wrong with a and b."""
    a, b = program.tiles[op.a.tile], program.tiles[op.b.tile]
    pair = mma.pair_problem(a.dtype, b.dtype)
    if pair:
        yield pair
        return
    rows = (operand(program, op.a, op.a_major, op.depth)[0], operand(program, op.b, op.b_major, op.depth)[0])
    yield from mma.tile_problems(a.name, a.dtype, a.shape, a.swizzle, op.a_major, rows[0])
    yield from mma.tile_problems(b.name, b.dtype, b.shape, b.swizzle, op.b_major, rows[1])
    if op.depth != mma.depth_of(a.dtype):
        yield f"{op.depth} elements of K in a stage, not {mma.depth_of(a.dtype)}"
    elif all(rows) and (wrong := mma.shape_problem(*rows)):
        yield wrong
    if isinstance(op, ops.Contract):
        counts = (a.stages, b.stages, program.barriers[op.full.barrier].stages, program.barriers[op.empty.barrier].stages)
        if any(n < op.stages for n in counts):
            yield f"{op.stages} stages of a ring that has {min(counts)}"


def _result(program: Program, step: Step, op: ops.Contract | ops.MmaOut, out: Collector) -> bool:
    ref = op.out if isinstance(op, ops.Contract) else op.tile
    tile = program.tiles[ref.tile]
    if ref.part is not None:
        tile = replace(tile, shape=(tile.shape[0] // ref.part.of, *tile.shape[1:]))
    wrong = "; ".join(result_problems(tile, op, program))
    if wrong:
        out.add(
            ids.CONTRACT_OPERANDS,
            "the staging tile of a contraction does not fit its result",
            step=step,
            got=wrong,
            required=f"a box of {mma.ROWS} rows of {mma.DEPTH_BYTES} bytes, swizzle {mma.SWIZZLE}, of f32, bf16 or f16",
            fix="see docs/contract.md for what fits",
        )
    return not wrong


def result_problems(tile: TileDecl, op: ops.Contract | ops.MmaOut, program: Program) -> Iterator[str]:
    """What is wrong with the staging tile and where it goes."""
    rows, columns = mma.extents(tile.shape)
    if tile.dtype not in mma.RESULTS:
        yield f"{tile.dtype} is no type of results"
    elif rows != mma.ROWS or columns * DTYPES[tile.dtype].nbytes != mma.DEPTH_BYTES or tile.swizzle != mma.SWIZZLE:
        yield f"{tile.name!r} is {tile.dtype} {tile.shape}, swizzle {tile.swizzle}"
    elif isinstance(op, ops.Contract) and operand(program, op.b, op.b_major, op.depth)[0] % columns:
        yield f"{operand(program, op.b, op.b_major, op.depth)[0]} columns in parts of {columns}"
    if not 2 <= len(op.coords) <= limits.MAX_RANK:
        yield f"{len(op.coords)} coordinates"


def _arrays(program: Program, launch: Launch, step: Step, op: ops.Contract | ops.MmaOut, out: Collector) -> None:
    """Plain loads of an epilogue are ordered behind nothing: nobody may write what they read, but for the element that is stored there."""
    written = destinations(program)
    for i, ref in enumerate(op.arrays, 1):
        same = {ref.name, *(n for group in launch.same if ref.name in group for n in group)}
        together = {*same, *(n for pair in launch.overlapping if ref.name in pair for n in pair)}
        stored = [name for name in written if not together.isdisjoint(program.maps[name].bound_names if name in program.maps else (name,))]
        if not stored or (_in_place(program, op, i) and all(name in same for name in stored)):
            continue
        out.add(
            ids.CONTRACT_ARRAYS,
            f"an epilogue reads {ref.name!r}, which this launch writes",
            step=step,
            got=f"stores to {stored[0]!r}" + ("" if stored[0] == ref.name else ", which shares its memory"),
            required="arrays that stay as they are, or the result's own, element for element",
            fix="write to another array",
            key=(ref.name, step.site or id(step)),
        )


def _beyond(program: Program, launch: Launch, step: Step, op: ops.Contract, out: Collector) -> None:
    """Behind an array's end an epilogue reads zeros, which are seldom meant."""
    maps, arrays = dict(launch.maps), dict(launch.arrays)
    results = [maps[name].global_dim for name in program.maps[op.map.name].bound_names if name in maps]
    for i, ref in enumerate(op.arrays, 1):
        along = min(elem.ways(op.fn).get(i, {elem.Along.ALL}), key=lambda a: a.value)
        seen = slice(None) if along is elem.Along.ALL else slice(-1, None) if along is elem.Along.COLUMN else slice(-2, -1)
        short = [r for r in results if any(n < m for n, m in zip(arrays[ref.name].shape, r[seen], strict=True))]
        if short:
            out.add(
                ids.EPILOGUE_BEYOND,
                f"an epilogue reads {ref.name!r} behind its end, where it finds zeros",
                step=step,
                got=f"shape {arrays[ref.name].shape}, {_WHICH[along]} of a result of shape {short[0]}",
                required=f"shape {short[0][seen]}",
                fix="`ox.per_column(v)` has one element for each column, `ox.per_row(v)` for each row; ignore this if zeros are meant",
                key=(ref.name, step.site or id(step)),
            )


def _in_place(program: Program, op: ops.Contract | ops.MmaOut, number: int) -> bool:
    """Each element is read where the same threads store it later, and nothing but contractions stores."""
    whole = elem.ways(op.fn).get(number) == {elem.Along.ALL}
    stores = [s.op for s in program.walk() if isinstance(s.op, (*STORES, *REDUCES))]
    return whole and isinstance(op, ops.Contract) and all(isinstance(s, ops.Contract) and s.combine == "none" for s in stores)
