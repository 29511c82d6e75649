"""A verified program as one CUDA C++ source: helpers that it uses, its layout in shared memory, its kernel, and how a host launches it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final, final

from oxidecopy.engines.cuda.emit.body import Body
from oxidecopy.engines.cuda.emit.carried import HELPER as TOKENS
from oxidecopy.engines.cuda.emit.carried import carried_tokens
from oxidecopy.engines.cuda.emit.context import BUILT_IN, Context
from oxidecopy.engines.cuda.emit.elements import storage
from oxidecopy.engines.cuda.emit.exprs import HELPERS
from oxidecopy.engines.cuda.emit.host import launch_snippet
from oxidecopy.engines.cuda.emit.names import comment
from oxidecopy.engines.cuda.emit.parameters import MAP_BYTES, POINTER_BYTES, Parameter
from oxidecopy.engines.cuda.emit.shares import SLOT_BYTES, counted_shares
from oxidecopy.errors import DeviceCodeError, Diagnostic
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import MBARRIER_BYTES
from oxidecopy.program.expansion import expanded
from oxidecopy.program.phases import token_phases
from oxidecopy.program.program import RANK_SYMBOL, ArrayParam, IdxParam, MapParam, ScalarParam, extent_name
from oxidecopy.program.verified import VerifiedProgram

_TYPES: Final = """using i8 = signed char;
using i32 = int;
using i64 = long long;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct alignas(64) TensorMap {  // what cuTensorMapEncodeTiled fills in
    unsigned char bytes[128];
};
"""
_BOUNDED: Final = """// With -DOXIDECOPY_BOUNDED_WAITS a wait that fails this often, at about 4 us each, ends the launch with an error.
#ifndef OXIDECOPY_WAIT_TRIES
#define OXIDECOPY_WAIT_TRIES 500000
#endif
"""
_LOAD_INDEX: Final = """// An element of a 1-D array that must be in [0, below); anything else ends the launch with an error.
template <class T>
__device__ __forceinline__ i64 load_index(const void* array, i64 index, i64 extent, i64 stride, i64 below) {
    if (index < 0 || index >= extent) __trap();
    const i64 value = (i64)*reinterpret_cast<const T*>(static_cast<const u8*>(array) + index * stride);
    if (value < 0 || value >= below) __trap();
    return value;
}
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A source with all that a launch of its kernel needs.

    Attributes:
        source: one translation unit, which includes nothing.
        kernel_name: the kernel's symbol (`extern "C"`).
        parameters: in order; `Parameter.pack` gives their bytes.
        threads: of a block, in one dimension.
        cluster: blocks of a cluster in x, y, z.
        shared_bytes: dynamic shared memory of a block.
    """

    source: str
    kernel_name: str
    parameters: tuple[Parameter, ...]
    threads: int
    cluster: tuple[int, int, int]
    shared_bytes: int


def emitted(verified: VerifiedProgram) -> Emitted:
    """The program as CUDA C++.

    Raises:
        DeviceCodeError: OX5501 where the words of tokens do not fit in shared memory, OX5510 where an index needs more than 64 bits.
    """
    launch = verified.assumptions.launch
    _refuse_contractions(verified)
    program = expanded(verified.program)
    counted = counted_shares(program, verified.assumptions.sm)
    used = max([program.shared_bytes, *(share.slots + share.stages * SLOT_BYTES for share in counted.values())])
    phases = token_phases(program, launch)
    carried, shared = carried_tokens(program, phases.unknown, used, verified.assumptions.sm)
    ctx = Context(program, launch, phases.known, counted, carried)
    body = Body(ctx).run()
    parameters = tuple(_parameters(ctx))
    kernel = "\n".join(_kernel(ctx, parameters, body))  # before the helpers, as it asks for some
    parts = [
        "\n".join(_head(ctx, shared)),
        _TYPES,
        *_helpers(ctx),
        "\n".join(_shared(ctx)),
        kernel,
        launch_snippet(program, launch, parameters, ctx.kernel, shared),
    ]
    return Emitted(
        source="\n".join(p.rstrip("\n") + "\n" for p in parts if p),
        kernel_name=ctx.kernel,
        parameters=parameters,
        threads=program.threads,
        cluster=program.cluster,
        shared_bytes=shared,
    )


def _refuse_contractions(verified: VerifiedProgram) -> None:
    """Registers of wgmma, and an epilogue on them, are a kernel of their own, not a function for each instruction."""
    for step in verified.program.walk():
        if isinstance(step.op, ops.Contract | ops.Mma):
            raise DeviceCodeError(
                Diagnostic(
                    rule="OX5569",
                    what=f"`{step.op.mnemonic}` is not written as CUDA C++",
                    required="copies, synchronisation, maps and plain stores",
                    fix="launch the pipeline; or emit one without it, and put a kernel of your own in its place",
                    site=step.site,
                )
            )


def _head(ctx: Context, shared: int) -> Iterator[str]:
    program, launch = ctx.program, ctx.launch
    x, y, z = launch.grid
    where = f", {program.site.file}:{program.site.line}" if program.site is not None else ""
    yield f"// {comment(f'{program.name}{where}')}"
    yield f"// {program.threads} threads per block, clusters of {program.cluster}, {shared} bytes of dynamic shared memory."
    yield f"// Verified for a grid of ({x}, {y}, {z}). Extents, strides and the grid are read at run time, but the widths of integers, and"
    yield "// where division need not mind a sign, follow from the launch that was verified."
    for requirement in program.requires:
        yield f"// Not for a launch where: {comment(requirement.what)}"
    for hint in program.registers:
        spans = ", ".join(f"{low} to {high - 1}" for low, high in hint.threads.ranges)
        yield f"// Threads {spans} would like {hint.registers} registers each (setmaxnreg), which nothing here gives them."


def _helpers(ctx: Context) -> Iterator[str]:
    if "OXIDECOPY_WAIT_TRIES" in ctx.ptx.text() or "tokens" in ctx.helpers:
        yield _BOUNDED
    names = [name for name in HELPERS if name in ctx.exprs.helpers]
    if names:
        yield "\n\n".join(HELPERS[name] for name in names) + "\n"
    if "load_index" in ctx.helpers:
        yield _LOAD_INDEX
    yield ctx.ptx.text()
    if "tokens" in ctx.helpers:
        yield TOKENS
    yield ctx.elements.text()


def _shared(ctx: Context) -> Iterator[str]:
    yield "// Dynamic shared memory. No static one is declared, so it starts at a multiple of 1,024, which the swizzles count on."
    yield "extern __shared__ __align__(1024) unsigned char shared[];"
    tiles = ctx.tiles.text()
    if tiles:
        yield ""
        yield tiles.rstrip("\n")


def _layout(ctx: Context, words: Container[str]) -> Iterator[str]:
    """Shared memory, as the recorder laid it out; the kernel works with what it names."""
    for name, tile in zip(ctx.tile_names, ctx.program.tiles, strict=True):
        shape = " x ".join(map(str, tile.shape))
        swizzle = f", swizzled by {tile.swizzle}" if tile.swizzle != "none" else ""
        stages = f", {tile.stages} stages of {tile.stage_bytes} bytes" if tile.stages > 1 else ""
        yield f"    {_place(name, tile.offset, words)}  // {tile.dtype} {shape}{swizzle}{stages}"
    for name, barrier in zip(ctx.barrier_names, ctx.program.barriers, strict=True):
        stages = f", {barrier.stages} of {MBARRIER_BYTES} bytes" if barrier.stages > 1 else ""
        yield f"    {_place(name, barrier.offset, words)}  // {barrier.kind}{stages}"
    for given, share in ctx.counted.items():
        yield f"    {_place(ctx.slot_names[given], share.slots, words)}  // the tile that each of {share.stages} stages brings"


def _place(name: str, offset: int, words: Container[str]) -> str:
    return f"{'' if name in words else '// '}constexpr u32 {name} = {offset};"


def _kernel(ctx: Context, parameters: tuple[Parameter, ...], body: list[str]) -> Iterator[str]:
    threads = ctx.program.threads
    yield f'extern "C" __global__ void __launch_bounds__({threads}) {ctx.kernel}('
    notes = {p.name: f"  // {p.dtype}" for p in parameters if p.kind in ("array", "scalar")}
    for i, p in enumerate(parameters):
        yield f"    {p.declaration}{',' if i < len(parameters) - 1 else ''}{notes.get(p.name, '')}"
    yield ") {"
    words = set(re.findall(r"\w+", "\n".join(line.partition("//")[0] for line in body)))
    yield from _layout(ctx, words)
    if "thread" in words:
        yield "    const u32 thread = threadIdx.x;"
    if "smem" in words:
        yield "    const u32 smem = (u32)__cvta_generic_to_shared(shared);"
    for symbol, (name, register) in BUILT_IN.items():
        if symbol in ctx.exprs.used:
            yield f"    const int {name} = (int){register};"
    if RANK_SYMBOL in ctx.exprs.used:
        rank = f"(int){ctx.ptx.use('cluster_ctarank')}()" if ctx.program.cluster_size > 1 else "0"
        yield f"    const int cta_rank = {rank};"
    for answer in sorted(ctx.answers):
        yield f"    [[maybe_unused]] bool answer{answer} = false;"
    yield from _tokens(ctx)
    yield ""
    yield from body
    yield "}"


def _tokens(ctx: Context) -> Iterator[str]:
    """Where tokens are whose phase cannot be told."""
    shared = [c for c in ctx.carried.values() if c.offset >= 0]
    for token, carried in ctx.carried.items():
        if carried.offset < 0:
            yield f"    [[maybe_unused]] u64 {ctx.token_names[token]} = 0, {ctx.token_names[token]}_of = 0;"
    if shared:
        begin = shared[0].offset
        words = (shared[-1].end - begin) // 8
        store = f"ptx::st_shared((u32)__cvta_generic_to_shared(shared) + {begin} + 8 * i, 0);"
        yield f"    for (u32 i = threadIdx.x; i < {words}; i += {ctx.program.threads}) {store}  // nobody has made a token yet"
        yield "    __syncthreads();"


def _parameters(ctx: Context) -> Iterator[Parameter]:
    """Maps, extents of maps, arrays with extents and strides, indices, scalars, counters."""
    params = ctx.program.params
    maps = [p for p in params if isinstance(p, MapParam)]
    yield from (_map(ctx, p) for p in maps)
    for of, axis in ((name, axis) for p in maps for name in p.bound_names for axis in range(p.rank)):
        if extent_name(of, axis) in ctx.exprs.used:
            yield _extent(ctx, of, axis)
    for a in params:
        if isinstance(a, ArrayParam):
            yield from _array(ctx, a)
    for i in params:
        if isinstance(i, IdxParam):
            wide = ctx.exprs.names[i.name].wide
            yield Parameter(kind="idx", name=ctx.params[i.name], of=i.name, ctype="i64" if wide else "int", nbytes=8 if wide else 4)
    yield from _scalars(ctx)
    for given, name in ctx.counters.items():
        yield Parameter(kind="counter", name=name, of=given, ctype="u32", nbytes=POINTER_BYTES)


def _map(ctx: Context, p: MapParam) -> Parameter:
    if p.entries is None:
        return Parameter(kind="map", name=ctx.params[p.name], of=p.name, ctype="TensorMap", nbytes=MAP_BYTES, dtype=p.dtype)
    return Parameter(kind="table", name=ctx.params[p.name], of=p.name, ctype="TensorMap", nbytes=POINTER_BYTES, dtype=p.dtype)


def _array(ctx: Context, a: ArrayParam) -> Iterator[Parameter]:
    yield Parameter(kind="array", name=ctx.params[a.name], of=a.name, ctype=storage(a.dtype), nbytes=POINTER_BYTES, dtype=a.dtype)
    for axis in range(a.rank):
        yield _extent(ctx, a.name, axis)
    for axis in ctx.strides_of(a.name):
        yield Parameter(kind="stride", name=ctx.array_stride(a.name, axis), of=a.name, ctype="i64", nbytes=8, axis=axis)


def _scalars(ctx: Context) -> Iterator[Parameter]:
    dtypes = {s.name: s.dtype for s in ctx.program.params if isinstance(s, ScalarParam)}
    for (of, cast), name in ctx.scalars.items():
        row = DTYPES[dtypes[of]]
        yield Parameter(kind="scalar", name=name, of=of, ctype=storage(row.name), nbytes=row.nbytes, dtype=row.name, cast=cast)


def _extent(ctx: Context, of: str, axis: int) -> Parameter:
    text = ctx.exprs.names[extent_name(of, axis)]
    return Parameter(kind="extent", name=text.text, of=of, ctype="i64" if text.wide else "int", nbytes=8 if text.wide else 4, axis=axis)
