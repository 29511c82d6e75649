"""Rules of launches on a GPU: what is asked of arguments and machine code, and what a launch may come back with."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_API: Final = "CUDA driver API, cuLaunchKernelEx"
_BOUNDED: Final = "every wait of the interpreter is bounded: OXIDECOPY_WAIT_LIMIT_MS, 4 seconds without it"
_PREPARED: Final = """\
@ox.pipeline(threads=32)
def clear(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(ox.f32, (32, 32), align=ox.A16)
    cta.fill(tile, 0.0)
    cta.sync()
    cta.store(out, tile, (0, 0))

def array(rows):
    return dev.array(np.ones((rows, 32), np.float32))

launch = clear[1].prepare(array(32))
"""


def _rule(number: int, title: str, why: str, source: str, error: str = "ExecutionError") -> Rule:
    """A page whose scripts are in `on_gpu` or `played`."""
    return Rule(id=f"OX53{30 + number}", title=title, error=error, why=why, source=source)


_CODE: Final = """\
from hashlib import sha256
from pathlib import Path

from oxidecopy.engines.cuda.module import CodeFile, read_code

Path("mine.cubin").write_bytes(b"machine code")
code = CodeFile(file="mine.cubin", target="sm_90a", sha256=sha256(b"machine {word}").hexdigest())
read_code(Path("."), code)
"""
_CHOICE: Final = """\
from oxidecopy.engines.cuda.module import choose, kernels_folder, read_manifest

choose(read_manifest(kernels_folder()), sm={sm})
"""


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        0,
        "a launch is the one that its program was verified for",
        "The proof took grid, extents, strides and index values for granted; with others nothing is known of the program.",
        "the assumptions of a VerifiedProgram",
    ),
    _rule(
        1,
        "every wait of a launch ends within the limit",
        "A wait that never ends would hang the device. So each is given up after a while: the launch ends, the host raises, the context "
        "and other libraries in the process live on. What the launch wrote is not to be trusted. The verifier refuses programs that would "
        "wait so: this is our mistake then, or a launch that is only slow. Tested on an H200 with programs that nobody verified.",
        _BOUNDED,
        error="DeadlockError",
    ),
    _rule(
        2,
        "an index read from memory is in the range that it was declared with",
        "The program was verified for indices below a bound; one beyond it would reach memory that nobody checked. The "
        "simulator's rule is OX4015.",
        "`cta.load_index(array, i, below=n)`: checked on the device",
    ),
    _rule(
        3,
        "the interpreter knows every record of its code",
        "Host and machine code are held together by a fingerprint, so this is a mistake of oxidecopy: please report it.",
        "oxidecopy/engines/cuda/abi.py",
    ),
    Rule(
        id="OX5334",
        title="there is machine code for the GPU",
        error="DeviceError",
        why="Machine code runs on the architecture that it was compiled for, and tensor copies differ between them.",
        source="CUDA's rules of binary compatibility; oxidecopy/kernels/manifest.json",
        wrong=_CHOICE.format(sm=80),
        right=_CHOICE.format(sm=90),
    ),
    Rule(
        id="OX5335",
        title="the machine code is the one that was built with this version",
        error="DeviceError",
        why="Code that was damaged, or built from other declarations, would misread what the host gives it.",
        source="sha256 and fingerprint in oxidecopy/kernels/manifest.json",
        wrong=_CODE.format(word="core"),
        right=_CODE.format(word="code"),
    ),
    _rule(
        6,
        "a launch asks for no more than device and machine code have",
        "Shared memory, and threads for the registers that the code needs, are bounded by the multiprocessor; of shared memory a "
        "few bytes are the interpreter's own where tiles come from a counter.",
        f"{_API}; CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
    ),
    Rule(
        id="OX5337",
        title="the limit for waits is a number of milliseconds",
        error="UsageError",
        why="Without a limit, a wait that never ends would hang the device.",
        source="the environment variable OXIDECOPY_WAIT_LIMIT_MS",
    ),
    Rule(
        id="OX5338",
        title="a prepared launch is given arguments of the shape that it was verified for",
        error="ArgumentError",
        why="What was packed holds the proof and the code of one grid, with its extents, strides and index values folded into it.",
        source="`prepare` verifies for one launch shape",
        wrong=_PREPARED + "launch.update(array(64))\n",
        right=_PREPARED + "launch.update(array(32))\n",
    ),
    Rule(
        id="OX5339",
        title="a graph is captured once, and replayed after that",
        error="UsageError",
        why="Outside a capture there is nothing that a launch could be added to, and nothing to replay before one.",
        source="CUDA driver API, graphs by stream capture",
        wrong=_PREPARED + "graph = ox.Graph(dev)\ngraph.add(launch)\ngraph.replay()\n",
        right=_PREPARED + "graph = ox.Graph(dev)\nwith graph.capture():\n    graph.add(launch)\ngraph.replay()\n",
    ),
    Rule(
        id="OX5340",
        title="all CTAs of a cooperative launch fit on the device at once",
        error="ExecutionError",
        why="CTAs of a cooperative launch may wait for each other, so none of them may be left for later. How many fit follows from their "
        "threads, registers and shared memory; it is asked for before the launch.",
        source=f"{_API}: CU_LAUNCH_ATTRIBUTE_COOPERATIVE; cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveClusters",
    ),
    _rule(
        11,
        "there is room for a cluster on the device",
        "The CTAs of a cluster run at the same time on the SMs of one GPU processing cluster. Where their threads, registers and shared "
        "memory leave no room for all of them, the cluster can never start.",
        f"{_API}: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION; cuOccupancyMaxActiveClusters",
    ),
)
