"""Launch arguments: each is checked against the parameter it meets, then split into what is recorded and what is bound."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap
from oxidecopy.errors import ArgumentError, Cause, Diagnostic
from oxidecopy.isa.bulk import ALIGN
from oxidecopy.isa.limits import STORE_EDGE_BYTES
from oxidecopy.program.destinations import destinations
from oxidecopy.program.program import ArrayInfo, ArrayParam, IdxParam, MapParam, ScalarParam, entry_name
from oxidecopy.program.replaced import SLOT_BYTES, SLOT_DTYPE
from oxidecopy.typed.descriptor_table import DescriptorTable
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.handles import borrowing, refuse_recorded
from oxidecopy.typed.map_handle import MapHandle
from oxidecopy.typed.recording import ArgumentSpec
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.signature import MAP_CLASSES
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.values import misfit, plain_number

if TYPE_CHECKING:
    from oxidecopy.engines.base import Engine
    from oxidecopy.errors import Site
    from oxidecopy.program.destinations import How
    from oxidecopy.program.program import Program
    from oxidecopy.typed.signature import Formal

READ_ONLY: Final = "OX5037"
OVERLAPPING: Final = "OX5042"


@final
class Arguments(NamedTuple):
    """A launch's arguments: `specs` decide the recording, `bindings` fill it; `alive` keeps arrays from being freed.

    `sources` are arrays by parameter that a program may perhaps only read: read-only ones, and those whose elements share memory.
    """

    specs: dict[str, ArgumentSpec]
    bindings: Bindings
    engine: Engine
    alive: tuple[object, ...]
    sources: dict[str, GlobalArray[Any, Any]]


def check_destinations(program: Program, arguments: Arguments) -> None:
    """Refuses arrays that the program writes to and must not.

    Raises:
        ArgumentError: read-only memory is written to (OX5037), or elements that share memory are stored to (OX5042).
    """
    if not arguments.sources:
        return
    broken: list[Diagnostic] = []
    for name, how in destinations(program).items():
        array = arguments.sources.get(name)
        if array is None:
            continue
        if array.readonly:
            what, required = f"the program writes to {name!r}, which is read-only memory", "memory that may be written to"
            fix = "pass an array of your own, dev.empty_like(a), for what it writes"
            broken.append(_written(READ_ONLY, what, repr(array), required, fix, how))
        if "store" in how and array.overlapping:
            what = f"the program stores to {name!r}, several elements of which are the same memory: the last one to be stored would win"
            required, fix = "elements that each have memory of their own", "store to the array that this is a view of"
            broken.append(_written(OVERLAPPING, what, repr(array), required, fix, {"store": how["store"]}))
    if broken:
        raise ArgumentError(*broken)


def _written(rule: str, what: str, got: str, required: str, fix: str, how: Mapping[How, Site | None]) -> Diagnostic:
    causes = tuple(Cause("stored to here" if way == "store" else "reduced into here", site) for way, site in how.items())
    return Diagnostic(rule=rule, what=what, got=got, required=required, fix=fix, site=caller_site(), causes=causes)


def bind(
    name: str,
    signature: inspect.Signature,
    formals: Sequence[Formal],
    grid: tuple[int, int, int],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Arguments:
    """Checks everything and reports all that is wrong at once."""
    refuse_recorded(f"a launch of {name!r}", (*args, *kwargs.values()))
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as problem:
        required = f"{name}({_shown(signature, formals)})"
        ways = [way for word, way in _ELSEWHERE.items() if word in kwargs]
        fix = ways[0].format(name) if ways else "pass one argument for each parameter (a pipeline's `cta` is none)"
        refuse(ArgumentError, "OX1032", f"the arguments do not fit {name!r}", got=str(problem), required=required, fix=fix)
    bound.apply_defaults()
    collected = _Collected()
    for formal in formals:
        collected.take(formal, bound.arguments[formal.name])
    collected.check_devices(name)
    if collected.broken:
        raise ArgumentError(*collected.broken)
    (device,) = collected.devices.values()
    alive = (*bound.arguments.values(), *collected.entries)
    bindings = Bindings(grid=grid, maps=collected.maps, arrays=collected.arrays, idx=collected.idx, scalars=collected.scalars)
    return Arguments(specs=collected.specs, bindings=bindings, engine=device.engine, alive=alive, sources=collected.sources)


def _shown(signature: inspect.Signature, formals: Sequence[Formal]) -> str:
    """The parameters as a user would write them: the annotations themselves are long once their aliases are resolved."""
    parameters = zip(formals, signature.parameters.values(), strict=True)
    return ", ".join(f"{f.name}: {f}" + ("" if p.default is p.empty else f" = {p.default!r}") for f, p in parameters)


def _converted(formal: Formal, dtype: str, fix: str) -> str:
    """What to change; where the element type is another one, how to convert (numpy makes f64 where nothing else is said)."""
    return fix if formal.dtype in (None, dtype) else f"{fix}; ox.copy(ox.{formal.dtype}, a) converts an array"


# What other libraries take with a launch's arguments.
_ELSEWHERE: Final = {
    "stream": "{}[grid].on(stream)(...) launches on a stream",
    "grid": "{}[4, 2](...): the grid is in the brackets",
    "cluster": "@ox.pipeline(..., cluster=2) declares it",
    "threads": "@ox.pipeline(threads=128) declares them",
    "num_warps": "@ox.pipeline(threads=128), or warps=ox.roles(...), declares them",
}


class _Collected:
    """Takes one argument after the other and notes what is wrong with each."""

    def __init__(self) -> None:
        self.broken: list[Diagnostic] = []
        self.specs: dict[str, ArgumentSpec] = {}
        self.maps: dict[str, BoundMap] = {}
        self.arrays: dict[str, BoundArray] = {}
        self.idx: dict[str, int] = {}
        self.scalars: dict[str, int | float] = {}
        self.devices: dict[int, Any] = {}
        self.sources: dict[str, GlobalArray[Any, Any]] = {}
        self.entries: list[object] = []  # of tables, as they are now

    def refuse(self, rule: str, what: str, *, got: str, required: str, fix: str) -> None:
        self.broken.append(Diagnostic(rule=rule, what=what, got=got[:200], required=required, fix=fix, site=caller_site()))

    def mismatch(self, formal: Formal, got: str, fix: str) -> None:
        self.refuse("OX1053", f"argument {formal.name!r} does not fit its parameter", got=got, required=str(formal), fix=fix)

    def check_devices(self, name: str) -> None:
        """The arrays of one launch say where it runs."""
        if not self.devices and not self.broken:
            required, fix = "at least one descriptor or array", "pass the array that is written: it names the device"
            self.refuse("OX1052", f"{name!r} is launched without any array", got="no array", required=required, fix=fix)
        if len(self.devices) > 1:
            names = ", ".join(sorted(repr(d) for d in self.devices.values()))
            fix = "make all arrays with one device: open it once"
            self.refuse("OX1050", "the arguments live on different devices", got=names, required="one device", fix=fix)

    def take(self, formal: Formal, value: object) -> None:
        match formal.kind:
            case "map" | "im2col" | "wide":
                self._map(formal, value)
            case "table":
                self._table(formal, value)
            case "array":
                self._array(formal, value)
            case "idx":
                self._idx(formal, value)
            case "scalar":
                self._scalar(formal, value)
            case _:
                self._plain(formal, value)

    def _map(self, formal: Formal, value: object) -> None:
        if type(value) is not MAP_CLASSES[formal.kind] or not isinstance(value, MapHandle):
            maker = {"map": "tiled(array, box=...)", "im2col": "im2col(array, ...)", "wide": "im2col_wide(array, ...)"}[formal.kind]
            maker = maker.replace("array", borrowing(value) or "array")
            fix = "pass one entry, table[i]" if isinstance(value, DescriptorTable) else f"pass ox.TmaDescriptor.{maker}"
            self.mismatch(formal, described(value), fix)
            return
        self._kind(formal, value, None)
        self._bind(formal.name, formal.name, value)

    def _table(self, formal: Formal, value: object) -> None:
        if not isinstance(value, DescriptorTable):
            self.mismatch(formal, described(value), "pass ox.DescriptorTable([desc, ...])")
            return
        entries = value.entries
        self._kind(formal, entries[0], len(entries))
        for i, entry in enumerate(entries):
            self._bind(entry_name(formal.name, i), formal.name, entry)
        self.entries += entries

    def _kind(self, formal: Formal, desc: MapHandle[Any, Any], entries: int | None) -> None:
        """What is recorded of a descriptor, or of a table by any entry of it."""
        m = desc.tensor_map
        wrong = (
            (formal.dtype is not None and formal.dtype != m.dtype)
            or (formal.rank is not None and formal.rank != m.rank)
            or (formal.swizzle is not None and formal.swizzle != m.swizzle)
            or (formal.box is not None and formal.box != m.box_dim)
        )
        if wrong:
            cls = type(desc).__name__ if entries is None else "DescriptorTable"
            got = f"{cls}[{m.dtype}, D{m.rank}, swizzle {m.swizzle}, box {m.box_dim}]"
            fix = "make the descriptor as the parameter asks, or change the parameter's annotation"
            self.mismatch(formal, got, _converted(formal, m.dtype, fix))
        self.specs[formal.name] = MapParam(
            name=formal.name,
            dtype=m.dtype,
            box_dim=m.box_dim,
            element_strides=m.element_strides,
            interleave=m.interleave,
            swizzle=m.swizzle,
            oob_fill=m.oob_fill,
            mode=m.mode,
            entries=entries,
        )

    def _bind(self, name: str, parameter: str, desc: MapHandle[Any, Any]) -> None:
        array: GlobalArray[Any, Any] = desc.array
        edge = array.behind_rows(-desc.tensor_map.row_bytes % STORE_EDGE_BYTES)
        self.maps[name] = BoundMap(map=desc.tensor_map, buffer=array.buffer, offset_bytes=array.offset_bytes, edge=edge)
        self._on(parameter, array)

    def _array(self, formal: Formal, value: object) -> None:
        if not isinstance(value, GlobalArray):
            known = "desc.array, the array that the descriptor was made of" if isinstance(value, MapHandle) else borrowing(value)
            fix = f"pass {known}" if known and known != "dev.array(x)" else "pass what `dev.array` or `dev.empty` made"
            self.mismatch(formal, described(value), fix)
            return
        dtype = value.dtype.info.name
        shape = value.shape
        if value.dtype.info.packed:
            self.refuse(
                "OX1053",
                f"argument {formal.name!r} does not fit its parameter",
                got=f"GlobalArray[{dtype}, D{len(shape)}], whose elements are parts of bytes",
                required=f"GlobalArray[u8, D{len(shape)}], or another type of whole bytes",
                fix="packed elements are copied through descriptors; `a.bytes` is an array",
            )
            return
        if (formal.dtype is not None and formal.dtype != dtype) or (formal.rank is not None and formal.rank != len(shape)):
            fix = "pass an array as the parameter asks, or change the parameter's annotation"
            self.mismatch(formal, f"GlobalArray[{dtype}, D{len(shape)}]", _converted(formal, dtype, fix))
        self.specs[formal.name] = ArrayParam(name=formal.name, dtype=dtype, rank=len(shape))
        address = value.buffer.address + value.offset_bytes
        info = ArrayInfo(
            dtype=dtype, shape=shape, strides_bytes=value.strides_bytes, align=math.gcd(address, _alignment(dtype, value.strides_bytes))
        )
        self.arrays[formal.name] = BoundArray(info=info, buffer=value.buffer, offset_bytes=value.offset_bytes)
        self._on(formal.name, value)

    def _idx(self, formal: Formal, value: object) -> None:
        number = whole(value)
        if number is None or not -(1 << 63) <= number < 1 << 63:
            self.mismatch(formal, described(value), "pass an int of at most 64 bits: `//` keeps a quotient one")
            return
        self.specs[formal.name] = IdxParam(name=formal.name)
        self.idx[formal.name] = number

    def _scalar(self, formal: Formal, value: object) -> None:
        dtype = str(formal.dtype)
        number = plain_number(value)
        problem = misfit(value, dtype)
        if number is None or problem:
            fix = "pass a value of that type"
            self.refuse("OX1035", f"scalar {formal.name!r} does not fit {dtype}", got=described(value), required=problem, fix=fix)
            return
        self.specs[formal.name] = ScalarParam(name=formal.name, dtype=dtype)
        self.scalars[formal.name] = number

    def _plain(self, formal: Formal, value: object) -> None:
        if type(value) is not formal.plain:
            self.mismatch(formal, described(value), f"pass a plain {formal}")
            return
        plain: Any = value
        self.specs[formal.name] = plain

    def _on(self, parameter: str, array: GlobalArray[Any, Any]) -> None:
        self.devices[id(array.device)] = array.device
        if array.readonly or array.overlapping:
            self.sources.setdefault(parameter, array)


def _alignment(dtype: str, strides_bytes: tuple[int, ...]) -> int:
    """Up to which power of two an array's address is looked at: further where it may hold tensor maps."""
    return SLOT_BYTES if (dtype, strides_bytes) == (SLOT_DTYPE, (SLOT_BYTES, 1)) else ALIGN
