"""What a stamped op is called, of which kind it is, and which tiles and barriers it touches, with the integers that it saw filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Final, Literal, TypeAlias

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Expr, evaluate
from oxidecopy.program.program import Program

Kind: TypeAlias = Literal["wait", "sync", "copy", "compute", "barrier"]
Way: TypeAlias = Literal["read", "write"]

WAITS: Final = ops.MbarrierWait | ops.MbarrierWaitPhase | ops.MbarrierWaitParity
GROUPS: Final = ops.WaitGroup | ops.WaitGroupRead
SYNCS: Final = ops.BarSync | ops.ClusterSync
_WRITTEN: Final = ("out", "into", "acc")  # fields of ops whose tile is the result


def kind_of(op: ops.Instr) -> Kind:
    """What sort of thing it is, in a picture."""
    if isinstance(op, WAITS | GROUPS):
        return "wait"
    if isinstance(op, SYNCS):
        return "sync"
    if isinstance(op, ops.Copy):
        return "copy"
    return "compute" if any(True for _ in touched(op)) else "barrier"


def touched(op: ops.Instr) -> Iterator[tuple[ops.TileRef, Way]]:
    """The tiles that threads read and write themselves. Copies in flight are another matter, and so are maps in shared memory."""
    if isinstance(op, ops.Copy | ops.Edit | ops.TensormapCpFenceproxy):
        return
    for f in fields(op):
        value = getattr(op, f.name)
        for ref in value if isinstance(value, tuple) else (value,):
            if isinstance(ref, ops.TileRef):
                yield ref, "write" if f.name in _WRITTEN or isinstance(op, ops.Fill | ops.Iota | ops.MmaOut) else "read"


def barrier_of(op: ops.Instr) -> ops.BarrierRef | None:
    """The barrier that it names, if there is one."""
    found = getattr(op, "bar", None)
    return found if isinstance(found, ops.BarrierRef) else None


def barrier_name(program: Program, ref: ops.BarrierRef, names: Mapping[str, int]) -> str:
    """`full[2]`, or `full` where there is one of it."""
    decl = program.barriers[ref.barrier]
    return f"{decl.name}[{_value(ref.index, names)}]" if decl.stages > 1 else decl.name


def family(program: Program, ref: ops.BarrierRef) -> str:
    """`full[*]`: all barriers of its array."""
    decl = program.barriers[ref.barrier]
    return f"{decl.name}[*]" if decl.stages > 1 else decl.name


def tile_name(program: Program, ref: ops.TileRef, names: Mapping[str, int]) -> str:
    """`tile[1]`, or `tile` where there is one of it; a part is marked."""
    decl = program.tiles[ref.tile]
    stage = f"{decl.name}[{_value(ref.index, names)}]" if decl.stages > 1 else decl.name
    return stage if ref.part is None else f"{stage}, part {_value(ref.part.rank, names)} of {ref.part.of}"


def stage_of(ref: ops.TileRef, names: Mapping[str, int]) -> int:
    """The number of its stage."""
    found = _number(ref.index, names)
    return 0 if found is None else found


def label(program: Program, op: ops.Instr, names: Mapping[str, int]) -> str:  # noqa: C901 - one line for each sort of op
    """What the op does, in a few words."""
    match op:
        case ops.MbarrierWait():
            return f"wait for {barrier_name(program, op.bar, names)}"
        case ops.MbarrierWaitPhase():
            return f"wait for {barrier_name(program, op.bar, names)}, phase {_value(op.phase, names)}"
        case ops.MbarrierWaitParity():
            return f"wait for {barrier_name(program, op.bar, names)}, parity {_value(op.parity, names)}"
        case ops.WaitGroup() | ops.WaitGroupRead():
            done = "read" if isinstance(op, ops.WaitGroupRead) else "written"
            return f"wait until all but {op.pending} stores are {done}" if op.pending else f"wait until all stores are {done}"
        case ops.BarSync():
            return f"sync {op.number} of {op.threads} threads"
        case ops.MbarrierArriveExpectTx() | ops.MbarrierExpectTx():
            return f"expect {op.nbytes:,} bytes at {barrier_name(program, op.bar, names)}"
        case ops.MbarrierArrive() | ops.MbarrierArriveDrop() | ops.MbarrierArriveRemote():
            return f"arrive at {barrier_name(program, op.bar, names)}"
        case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorGather4():
            return f"load {_box(op.map.name, op.coords, names)} to {tile_name(program, op.tile, names)}"
        case ops.BulkG2S() | ops.BulkG2SMulticast():
            return f"load {_box(op.array.name, op.coords, names)} to {tile_name(program, op.tile, names)}"
        case ops.TensorS2G() | ops.TensorScatter4():
            return f"store {tile_name(program, op.tile, names)} to {_box(op.map.name, op.coords, names)}"
        case ops.TensorReduce():
            return f"{op.op} {tile_name(program, op.tile, names)} to {_box(op.map.name, op.coords, names)}"
        case ops.BulkS2G() | ops.BulkReduce() | ops.StoreGlobal():
            return f"store {tile_name(program, op.tile, names)} to {_box(op.array.name, op.coords, names)}"
        case ops.MmaStep():
            return f"multiply {tile_name(program, op.a, names)} by {tile_name(program, op.b, names)}"
        case ops.MmaOut():
            return f"write sums to {tile_name(program, op.tile, names)}"
        case ops.BulkS2S() | ops.BulkReduceS2S():
            return f"send {tile_name(program, op.tile, names)} to CTA {_value(op.rank, names)} of the cluster"
        case _:
            return _any(program, op, names)


def _any(program: Program, op: ops.Instr, names: Mapping[str, int]) -> str:
    """Any other op, those that are not known yet included: its mnemonic, and what it names."""
    bar, tiles = barrier_of(op), list(touched(op))
    written = [tile_name(program, ref, names) for ref, way in tiles if way == "write"]
    read = [tile_name(program, ref, names) for ref, way in tiles if way == "read"]
    words = op.mnemonic
    if bar is not None:
        words += f" {barrier_name(program, bar, names)}"
    if read:
        words += f" of {', '.join(dict.fromkeys(read))}"
    return words + (f" to {', '.join(dict.fromkeys(written))}" if written else "")


def _box(name: str, coords: tuple[Expr, ...], names: Mapping[str, int]) -> str:
    return f"{name}[{', '.join(_value(e, names) for e in coords)}]"


def _value(e: Expr, names: Mapping[str, int]) -> str:
    found = _number(e, names)
    return "?" if found is None else str(found)


def _number(e: Expr, names: Mapping[str, int]) -> int | None:
    """None where a name is not known, as on a GPU that says no more than times."""
    try:
        return evaluate(e, names)
    except (KeyError, ZeroDivisionError):
        return None
