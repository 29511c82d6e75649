"""Rules of memory that is shared with other libraries, and of views."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_DLPACK: Final = "DLPack, https://dmlc.github.io/dlpack/latest"
_STARTED: Final = "from oxidecopy.frameworks.starting import started\n\n"
_CUDA_ARRAY: Final = "CUDA array interface, version 3 (numba.readthedocs.io)"
_VIEWS: Final = "how arrays are viewed here: views never copy"
_X: Final = "x = np.zeros((4, 8), np.float32)\n"
_A: Final = "a = dev.array(np.zeros((4, 8), np.float32))\n"
_CLEAR: Final = """\
@ox.pipeline(threads=32)
def clear(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(ox.f32, (4, 8), align=ox.A16)
    cta.fill(tile, 0.0)
    cta.sync()
    cta.store(out, tile, (0, 0))

"""
_SPEAKER: Final = """\
class Theirs:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return {}

"""
_ON_A_GPU: Final = _SPEAKER.replace("(1, 0)", "(2, 0)")


def _rule(number: int, title: str, why: str, source: str, wrong: str = "", right: str = "", error: str = "InputError") -> Rule:
    return Rule(id=f"OX50{number}", title=title, error=error, why=why, source=source, wrong=wrong, right=right)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        30,
        "What is borrowed shares its memory by DLPack or by the CUDA array interface.",
        "A list has no memory to share. Numpy arrays are borrowed on the simulator, whose memory is the host's.",
        _DLPACK,
        "dev.borrow([1.0, 2.0], ox.f32, rank=1)\n",
        "dev.array(np.asarray([1.0, 2.0]))\n",
    ),
    _rule(
        31,
        "Memory is borrowed on the device that it is on.",
        "An address means nothing on another device, and nothing is copied without being asked for.",
        f"{_DLPACK}: __dlpack_device__",
        _ON_A_GPU + "dev.borrow(Theirs(), ox.f32, rank=1)\n",
        "dev.borrow(np.zeros(8, np.float32), ox.f32)\n",
    ),
    _rule(
        32,
        "Borrowed memory holds the element type that is named.",
        "Elements are never converted: bits of another type would be numbers without a meaning. fp8 may be held as uint8.",
        f"{_DLPACK}: DLDataType",
        "dev.borrow(dev.array(np.zeros((4, 8), np.float32)), ox.f16, rank=2)\n",
        "dev.borrow(dev.array(np.zeros((4, 8), np.float32)), ox.f32, rank=2)\n",
    ),
    _rule(
        33,
        "Borrowed memory has the rank that is named.",
        "Type checkers know the shape by it, and so which pipelines and boxes fit.",
        "the signature of `dev.borrow`",
        _A + "dev.borrow(a, ox.f32, rank=3)\n",
        _A + "dev.borrow(a, ox.f32, rank=2)\n",
    ),
    _rule(
        34,
        "What is borrowed is not masked.",
        "A copy takes every element, those that the mask hides as well.",
        f"{_CUDA_ARRAY}: mask",
        "x = np.ma.masked_array(np.zeros(8, np.float32), mask=[0, 1] * 4)\ndev.borrow(x, ox.f32)\n",
        "x = np.ma.masked_array(np.zeros(8, np.float32), mask=[0, 1] * 4)\ndev.borrow(x.filled(0), ox.f32)\n",
    ),
    _rule(
        35,
        "An object keeps to the protocol that it speaks.",
        "What a capsule or an interface says is all that is known of the memory: guessing would be reading somebody else's.",
        f"{_DLPACK}; {_CUDA_ARRAY}",
        _SPEAKER + "dev.borrow(Theirs(), ox.f32, rank=1)\n",
        _SPEAKER + "dev.borrow(np.zeros(8, np.float32), ox.f32)\n",
    ),
    _rule(
        36,
        "A borrowed array runs forwards, by whole elements.",
        "Element 0 of an array is its first byte, and tensor maps have no negative strides.",
        "CUDA driver API, cuTensorMapEncodeTiled: globalStrides",
        _X + "dev.borrow(x[::-1], ox.f32)\n",
        _X + "dev.borrow(x[::2], ox.f32)\n",
    ),
    _rule(
        37,
        "Read-only memory is not written to.",
        "Its owner relies on it: jax shares arrays that are equal, numpy maps files. It may be loaded from.",
        f"{_DLPACK}: DLPACK_FLAG_BITMASK_READ_ONLY; {_CUDA_ARRAY}: data",
        _CLEAR + _X + "x.flags.writeable = False\nclear[1](dev.borrow(x, ox.f32))\n",
        _CLEAR + _X + "clear[1](dev.borrow(x, ox.f32))\n",
        error="ArgumentError",
    ),
    _rule(
        38,
        "A pointer is borrowed with all that says what is behind it.",
        "Address, shape and strides are taken at their word, so they have to be said, and so has the object that the memory lives with.",
        "the signature of `dev.borrow_pointer`",
        _X + "dev.borrow_pointer(x.ctypes.data + 1, (4, 8), ox.f32, owner=x)\n",
        _X + "dev.borrow_pointer(x.ctypes.data, (4, 8), ox.f32, owner=x)\n",
    ),
    _rule(
        39,
        "An array is handed out as it is, where it is.",
        "Protocols let others ask for a copy, for another device, or not tell them that memory is read-only; np.asarray, copy and pickle "
        "would copy unseen. What is copied is asked for by its name.",
        f"{_DLPACK}: __dlpack__",
        _A + "a.__dlpack__(copy=True)\n",
        _A + "np.from_dlpack(a).copy()\n",
        error="ExportError",
    ),
    _rule(
        40,
        "A view is made by what means one.",
        "Axes are an order of the dimensions, slices go forwards, shapes are positive integers, strides are 0 or more whole elements.",
        _VIEWS,
        _A + "a.permute(0, 0)\n",
        _A + "a.permute(1, 0)\n",
        error="UsageError",
    ),
    _rule(
        41,
        "A view stays inside the array that it is a view of.",
        "Beyond it is other memory, and a view of nothing has no first element.",
        _VIEWS,
        _A + "a.as_strided((4, 8), (36, 4))\n",
        _A + "a.as_strided((3, 8), (36, 4))\n",
        error="UsageError",
    ),
    _rule(
        42,
        "An array that is stored to has memory of its own for each element.",
        "Stores of a launch are in no order: of elements that share memory any one may be left. Loads and reductions may share it.",
        "PTX memory consistency model: races",
        _CLEAR + "row = dev.array(np.zeros((1, 8), np.float32))\nclear[1](row.broadcast_to((4, 8)))\n",
        _CLEAR + "clear[1](dev.array(np.zeros((4, 8), np.float32)))\n",
        error="ArgumentError",
    ),
    _rule(
        50,
        "An operator of torch takes torch.",
        "`oxidecopy.frameworks.torch` registers pipelines with it; all else does not.",
        "PyTorch documentation: custom operators",
        error="UsageError",
    ),
    _rule(
        51,
        "A function that becomes an operator of torch takes an On first, and what torch knows by its annotations.",
        "torch reads the operator's schema from them: tensors, numbers, strings, lists.",
        "PyTorch documentation: custom_op, what a schema is made of",
        error="UsageError",
    ),
    _rule(
        52,
        "The tensors of an operator lie in one memory: one GPU's, or the host's.",
        "The operator runs where they are: on that GPU, or on the simulator.",
        "design of the operators: nothing is copied",
        error="UsageError",
    ),
    _rule(
        53,
        "Arrays in parts have processes to be on.",
        "torchrun or MPI starts them, `torch.distributed.init_process_group` lets them know each other; `alone()` is a group of one.",
        "torch.distributed",
        "from oxidecopy.frameworks.sharded import torch_group\n\ntorch_group()\n",
        "from oxidecopy.frameworks.sharded import alone\n\nalone()\n",
        error="UsageError",
    ),
    _rule(
        54,
        "Every rank has the part of an array that its number says.",
        "Rank r of R has elements r * n // R up to (r + 1) * n // R of the axis that is cut: from that all know what to send to whom.",
        "design of arrays in parts",
        _X + "from oxidecopy.frameworks.sharded import alone, copy\n\ncopy(alone(), x, axis=2, to=0)\n",
        _X + "from oxidecopy.frameworks.sharded import alone, copy\n\ncopy(alone(), x, axis=1, to=0)\n",
        error="ArgumentError",
    ),
    _rule(
        55,
        "Who started the ranks says which rank this is, of how many, and where the first one is.",
        "torchrun, mpirun (of Open MPI, MPICH, Intel MPI) and srun tell their processes by environment variables. With half of them a "
        "process would wait for others that do not come. Several hosts meet at MASTER_ADDR, which MPI and Slurm do not say.",
        "torch.distributed, init_process_group; Open MPI, MPICH and Slurm documentation: variables of a process",
        _STARTED + 'started({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "2"})\n',
        _STARTED + 'started({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"})\n',
        error="UsageError",
    ),
    _rule(
        56,
        "Each rank on a host has a GPU of its own there.",
        "Two ranks on one GPU share it, which NCCL refuses or waits for; torch's own error for a GPU that is not there names no rank.",
        "NCCL documentation, creating a communicator: one rank for each device",
        error="UsageError",
    ),
)
