"""`Image`: the device code of one program for one launch shape, and all that a launch of it needs besides addresses and tensor maps.

The image of a program can be kept and launched again: `parameter` puts what changes into a copy of a prefilled launch parameter. Nothing
here knows a driver; the bytes mean what `abi` says. The first launch of a process waits for this module, so small values are named tuples:
dataclasses take longer to make than most launches to run.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.errors import Site
from oxidecopy.isa import limits
from oxidecopy.isa.ops import Instr
from oxidecopy.program.program import Program

INLINE_MAPS: Final = {
    "small": abi.INLINE_MAPS_SMALL,
    "medium": abi.INLINE_MAPS_MEDIUM,
    "large": abi.INLINE_MAPS_LARGE,
    "global": abi.INLINE_MAPS_SMALL,
}
PARAMETER_BYTES: Final = {
    "small": abi.PARAM_BYTES_SMALL,
    "medium": abi.PARAM_BYTES_MEDIUM,
    "large": abi.PARAM_BYTES_LARGE,
    "global": abi.PARAM_BYTES_SMALL,
}
_FIELDS: Final = {name: offset for name, _, offset in abi.HEADER}
_POINTERS: Final = struct.Struct("<4Q")  # report, code, table, counter: the header's first fields
_WORD: Final = struct.Struct("<Q")
_LIMIT: Final = struct.Struct("<I")
_WARP: Final = struct.Struct("<4H")


@final
class Warp(NamedTuple):
    """An entry of the warp table: `entry` is the first record of its agent, `agent` a position in `Image.agents`.

    In family "many" a hardware warp runs several of them.
    """

    entry: int
    threads: int
    first_lane: int
    lanes: int
    agent: int


@final
class AgentNote(NamedTuple):
    """An agent in the user's words: "threads 1-127 (consumers)"."""

    words: str
    entry: int
    records: int


@final
class ScalarWord(NamedTuple):
    """Argument word `word` holds scalar `name` as bits of `dtype`; `cast`: rounded as in element expressions, else as in fills."""

    word: int
    name: str
    dtype: str
    cast: bool


@final
class Where(NamedTuple):
    """What a record is: the user's line, and the op of the program that it does or helps to do (None: an agent's begin and end)."""

    site: Site | None
    program: Program
    op: Instr | None

    @property
    def words(self) -> str:
        """As the program's text has it: "mbarrier.wait.phase ring0_full[i0 % 4], phase=i0 // 4". Made when asked for: few are."""
        from oxidecopy.program.text.operands import make_names, write_op  # a launch that goes well has no use for it

        if self.op is None:
            return "end"
        names = make_names(self.program.params, self.program.tiles, self.program.barriers, {})
        return write_op(self.op, names)


@final
class LoopNote(NamedTuple):
    """How one recorded loop runs: `fused` is "produce", "drain", "once", "apply" or "product", or "" with the reason in `why`.

    `loop` is its position among the program's loops, depth first; `agent` says whose code, as several may run the same loop.
    """

    loop: int
    counter: str
    agent: str
    fused: str
    why: str
    site: Site | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Device code with its launch parameter.

    Attributes:
        name: of the program.
        family: the lightest of `abi.FAMILIES` that has all its ops.
        form: of the parameter, of `abi.PARAMETERS`; with the family it names the entry point.
        code: the records. In form "global" they must lie in device memory (`uploaded`), else they are in the parameter already.
        threads: hardware threads per CTA.
        shared_bytes: dynamic shared memory per CTA, the engine's own stage slots included.
        counted: a counter in device memory is needed (two u32, both 0).
        maps: names by slot; slots beyond the inline ones come in a table in device memory (`table`).
        arrays: first argument word of each array; its address goes there.
        scalars: argument words of scalar parameters.
        sites: what each record is, by pc.
        barriers: names by shared offset, as "ring0_full[2]".
        shares: for each share of tiles, how it is dealt: "counter", or why not.
        left: why it is left to records, where it might have been recognised as a whole.
        tiles: of family product, the table that lies in device memory; its code is in the parameter.
        template: the parameter with everything but what `parameter` is given; `args_at` is where its argument words start.
    """

    name: str
    family: str
    form: str
    code: bytes
    warps: tuple[Warp, ...]
    agents: tuple[AgentNote, ...]
    shared_bytes: int
    counted: bool
    maps: tuple[str, ...]
    arrays: Mapping[str, int]
    scalars: tuple[ScalarWord, ...]
    sites: Mapping[int, Where]
    barriers: Mapping[int, str]
    loops: tuple[LoopNote, ...]
    shares: Mapping[str, str]
    template: bytes
    args_at: int
    left: str = ""
    tiles: bytes = b""

    @property
    def threads(self) -> int:
        """Hardware threads per CTA."""
        return limits.WARP * _hardware_warps(self.warps)

    @property
    def in_memory(self) -> bool:
        """Something of it lies in device memory, where `code` of the header points."""
        return self.form == "global" or bool(self.tiles)

    @property
    def uploaded(self) -> bytes:
        """What lies in device memory, if `in_memory`: tiles, or records, and behind them the warp table of families that have it there."""
        if self.tiles:
            return self.tiles
        if self.family not in abi.CREW_FAMILIES:
            return self.code
        return self.code + b"".join([_entry(warp) for warp in self.warps])

    @property
    def entry_point(self) -> str:
        """The kernel's name in a cubin."""
        return f"{abi.KERNEL_PREFIX}{self.family}_{self.form}"

    @property
    def table_maps(self) -> tuple[str, ...]:
        """Maps that do not fit in the parameter: 128 bytes each, in this order, in device memory at `table`."""
        return self.maps[INLINE_MAPS[self.form] :]

    def with_counter(self, parameter: bytes, address: int) -> bytes:
        """A parameter whose `counter` is something else: what family timed writes to."""
        out = bytearray(parameter)
        _WORD.pack_into(out, INLINE_MAPS[self.form] * abi.MAP_BYTES + _FIELDS["counter"], address)
        return bytes(out)

    def address_words(self) -> dict[str, int]:
        """Words of 8 bytes of the parameter: where the 128 bytes of each map begin, and the addresses of arrays. Not of maps in a table."""
        words = {name: slot * abi.MAP_BYTES // 8 for slot, name in enumerate(self.maps[: INLINE_MAPS[self.form]])}
        return words | {name: self.args_at // 8 + word for name, word in self.arrays.items()}

    def scalar_words(self, scalars: Mapping[str, int | float]) -> list[tuple[int, int]]:
        """Words of the parameter that hold scalars, and what is in them."""
        return [(self.args_at // 8 + s.word, bits_of(scalars[s.name], s.dtype, cast=s.cast)) for s in self.scalars]

    def parameter(
        self,
        *,
        maps: Mapping[str, bytes],
        addresses: Mapping[str, int],
        scalars: Mapping[str, int | float],
        report: int,
        counter: int = 0,
        code: int = 0,
        table: int = 0,
        limit_us: int,
    ) -> bytes:
        """The kernel's one parameter: 128-byte maps by name, addresses of element 0 of arrays, values of scalars, device pointers."""
        out = bytearray(self.template)
        inline = INLINE_MAPS[self.form]
        for slot, name in enumerate(self.maps[:inline]):
            out[slot * abi.MAP_BYTES : (slot + 1) * abi.MAP_BYTES] = maps[name]
        header = inline * abi.MAP_BYTES
        _POINTERS.pack_into(out, header, report, code, table, counter)
        _LIMIT.pack_into(out, header + _FIELDS["limit_us"], limit_us)
        for name, word in self.arrays.items():
            _WORD.pack_into(out, self.args_at + 8 * word, addresses[name])
        for at, bits in self.scalar_words(scalars):
            _WORD.pack_into(out, 8 * at, bits)
        return bytes(out)


def _hardware_warps(warps: tuple[Warp, ...]) -> int:
    return min(len(warps), limits.THREADS_MAX // limits.WARP)


def _entry(warp: Warp) -> bytes:
    return _WARP.pack(warp.entry, warp.threads, warp.first_lane, warp.lanes)


def template(
    form: str,
    warps: tuple[Warp, ...],
    words: tuple[int, ...],
    code: bytes,
    stage_slots: int,
    *,
    crew: int = 0,
    engine_words: int = 0,
    contracting: int = 0,
    code_first: bool = False,
) -> tuple[bytes, int]:
    """The prefilled parameter, and where its argument words start. With a `crew` the warp table lies elsewhere.

    `code_first`: the blob starts with the code, at a place that its kernel knows, argument words behind it, and there is no warp table.
    """
    out = bytearray(PARAMETER_BYTES[form])
    header = INLINE_MAPS[form] * abi.MAP_BYTES
    blob = header + abi.HEADER_BYTES
    table = () if crew or code_first else warps
    args = len(code) if code_first else abi.WARP_ENTRY_BYTES * len(table)
    at = 0 if code_first else code_offset(len(table), len(words))
    for i, warp in enumerate(table):
        _WARP.pack_into(out, blob + abi.WARP_ENTRY_BYTES * i, *warp[:4])
    struct.pack_into(f"<{len(words)}Q", out, blob + args, *words)
    if form != "global":
        out[blob + at : blob + at + len(code)] = code
    fields = {
        "code_offset": at,
        "args_offset": args,
        "records": len(code) // abi.RECORD_BYTES,
        "crew": crew or contracting,
        "warps": _hardware_warps(warps),
        "stage_slots": stage_slots,
        "words": engine_words,
    }
    for name, value in fields.items():
        struct.pack_into("<I", out, header + _FIELDS[name], value)
    return bytes(out), blob + args


def code_offset(warps: int, words: int) -> int:
    """Where inline code starts in the blob: behind warp table and argument words, on a whole record."""
    used = abi.WARP_ENTRY_BYTES * warps + 8 * words
    return -(-used // abi.RECORD_BYTES) * abi.RECORD_BYTES


def form_of(maps: int, warps: int, words: int, code: int, *, always_global: bool = False) -> str:
    """The smallest parameter that holds a program of so many maps, warps, argument words and bytes of code; "" when none does."""
    used = code_offset(warps, words)
    if always_global:
        return "global" if used <= room("global") else ""
    if maps <= abi.INLINE_MAPS_SMALL and used + code <= room("small"):
        return "small"
    if used + code <= room("large"):
        return "large"
    return "global" if used <= room("global") else ""


def room(form: str) -> int:
    """Bytes of a parameter's blob."""
    return PARAMETER_BYTES[form] - INLINE_MAPS[form] * abi.MAP_BYTES - abi.HEADER_BYTES
