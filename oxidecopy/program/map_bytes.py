"""The driver's 128 bytes of a tensor map, read back: which bits hold which field, as far as that is known.

NVIDIA documents none of it. The places were measured on an H200 (compute capability 9.0) by encoding maps and by editing zeroed ones with
tensormap.replace; the first 64 bytes are what the hardware reads, behind them the host call leaves two notes. What later architectures do
otherwise is only reported (`reported` fields), so a map must not be made from these fields, nor be compared by them across devices. There
is no encoder here: the driver is the encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, final

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import MAX_RANK
from oxidecopy.program.tensor_map import IM2COL, TILE, TensorMap, box_bytes

MAP_BYTES: Final = 128

# PTX elemtype numbers (PTX tensormap.replace), which the map uses; the driver's own numbers are in `isa.dtypes`.
_FORMATS: Final = (
    "u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f32_ftz", "f64", "bf16", "tf32", "tf32_ftz",
    "u4x16_align8b", "u4x16_align16b", "u6x16_align16b",
)  # fmt: skip
_ROUNDED: Final = {"f32": "tf32", "f32_ftz": "tf32_ftz"}  # with the rounding bit: how the host call writes tf32
_INTERLEAVES: Final = ("none", "16B", "32B")
_SWIZZLES: Final = ("none", "32B", "64B", "128B")
_PROMOTIONS: Final = (0, 64, 128, 256)
_ALIGNMENTS: Final = {"none": 16, "32B": 256, "64B": 512, "128B": 1024}  # the second note, by swizzle
_LAST_OF_90: Final = 12  # formats that compute capability 9.0 has
_UNUSED: Final = "not used by this rank"
_CORNER_BITS: Final = {3: 16, 4: 8, 5: 5}  # of one entry, by rank


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`bits` bits from bit `shift` of byte `offset` on, little endian. `reported`: told by others, not measured."""

    name: str
    offset: int
    shift: int
    bits: int
    value: int
    meaning: str
    reported: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedMap:
    """What 128 bytes say.

    Attributes:
        data: the bytes.
        fields: every field with a known place that the map's rank and kind use, in order of their places.
        unknown: offset and bits of each byte in which bits are set that no known field explains.
        oddities: what no host call of compute capability 9.0 writes, in words; empty for a map that such a call made.
        address: of the array.
        tensor_map: the parameters, outermost dimension first; None where `oddities` leave them open.
    """

    data: bytes
    fields: tuple[Field, ...]
    unknown: tuple[tuple[int, int], ...]
    oddities: tuple[str, ...]
    address: int
    tensor_map: TensorMap | None


def decode(data: bytes) -> DecodedMap:
    """Reads a map back.

    Args:
        data: 128 bytes.

    Raises:
        ValueError: there are more or fewer.
    """
    if len(data) != MAP_BYTES:
        raise ValueError(f"a tensor map is {MAP_BYTES} bytes, not {len(data)}")
    reader = _Reader(data)
    fields = tuple(sorted(_fields(reader), key=lambda f: (f.offset, f.shift)))
    values = {f.name: f.value for f in fields}
    tensor_map = _parameters(values)
    return DecodedMap(
        data=data,
        fields=fields,
        unknown=tuple(reader.unexplained(fields)),
        oddities=tuple(_oddities(values, tensor_map)),
        address=values["address"],
        tensor_map=tensor_map,
    )


@final
class _Reader:
    """The bytes as one number, from which bits are taken."""

    def __init__(self, data: bytes) -> None:
        self._word = int.from_bytes(data, "little")

    def bits(self, offset: int, shift: int, bits: int) -> int:
        return self._word >> (8 * offset + shift) & ((1 << bits) - 1)

    def field(self, name: str, offset: int, shift: int, bits: int, meaning: str, *, reported: bool = False) -> Field:
        value = self.bits(offset, shift, bits)
        return Field(name=name, offset=offset, shift=shift, bits=bits, value=value, meaning=meaning, reported=reported)

    def unexplained(self, fields: tuple[Field, ...]) -> Iterator[tuple[int, int]]:
        """The bytes with set bits outside all fields."""
        left = self._word
        for f in fields:
            left &= ~(((1 << f.bits) - 1) << (8 * f.offset + f.shift))
            if f.name.startswith("stride "):  # its upper four bits lie apart, all strides' together
                left &= ~(0xF << (8 * 0x1C + 4 * int(f.name.removeprefix("stride "))))
        return ((i, byte) for i, byte in enumerate(left.to_bytes(MAP_BYTES, "little")) if byte)


def _fields(read: _Reader) -> Iterator[Field]:
    yield from _head(read)
    rank = read.bits(0x08, 4, 3) + 1
    used = min(rank, MAX_RANK)
    yield from _strides(read, used - 1)
    yield from _entries(read, "dim", 0x20, 32, used, lambda extent: f"{extent + 1:,} elements")
    yield from _entries(read, "element stride", 0x34, 3, used, lambda step: f"every element number {step + 1}" if step else "every element")
    if read.bits(0x08, 0, 1):
        yield read.field("channels", 0x37, 0, 8, f"{read.bits(0x37, 0, 8) + 1} elements")
        yield from _im2col(read, rank)
    else:
        yield from _entries(read, "box", 0x37, 8, used, lambda extent: f"{extent + 1} elements")
    counted, alignment = read.bits(0x40, 0, 64), read.bits(0x48, 0, 64)
    if counted or alignment:
        yield read.field("note: bytes", 0x40, 0, 64, f"the host call counted {counted:,} bytes for a box")
        yield read.field("note: alignment", 0x48, 0, 64, f"the host call wants shared memory at multiples of {alignment}")


def _head(read: _Reader) -> Iterator[Field]:
    """Address and word 2."""
    number, rounds, atom = read.bits(0x08, 7, 4), read.bits(0x08, 16, 1), read.bits(0x08, 19, 3)
    later = "said to be the atom of the 128B swizzle on later architectures, its top bit a workaround for them"
    yield read.field("address", 0x00, 0, 64, f"{read.bits(0, 0, 64):#x}")
    yield read.field("im2col", 0x08, 0, 1, "an im2col map" if read.bits(0x08, 0, 1) else "a tiled map")
    yield read.field("version", 0x08, 1, 3, str(read.bits(0x08, 1, 3)))
    yield read.field("rank", 0x08, 4, 3, f"rank {read.bits(0x08, 4, 3) + 1}")
    yield read.field("format", 0x08, 7, 4, f"elements of {_dtype(number, rounds)}", reported=number > _LAST_OF_90)
    yield read.field("interleave", 0x08, 11, 2, _of(_INTERLEAVES, read.bits(0x08, 11, 2)))
    yield read.field("swizzle", 0x08, 13, 2, _of(_SWIZZLES, read.bits(0x08, 13, 2)))
    yield read.field("fill", 0x08, 15, 1, f"{'NaN' if read.bits(0x08, 15, 1) else 'zeros'} outside the array")
    yield read.field("tf32", 0x08, 16, 1, "loads round to tf32" if rounds else "loads do not round")
    yield read.field("promotion", 0x08, 17, 2, f"L2 fetches {_PROMOTIONS[read.bits(0x08, 17, 2)] or 'no'} bytes at least")
    yield read.field("atom", 0x08, 19, 3, later if atom else "nothing on 9.0", reported=True)


def _strides(read: _Reader, used: int) -> Iterator[Field]:
    """36 bits each: the low 32 of all, then the upper four of all."""
    for i in range(MAX_RANK - 1):
        units = read.bits(0x0C + 4 * i, 0, 32) | read.bits(0x1C, 4 * i, 4) << 32
        if units or i < used:
            meaning = f"{16 * units:,} bytes along dimension {i + 1} from the inside" if i < used else _UNUSED
            yield Field(name=f"stride {i}", offset=0x0C + 4 * i, shift=0, bits=32, value=units, meaning=meaning)


def _entries(read: _Reader, name: str, offset: int, bits: int, used: int, words: Callable[[int], str]) -> Iterator[Field]:
    """One entry per dimension, side by side; those that the rank has no use for where they are not zero."""
    for i in range(MAX_RANK):
        at, shift = (offset + bits * i // 8, 0) if bits % 8 == 0 else (offset, bits * i)
        value = read.bits(at, shift, bits)
        if value or i < used:
            yield Field(name=f"{name} {i}", offset=at, shift=shift, bits=bits, value=value, meaning=words(value) if i < used else _UNUSED)


def _im2col(read: _Reader, rank: int) -> Iterator[Field]:
    """Corners, innermost spatial dimension first, and pixels; corners of a rank without a spatial dimension are nowhere."""
    bits = _CORNER_BITS.get(rank, 0)
    for corner, offset in (("lower", 0x38), ("upper", 0x3A)):
        for i in range(rank - 2 if bits else 0):
            raw = read.bits(offset, bits * i, bits)
            at = raw - (1 << bits) * (raw >> (bits - 1))
            yield Field(name=f"{corner} {i}", offset=offset, shift=bits * i, bits=bits, value=raw, meaning=f"corner at {at} in {'WHD'[i]}")
    pixels = read.bits(0x3C, 0, 10)
    yield Field(name="pixels", offset=0x3C, shift=0, bits=10, value=pixels, meaning=f"{pixels + 1} pixels")


def _of(names: tuple[str, ...], value: int) -> str:
    return names[value] if value < len(names) else f"number {value}, which is none"


def _dtype(number: int, rounds: int) -> str:
    name = _FORMATS[number]
    return _ROUNDED.get(name, name) if rounds else name


def _parameters(values: dict[str, int]) -> TensorMap | None:
    """The fields as parameters; None where they are no map's."""
    rank, im2col = values["rank"] + 1, bool(values["im2col"])
    dtype = _dtype(values["format"], values["tf32"])
    if rank > MAX_RANK or values["interleave"] >= len(_INTERLEAVES) or (im2col and rank not in _CORNER_BITS):
        return None

    def outwards(name: str, first: int, count: int, more: int) -> tuple[int, ...]:
        return tuple([values[f"{name} {i}"] + more for i in reversed(range(first, first + count))])

    bits = _CORNER_BITS.get(rank, 1)
    corners = {
        name: tuple([n - (1 << bits) * (n >> (bits - 1)) for n in outwards(name, 0, rank - 2, 0)]) if im2col else ()
        for name in ("lower", "upper")
    }
    return TensorMap(
        dtype=dtype,
        global_dim=outwards("dim", 0, rank, 1),
        global_strides=tuple([16 * units for units in outwards("stride", 0, rank - 1, 0)]),
        box_dim=(values["pixels"] + 1, values["channels"] + 1) if im2col else outwards("box", 0, rank, 1),
        element_strides=outwards("element stride", 0, rank, 1),
        interleave=_INTERLEAVES[values["interleave"]],
        swizzle=_SWIZZLES[values["swizzle"]],
        l2_promotion=_PROMOTIONS[values["promotion"]],
        oob_fill="nan" if values["fill"] else "zero",
        mode=IM2COL if im2col else TILE,
        lower=corners["lower"],
        upper=corners["upper"],
    )


def _oddities(values: dict[str, int], tensor_map: TensorMap | None) -> Iterator[str]:
    rank, number, base = values["rank"] + 1, values["format"], _FORMATS[values["format"]]
    found = {
        f"rank {rank}: no map has more than {MAX_RANK} dimensions": rank > MAX_RANK,
        f"an im2col map of rank {rank}: they have 3 to 5 dimensions": values["im2col"] and rank not in _CORNER_BITS,
        "interleave 3: there are 0, 1 and 2": values["interleave"] >= len(_INTERLEAVES),
        f"version {values['version']}: 0 on compute capability 9.0": values["version"],
        "bits 19 to 21 from byte 0x08 on are set: a map of an architecture later than 9.0, or no map": values["atom"],
        f"a packed element type ({base}): there is none on compute capability 9.0": number > _LAST_OF_90,
        f"format {number}: the host call writes tf32 as f32 with the rounding bit": base in _ROUNDED.values(),
        f"the rounding bit with elements of {base}": values["tf32"] and base not in _ROUNDED,
        "no notes of a host call: made on a device (tensormap.replace), or by another encoder": "note: bytes" not in values,
    }
    yield from (words for words, odd in found.items() if odd)
    if tensor_map is not None and "note: bytes" in values:
        yield from _notes(values, tensor_map)


def _notes(values: dict[str, int], tensor_map: TensorMap) -> Iterator[str]:
    """Where the notes are not those of the fields, somebody edited the map after it was encoded."""
    if DTYPES[tensor_map.dtype].bits % 8 or tensor_map.interleave != "none":
        return  # what the driver counts for those was not looked at
    counted, alignment = box_bytes(tensor_map), _ALIGNMENTS[tensor_map.swizzle]
    if values["note: bytes"] != counted:
        yield f"the note says a box has {values['note: bytes']:,} bytes, the fields say {counted:,}: edited after it was encoded"
    if values["note: alignment"] != alignment:
        yield f"the note says alignment {values['note: alignment']}, the swizzle {alignment}: edited after it was encoded"
