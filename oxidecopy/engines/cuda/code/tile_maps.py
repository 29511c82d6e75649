"""`MapTiles` as records: COMPUTE where the fast machine can run all maps of a program, else MAP_TILES, element by element."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.cuda.abi import COMPUTE_UNITS, COMPUTE_WARPS, EVAL_BYTES, RECORD_BYTES, RESHAPE_WARPS, DeviceOp
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.compute import EVEN_MAX, Place, UnfitError, compute_code, in_parts, packed
from oxidecopy.engines.cuda.code.coordinates import magic_of
from oxidecopy.engines.cuda.code.elements import DEPTH_MAX, compile_elem, depth_of, length_of
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.nodes import Op
from oxidecopy.engines.cuda.code.swizzles import chunk_mask
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, ZERO, Lin
from oxidecopy.engines.cuda.code.words import Words
from oxidecopy.isa import limits, ops
from oxidecopy.isa.elem import Along, ways

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.agents import Cast
    from oxidecopy.engines.cuda.code.lower import AgentLowering
    from oxidecopy.program.program import Launch, Program, TileDecl

ELEM_INSTRUCTIONS_MAX: Final = 4096  # of one map; what is longer would take the device longer than it takes to read it
UNIT: Final = 4  # elements that a lane moves at once
_PLACES_MAX: Final = 1 << 16  # rows, and units of a row
_SWIZZLE_PERIOD: Final = 1024  # bytes after which a swizzle does the same again
_UNITS: Final = struct.Struct("<6I")
_OFFSETS: Final = struct.Struct("<4i")


def computes(program: Program, launch: Launch, cast: Cast) -> bool:
    """True when the family "compute" can run all maps of a program, and there is one, or "reshape" its transposes and reductions."""
    made = [step.op for step in program.walk() if isinstance(step.op, ops.Made)]
    warps = sum(cast.all[i].warps for i in cast.kept)
    if not all(isinstance(op, ops.MapTiles) for op in made):
        return warps <= RESHAPE_WARPS
    return bool(made) and warps <= COMPUTE_WARPS and all(_fits(program, launch, op) for op in made if isinstance(op, ops.MapTiles))


def _fits(program: Program, launch: Launch, op: ops.MapTiles) -> bool:
    alongs = ways(op.fn)
    out = program.tiles[op.out.tile]
    inner = out.shape[-1] // (op.out.part.of if op.out.part is not None and len(out.shape) == 1 else 1)
    if inner % UNIT or out.layout.rows >= _PLACES_MAX or inner // UNIT >= _PLACES_MAX:
        return False
    tiles = [op.out, *[ref for i, ref in enumerate(op.inputs) if alongs.get(i, {Along.ALL}) != {Along.ROW}]]
    if not all(_in_units(program.tiles[ref.tile]) for ref in tiles):
        return False
    try:
        compute_code(op.fn, [_place(program.tiles[ref.tile]) for ref in op.inputs], _place(out), Words(launch, ()))
    except UnfitError:
        return False
    return True


def _in_units(decl: TileDecl) -> bool:
    """True when each unit of the tile lies at a multiple of its size: no swizzle tears it apart, and one access moves it."""
    layout = decl.layout
    unit = UNIT * layout.element_bytes
    pitch = layout.pitch_bytes if layout.rows > 1 else 0
    return not any(n % unit for n in (decl.offset, pitch, decl.stage_bytes if decl.stages > 1 else 0))


def _place(decl: TileDecl) -> Place:
    return Place(chunk_mask(decl.layout.swizzle), decl.layout.pitch_bytes)


def map_records(low: AgentLowering, op: ops.MapTiles, where: Where) -> list[Op]:
    """The record of a map, with what follows it; none for an agent that leaves it to the others."""
    computes = low.shared.computes and not low.shared.reshapes
    share = _enough(low, op, lanes_of(low)) if computes else low.share
    if share[0] == share[1]:
        return []
    out = low.tile(op.out)
    inputs = [_in_range(low, low.tile(ref), where) for ref in op.inputs]
    registers = tuple([(1 + i, (0, at[1])) for i, at in enumerate(inputs)])
    if computes:
        whole = share[2] if _has_all(low, op, share) else 0
        places = [_spread(low, ref, whole) for ref in (*op.inputs, op.out)]
        code = in_parts(compute_code(op.fn, places[:-1], places[-1], low.words, arguments=True))
        kind, count = DeviceOp.COMPUTE, len(code)
        tail = (
            _units(low, op, share[2])
            + _OFFSETS.pack(*[at[0] for at in inputs], *[0] * (4 - len(inputs))).ljust(RECORD_BYTES, b"\0")
            + packed(code)
        )
    else:
        stack = _stack_code(low, op, where)
        kind, count = DeviceOp.MAP_TILES, len(stack) // EVAL_BYTES
        layouts = b"".join([low.layout_record(ref, at[0]) for ref, at in zip(op.inputs, inputs, strict=True)])
        tail = low.layout_record(op.out) + layouts + stack
    made = Op(
        op=kind, where=where, aux=len(inputs), operands=((0, out),), exact=registers, imms=((1, count), *share_of(share)), tail=tail
    )  # fmt: skip
    return [made]


def _enough(low: AgentLowering, op: ops.MapTiles, share: tuple[int, int, int]) -> tuple[int, int, int]:
    """Of one agent's lanes as many as have the same number of units, all of a turn's, where the others make nothing faster: whole warps."""
    units, total = _units_of(low, op), share[2]
    turns = -(-units // (total * COMPUTE_UNITS))
    lanes, left = divmod(units, turns * COMPUTE_UNITS)
    return (0, lanes, lanes) if share[:2] == (0, total) and not left and not lanes % limits.WARP else share


def _units_of(low: AgentLowering, op: ops.MapTiles) -> int:
    layout = low.layout(op.out)
    return layout.rows * layout.shape[-1] // UNIT


def _has_all(low: AgentLowering, op: ops.MapTiles, share: tuple[int, int, int]) -> bool:
    """True when each lane of the agent has as many units as it works on at once, or a multiple."""
    whole = low.kind.count > 1 and not (share[1] - share[0]) % limits.WARP
    return whole and _units_of(low, op) % (share[2] * COMPUTE_UNITS) == 0


def _spread(low: AgentLowering, ref: ops.TileRef, total: int) -> Place:
    """How a tile lies, and whether its units do so evenly (`abi.UNITS`). A lane's units are `total` units apart; 0: not all are there."""
    place, layout = _place(low.program.tiles[ref.tile]), low.layout(ref)
    return spread(place, layout.rows, layout.shape[-1], layout.element_bytes, total) if total else place


def spread(place: Place, rows: int, inner: int, nbytes: int, total: int) -> Place:
    """`place` with the distance of units that follow each other by `total`, where it is the same for all, and for their swizzle."""
    down, right = divmod(total, inner // UNIT)
    whole = rows == 1 or place.pitch == inner * nbytes
    even = total * UNIT * nbytes if whole else 0 if right else down * place.pitch
    torn = place.mask and even % _SWIZZLE_PERIOD
    return place if torn or even % 16 or even >= EVEN_MAX or place.pitch >= _PLACES_MAX else place._replace(even=even)


def share_of(share: tuple[int, int, int]) -> tuple[tuple[int, int], ...]:
    """Immediates 2 and 3: which part of a cooperative access the agent does."""
    low_end, high_end, total = share
    return ((2, low_end | high_end << 16), (3, total))


def lanes_of(low: AgentLowering, alone: int = 1) -> tuple[int, int, int]:
    """As `share`, by lanes: whole warps of agents with several threads share the work out, also in place of an elected thread beside them.

    Who of those in scope writes an element makes no difference: whoever reads it is behind a sync of them all. A thread that is alone has
    `alone` lanes.
    """
    cast = low.shared.cast
    everybody = cast.inside(low.inside)
    several = [i for i in everybody if cast.all[i].count > 1] or everybody
    lanes = [limits.WARP * cast.all[i].warps if cast.all[i].count > 1 else alone for i in several]
    if low.me not in several:
        return 0, 0, sum(lanes)
    before = sum(lanes[: several.index(low.me)])
    return before, before + lanes[several.index(low.me)], sum(lanes)


def _units(low: AgentLowering, op: ops.MapTiles, total: int) -> bytes:
    layout = low.layout(op.out)
    per_row = layout.shape[-1] // UNIT
    return _UNITS.pack(layout.rows * per_row, per_row, *divmod(total, per_row), *magic_of(per_row)).ljust(RECORD_BYTES, b"\0")


def _stack_code(low: AgentLowering, op: ops.MapTiles, where: Where) -> bytes:
    depth, length = depth_of(op.fn, {}), length_of(op.fn, {})
    if depth <= DEPTH_MAX and length <= ELEM_INSTRUCTIONS_MAX:
        return compile_elem(op.fn, low.words)
    low.refused.append(refusals.elem(where, depth, DEPTH_MAX, length, ELEM_INSTRUCTIONS_MAX))
    return b""


def _in_range(low: AgentLowering, at: Lin, where: Where) -> Lin:
    """A value whose constant part goes into a field of its own, which no operand's check sees."""
    least, most = low.values.interval(at)
    if min(least, at[0]) < INT_MIN or max(most, at[0]) > INT_MAX:
        low.refused.append(refusals.overflow(where, f"`{low.values.text(at)}`", min(least, at[0]), max(most, at[0])))
        return ZERO
    return at
