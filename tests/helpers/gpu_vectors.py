"""The measured vectors on a GPU: each row as a program of the engine's (rows of mbarriers: by a kernel of their own), or as a call.

A fault loses the context. So each row runs in a process forked for it, several at a time, where the row is one that faults; the others
share one process, and what it was at when it ended is the one that failed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from oxidecopy.engines.base import Bindings, BoundMap, Buffer, RawLaunch, RawParameter
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.encode_call import load_calls
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.memory import CudaBuffer
from oxidecopy.engines.sim import Exploration
from oxidecopy.errors import DeadlockError, DeviceFaultError, UsageError
from oxidecopy.isa.expr import ZERO, Const
from oxidecopy.program.program import Program
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.verified import Assumptions, VerifiedProgram, seal
from tests.helpers import encode_rows, forked, vectors
from tests.helpers.vectors import Bench, Row

CASES: Final = Path(__file__).parents[1] / "cases" / "h200"
FILES: Final = {
    "loads": "loads",
    "random_loads": "loads",
    "tf32_conversion": "loads",
    "stores": "stores",
    "reduce_shapes": "stores",
    "reduces": "stores",
    "reduce_illegal": "stores",
    "bulk_sizes": "bulk",
    "mbarrier": "runtime",
    "runtime": "runtime",
    "encode": "encode",
}
NOT_ASKED: Final = "OX2056"  # calls that may end the process
NO_MAP: Final = "map pointer null; "  # the map's own pointer, which is no parameter of the map
TF32: Final = ((11, True), (12, True), (7, False), (10, False))
AT_ONCE: Final = 12  # processes
ROW_S: Final = 20  # seconds for one row
PAGE: Final = 1 << 21  # bytes; what memory is mapped in
HIGH: Final = 1 << 41  # an address: far above 2^39, which rows subtract
EVERYWHERE: Final = 1 << 56  # bytes of a buffer that no map leaves


class GpuBench(Bench):
    """A bench whose programs nobody proves, on a GPU's engine. Maps may point anywhere: what lies there is the row's business."""

    def __init__(self, engine: CudaEngine) -> None:
        super().__init__()
        self.engine = engine

    def unmapped(self, address: int) -> Buffer:
        return CudaBuffer(self.engine.context, address, EVERYWHERE, keep=(None,))

    def map(self, tensor: TensorMap, buffer: Buffer, offset: int = 0, mode: str = "tile") -> str:
        name = super().map(tensor, buffer, 0, mode)
        if buffer.address + offset < 0:  # the driver gives low addresses on some machines
            buffer = self._high(buffer)
        anywhere = CudaBuffer(self.engine.context, buffer.address + offset, EVERYWHERE, keep=(buffer,))
        self.maps[name] = BoundMap(map=tensor, buffer=anywhere)
        return name

    def _high(self, buffer: Buffer) -> Buffer:
        """A copy of memory at an address that a terabyte can be taken from. It stays mapped as long as the process."""
        context = self.engine.context
        cu = context.driver
        with context:
            prop = cu.CUmemAllocationProp()
            prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
            prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            access = cu.CUmemAccessDesc()
            access.location = prop.location
            access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            nbytes = -(-buffer.nbytes // PAGE) * PAGE
            at = check(cu.cuMemAddressReserve(nbytes, PAGE, HIGH, 0), "cuMemAddressReserve")
            handle = check(cu.cuMemCreate(nbytes, prop, 0), "cuMemCreate")
            check(cu.cuMemMap(at, nbytes, 0, handle, 0), "cuMemMap")
            check(cu.cuMemSetAccess(at, nbytes, [access], 1), "cuMemSetAccess")
        high = CudaBuffer(context, int(at), buffer.nbytes, keep=(at, handle))
        self.engine.write(high, 0, memoryview(self.engine.read(buffer, 0, buffer.nbytes)))
        return high

    def place(self, array: str, offset: int) -> Const:
        buffer = self.arrays[array].buffer
        there = CudaBuffer(self.engine.context, buffer.address + offset, EVERYWHERE, keep=(buffer,))
        self.arrays[array] = replace(self.arrays[array], buffer=there)
        return ZERO

    def run(self) -> Exploration:
        bindings = Bindings(grid=(1, 1, 1), maps=self.maps, arrays=self.arrays, idx={}, scalars={})
        try:
            self.engine.run(unproven(self.program(), bindings, self.engine.sm), bindings)
            self.engine.synchronize()
        except DeviceFaultError as fault:
            return Exploration(outcome="fault", code=fault.code, diagnostics=fault.diagnostics)
        except DeadlockError as error:
            return Exploration(outcome="deadlock", diagnostics=error.diagnostics)
        return Exploration(outcome="ok")


def unproven(program: Program, bindings: Bindings, sm: int) -> VerifiedProgram:
    """A proof that nobody made."""
    return seal(program, Assumptions(sm=sm, shared_bytes=program.shared_bytes, launch=bindings.launch(sm)), ())


# ---- rows
def rows(section: str) -> list[Row]:
    """Those that a program or a kernel can be made of; of tf32_conversion one for each type that is loaded through."""
    if section == "tf32_conversion":
        return [{"data_type": data_type, "rounds": rounds} for data_type, rounds in TF32]
    if section == "encode":
        return [{"id": row[0], "row": row} for row in encode_rows.rows()[1] if row[13] != NO_MAP]
    found: list[Row] = _file(FILES[section])[section]
    return [row for row in found if "text" not in row]


def _file(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text())


def run(engine: CudaEngine, section: str, row: Row) -> list[str]:
    """Differences between the GPU of today and the row; empty when there are none."""
    bench = GpuBench(engine)
    if section == "mbarrier":
        return run_word(engine, row)
    if section == "encode":
        return run_encode(engine, row["row"])
    if section in ("reduces", "reduce_illegal"):
        return vectors.run_reduce(bench, row, _file("stores")["reduce_operands"]["operands"])
    if section == "tf32_conversion":
        return vectors.run_tf32(bench, _file("loads")["tf32_conversion"]["pairs"], row["data_type"], rounds=row["rounds"])
    return vectors.RUNNERS[section](bench, row)


def run_encode(engine: CudaEngine, row: encode_rows.Row) -> list[str]:
    """The driver's answer to a call. Null arrays are not passed on: they end the process where the driver reads them."""
    try:
        with engine.context:
            code, _ = load_calls().encode(encode_rows.parameters(row))
    except UsageError as error:
        return [] if NOT_ASKED in error.rules else [str(error)]
    return [] if code == row[-1] else [f"the driver answers {code}, measured {row[-1]}"]


# ---- mbarriers: arrivals with a count have no op, and a live barrier's word is written to
CUBINS: Final[list[bytes]] = []  # the kernel, once it is compiled
WORDS: Final = ("init", "inval", "expect_tx", "complete_tx", "arrive", "arrive.expect_tx", "arrive_drop", "st.shared.b64")
SOURCE: Final = r"""
extern "C" __global__ void words(const unsigned long long* ops, unsigned long long n, unsigned long long* out) {
    __shared__ unsigned long long word;
    const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&word));
    word = 0;
    for (unsigned long long i = 0; i < n; ++i) {
        const unsigned operand = static_cast<unsigned>(ops[2 * i + 1]);
        switch (ops[2 * i]) {
        case 0: asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(operand) : "memory"); break;
        case 1: asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory"); break;
        case 2: asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(operand) : "memory"); break;
        case 3: asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(operand) : "memory"); break;
        case 4: asm volatile("{.reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0], %1;}" ::"r"(bar), "r"(operand) : "memory"); break;
        case 5:
            asm volatile("{.reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1;}" ::"r"(bar), "r"(operand) : "memory");
            break;
        case 6: asm volatile("{.reg .b64 t; mbarrier.arrive_drop.shared::cta.b64 t, [%0], %1;}" ::"r"(bar), "r"(operand) : "memory"); break;
        default: asm volatile("st.shared.b64 [%0], %1;" ::"r"(bar), "l"(ops[2 * i + 1]) : "memory");
        }
    }
    for (unsigned parity = 0; parity < 2; ++parity) {
        unsigned over;
        asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(over) : "r"(bar), "r"(parity) : "memory");
        out[parity] = over;
    }
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
    unsigned long long raw;
    asm volatile("ld.shared.b64 %0, [%1];" : "=l"(raw) : "r"(bar) : "memory");
    out[2] = raw;
}
"""


def run_word(engine: CudaEngine, row: Row) -> list[str]:
    """A row's operations on one word, then both parity tests, and the word after inval."""
    pairs = [(WORDS.index(word), *(operand or [1 if word.startswith("arrive") else 0])[:1]) for word, *operand in row["ops"]]
    ops, out = engine.allocate(16 * len(pairs) + 16), engine.allocate(24)
    engine.write(ops, 0, memoryview(np.array([*pairs, (0, 0)], np.uint64).tobytes()))
    parameters = (ops.address.to_bytes(8, "little"), len(pairs).to_bytes(8, "little"), out.address.to_bytes(8, "little"))
    launch = RawLaunch(
        image=CUBINS[0],
        kernel="words",
        grid=(1, 1, 1),
        threads=(1, 1, 1),
        cluster=None,
        shared_bytes=0,
        parameters=tuple(RawParameter(name=f"p{i}", offset=8 * i, nbytes=8, value=value) for i, value in enumerate(parameters)),
        parameter_bytes=24,
    )
    try:
        engine.launch_raw(launch, None)
        engine.synchronize()
        got = np.frombuffer(engine.read(out, 0, 24), np.uint64).tolist()
    except DeviceFaultError as fault:
        return [] if fault.code == row.get("error") else [f"fault {fault.code}, measured {row.get('error', 'none')}"]
    if "error" in row:
        return [f"no fault, measured {row['error']}"]
    wanted = [row["wait_parity_0"], row["wait_parity_1"], int(row["word"], 16)]
    return [] if got == wanted else [f"parity tests and word {got}, measured {wanted}"]


def words_cubin(sm: int) -> bytes:
    """The kernel for a device."""
    from oxidecopy.engines.cuda.nvrtc import compile_cubin

    return compile_cubin(SOURCE, arch=f"sm_{sm}a", options=("--std=c++17",)).cubin


# ---- processes
def section_problems(section: str, opened: Callable[[], CudaEngine], first: int = 0, step: int = 1) -> list[str]:
    """Every row of a section that the GPU does otherwise, with its name, or every so-manieth from one on.

    This process must not have used the driver yet.
    """
    every = rows(section)
    if section == "mbarrier" and not CUBINS:  # compiled once, and not here: the compiler's library may use the driver
        CUBINS.append(bytes.fromhex(forked.told(lambda: iter([words_cubin(90).hex()]), seconds=ROW_S)[0]))
    chosen = range(first, len(every), step)
    calm = [i for i in chosen if not every[i].get("error")]
    faulting = [i for i in chosen if every[i].get("error")]
    found = dict(_calmly(section, calm, opened))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found |= dict(zip(faulting, pool.map(lambda i: _alone(section, [i], opened)[0], faulting), strict=True))
    return [f"{section}: {_name(every[i], i)}: {problem}" for i, problem in sorted(found.items()) if problem]


def _name(row: Row, number: int) -> str:
    return str(row.get("id") or row.get("size") or f"{row.get('op', 'row')} {row.get('data_type', number)}")


def _calmly(section: str, wanted: Sequence[int], opened: Callable[[], CudaEngine]) -> Iterator[tuple[int, str]]:
    """Rows in one process; a new one behind a row that ended it."""
    rest = list(wanted)
    while rest:
        told = _alone(section, rest, opened)
        yield from zip(rest, told, strict=False)
        rest = rest[len(told) :]


def _alone(section: str, wanted: Sequence[int], opened: Callable[[], CudaEngine]) -> list[str]:
    """What a forked process says of rows, one after the other, up to one that ends it."""

    def work() -> Iterator[str]:
        engine, every = opened(), rows(section)
        for i in wanted:
            try:
                yield "; ".join(run(engine, section, every[i]))
            except Exception as error:  # whatever it is, it is told
                yield f"{type(error).__name__}: {error}"

    told: list[str] = forked.told(work, seconds=ROW_S)
    return told if len(told) == len(wanted) else [*told, "the process ended, or took too long"]


def main(arguments: Sequence[str]) -> int:
    """Prints how many rows of each section (all when none is named) were held against cuda:0, and what differs; 1 when anything does.

    SECTION:FIRST:STEP takes every so-manieth row.
    """
    from oxidecopy.host.device import Device

    def opened() -> CudaEngine:
        engine = Device.open("cuda:0").engine
        assert isinstance(engine, CudaEngine)
        return engine

    found: dict[str, Any] = {}
    for argument in arguments or FILES:
        section, *part = argument.split(":")
        first, step = map(int, part or (0, 1))
        start = time.perf_counter()
        problems = section_problems(section, opened, first, step)
        found[section] = {
            "rows": len(range(first, len(rows(section)), step)),
            "seconds": round(time.perf_counter() - start, 1),
            "problems": problems,
        }
        sys.stdout.write(json.dumps({section: found[section]}) + "\n")
        sys.stdout.flush()
    return int(any(each["problems"] for each in found.values()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
