"""What all parts of an emitted source share: the program, its names in C++, and the functions that were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from oxidecopy.engines.cuda.emit.carried import Carried
from oxidecopy.engines.cuda.emit.common import Common, short_name
from oxidecopy.engines.cuda.emit.elements import Elements
from oxidecopy.engines.cuda.emit.exprs import Exprs, Text
from oxidecopy.engines.cuda.emit.names import Names
from oxidecopy.engines.cuda.emit.ptx import Ptx
from oxidecopy.engines.cuda.emit.ranges import Span
from oxidecopy.engines.cuda.emit.shares import CountedShare
from oxidecopy.engines.cuda.emit.tiles import Tiles, part_bytes
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Const, Expr
from oxidecopy.isa.limits import MBARRIER_BYTES
from oxidecopy.isa.ops import BarrierRef, ThreadSet, TileRef
from oxidecopy.program.program import (
    BLOCK_SYMBOLS,
    RANK_SYMBOL,
    ArrayInfo,
    ArrayParam,
    IdxParam,
    Launch,
    MapParam,
    Program,
    ScalarParam,
    extent_name,
)

BUILT_IN: Final = {
    "block_idx.x": ("block_x", "blockIdx.x"),
    "block_idx.y": ("block_y", "blockIdx.y"),
    "block_idx.z": ("block_z", "blockIdx.z"),
    "grid_dim.x": ("grid_x", "gridDim.x"),
    "grid_dim.y": ("grid_y", "gridDim.y"),
    "grid_dim.z": ("grid_z", "gridDim.z"),
}


@final
class Context:
    """One source in the making; `program` is expanded.

    Attributes:
        threads: those in scope where statements are being written.
        loops: the counters of the loops around that place.
    """

    def __init__(
        self,
        program: Program,
        launch: Launch,
        phases: Mapping[int, Expr],
        counted: Mapping[str, CountedShare],
        carried: Mapping[int, Carried],
    ) -> None:
        self.program = program
        self.launch = launch
        self.threads = ThreadSet(((0, program.threads),))
        self.loops: list[str] = []
        self.phases = phases
        self.counted = counted
        self.carried = carried
        self.names = Names()
        self.exprs = Exprs()
        self.common = Common(program)
        self.ptx = Ptx(cluster=program.cluster_size > 1)
        self.elements = Elements()
        self.tiles = Tiles(self.elements)
        self.scalars: dict[tuple[str, bool], str] = {}  # (name, rounded as a cast) -> the C++ parameter that holds its bits
        self.counters: dict[str, str] = {}
        self.names_of_tiles: dict[str, str] = {}  # of a counted share: how many tiles there are
        self.helpers: set[str] = set()
        self.answers: set[int] = set()
        self.kernel = self.names.kernel(program.name)
        self.params = {p.name: self.names.new(p.name) for p in program.params if not isinstance(p, ScalarParam)}
        self.tile_names = [self.names.new(t.name) for t in program.tiles]
        self.barrier_names = [self.names.new(b.name) for b in program.barriers]
        self.token_names = {token: self.names.new(f"token{token}") for token in carried}
        self.slot_names = {given: self.names.new(f"{given}_slots") for given in counted}
        self.arrays: dict[str, ArrayInfo] = dict(launch.arrays)
        self._bind()

    def _bind(self) -> None:
        """The integers that are known everywhere."""
        env = self.launch.environment()
        size = self.program.cluster_size
        for symbol, (name, _) in BUILT_IN.items():
            axis = "xyz".index(symbol[-1])
            most = self.launch.grid[axis]
            self.exprs.bind(symbol, name, Span(0, most - 1) if symbol in BLOCK_SYMBOLS else Span(most, most))
        self.exprs.bind(RANK_SYMBOL, "cta_rank", Span(0, size - 1))
        for p in self.program.params:
            if isinstance(p, IdxParam):
                self.exprs.bind(p.name, self.params[p.name], Span(env[p.name], env[p.name]))
            elif isinstance(p, MapParam | ArrayParam):
                for i, of in enumerate(p.bound_names if isinstance(p, MapParam) else (p.name,)):
                    stem = self.params[p.name] + (f"{i}" if of != p.name else "")
                    for symbol, axis in ((extent_name(of, axis), axis) for axis in range(p.rank)):
                        self.exprs.bind(symbol, self.names.new(f"{stem}_dim{axis}"), Span(env[symbol], env[symbol]))

    def name_common(self, symbol: str) -> list[str]:
        """Declares the repeated subexpressions that `symbol` completes ("": those known from the start)."""
        lines = []
        exprs = self.exprs
        for e in self.common.ready(symbol, set(exprs.names)):
            if e not in exprs.common:
                made, name = exprs.write(e), self.names.new(short_name(e) or f"v{len(exprs.common) + 1}")
                lines.append(f"const {'i64' if made.wide else 'int'} {name} = {made.text};")
                exprs.common[e] = Text(name, made.wide)
        return lines

    # ---- arrays
    def strides_of(self, name: str) -> range:
        """The dimensions whose strides are parameters: all, or all but a dense innermost one."""
        info = self.arrays[name]
        return range(len(info.shape) - (info.strides_bytes[-1] == DTYPES[info.dtype].nbytes))

    def array_dim(self, name: str, axis: int) -> str:
        """The extent of an array."""
        return self.exprs.names[extent_name(name, axis)].text

    def array_stride(self, name: str, axis: int) -> str:
        """Bytes from one index to the next."""
        return f"{self.params[name]}_stride{axis}"

    # ---- places in shared memory
    def barrier(self, ref: BarrierRef) -> str:
        """Shared address of a barrier."""
        name = self.barrier_names[ref.barrier]
        return f"smem + {name}{self._stage(ref.index, MBARRIER_BYTES)}"

    def tile(self, ref: TileRef) -> str:
        """Offset of a stage or part in `shared`."""
        decl = self.program.tiles[ref.tile]
        name = self.tile_names[ref.tile]
        text = f"{name}{self._stage(ref.index, decl.stage_bytes)}"
        return text if ref.part is None else f"{text}{self._stage(ref.part.rank, part_bytes(decl, ref.part.of))}"

    def _stage(self, index: Expr, step: int) -> str:
        if isinstance(index, Const):
            return f" + {index.value * step}" if index.value else ""
        return f" + {self.exprs.write(index).at(8)} * {step}"

    def scalar(self, name: str, *, cast: bool) -> str:
        """The kernel parameter that holds a scalar's bits, rounded as a cast or as a fill does."""
        known = self.scalars.get((name, cast))
        if known is None:
            known = self.scalars[name, cast] = self.names.new(name)
        return known

    def fresh(self, symbol: str, values: Span) -> str:
        """A C++ name for an integer that an op or loop names."""
        name = self.names.new(symbol)
        self.exprs.bind(symbol, name, values)
        return name
