"""What the declarations of a program make known, and the check of their fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, final

from oxidecopy.errors import Diagnostic, Site
from oxidecopy.isa import limits
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import SymKind
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.program import (
    BLOCK_SYMBOLS,
    RANK_SYMBOL,
    ArrayParam,
    IdxParam,
    MapParam,
    Param,
    Program,
    RegisterHint,
    ScalarParam,
    TileDecl,
    extent_name,
)
from oxidecopy.program.tensor_map import MODES as EVERY_MODE
from oxidecopy.program.tensor_map import SLICE_BYTES, TILE

BARRIER_KINDS: Final = ("TmaBarrier", "MmaBarrier", "GeneralBarrier")
INTERLEAVES: Final = tuple(SLICE_BYTES)
OOB_FILLS: Final = ("zero", "nan")
MODES: Final = EVERY_MODE
_IM2COL_BOX: Final = 2  # pixels and channels
_IM2COL_RANK_MIN: Final = 3
_EXTENT_MAX: Final = 1 << 20  # of a tile: more elements than any shared memory holds
_STAGES_MAX: Final = 1 << 16
_DTYPES: Final = tuple(name for name, info in DTYPES.items() if not info.packed)  # of packed elements none can be named alone


@final
@dataclass(slots=True)
class Places:
    """Where each part of a program comes from, for errors; `steps` in the order of `Program.walk`."""

    program: Site | None = None
    params: list[Site | None] = field(default_factory=list)
    tiles: list[Site | None] = field(default_factory=list)
    barriers: list[Site | None] = field(default_factory=list)
    registers: list[Site | None] = field(default_factory=list)
    requires: list[Site | None] = field(default_factory=list)
    steps: list[Site | None] = field(default_factory=list)

    @staticmethod
    def recorded(program: Program) -> Places:
        """The user's lines, as recorded."""
        return Places(
            program.site,
            [program.site for _ in program.params],
            [t.site for t in program.tiles],
            [b.site for b in program.barriers],
            [program.site for _ in program.registers],
            [r.site for r in program.requires],
            [s.site for s in program.walk()],
        )


def known_symbols(params: Sequence[Param]) -> dict[str, SymKind]:
    """The integers known everywhere in a program with these parameters."""
    symbols = dict.fromkeys(BLOCK_SYMBOLS, SymKind.BLOCK) | {RANK_SYMBOL: SymKind.RANK}
    symbols |= {f"grid_dim.{axis}": SymKind.GRID for axis in "xyz"}
    for param in params:
        match param:
            case IdxParam():
                symbols.setdefault(param.name, SymKind.PARAM)
            case MapParam() | ArrayParam():
                axes = range(min(param.rank, limits.MAX_RANK))
                names = _bound_names(param) if isinstance(param, MapParam) else (param.name,)
                symbols |= {extent_name(name, axis): SymKind.EXTENT for name in names for axis in axes}
            case ScalarParam():
                pass
    return symbols


def _bound_names(param: MapParam) -> tuple[str, ...]:
    """Those of a map or of a table of no more entries than there may be."""
    return param.bound_names if param.entries is None or param.entries <= limits.TABLE_ENTRIES_MAX else ()


def check_declarations(program: Program, places: Places) -> Iterator[Diagnostic]:
    """Every field of the header, parameters, tiles and barriers that is out of its bounds."""
    yield from _check_header(program, places.program)
    for param, place in zip(program.params, places.params, strict=True):
        yield from _check_param(param, place)
    for tile, place in zip(program.tiles, places.tiles, strict=True):
        yield from _check_tile(tile, place)
    for barrier, place in zip(program.barriers, places.barriers, strict=True):
        what = f"barrier {barrier.name!r}"
        yield from _word(f"{what}: kind", barrier.kind, BARRIER_KINDS, place)
        yield from _integer(f"{what}: stages", barrier.stages, 1, _STAGES_MAX, place)
        yield from _integer(f"{what}: offset", barrier.offset, 0, limits.CTA_WINDOW_BYTES, place)
    yield from _check_registers(program, places)
    yield from _check_names(program, places)


def _check_header(program: Program, place: Site | None) -> Iterator[Diagnostic]:
    yield from _integer("threads", program.threads, 1, limits.THREADS_MAX, place)
    yield from _integer("shared memory in bytes", program.shared_bytes, 0, limits.CTA_WINDOW_BYTES, place)
    if not all(_is_int(n) and n >= 1 for n in program.cluster) or prod(program.cluster) > limits.CLUSTER_MAX:
        yield _broken("cluster", str(program.cluster), f"three extents of 1 or more, together at most {limits.CLUSTER_MAX} CTAs", place)


def _check_param(param: Param, place: Site | None) -> Iterator[Diagnostic]:
    match param:
        case MapParam():
            what = f"map {param.name!r}"
            yield from _word(f"{what}: dtype", param.dtype, tuple(DTYPES), place)
            most = limits.BOX_DIM_MAX if param.mode == TILE else limits.PIXELS_MAX
            yield from _extents(f"{what}: box_dim", param.box_dim, most, place)
            yield from _extents(f"{what}: element_strides", param.element_strides, limits.ELEMENT_STRIDE_MAX, place)
            if param.mode == TILE and len(param.box_dim) != param.rank:
                required = f"{len(param.box_dim)} of them, one per box dimension"
                yield _broken(f"{what}: element_strides", str(param.element_strides), required, place)
            elif param.mode != TILE and (len(param.box_dim) != _IM2COL_BOX or param.rank < _IM2COL_RANK_MIN):
                required = f"(pixels, channels), and {_IM2COL_RANK_MIN} to {limits.MAX_RANK} element strides"
                yield _broken(f"{what}: box_dim", f"{param.box_dim}, {param.rank} element strides", required, place)
            yield from _word(f"{what}: interleave", param.interleave, INTERLEAVES, place)
            yield from _word(f"{what}: swizzle", param.swizzle, tuple(EVERY_SWIZZLE), place)
            yield from _word(f"{what}: oob_fill", param.oob_fill, OOB_FILLS, place)
            yield from _word(f"{what}: mode", param.mode, MODES, place)
            if param.entries is not None:
                yield from _integer(f"{what}: entries", param.entries, 1, limits.TABLE_ENTRIES_MAX, place)
        case ArrayParam():
            yield from _word(f"array {param.name!r}: dtype", param.dtype, _DTYPES, place)
            yield from _integer(f"array {param.name!r}: rank", param.rank, 1, limits.MAX_RANK, place)
        case ScalarParam():
            yield from _word(f"scalar {param.name!r}: dtype", param.dtype, tuple(DTYPES), place)
        case IdxParam():
            pass


def _check_tile(tile: TileDecl, place: Site | None) -> Iterator[Diagnostic]:
    what = f"tile {tile.name!r}"
    yield from _word(f"{what}: dtype", tile.dtype, _DTYPES, place)
    yield from _extents(f"{what}: shape", tile.shape, _EXTENT_MAX, place)
    yield from _integer(f"{what}: align", tile.align, 1, limits.CTA_WINDOW_BYTES, place)
    yield from _word(f"{what}: swizzle", tile.swizzle, tuple(EVERY_SWIZZLE), place)
    yield from _integer(f"{what}: stages", tile.stages, 1, _STAGES_MAX, place)
    yield from _integer(f"{what}: offset", tile.offset, 0, limits.CTA_WINDOW_BYTES, place)
    yield from _integer(f"{what}: stage_bytes", tile.stage_bytes, 0, limits.CTA_WINDOW_BYTES, place)


def _check_registers(program: Program, places: Places) -> Iterator[Diagnostic]:
    end, sound = 0, True
    for hint, place in zip(program.registers, places.registers, strict=True):
        what = f"registers of threads {hint.threads.ranges}"
        if not well_formed(hint.threads, program.threads) or hint.threads.first < end:
            required = f"sorted, disjoint, non-empty ranges below {program.threads}, behind those of the hint before"
            yield Diagnostic(rule="OX1914", what=f"{what[:80]} are for no set of threads", required=required, site=place)
            sound = False
        else:
            end = hint.threads.ranges[-1][1]
        if wrong_registers(hint.registers):
            yield _broken(what, str(hint.registers), REGISTERS, place)
            sound = False
    if sound and program.registers:
        taken = registers_taken(program.registers, program.threads)
        yield from _integer("the sum of all registers", taken, 0, limits.REGISTERS_PER_CTA, places.registers[-1])


REGISTERS: Final = f"{limits.REGISTERS_MIN} to {limits.REGISTERS_MAX} in steps of {limits.REGISTERS_STEP}"


def wrong_registers(count: object) -> bool:
    """True for what is no number of registers of a thread."""
    if not isinstance(count, int) or isinstance(count, bool):
        return True
    return not limits.REGISTERS_MIN <= count <= limits.REGISTERS_MAX or count % limits.REGISTERS_STEP != 0


def registers_taken(hints: Sequence[RegisterHint], threads: int) -> int:
    """Registers of a CTA at the least: what the hints ask for, the minimum for all other threads."""
    hinted = sum(len(h.threads) for h in hints)
    return sum(len(h.threads) * h.registers for h in hints) + max(threads - hinted, 0) * limits.REGISTERS_MIN


def well_formed(threads: ThreadSet, count: int) -> bool:
    """True for sorted, disjoint, non-empty ranges of a CTA of `count` threads."""
    end = 0
    for low, high in threads.ranges:
        if not end <= low < high:
            return False
        end = high
    return bool(threads.ranges) and end <= count


def _check_names(program: Program, places: Places) -> Iterator[Diagnostic]:
    """Parameters are found by name, and their integers share one space with those of the block and the grid."""
    counts = Counter(p.name for p in program.params)
    counts.update(name for p in program.params if isinstance(p, MapParam) and p.entries is not None for name in _bound_names(p))
    taken = known_symbols([p for p in program.params if not isinstance(p, IdxParam)])
    for param, place in zip(program.params, places.params, strict=True):
        if not param.name or counts[param.name] > 1 or (isinstance(param, IdxParam) and param.name in taken):
            yield Diagnostic(
                rule="OX1916", what=f"a parameter's name is empty or taken: {param.name!r}", fix="rename the parameter", site=place
            )


# ---- bounds
def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _broken(what: str, got: str, required: str, place: Site | None) -> Diagnostic:
    return Diagnostic(rule="OX1919", what=f"{what} is out of its bounds", got=got[:80], required=required, site=place)


def _integer(what: str, value: int, low: int, high: int, place: Site | None) -> Iterator[Diagnostic]:
    if not (_is_int(value) and low <= value <= high):
        yield _broken(what, str(value), f"an integer from {low} to {high}", place)


def _word(what: str, value: str, words: tuple[str, ...], place: Site | None) -> Iterator[Diagnostic]:
    if value not in words:
        yield _broken(what, repr(value), ", ".join(words), place)


def _extents(what: str, values: tuple[int, ...], high: int, place: Site | None) -> Iterator[Diagnostic]:
    if not (1 <= len(values) <= limits.MAX_RANK and all(_is_int(n) and 1 <= n <= high for n in values)):
        yield _broken(what, str(values), f"1 to {limits.MAX_RANK} integers from 1 to {high}", place)
