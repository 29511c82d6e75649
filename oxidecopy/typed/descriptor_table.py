"""`DescriptorTable`: descriptors that are alike but for where their arrays lie and how large they are, one chosen while a pipeline runs.

All entries have one element type, box, swizzle and so on, so a copy through any of them moves the same bytes into the same places of a
tile: only the array at the other end differs. On a GPU the table lies in global memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, final

from typing_extensions import TypeVar

from oxidecopy.errors import DescriptorError, Diagnostic, ScopeError, ShapeError
from oxidecopy.isa import limits
from oxidecopy.typed.descriptor import TmaDescriptor, recorded_descriptor
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import AnyBox, AnySwizzle
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.symbolic import Idx, SymIdx, refuse_foreign

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.recorder import Recorder

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
SW_co = TypeVar("SW_co", bound=AnySwizzle, default=AnySwizzle, covariant=True)
Bx = TypeVar("Bx", bound=AnyBox, default=Any)

# What all entries of a table share; arrays may differ in extents, strides and address, maps also in `l2_promotion`, which is speed only.
SHARED: Final = ("dtype", "rank", "box_dim", "element_strides", "mode", "interleave", "swizzle", "oob_fill")
_NAMED_MAX: Final = 4  # entries that an error names


@final
class DescriptorTable(Generic[DT, C, SW_co, Bx]):
    """Descriptors of one kind; `table[i]` is one of them, `i` an integer that may be known only while the pipeline runs.

    On the host, `update` points an entry elsewhere for later launches.
    """

    __slots__ = ("_entries", "_param", "_recorder")
    # On the host the first is set, inside a pipeline the last two.
    _entries: list[TmaDescriptor[Any, Any, Any, Any]]
    _param: MapParam | None
    _recorder: Recorder | None

    def __init__(self, entries: Sequence[TmaDescriptor[DT, C, SW_co, Bx]], /) -> None:
        """A table of `entries`, in their order.

        Args:
            entries: 1 to 1,024 descriptors of arrays on one device, which agree in element type, rank, box, element strides, swizzle and
                out-of-bounds fill.

        Raises:
            DescriptorError: with every difference from the first entry.
        """
        given: object = entries
        if not isinstance(given, Sequence) or not 1 <= len(given) <= limits.TABLE_ENTRIES_MAX:
            refuse(
                DescriptorError,
                "OX2030",
                "a table has entries, and not too many",
                got=f"{len(given)} entries" if isinstance(given, Sequence) else described(given),
                required=f"a sequence of 1 to {limits.TABLE_ENTRIES_MAX} descriptors",
                fix="launch once for each part of the work",
            )
        known = [_descriptor(entry, i) for i, entry in enumerate(given)]
        broken = list(_differences(known[0], dict(enumerate(known[1:], 1))))
        if broken:
            raise DescriptorError(*broken)
        self._entries = known
        self._param = None
        self._recorder = None

    @property
    def entries(self) -> tuple[TmaDescriptor[DT, C, SW_co, Bx], ...]:
        """The descriptors; on the host only."""
        self._on_host("`entries`")
        return tuple(self._entries)

    def update(self, i: int, desc: TmaDescriptor[DT, C, Any, Bx], /) -> None:
        """Replaces entry `i` for later launches; a prepared launch keeps what it was given until its own `update`.

        Where only the address differs, a GPU's map is pointed elsewhere without encoding it again; with other extents or strides the next
        launch is verified anew.

        Raises:
            DescriptorError: the table could not have been made with that entry.
        """
        self._on_host("`update`")
        at = self._place(i)
        new = _descriptor(desc, at)
        first = self._entries[0]
        broken = list(_differences(first, {at: new}))
        if broken:
            raise DescriptorError(*broken)
        self._entries[at] = new

    def __len__(self) -> int:
        """Entries: a plain number inside a pipeline, too, which is recorded anew for each."""
        return len(self._entries) if self._param is None else self._param.entries or 0

    def __getitem__(self, i: Idx, /) -> TmaDescriptor[DT, C, SW_co, Bx]:
        """Entry `i`, from 0; inside a pipeline `i` may be recorded, and even be read from memory (`cta.load_index`)."""
        recorder, param = self._recorder, self._param
        if recorder is None or param is None:
            if isinstance(i, SymIdx):
                refuse_foreign("an index of a table of the host")
            return self._entries[self._place(i)]
        recorder.check_open(f"table {param.name!r}")
        what = f"an index of table {param.name!r}"
        return recorded_descriptor(recorder, param, recorder.below(i, len(self), what, ShapeError, "OX1150", f"use `i % {len(self)}`"))

    def __iter__(self) -> Iterator[TmaDescriptor[DT, C, SW_co, Bx]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if self._param is not None:
            return f"DescriptorTable({self._param.name!r}, {len(self)} entries)"
        m = self._entries[0].tensor_map
        return f"DescriptorTable({len(self)} entries of {m.dtype}, box {m.box_dim}, swizzle {m.swizzle})"

    def _place(self, i: object) -> int:
        number = whole(i)
        if number is None or not 0 <= number < len(self):
            refuse(
                ShapeError,
                "OX1150",
                "a table has no such entry",
                got=described(i),
                required=f"a plain int from 0 to {len(self) - 1}",
                fix="count entries from 0",
            )
        return number

    def _on_host(self, what: str) -> None:
        if self._param is not None:
            refuse(
                ScopeError,
                "OX1060",
                f"{what} not known while the pipeline is recorded"
                if what.endswith("are")
                else f"{what} between launches, not in a pipeline",
                got="a parameter of a recorded pipeline",
                required="the table that the host holds",
                fix="do it before the launch; inside, `table[i]` chooses an entry",
            )


def recorded_table(recorder: Recorder, param: MapParam) -> DescriptorTable[Any, Any, Any, Any]:
    """The handle that a pipeline function receives while it is recorded."""
    made: DescriptorTable[Any, Any, Any, Any] = object.__new__(DescriptorTable)
    made._entries = []
    made._param = param
    made._recorder = recorder
    return made


def _descriptor(entry: object, i: int) -> TmaDescriptor[Any, Any, Any, Any]:
    """An entry, which must be a descriptor of the host."""
    if not isinstance(entry, TmaDescriptor):
        _no_entry(i, described(entry))
    if entry._tensor_map is None:
        _no_entry(i, "a parameter of a pipeline")
    return entry


def _no_entry(i: int, got: str) -> NoReturn:
    refuse(
        DescriptorError,
        "OX2030",
        f"entry {i} of a table is no descriptor",
        got=got,
        required="what `ox.TmaDescriptor.tiled` makes, on the host",
        fix="ox.DescriptorTable([ox.TmaDescriptor.tiled(a, box=...) for a in arrays])",
    )


def _differences(
    first: TmaDescriptor[Any, Any, Any, Any], entries: Mapping[int, TmaDescriptor[Any, Any, Any, Any]]
) -> Iterator[Diagnostic]:
    """All that keeps `entries`, by their numbers, out of a table that holds `first`."""
    for name in SHARED:
        want = str(getattr(first.tensor_map, name))
        other = {i: got for i, entry in entries.items() if (got := str(getattr(entry.tensor_map, name))) != want}
        if other:
            required = f"{want}, as of the others: only extents, strides and address may differ"
            yield _differs("OX2031", other, f"in {name}", required, "make a table for each kind")
    device = first.array.device
    elsewhere = {i: repr(entry.array.device) for i, entry in entries.items() if entry.array.device is not device}
    if elsewhere:
        required, fix = repr(device), "make all arrays with one device: open it once"
        yield _differs("OX2032", elsewhere, "in the device of their arrays", required, fix)


def _differs(rule: str, other: Mapping[int, str], where: str, required: str, fix: str) -> Diagnostic:
    numbers = ", ".join(map(str, list(other)[:_NAMED_MAX])) + (f" and {len(other) - _NAMED_MAX} more" if len(other) > _NAMED_MAX else "")
    what = f"entr{'y' if len(other) == 1 else 'ies'} {numbers} of a table differ{'s' if len(other) == 1 else ''} {where}"
    got = ", ".join(list(dict.fromkeys(other.values()))[:_NAMED_MAX])
    return Diagnostic(rule=rule, what=what, got=got, required=required, fix=fix, site=caller_site())
