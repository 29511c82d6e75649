"""Measured vectors as programs: one row of the H200 file -> a small `Program` with its buffers -> what the simulator makes of it.

Rows are innermost dimension first, as the driver call is; programs are outermost first. Feed any row of the sections named in `RUNNERS`
to `run`: it returns a list of differences, empty when the simulator and the hardware agree. Rows it cannot express raise `Skip`, whose
text is the category; the tests hold the list of categories.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap, Buffer
from oxidecopy.engines.sim import Exploration, ForeignBuffer, SimEngine, explore
from oxidecopy.engines.sim.faults import Fault
from oxidecopy.engines.sim.mbarrier import Mbarrier
from oxidecopy.errors import Site
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Answer, Const
from oxidecopy.isa.ops import ArrayRef, BarrierRef, Instr, MapRef, ThreadSet, TileRef
from oxidecopy.program.program import ArrayInfo, ArrayParam, BarrierDecl, MapParam, Param, Program, Step, TileDecl
from oxidecopy.program.tensor_map import TensorMap, TileLayout

Row: TypeAlias = Mapping[str, Any]  # a row of a JSON file
Bytes: TypeAlias = npt.NDArray[np.uint8]

MAPPED: Final = 8 << 20  # bytes behind the buffer base B, at most
SLACK: Final = 1 << 16  # bytes behind what the map spans, at least
THREADS: Final = 32
SWIZZLE: Final = ("none", "32B", "64B", "128B")
INTERLEAVE: Final = ("none", "16B", "32B")
FILL: Final = ("zero", "nan")
UNWRITTEN: Final = 0xA5
LEADER: Final = ops.Scope(role="elect", threads=ThreadSet(((0, 1),)))
REDUCE_WORDS: Final = {"and": "bit_and", "or": "bit_or", "xor": "bit_xor"}


class Skip(Exception):
    """A row of a category that the programs of today cannot express."""


def dtype_name(data_type: int) -> str:
    """The first element type with this driver enumerator."""
    return next(name for name, row in DTYPES.items() if row.driver_enum == data_type)


def pattern(n: int, a: int, b: int, c: int) -> Bytes:
    i = np.arange(n, dtype=np.int64)
    return ((a * i + b * (i >> 8) + c) & 255).astype(np.uint8)


def load_pattern(n: int) -> Bytes:
    return pattern(n, 197, 31, 17)


def shared_pattern(n: int) -> Bytes:
    return pattern(n, 151, 43, 101)


# ---- a program under construction
class Bench:
    """One CTA of 32 threads on its own engine; tiles are placed at any offset, overlapping on purpose.

    `tests.helpers.gpu_vectors` has one on a GPU.
    """

    def __init__(self, *, hazards: bool = True, seed: int = 0) -> None:
        self.engine: Any = SimEngine(seed=seed, hazards=hazards)
        self.hazards = hazards
        self.seed = seed
        self.params: list[Param] = []
        self.tiles: list[TileDecl] = []
        self.barriers: list[BarrierDecl] = []
        self.steps: list[Step] = []
        self.maps: dict[str, BoundMap] = {}
        self.arrays: dict[str, BoundArray] = {}
        self.end = 0  # bytes of shared memory in use
        self.tokens = 0

    # ---- declarations
    def memory(self, data: Bytes) -> Buffer:
        buffer: Buffer = self.engine.allocate(len(data))
        self.engine.write(buffer, 0, memoryview(data.tobytes()))
        return buffer

    def unmapped(self, address: int) -> Buffer:
        """An address that is nobody's."""
        return ForeignBuffer(address)

    def tile(self, dtype: str, shape: tuple[int, ...], offset: int, swizzle: str = "none") -> int:
        layout = TileLayout(shape=shape, element_bytes=DTYPES[dtype].nbytes, swizzle=swizzle)
        name = f"tile{len(self.tiles)}"
        self.tiles.append(
            TileDecl(
                name=name, dtype=dtype, shape=shape, align=16, swizzle=swizzle, stages=1, offset=offset, stage_bytes=layout.footprint_bytes
            )
        )
        self.end = max(self.end, offset + layout.footprint_bytes)
        return len(self.tiles) - 1

    def barrier(self, offset: int | None = None) -> int:
        if offset is None:
            offset = -(-self.end // 8) * 8
        self.barriers.append(BarrierDecl(name=f"bar{len(self.barriers)}", kind="TmaBarrier", stages=1, offset=offset))
        self.end = max(self.end, offset + 8)
        return len(self.barriers) - 1

    def map(self, tensor: TensorMap, buffer: Buffer, offset: int = 0, mode: str = "tile") -> str:
        name = f"map{len(self.maps)}"
        self.params.append(
            MapParam(
                name=name,
                dtype=tensor.dtype,
                box_dim=tensor.box_dim,
                element_strides=tensor.element_strides,
                interleave=tensor.interleave,
                swizzle=tensor.swizzle,
                oob_fill=tensor.oob_fill,
                mode=mode,
            )
        )
        self.maps[name] = BoundMap(map=tensor, buffer=buffer, offset_bytes=offset)
        return name

    def array(self, n: int, dtype: str = "u8") -> tuple[str, Buffer]:
        name = f"out{len(self.arrays)}"
        size = DTYPES[dtype].nbytes
        buffer = self.engine.allocate(n * size)
        self.params.append(ArrayParam(name=name, dtype=dtype, rank=1))
        self.arrays[name] = BoundArray(info=ArrayInfo(dtype=dtype, shape=(n,), strides_bytes=(size,)), buffer=buffer)
        return name, buffer

    def place(self, array: str, offset: int) -> Const:  # another bench has addresses that its coordinates cannot reach
        """The coordinate of byte `offset` of an array of bytes."""
        return Const(offset)

    # ---- ops
    def op(self, op: Instr) -> None:
        self.steps.append(Step(op, self._site()))

    def leader(self, *body: Instr) -> None:
        self.steps.append(Step(LEADER, self._site(), tuple(Step(op, self._site()) for op in body)))

    def _site(self) -> Site:
        return Site("vector", len(self.steps) + 1)

    def sync(self) -> None:
        self.op(ops.BarSync(number=0, threads=THREADS))

    def token(self) -> int:
        self.tokens += 1
        return self.tokens

    def ready(self, bar: int) -> BarrierRef:
        """Initialises a barrier for one arrival."""
        ref = BarrierRef(bar, ZERO)
        self.leader(ops.MbarrierInit(bar=ref, count=1))
        self.sync()
        return ref

    def fill(self, offset: int, nbytes: int, value: int = UNWRITTEN) -> None:
        """Plain stores, made visible to copies."""
        self.op(ops.Fill(tile=TileRef(self.tile("u8", (nbytes,), offset), ZERO), value=value))
        self.op(ops.FenceProxyAsync())
        self.sync()

    def preload(self, data: Bytes, offset: int) -> None:
        """Brings bytes into shared memory (a multiple of 128 from a 128-byte offset on), by copies of their own."""
        lines = -(-len(data) // 128)
        source = self.memory(np.concatenate([data, np.zeros(lines * 128 - len(data), np.uint8)]))
        for first in range(0, lines, 256):
            rows = min(256, lines - first)
            tensor = TensorMap(dtype="u8", global_dim=(rows, 128), global_strides=(128,), box_dim=(rows, 128), element_strides=(1, 1))
            name = self.map(tensor, source, first * 128)
            tile = TileRef(self.tile("u8", (rows, 128), offset + first * 128), ZERO)
            ref, token = self.ready(self.barrier()), self.token()
            self.leader(
                ops.MbarrierArriveExpectTx(bar=ref, nbytes=rows * 128, token=token),
                ops.TensorG2S(map=MapRef(name), tile=tile, coords=(ZERO, ZERO), bar=ref),
            )
            self.op(ops.MbarrierWait(bar=ref, tokens=(token,)))
            self.sync()

    def dump(self, offset: int, nbytes: int) -> Buffer:
        """Stores shared bytes to an array of their own."""
        name, buffer = self.array(nbytes)
        tile = TileRef(self.tile("u8", (nbytes,), offset), ZERO)
        self.op(ops.StoreGlobal(array=ArrayRef(name), tile=tile, coords=(ZERO,)))
        return buffer

    def read(self, buffer: Buffer) -> Bytes:
        return np.frombuffer(self.engine.read(buffer, 0, buffer.nbytes), np.uint8)

    # ---- running
    def program(self) -> Program:
        return Program(
            name="vector",
            threads=THREADS,
            cluster=(1, 1, 1),
            params=tuple(self.params),
            tiles=tuple(self.tiles),
            barriers=tuple(self.barriers),
            shared_bytes=self.end,
            steps=tuple(self.steps),
        )

    def run(self) -> Exploration:
        bindings = Bindings(grid=(1, 1, 1), maps=self.maps, arrays=self.arrays, idx={}, scalars={})
        return explore(self.program(), bindings, seed=self.seed, hazards=self.hazards)


# ---- maps
def tensor_map(m: Row) -> TensorMap:
    """A map of the file."""
    pixels = m["kind"] == "im2col"
    return TensorMap(
        mode="im2col" if pixels else "tile",
        box_dim=(m["pixels_per_column"], m["channels_per_pixel"]) if pixels else tuple(reversed(m["box_dim"])),
        lower=tuple(reversed(m.get("pixel_box_lower_corner", ()))),
        upper=tuple(reversed(m.get("pixel_box_upper_corner", ()))),
        dtype=dtype_name(m["data_type"]),
        global_dim=tuple(reversed(m["global_dim"])),
        global_strides=tuple(reversed(m["global_strides"])),
        element_strides=tuple(reversed(m["element_strides"])),
        interleave=INTERLEAVE[m["interleave"]],
        swizzle=SWIZZLE[m["swizzle"]],
        oob_fill=FILL[m["oob_fill"]],
    )


def bind_map(bench: Bench, m: Row, base: Buffer, mode: str = "") -> str:
    """Declares and binds a map of the file; its address is an offset from `base`, "B-n", "B+n", or absolute in hex."""
    tensor, at = tensor_map(m), m["global_address"]
    mode = mode or tensor.mode
    if isinstance(at, str) and at.startswith("0x"):
        return bench.map(tensor, bench.unmapped(int(at, 16)), mode=mode)
    return bench.map(tensor, base, int(at[1:]) if isinstance(at, str) else at, mode=mode)


def mapped_bytes(m: Row) -> int:
    """As much of the several MiB behind B as the map can reach."""
    tensor, at = tensor_map(m), m["global_address"]
    spans = zip(tensor.global_dim, (*tensor.global_strides, tensor.dtype_info.nbytes), strict=True)
    reach = sum((n - 1) * stride for n, stride in spans) + (at if isinstance(at, int) else 0)
    return min(MAPPED, reach + SLACK)


def coordinates(row: Row) -> tuple[Const, ...]:
    return tuple(Const(c) for c in reversed(row["coords"]))


def offsets(row: Row) -> tuple[Const, ...]:
    """Of an im2col load, outermost first."""
    return tuple(Const(o) for o in reversed(row.get("offsets", ())))


def layout_of(m: Row) -> TileLayout:
    return tensor_map(m).layout


def differences(got: Bytes, wanted: Bytes, what: str) -> list[str]:
    if np.array_equal(got, wanted):
        return []
    where = np.flatnonzero(got != wanted)
    return [f"{what}: {len(where)} bytes differ, first at {where[0]:#x}: {got[where[0]]:02x}, measured {wanted[where[0]]:02x}"]


def hazards_of(result: Exploration) -> list[str]:
    """What is wrong with a run. Tiles at addresses where their swizzle does not begin were measured on purpose."""
    return [str(f) for f in result.findings if f.rule != "OX4130"]


def ending(result: Exploration, code: int = 0) -> list[str]:
    if result.code == code and result.outcome == ("fault" if code else "ok"):
        return []
    return [f"ended with {result.outcome} {result.code}, measured {code}", *map(str, result.diagnostics)]


# ---- sections
def run_load(bench: Bench, row: Row) -> list[str]:
    """`loads` and `random_loads`: the barrier's bytes and the shared image."""
    base = bench.memory(_global(MAPPED)[: mapped_bytes(row["map"])])
    name = bind_map(bench, row["map"], base)
    layout, offset = layout_of(row["map"]), row["smem_offset"]
    tile = TileRef(bench.tile(tensor_map(row["map"]).dtype, layout.shape, offset, layout.swizzle), ZERO)
    bench.fill(offset, max(row["region_bytes"], layout.footprint_bytes))
    ref, token = bench.ready(bench.barrier()), bench.token()
    bench.leader(
        ops.MbarrierArriveExpectTx(bar=ref, nbytes=row["tx_bytes"], token=token),
        ops.TensorG2S(map=MapRef(name), tile=tile, coords=coordinates(row), bar=ref, offsets=offsets(row)),
    )
    bench.op(ops.MbarrierWait(bar=ref, tokens=(token,)))
    out = bench.dump(offset, row["region_bytes"])
    result = bench.run()
    image = bench.read(out)
    return ending(result) + hazards_of(result) + _same_bytes(image, row)


def _same_bytes(image: Bytes, row: Row) -> list[str]:
    if "smem" in row:
        return differences(image, np.frombuffer(bytes.fromhex(row["smem"]), np.uint8), "shared image")
    return [] if hashlib.sha256(image.tobytes()).hexdigest() == row["sha256"] else ["shared image: sha256 differs"]


def run_store(bench: Bench, row: Row) -> list[str]:
    """`stores` and `reduce_shapes`: every byte of the global region."""
    init = row.get("gmem_init", UNWRITTEN)
    base = bench.memory(np.full(max(mapped_bytes(row["map"]), row["region_bytes"]), init, np.uint8))
    name = bind_map(bench, row["map"], base)
    offset = row.get("smem_offset", 0)
    _issue_store(bench, row, name, offset, fetch=True)
    result = bench.run()
    region = bench.read(base)[: row["region_bytes"]]
    return ending(result) + hazards_of(result) + _same_region(region, row, init)


def _issue_store(bench: Bench, row: Row, name: str, offset: int, *, fetch: bool) -> None:
    layout = layout_of(row["map"])
    tile = TileRef(bench.tile(tensor_map(row["map"]).dtype, layout.shape, offset, layout.swizzle), ZERO)
    if fetch:
        bench.preload(shared_pattern(layout.footprint_bytes), offset)
    op = row.get("op", "store")
    copy: Instr = ops.TensorS2G(map=MapRef(name), tile=tile, coords=coordinates(row))
    if op.startswith("reduce."):
        copy = ops.TensorReduce(op=_reduce_word(op), map=MapRef(name), tile=tile, coords=coordinates(row))
    bench.leader(copy, ops.CommitGroup(), ops.WaitGroup(pending=0))


def _reduce_word(op: str) -> str:
    word = op.removeprefix("reduce.")
    return REDUCE_WORDS.get(word, word)


def _same_region(region: Bytes, row: Row, init: int) -> list[str]:
    wanted = np.full(len(region), init, np.uint8)
    if "sha256_of_region" in row:
        same = hashlib.sha256(region.tobytes()).hexdigest() == row["sha256_of_region"]
        return [] if same else ["global region: sha256 differs"]
    for at, data in row.get("written", row.get("changed", [])):
        wanted[at : at + len(data) // 2] = np.frombuffer(bytes.fromhex(data), np.uint8)
    return differences(region, wanted, "global region")


def run_reduce(bench: Bench, row: Row, operands: Row) -> list[str]:
    """`reduces` (the table of operands) and `reduce_illegal`: 80 elements, destination A[i // 10], source B[i % 10]."""
    dtype = dtype_name(row["data_type"])
    size = DTYPES[dtype].nbytes
    rows = operands.get(str(row["data_type"]), {"A": ["0" * 2 * size] * 8, "B": ["0" * 2 * size] * 10})
    target = bench.memory(_values([rows["A"][i // 10] for i in range(80)]))
    tensor = TensorMap(dtype=dtype, global_dim=(80,), global_strides=(), box_dim=(80,), element_strides=(1,))
    name = bench.map(tensor, target)
    bench.preload(_values([rows["B"][i % 10] for i in range(80)]), 0)
    tile = TileRef(bench.tile(dtype, (80,), 0), ZERO)
    copy = ops.TensorReduce(op=_reduce_word(row["op"]), map=MapRef(name), tile=tile, coords=(ZERO,))
    bench.leader(copy, ops.CommitGroup(), ops.WaitGroup(pending=0))
    result = bench.run()
    if "error" in row:
        return ending(result, row["error"])
    wanted = _values([row["result"][i * 2 * size : (i + 1) * 2 * size] for i in range(80)])
    return ending(result) + hazards_of(result) + differences(bench.read(target), wanted, "result")


def _values(words: Sequence[str]) -> Bytes:
    """Hexadecimal values, most significant digit first, as memory."""
    return np.frombuffer(b"".join(bytes.fromhex(word)[::-1] for word in words), np.uint8)


def run_tf32(bench: Bench, pairs: Sequence[tuple[str, str]], data_type: int, *, rounds: bool) -> list[str]:
    """`tf32_conversion`: loads through a map of `data_type`; without `rounds` the values must come through unchanged."""
    source = bench.memory(_values([word for word, _ in pairs]))
    n = len(pairs)
    tensor = TensorMap(dtype=dtype_name(data_type), global_dim=(n,), global_strides=(), box_dim=(-(-n // 4) * 4,), element_strides=(1,))
    name = bench.map(tensor, source)
    tile = TileRef(bench.tile("f32", tensor.box_dim, 0), ZERO)
    ref, token = bench.ready(bench.barrier()), bench.token()
    bench.leader(
        ops.MbarrierArriveExpectTx(bar=ref, nbytes=tensor.box_dim[0] * 4, token=token),
        ops.TensorG2S(map=MapRef(name), tile=tile, coords=(ZERO,), bar=ref),
    )
    bench.op(ops.MbarrierWait(bar=ref, tokens=(token,)))
    out = bench.dump(0, 4 * n)
    result = bench.run()
    wanted = _values([after if rounds else before for before, after in pairs])
    return ending(result) + hazards_of(result) + differences(bench.read(out), wanted, "values")


def run_mbarrier(bench: Bench, row: Row) -> list[str]:
    """`mbarrier`: operations on a zero-filled word, then parity tests and the word after inval."""
    if any(op[0].startswith("arrive") and op[0] != "arrive.expect_tx" and op[1] != 1 for op in row["ops"]):
        return run_word(row)
    bar = bench.barrier(0)
    ref = BarrierRef(bar, ZERO)
    bench.fill(0, 8, 0)
    body: list[Instr] = [_barrier_op(bench, ref, op) for op in row["ops"]]
    body += [ops.MbarrierTestParity(form="test_wait", bar=ref, parity=Const(p), pred=p) for p in (0, 1)]
    flags = bench.tile("u8", (32,), 16)
    inner = [Step(op, Site("vector", i)) for i, op in enumerate(body)]
    inner.append(Step(ops.Fill(tile=TileRef(flags, ZERO), value=0)))
    for p in (0, 1):
        part = TileRef(flags, ZERO, ops.Part(Const(p), 2))
        inner.append(Step(ops.When(cond=Answer(p)), None, (Step(ops.Fill(tile=part, value=1)),)))
    inner.append(Step(ops.MbarrierInval(bar=ref)))
    bench.steps.append(Step(LEADER, None, tuple(inner)))
    bench.sync()
    answers, word = bench.dump(16, 32), bench.dump(0, 8)
    result = bench.run()
    if "error" in row:
        return ending(result, row["error"])
    got = [int(bench.read(answers)[16 * p]) for p in (0, 1)]
    raw = int.from_bytes(bench.read(word).tobytes(), "little")
    problems = ending(result)
    if got != [row["wait_parity_0"], row["wait_parity_1"]]:
        problems.append(f"parity tests gave {got}")
    if raw != int(row["word"], 16):
        problems.append(f"word is {raw:#018x}, measured {row['word']}")
    return problems


def _barrier_op(bench: Bench, ref: BarrierRef, op: Sequence[Any]) -> Instr:
    word, operand = op[0], op[1] if len(op) > 1 else 0
    makers: dict[str, Callable[[], Instr]] = {
        "init": lambda: ops.MbarrierInit(bar=ref, count=operand),
        "inval": lambda: ops.MbarrierInval(bar=ref),
        "expect_tx": lambda: ops.MbarrierExpectTx(bar=ref, nbytes=operand),
        "complete_tx": lambda: ops.MbarrierCompleteTx(bar=ref, nbytes=operand),
        "arrive.expect_tx": lambda: ops.MbarrierArriveExpectTx(bar=ref, nbytes=operand, token=bench.token()),
        "arrive": lambda: ops.MbarrierArrive(bar=ref, token=bench.token()),
        "arrive_drop": lambda: ops.MbarrierArriveDrop(bar=ref, token=bench.token()),
        "st.shared.b64": lambda: ops.Fill(tile=TileRef(bench.tile("u64", (1,), 0), ZERO), value=operand),
    }
    return makers[word]()


def run_word(row: Row) -> list[str]:
    """`mbarrier` rows with an arrival count, which no op of the table has: straight on the state machine."""
    bar = Mbarrier(0)
    try:
        for word, *operand in row["ops"]:
            if word == "arrive":
                bar.arrive_count(*operand)
            else:
                getattr(bar, word.replace(".", "_"))(*operand)
        got = [int(bar.is_over(p)) for p in (0, 1)]
    except Fault as fault:
        return [] if fault.code == row.get("error") else [f"fault {fault.code}, measured {row.get('error', 'none')}"]
    if "error" in row:
        return [f"no fault, measured {row['error']}"]
    wanted = [row["wait_parity_0"], row["wait_parity_1"]]
    return [] if got == wanted and bar.word == int(row["word"], 16) else [f"parity tests {got}, word {bar.word:#018x}"]


def run_runtime(bench: Bench, row: Row) -> list[str]:
    """`runtime`: does it fault, and with which code."""
    if row.get("op", "").startswith("bulk_"):
        return run_bulk(bench, row)
    if "map" not in row:
        raise Skip("text")
    base = bench.memory(_global(MAPPED)[: mapped_bytes(row["map"])])
    name = bind_map(bench, row["map"], base, row["mode"].removesuffix("_no_offs"))
    offset, op = row.get("smem_offset", 0), row["op"]
    if op == "load":
        layout = layout_of(row["map"])
        tile = TileRef(bench.tile(tensor_map(row["map"]).dtype, layout.shape, offset, layout.swizzle), ZERO)
        ref, token = bench.ready(bench.barrier()), bench.token()
        bench.leader(
            ops.MbarrierArriveExpectTx(bar=ref, nbytes=layout.nbytes, token=token),
            ops.TensorG2S(map=MapRef(name), tile=tile, coords=coordinates(row), bar=ref, offsets=offsets(row)),
        )
        bench.op(ops.MbarrierWait(bar=ref, tokens=(token,)))
    elif op == "prefetch":
        bench.leader(ops.TensorPrefetch(map=MapRef(name), coords=coordinates(row), offsets=offsets(row)))
    else:
        _issue_store(bench, row, name, offset, fetch=offset % 128 == 0)
    return ending(bench.run(), row["error"])


def run_bulk(bench: Bench, row: Row) -> list[str]:
    """`runtime` rows of plain copies: does it fault, and with which code."""
    size, offset = row["size"], row.get("smem_offset", 0)
    array = _bytes(bench, size + SLACK)
    at = (bench.place(array, row["global_offset"]),)
    if row["op"] == "bulk_prefetch":
        bench.leader(ops.BulkPrefetch(array=ArrayRef(array), coords=at, nbytes=size))
        return ending(bench.run(), row["error"])
    tile = TileRef(bench.tile("u8", (max(size, 16),), offset), ZERO)
    if row["op"] == "bulk_store":
        bench.fill(0, offset + size + 16)
        copy = ops.BulkS2G(array=ArrayRef(array), coords=at, tile=tile, nbytes=size)
        bench.leader(copy, ops.CommitGroup(), ops.WaitGroup(pending=0))
    else:
        ref, token = bench.ready(bench.barrier()), bench.token()
        bench.leader(
            ops.MbarrierArriveExpectTx(bar=ref, nbytes=size // 16 * 16, token=token),
            ops.BulkG2S(array=ArrayRef(array), coords=at, tile=tile, nbytes=size, bar=ref),
        )
        bench.op(ops.MbarrierWait(bar=ref, tokens=(token,)))
    return ending(bench.run(), row["error"])


def run_bulk_size(bench: Bench, row: Row) -> list[str]:
    """`bulk_sizes`: what is moved and reported of a size that is asked for."""
    size = row["size"]
    array = _bytes(bench, size + 16)
    region = max(size, 16) + 16
    bench.fill(0, region)
    tile = TileRef(bench.tile("u8", (region,), 0), ZERO)
    ref, token = bench.ready(bench.barrier()), bench.token()
    bench.leader(
        ops.MbarrierArriveExpectTx(bar=ref, nbytes=row["tx_bytes"], token=token),
        ops.BulkG2S(array=ArrayRef(array), coords=(ZERO,), tile=tile, nbytes=size, bar=ref),
    )
    bench.op(ops.MbarrierWait(bar=ref, tokens=(token,)))
    out = bench.dump(0, region)
    result = bench.run()
    wanted = np.full(region, UNWRITTEN, np.uint8)
    wanted[: row["bytes_copied"]] = load_pattern(row["bytes_copied"])
    return ending(result) + hazards_of(result) + differences(bench.read(out), wanted, "shared image")


def _bytes(bench: Bench, n: int) -> str:
    """An array of the pattern's bytes."""
    name, buffer = bench.array(n)
    bench.engine.write(buffer, 0, memoryview(load_pattern(n).tobytes()))
    return name


@cache
def _global(n: int) -> Bytes:
    return load_pattern(n)


RUNNERS: Final[dict[str, Callable[..., list[str]]]] = {
    "loads": run_load,
    "random_loads": run_load,
    "stores": run_store,
    "reduce_shapes": run_store,
    "mbarrier": run_mbarrier,
    "runtime": run_runtime,
    "bulk_sizes": run_bulk_size,
}


def run(section: str, row: Row, *, hazards: bool = True, seed: int = 0) -> list[str]:
    """Differences between the simulator and a measured row; raises Skip for rows in words."""
    return RUNNERS[section](Bench(hazards=hazards, seed=seed), row)
