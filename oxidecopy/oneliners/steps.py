"""What a one-liner is planned as: launches over parts of its operands, and arrays of its own in between. Plain data, for any operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from oxidecopy.host.pipeline import Pipeline
from oxidecopy.isa.limits import GLOBAL_ADDRESS_ALIGN, GLOBAL_STRIDE_ALIGN, MAX_RANK, STORE_EDGE_BYTES
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType, u8, u16, u32, u64
from oxidecopy.typed.geometry import AnySwizzle, SwizzleNone
from oxidecopy.typed.global_array import GlobalArray

BITS: dict[int, type[DType]] = {1: u8, 2: u16, 4: u32, 8: u64}  # elements that are moved and not computed with, by their bytes
_STRIDE_MAX = 1 << 40
_EXTENT_MAX = 1 << 31

Operands = Sequence[GlobalArray[Any, Any]]


class Part(NamedTuple):
    """Elements in the memory of an operand; the offset counts from the operand's first element."""

    operand: int
    dtype: type[DType]
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    offset_bytes: int = 0

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.info.nbytes

    def of(self, operands: Operands) -> GlobalArray[Any, Any]:
        """The part as an array."""
        return operands[self.operand].over(self.dtype, self.shape, self.strides_bytes, self.offset_bytes)

    def address(self, operands: Operands) -> int:
        """Of its first element."""
        whole = operands[self.operand]
        return whole.buffer.address + whole.offset_bytes + self.offset_bytes

    def seen(self, dtype: type[DType], shape: tuple[int, ...], strides_bytes: tuple[int, ...], offset_bytes: int = 0) -> Part:
        """Other elements of the same memory."""
        return Part(self.operand, dtype, shape, strides_bytes, self.offset_bytes + offset_bytes)


def part_of(number: int, array: GlobalArray[Any, Any]) -> Part:
    """All of operand `number`."""
    return Part(number, array.dtype, array.shape, array.strides_bytes)


def why_no_map(part: Part, operands: Operands) -> str:
    """Why no tensor map can be made over a part, in words; nothing when one can."""
    *outer, inner = part.strides_bytes
    address = part.address(operands)
    if inner != part.size and part.shape[-1] > 1:
        return f"its elements are {inner} bytes apart along the innermost dimension"
    if address % GLOBAL_ADDRESS_ALIGN:
        return f"it begins {address % GLOBAL_ADDRESS_ALIGN} bytes behind a multiple of {GLOBAL_ADDRESS_ALIGN}"
    uneven = [s for n, s in zip(part.shape, outer, strict=False) if n > 1 and s % GLOBAL_STRIDE_ALIGN]
    if uneven:
        return f"its rows are {uneven[-1]} bytes apart, which is no multiple of {GLOBAL_STRIDE_ALIGN}"
    if len(part.shape) > MAX_RANK or any(n > _EXTENT_MAX for n in part.shape) or any(s >= _STRIDE_MAX for s in outer):
        return f"its extents {part.shape} or strides {part.strides_bytes} are more than a tensor map holds"
    return ""


def why_no_store(part: Part, operands: Operands) -> str:
    """Why nothing can be stored through a tensor map over a part, in words; nothing when it can."""
    reason = why_no_map(part, operands)
    if reason:
        return reason
    behind = -part.shape[-1] * part.size % STORE_EDGE_BYTES
    if behind and part.of(operands).behind_rows(behind) != "padding":
        return f"a store of its last elements would write {behind} bytes behind a row, which may not be its own"
    return ""


class MapOf(NamedTuple):
    """A descriptor over a part."""

    part: Part
    box: tuple[int, ...]
    l2_promotion: int = 128
    swizzle: type[AnySwizzle] = SwizzleNone

    def of(self, operands: Operands) -> TmaDescriptor[Any, Any, Any, Any]:
        """The descriptor."""
        tiled: Any = TmaDescriptor.tiled
        made: TmaDescriptor[Any, Any, Any, Any] = tiled(
            self.part.of(operands), box=self.box, l2_promotion=self.l2_promotion, swizzle=self.swizzle
        )
        return made


class Given(NamedTuple):
    """A number that the call gives, by its place among them."""

    number: int


Argument = MapOf | Part | Given


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One launch.

    Attributes:
        pipeline: what is launched.
        grid: CTAs, in one dimension or several.
        arguments: by parameter.
        what: it does, in words.
    """

    pipeline: Pipeline[...]
    grid: int | tuple[int, int] | tuple[int, int, int]
    arguments: Mapping[str, Argument]
    what: str

    @property
    def words(self) -> str:
        """In words."""
        maps = [
            f"{name} {a.part.dtype.__name__}{list(a.part.shape)} box {list(a.box)}"
            for name, a in self.arguments.items()
            if isinstance(a, MapOf)
        ]
        grid = f"{self.grid:,}" if isinstance(self.grid, int) else ", ".join(map(str, self.grid))
        return f"{self.pipeline.__name__}[{grid}], {self.pipeline.threads} threads: {self.what}; {', '.join(maps)}"


class Temporary(NamedTuple):
    """An array that lives while a one-liner runs; its rows begin at multiples of 16 bytes."""

    dtype: type[DType]
    shape: tuple[int, ...]


@final
@dataclass(slots=True, kw_only=True)
class Plan:
    """Launches in order. Operands are the caller's, then the temporaries.

    Attributes:
        operands: the arrays that it is planned for; temporaries are allocated while planning, for the first call.
        steps: the launches.
        temporaries: arrays of its own.
        why: how it came to be so, a line for each decision.
    """

    operands: list[GlobalArray[Any, Any]]
    steps: list[Step] = field(default_factory=list)
    temporaries: list[Temporary] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def temporary(self, dtype: type[DType], shape: tuple[int, ...]) -> Part:
        """A new array of its own."""
        wanted = Temporary(dtype, shape)
        self.temporaries.append(wanted)
        self.operands.append(allocated(self.operands[0], wanted))
        return part_of(len(self.operands) - 1, self.operands[-1])


def allocated(like: GlobalArray[Any, Any], wanted: Temporary) -> GlobalArray[Any, Any]:
    """A temporary on the device of `like`."""
    device: Any = like.device
    made: GlobalArray[Any, Any] = device.empty(wanted.shape, wanted.dtype, pad=True)
    return made
