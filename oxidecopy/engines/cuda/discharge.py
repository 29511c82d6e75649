"""What a proof took for granted, held against the memory of a launch: every difference is named, before anything is launched."""

from __future__ import annotations

from typing import Final

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.memory import owned_by
from oxidecopy.errors import Diagnostic, ExecutionError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import GLOBAL_ADDRESS_ALIGN
from oxidecopy.program.program import Launch
from oxidecopy.program.verified import VerifiedProgram

ASSUMPTION: Final = "OX5330"


def discharge(context: PrimaryContext, verified: VerifiedProgram, bindings: Bindings) -> None:
    """Refuses arguments that the proof was not made for.

    Raises:
        LifetimeError: memory that was freed, or is another device's.
        ExecutionError: every assumption that these arguments break.
    """
    broken = _shape(verified, bindings.launch(context.gpu.sm))
    for name, bound in bindings.maps.items():
        broken += _map(context, name, bound)
    for name, array in bindings.arrays.items():
        broken += _array(context, name, array)
    if broken:
        raise ExecutionError(*broken)


def _shape(verified: VerifiedProgram, actual: Launch) -> list[Diagnostic]:
    assumed, launch = verified.assumptions, verified.assumptions.launch
    if actual == launch and verified.program.shared_bytes == assumed.shared_bytes and actual.sm == assumed.sm:
        return []
    pairs: list[tuple[str, object, object]] = [
        ("compute capability", actual.sm, assumed.sm),
        ("shared bytes", verified.program.shared_bytes, assumed.shared_bytes),
        ("grid", actual.grid, launch.grid),
        ("index parameters", actual.idx, launch.idx),
        ("parameters over one view", actual.same, launch.same),
        ("parameters that share memory", actual.overlapping, launch.overlapping),
    ]
    for kind, got, wanted in (("tensor map", dict(actual.maps), dict(launch.maps)), ("array", dict(actual.arrays), dict(launch.arrays))):
        pairs += [(f"{kind} `{name}`", got.get(name), wanted.get(name)) for name in sorted({*got, *wanted})]
    pairs.append(("what lies behind the rows", actual.edges, launch.edges))
    return [_broken(f"{what} differs", got, wanted) for what, got, wanted in pairs if got != wanted]


def _map(context: PrimaryContext, name: str, bound: BoundMap) -> list[Diagnostic]:
    address = owned_by(context, bound.buffer).address + bound.offset_bytes
    found = []
    if address % GLOBAL_ADDRESS_ALIGN:
        found.append(_broken(f"`{name}` is not aligned", f"{address:#x}", f"a multiple of {GLOBAL_ADDRESS_ALIGN}"))
    rows = zip(bound.map.global_dim[:-1], bound.map.global_strides, strict=True)
    reach = bound.offset_bytes + sum((n - 1) * stride for n, stride in rows) + bound.map.row_bytes
    return found + _within(name, reach, bound.buffer.nbytes)


def _array(context: PrimaryContext, name: str, array: BoundArray) -> list[Diagnostic]:
    size = -(-DTYPES[array.info.dtype].bits // 8)
    address = owned_by(context, array.buffer).address + array.offset_bytes
    found = []
    if address % size:
        found.append(_broken(f"`{name}` is not aligned", f"{address:#x}", f"a multiple of {size}"))
    rows = zip(array.info.shape, array.info.strides_bytes, strict=True)
    return found + _within(name, array.offset_bytes + sum((n - 1) * stride for n, stride in rows) + size, array.buffer.nbytes)


def _within(name: str, reach: int, nbytes: int) -> list[Diagnostic]:
    return [_broken(f"`{name}` reaches beyond its memory", f"{reach:,} bytes", f"at most {nbytes:,}")] if reach > nbytes else []


def _broken(what: str, got: object, wanted: object) -> Diagnostic:
    return Diagnostic(
        rule=ASSUMPTION,
        what=f"the launch is not the one that was verified: {what}",
        got=str(got),
        required=str(wanted),
        fix="verify the program again for this launch",
    )
