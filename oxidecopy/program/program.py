"""A recorded pipeline as frozen data: parameters, shared-memory layout, barriers, and a tree of ops with call sites.

A `Program` knows nothing of a launch: extents, addresses, `Idx` and scalar parameters stay symbolic. `Launch` holds what one launch adds.
Everything here can be compared, hashed and printed; nothing can be changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from oxidecopy.errors import Site
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Cond
from oxidecopy.isa.ops import Instr, ThreadSet
from oxidecopy.program.tensor_map import TILE, TensorMap, TileLayout, tile_layout


# ---- parameters, in the order of the user's function
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MapParam:
    """A tensor map; what is written here is part of the recording's key, extents and strides are not. Outermost dimension first.

    With `entries` it is a table of that many maps, alike in all that is written here; a launch binds each by its `entry_name`. `mode` is
    the form of the copies that use it, as in `TensorMap`; where it is not the map's own, the hardware faults. The corners of an im2col map
    are bound by the launch, as its extents are; its `box_dim` is (pixels, channels).
    """

    name: str
    dtype: str
    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: str = "none"
    swizzle: str = "none"
    oob_fill: str = "zero"
    mode: str = TILE
    entries: int | None = None

    @property
    def bound_names(self) -> tuple[str, ...]:
        """What a launch binds for it: one map, or each entry of a table."""
        return (self.name,) if self.entries is None else tuple([entry_name(self.name, i) for i in range(self.entries)])

    @property
    def rank(self) -> int:
        """Dimensions of the map."""
        return len(self.element_strides)

    @property
    def layout(self) -> TileLayout:
        """The shared-memory image of one copy."""
        return tile_layout(self)

    @property
    def tile_dtype(self) -> str:
        """The element type of its tiles: u8 for packed elements."""
        return DTYPES[self.dtype].in_shared


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayParam:
    """A global array for plain accesses."""

    name: str
    dtype: str
    rank: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IdxParam:
    """An integer that may reach coordinates and trip counts."""

    name: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarParam:
    """A value of an element type."""

    name: str
    dtype: str


Param: TypeAlias = MapParam | ArrayParam | IdxParam | ScalarParam


# ---- shared memory. Offsets count from the start of the dynamic part, which engines place at a multiple of 1,024.
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileDecl:
    """`stages` equal tiles, `stage_bytes` apart, the first at `offset`.

    `align` is what the user asked for (bytes); `swizzle` is that of the descriptors that copy from or to it ("none" without any).
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    align: int
    swizzle: str
    stages: int
    offset: int
    stage_bytes: int
    site: Site | None = None

    @property
    def layout(self) -> TileLayout:
        """Where the elements of one stage lie."""
        return TileLayout(shape=self.shape, element_bytes=DTYPES[self.dtype].nbytes, swizzle=self.swizzle)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierDecl:
    """`stages` mbarriers, 8 bytes apart, the first at `offset`. `kind` is TmaBarrier, MmaBarrier or GeneralBarrier."""

    name: str
    kind: str
    stages: int
    offset: int
    site: Site | None = None


@final
@dataclass(frozen=True, slots=True)
class RegisterHint:
    """How many registers each of these threads would like: an engine may give them (PTX setmaxnreg), no result depends on it."""

    threads: ThreadSet
    registers: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What must be true of a launch, in grid dimensions, extents and `Idx` parameters, for the call at `site` to make sense.

    `what` says what is wrong where it does not hold, `fix` what to do about it.
    """

    cond: Cond
    what: str
    fix: str = ""
    site: Site | None = None


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One op with the user's line that recorded it; blocks (`Scope`, `When`, `Loop`) have a body."""

    op: Instr
    site: Site | None = None
    body: tuple[Step, ...] = ()


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step of `steps` and of their bodies, depth first, in program order."""
    stack = list(reversed(steps))
    while stack:
        step = stack.pop()
        yield step
        stack.extend(reversed(step.body))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A whole recorded pipeline.

    Attributes:
        name: of the user's function.
        threads: per CTA.
        cluster: CTAs per cluster in x, y, z; (1, 1, 1) without one.
        shared_bytes: dynamic shared memory of one CTA.
        registers: hints, in the order of their threads, which are disjoint.
        requires: conditions on the launch.
    """

    name: str
    threads: int
    cluster: tuple[int, int, int]
    params: tuple[Param, ...]
    tiles: tuple[TileDecl, ...]
    barriers: tuple[BarrierDecl, ...]
    shared_bytes: int
    registers: tuple[RegisterHint, ...] = ()
    requires: tuple[Requirement, ...] = ()
    steps: tuple[Step, ...]
    site: Site | None = None

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster."""
        x, y, z = self.cluster
        return x * y * z

    @property
    def maps(self) -> dict[str, MapParam]:
        """Tensor map parameters by name."""
        return {p.name: p for p in self.params if isinstance(p, MapParam)}

    @property
    def arrays(self) -> dict[str, ArrayParam]:
        """Global array parameters by name."""
        return {p.name: p for p in self.params if isinstance(p, ArrayParam)}

    def walk(self) -> Iterator[Step]:
        """Every step, depth first, in program order."""
        return walk(self.steps)


# ---- one launch
Edge: TypeAlias = Literal["unknown", "padding", "elements"]  # what lies behind the rows of an array: of elements, its own or its parent's


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayInfo:
    """A global array as bound: extents (elements) and strides (bytes) of every dimension, outermost first.

    `align` is the largest power of two up to 16 that divides its address, bytes: plain bulk copies ask for 16. Of arrays that may hold
    tensor maps it is one up to 128.
    """

    dtype: str
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    align: int = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a launch adds to a program, as far as a proof needs it; addresses and contents stay out. Pairs are sorted by name.

    Attributes:
        same: parameters that are bound to one view of memory, in groups.
        overlapping: pairs of parameters that share some memory otherwise.
        edges: of maps whose rows are no multiples of 16 bytes, what lies behind these.
    """

    grid: tuple[int, int, int]
    maps: tuple[tuple[str, TensorMap], ...] = ()
    arrays: tuple[tuple[str, ArrayInfo], ...] = ()
    idx: tuple[tuple[str, int], ...] = ()
    same: tuple[tuple[str, ...], ...] = ()
    overlapping: tuple[tuple[str, str], ...] = ()
    edges: tuple[tuple[str, Edge], ...] = ()
    sm: int = 90

    def environment(self) -> dict[str, int]:
        """Values of the symbols that are constant for the whole launch."""
        env = {f"grid_dim.{axis}": n for axis, n in zip("xyz", self.grid, strict=True)}
        env.update(self.idx)
        for name, bound in self.maps:
            env.update({extent_name(name, i): n for i, n in enumerate(bound.global_dim)})
        for name, info in self.arrays:
            env.update({extent_name(name, i): n for i, n in enumerate(info.shape)})
        return env


def entry_name(table: str, index: int) -> str:
    """What entry `index` of a table of maps is bound as."""
    return f"{table}[{index}]"


def extent_name(parameter: str, axis: int) -> str:
    """The symbol of a parameter's extent, `axis` counted from the outermost dimension."""
    return f"{parameter}.dim[{axis}]"


BLOCK_SYMBOLS: Final = ("block_idx.x", "block_idx.y", "block_idx.z")
RANK_SYMBOL: Final = "cta_rank"
