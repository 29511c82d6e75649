"""Runs emitted CUDA C++ on this machine's CPU: compiled by g++ against `cuda_on_cpu.h`, the copies done by the simulator's own code.

What it shows: that the statements, the arithmetic and the addresses of an emitted source do what the program means, under any order of
threads. What it cannot show: that the PTX is right, and memory ordering.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.cuda.emit import Emitted, emitted
from oxidecopy.engines.cuda.emit.elements import FUNCTIONS
from oxidecopy.engines.sim.images import TileImage
from oxidecopy.engines.sim.launch import bind, clusters
from oxidecopy.engines.sim.memory import GlobalMemory, SharedMemory, SimBuffer
from oxidecopy.engines.sim.packed import PackedPlan
from oxidecopy.engines.sim.pixels import PixelPlan
from oxidecopy.engines.sim.tma import TensorPlan
from oxidecopy.program.verified import VerifiedProgram

GXX = shutil.which("g++")
HEADER = Path(__file__).with_name("cuda_on_cpu.h")
_FLAGS = ("-x", "c++", "-std=c++17", "-O0", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w")
_OUTCOMES = {1: "trap", 2: "more arrivals than a phase takes", 3: "deadlock"}
_REDUCES = {"and": "bit_and", "or": "bit_or", "xor": "bit_xor"}
# The functions that are written in PTX.
_ON_CPU = {
    "from_f16": "float from_f16(u16 bits) { return cpu::widen(bits, 10, 15, 0x7fff, 0x7c00); }",
    "from_e4m3": "float from_e4m3(u8 bits) { return (bits & 0x7f) == 0x7f ? NAN : cpu::widen(bits, 3, 7, 0x7f, 0x7f); }",
    "f16_bits": "u16 f16_bits(float x) { return x != x ? 0x7fff : cpu::narrow(x, 10, 15, 0x7c00, 0x7bff, false, 0x8000); }",
    "bf16_bits": "u16 bf16_bits(float x) { return x != x ? 0x7fff : cpu::narrow(x, 7, 127, 0x7f80, 0x7f7f, false, 0x8000); }",
    "minimum": "float minimum(float x, float y) { return x != x || y != y ? x + y : x == y ? (std::signbit(x) ? x : y) : x < y ? x : y; }",
    "maximum": "float maximum(float x, float y) { return x != x || y != y ? x + y : x == y ? (std::signbit(x) ? y : x) : x > y ? x : y; }",
    "to_e4m3": "u8 to_e4m3(float x) { return x != x ? 0x7f : cpu::narrow(x, 3, 7, 0x7f, 0x7e, true, 0x80); }",
    "to_e5m2": "u8 to_e5m2(float x) { return x != x ? 0x7f : cpu::narrow(x, 2, 15, 0x7c, 0x7b, true, 0x80); }",
}


def for_cpu(made: Emitted) -> str:
    """The source with what needs a GPU replaced."""
    text = made.source
    for name, body in FUNCTIONS.items():
        if "asm(" in body:
            text = text.replace(body, _ON_CPU[name])
    copies = "\n".join(_copy(m.group(1), m.group(2)) for m in re.finditer(r"void (cp_(?:reduce_)?async_bulk_tensor_\w+)\((.*?)\)", text))
    copies += "\nstatic const TensorMap* tensormap_acquired(const TensorMap* map) { return map; }"
    text = re.sub(r"namespace ptx \{.*?\}  // namespace ptx\n", lambda _: f"namespace ptx {{\n{copies}\n}}\n", text, flags=re.DOTALL)
    text = re.sub(r"extern __shared__ .*\n", "", text)
    arguments = ", ".join(_argument(i, p.kind, p.ctype) for i, p in enumerate(made.parameters))
    call = 'static void* const* arguments;\nextern "C" void set_arguments(void* const* a) { arguments = a; }\n'
    return f'#include "{HEADER}"\n{text}\n{call}extern "C" void call() {{ {made.kernel_name}({arguments}); }}\n'


def _argument(i: int, kind: str, ctype: str) -> str:
    return f"*static_cast<{ctype}{'*' if kind in ('array', 'table', 'counter') else ''}*>(arguments[{i}])"


def _copy(name: str, parameters: str) -> str:
    """A copy's function, by way of those of the header."""
    coords = ", ".join(re.findall(r"\bc\d\b", parameters))
    if name.startswith("cp_async_bulk_tensor") and "g2s" in name:
        mask = "mask" if "multicast" in name else "1u << cpu::me->cta"
        return f"static void {name}({parameters}) {{ load(to, map, bar, {mask}, {coords}); }}"
    op = "" if name.endswith("_s2g") else name.rpartition("_")[2]
    return f'static void {name}({parameters}) {{ store("{_REDUCES.get(op, op)}", map, from, {coords}); }}'


def build(made: Emitted, folder: Path) -> ctypes.CDLL:
    source, library = folder / "emitted.cpp", folder / "emitted.so"
    source.write_text(for_cpu(made))
    assert GXX is not None
    subprocess.run([GXX, *_FLAGS, str(source), "-o", str(library)], check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library))


def prepared(verified: VerifiedProgram, bindings: Bindings, memory: GlobalMemory) -> Callable[[int], None]:
    """A launch on the simulator's buffers, to be called with a seed; it raises RuntimeError where it traps or gets stuck."""
    made = emitted(verified)
    bound = bind(verified.program, bindings, memory)
    names = sorted(bound.plans)
    counters = {p.of: np.zeros(1, np.uint32) for p in made.parameters if p.kind == "counter"}
    maps = {n: names.index(n).to_bytes(128, "little") for n in names}
    tables = {
        p.of: _aligned(b"".join(maps[n] for n in verified.program.maps[p.of].bound_names)) for p in made.parameters if p.kind == "table"
    }
    packed = [
        p.pack(
            verified.assumptions.launch,
            maps=maps,
            addresses={n: _pointer(a.buffer, a.offset_bytes) for n, a in bindings.arrays.items()}
            | {n: t.ctypes.data for n, t in tables.items()},
            scalars=bindings.scalars,
            counters={n: c.ctypes.data for n, c in counters.items()},
        )
        for p in made.parameters
    ]
    with tempfile.TemporaryDirectory() as folder:
        dll = build(made, Path(folder))
    plans, blocks = [bound.plans[n] for n in names], list(clusters(verified.program, bindings.grid))

    def run(seed: int) -> None:
        assert all(table.size for table in tables.values())  # they live as long as this
        for counter in counters.values():
            counter[:] = 0
        _run(dll, made, plans, packed, blocks, bindings, seed)

    return run


def _aligned(data: bytes) -> npt.NDArray[np.uint8]:
    """A copy at a multiple of 128."""
    room = np.zeros(len(data) + 128, np.uint8)
    start = -room.ctypes.data % 128
    made = room[start : start + len(data)]
    made[:] = np.frombuffer(data, np.uint8)
    return made


def _pointer(buffer: object, offset: int) -> int:
    assert isinstance(buffer, SimBuffer)
    return int(buffer.data.ctypes.data) + offset


def _run(
    dll: ctypes.CDLL,
    made: Emitted,
    plans: Sequence[TensorPlan | PixelPlan | PackedPlan],
    packed: Sequence[bytes],
    blocks: Sequence[Sequence[tuple[int, int, int]]],
    bindings: Bindings,
    seed: int,
) -> None:
    size = len(blocks[0])
    memories = [SharedMemory(made.shared_bytes) for _ in range(size)]

    def copy_in(which: int, rank: int, to: int, coords: ctypes._Pointer[ctypes.c_int], count: int) -> int:
        plan = plans[which]
        TileImage(memories[rank], plan.layout, to).scatter(plan.load(coords[:count][::-1]))
        return plan.nbytes

    def copy_out(which: int, rank: int, at: int, coords: ctypes._Pointer[ctypes.c_int], count: int, op: bytes) -> None:
        plan, units = plans[which], TileImage(memories[rank], plans[which].layout, at).gather()
        if op:
            plan.reduce(coords[:count][::-1], units, op.decode())
        else:
            plan.store(coords[:count][::-1], units)

    place = (ctypes.c_int, ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(ctypes.c_int), ctypes.c_int)
    calls = (ctypes.CFUNCTYPE(ctypes.c_uint, *place)(copy_in), ctypes.CFUNCTYPE(None, *place, ctypes.c_char_p)(copy_out))
    for name, call in zip(("copy_in", "copy_out"), calls, strict=True):
        ctypes.c_void_p.in_dll(dll, name).value = ctypes.cast(call, ctypes.c_void_p).value
    buffers = [ctypes.create_string_buffer(b, len(b)) for b in packed]
    arguments = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))  # the library keeps the pointer
    dll.set_arguments(arguments)
    kept = (ctypes.c_void_p * size)(*(m.data.ctypes.data for m in memories))
    for number, cluster in enumerate(blocks):
        for m in memories:
            m.reset()
        flat = (ctypes.c_uint * (3 * size))(*(i for block in cluster for i in block))
        code = dll.run_cluster(
            dll.call, made.threads, (ctypes.c_uint * 3)(*bindings.grid), size, flat, kept, ctypes.c_ulonglong(seed * 1000 + number)
        )
        if code:
            raise RuntimeError(_OUTCOMES[code])
