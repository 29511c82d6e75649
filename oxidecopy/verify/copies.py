"""What can be judged of copies without running anything: each against its map or array and its tiles, and who issues it."""

from __future__ import annotations

from oxidecopy.isa import limits, ops
from oxidecopy.isa.bulk import ALIGN, REDUCES_IN_GLOBAL, REDUCES_IN_SHARED
from oxidecopy.isa.dtypes import DTYPES, VALUE_A_BYTE
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.program import Launch, MapParam, Program, Step, TileDecl
from oxidecopy.program.tensor_map import TileLayout
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.report import Collector
from oxidecopy.verify.resolve import image_of, part_bytes


def check_copy(program: Program, launch: Launch, step: Step, op: ops.Copy, out: Collector) -> bool:
    """One copy. False when its place cannot be looked at."""
    if isinstance(op, ops.TensorCopy | ops.TensorPrefetch):
        return _through_map(program, step, op, out)
    _size(step, op, out)
    if isinstance(op, ops.Send):
        return _between_tiles(program, step, op, out)
    return _of_array(program, launch, step, op, out)


def check_issuers(steps: tuple[Step, ...], threads: int, out: Collector) -> bool:
    """Bulk copies are issued by one thread; `threads` is how many run `steps`."""
    good = True
    for step in steps:
        if isinstance(step.op, ops.Copy) and threads > 1:
            good = False
            out.add(
                ids.COPY_THREADS,
                f"a bulk copy is issued by {threads} threads, each of them anew",
                step=step,
                got=f"{threads} threads",
                required="one thread",
                fix="issue it inside `cta.elect()`",
            )
        inside = len(step.op.threads) if isinstance(step.op, ops.Scope) else threads
        good = check_issuers(step.body, inside, out) and good
    return good


def _through_map(program: Program, step: Step, op: ops.TensorCopy | ops.TensorPrefetch, out: Collector) -> bool:
    """One copy against its map and tile. False when its coordinates cannot be looked at."""
    param = program.maps[op.map.name]
    if isinstance(op, ops.TensorGather4 | ops.TensorScatter4):
        good = _one_row(step, param, out)
    else:
        good = _counted(step, f"a copy through {param.name!r}", len(op.coords), param.rank, out)
    if isinstance(op, ops.TensorReduce):
        _reduces(step, op.op, param.dtype, "", DTYPES[param.dtype].reduce, out)
    if isinstance(op, ops.TensorStore):
        _one_way(program, step, op, param, out)
    if isinstance(op, ops.TensorCopy):
        tile = program.tiles[op.tile.tile]
        _image(program, step, op, tile, param, out)
        _addresses(step, op.tile, tile, limits.TENSOR_SMEM_ALIGN, out)
        _pattern(step, tile, param.swizzle, out)
    return good


def _one_way(program: Program, step: Step, op: ops.TensorStore, param: MapParam, out: Collector) -> None:
    """What loads have and stores have not, or have otherwise (PTX, restrictions on tensor copies)."""
    what = param.dtype if not DTYPES[param.dtype].stored else f"swizzle {param.swizzle}" if EVERY_SWIZZLE[param.swizzle].flip_8b else ""
    if what:
        out.add(
            ids.LOADS_ONLY,
            f"a store goes through {param.name!r}, and only loads have {what}",
            step=step,
            got=what,
            required="an element type and a swizzle that stores have",
            fix="store through a descriptor of its own: ox.u4x16_align8b, or a swizzle without the flip",
        )
    if param.dtype == VALUE_A_BYTE:
        loads = [s for s in program.walk() if isinstance(s.op, ops.TensorLoad) and s.op.tile.tile == op.tile.tile]
        if first := next((s for s in loads if program.maps[s.op.map.name].dtype == VALUE_A_BYTE), None):  # type: ignore[union-attr]
            out.add(
                ids.STORED_AS_LOADED,
                f"tile {program.tiles[op.tile.tile].name!r} is loaded and stored as {VALUE_A_BYTE}, which are two layouts",
                step=step,
                got="12 bytes of 16 values and a gap of 4, as loads leave them",
                required="one value of 6 bits in each byte, as stores take them",
                fix="store from a tile of its own",
                causes=[("loaded here", first)],
            )


def _image(program: Program, step: Step, op: ops.TensorCopy, tile: TileDecl, param: MapParam, out: Collector) -> None:
    """The map's image fits into the tile and lies there as the tile's own layout says."""
    image, layout = image_of(program, op), tile.layout
    room = _room(op.tile, layout)
    if image.footprint_bytes > room:
        out.add(
            ids.TILE_SMALL,
            f"a copy through {param.name!r} does not fit into tile {tile.name!r}"
            + ("" if op.tile.part is None else f" cut into {op.tile.part.of} parts"),
            step=step,
            got=f"{room} bytes",
            required=f"{image.footprint_bytes} bytes: {image.rows} rows of {image.row_bytes} bytes, {image.pitch_bytes} apart",
            fix="make the tile with `cta.shared(desc)`; a part needs a descriptor whose box is the part",
            causes=[("the tile", Step(op, tile.site))],
        )
    same_rows = image.row_bytes == layout.row_bytes or len(layout.shape) == 1
    if param.swizzle != tile.swizzle or param.tile_dtype != tile.dtype or not same_rows:
        out.add(
            ids.SWIZZLE_DIFFERS,
            f"{param.name!r} lays its rows out differently from tile {tile.name!r}",
            step=step,
            got=f"{param.tile_dtype}, rows of {image.row_bytes} bytes, swizzle {param.swizzle}",
            required=f"{tile.dtype}, rows of {layout.row_bytes} bytes, swizzle {tile.swizzle}",
            fix="use descriptors of one dtype, inner box and swizzle for a tile",
            causes=[("the tile", Step(op, tile.site))],
        )


def _addresses(step: Step, ref: ops.TileRef, tile: TileDecl, align: int, out: Collector) -> None:
    """Every address that the copy can be given: all stages, all parts."""
    of = ref.part.of if ref.part is not None else 1
    for i in range(tile.stages):
        base = tile.offset + i * tile.stage_bytes
        for rank in range(of):
            address = base + part_bytes(tile.layout, rank, of)[0]
            if address % align:
                part = f", part {rank}" if of > 1 else ""
                out.add(
                    ids.TILE_ALIGN,
                    f"stage {i}{part} of tile {tile.name!r} lies where {'tensor' if align > ALIGN else 'plain bulk'} copies fault",
                    step=step,
                    got=f"offset {address}",
                    required=f"a multiple of {align}",
                    fix=f"align the tile to {align} bytes, and let stages and parts be multiples of {align} bytes",
                )


def _pattern(step: Step, tile: TileDecl, swizzle: str, out: Collector) -> None:
    """Stages start where the swizzle's pattern does."""
    repeat = EVERY_SWIZZLE[swizzle].repeat_bytes
    for i in range(tile.stages):
        base = tile.offset + i * tile.stage_bytes
        if base % repeat and base % limits.TENSOR_SMEM_ALIGN == 0:
            out.add(
                ids.SWIZZLE_ALIGN,
                f"stage {i} of tile {tile.name!r} lies where swizzle {swizzle} gives a rotated pattern",
                step=step,
                got=f"offset {base}",
                required=f"a multiple of {repeat}",
                fix=f"align the tile to {repeat} bytes (`align=ox.A{repeat}`), stages included",
            )


def _room(ref: ops.TileRef, layout: TileLayout) -> int:
    """Bytes of a tile, or of one part of it."""
    return layout.footprint_bytes if ref.part is None else part_bytes(layout, 0, ref.part.of)[1]


def _one_row(step: Step, param: MapParam, out: Collector) -> bool:
    """gather4 and scatter4 take four boxes of one row."""
    good = param.rank == 2 and param.box_dim[0] == 1
    if not good:
        out.add(
            ids.GATHER_BOX,
            f"four rows are copied through {param.name!r}, whose box is not one row",
            step=step,
            got=f"a box of {param.box_dim}",
            required="rank 2, a box of (1, n)",
            fix="make a descriptor with `box=(1, n)`",
        )
    return good


# ---- plain bulk copies
def _size(step: Step, op: ops.BulkCopy | ops.BulkPrefetch | ops.Send, out: Collector) -> None:
    if op.nbytes % ALIGN or not op.nbytes:
        out.add(
            ids.BULK_SIZE,
            "a plain bulk copy moves whole units of 16 bytes: the hardware leaves out the rest, and tells the barrier less",
            step=step,
            got=f"{op.nbytes} bytes",
            required=f"a positive multiple of {ALIGN}",
            fix="copy whole units, and the rest by plain accesses",
        )


def _of_array(program: Program, launch: Launch, step: Step, op: ops.BulkCopy | ops.BulkPrefetch, out: Collector) -> bool:
    """A copy between a tile and a run of an array; without a tile a prefetch."""
    param, info = program.arrays[op.array.name], dict(launch.arrays)[op.array.name]
    good = _counted(step, f"a copy of {param.name!r}", len(op.coords), param.rank, out)
    element = DTYPES[param.dtype].nbytes
    if info.strides_bytes[-1] != element:
        good = False
        out.add(
            ids.BULK_DENSE,
            f"a plain bulk copy takes one run of bytes, and the elements of {param.name!r} do not follow each other",
            step=step,
            got=f"{info.strides_bytes[-1]} bytes from one element to the next",
            required=f"{element} bytes along the innermost dimension",
            fix="copy through a descriptor, or from an array that is dense along its last dimension",
        )
    if isinstance(op, ops.BulkPrefetch):
        return good
    tile = program.tiles[op.tile.tile]
    _in_tile(step, op.tile, tile, op.nbytes, out)
    if (tile.dtype, tile.swizzle) != (param.dtype, "none"):
        _differs(step, f"{param.name!r}", f"{param.dtype}, no swizzle", tile, out)
    if isinstance(op, ops.BulkReduce):
        _reduces(step, op.op, param.dtype, " there", REDUCES_IN_GLOBAL.get(param.dtype, frozenset()), out)
    return good


def _between_tiles(program: Program, step: Step, op: ops.Send, out: Collector) -> bool:
    """A copy from a tile to one of another CTA: the same bytes in the same order, so both lie alike."""
    source, target = program.tiles[op.tile.tile], program.tiles[op.into.tile]
    for ref, tile in ((op.tile, source), (op.into, target)):
        _in_tile(step, ref, tile, op.nbytes, out)
        if tile.swizzle != "none":
            _pattern(step, tile, tile.swizzle, out)
    alike = source.layout.row_bytes == target.layout.row_bytes or source.swizzle == "none"
    if (source.dtype, source.swizzle) != (target.dtype, target.swizzle) or not alike:
        _differs(step, f"tile {source.name!r}", f"{source.dtype}, swizzle {source.swizzle}", target, out)
    if isinstance(op, ops.BulkReduceS2S):
        _reduces(step, op.op, target.dtype, " there", REDUCES_IN_SHARED.get(target.dtype, frozenset()), out)
    return True


def _in_tile(step: Step, ref: ops.TileRef, tile: TileDecl, nbytes: int, out: Collector) -> None:
    room = _room(ref, tile.layout)
    if nbytes > room:
        out.add(
            ids.TILE_SMALL,
            f"a plain bulk copy does not fit into {'a part of ' if ref.part is not None else ''}tile {tile.name!r}",
            step=step,
            got=f"{room} bytes",
            required=f"{nbytes} bytes",
            fix="copy less, or make the tile larger",
            causes=[("the tile", Step(step.op, tile.site))],
        )
    _addresses(step, ref, tile, ALIGN, out)


def _differs(step: Step, what: str, got: str, tile: TileDecl, out: Collector) -> None:
    out.add(
        ids.SWIZZLE_DIFFERS,
        f"a plain bulk copy moves bytes as they are, and {what} and tile {tile.name!r} hold them differently",
        step=step,
        got=got,
        required=f"{tile.dtype}, swizzle {tile.swizzle}",
        fix="copy through a descriptor, or give the tile the same element type and no swizzle",
        causes=[("the tile", Step(step.op, tile.site))],
    )


# ---- of every kind
def _counted(step: Step, what: str, coords: int, rank: int, out: Collector) -> bool:
    """True when there are as many coordinates as dimensions."""
    if coords == rank:
        return True
    out.add(
        ids.COORD_RANK,
        f"{what} has the wrong number of coordinates",
        step=step,
        got=coords,
        required=rank,
        fix="give one coordinate per dimension, outermost first",
    )
    return False


def _reduces(step: Step, op: str, dtype: str, where: str, legal: frozenset[str], out: Collector) -> None:
    """The hardware has the operation for the type, `where` it is."""
    if op not in legal:
        out.add(
            ids.REDUCE_TYPE,
            f"the hardware cannot reduce {dtype} with `{op}`{where}",
            step=step,
            got=op,
            required=", ".join(sorted(legal)) or f"no {'such ' if where else ''}reduction exists for this type",
            fix="use another operation or element type",
        )
