"""Rules of the host: arrays, devices and files."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_MODEL: Final = "how arrays are typed here: `dev.array` never converts an element"
_API: Final = "CUDA driver API, cuTensorMapEncodeTiled"
_NPY: Final = "the .npy format (numpy.lib.format)"
_FILES: Final = (
    "from pathlib import Path\nfrom tempfile import mkdtemp\nfrom oxidecopy.host.npy import load_npy, save_npy\n\n"
    "folder = Path(mkdtemp())\n"
)
_GOOD: Final = _FILES + "np.save(folder / 'x.npy', np.ones(8, np.float32))\ndev.array(load_npy(folder / 'x.npy'))\n"
_PIPELINE: Final = """\
@ox.pipeline(threads=32)
def clear(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(ox.f32, (32, 32), align=ox.A16)
    cta.fill(tile, 0.0)
    cta.sync()
    cta.store(out, tile, (0, 0))

"""


def _rule(number: int, title: str, why: str, source: str, wrong: str = "", right: str = "", error: str = "InputError") -> Rule:
    return Rule(id=f"OX5{number:03}", title=title, error=error, why=why, source=source, wrong=wrong, right=right)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        1,
        "Only plain numpy arrays are copied to a device.",
        "A list has no element type, and of a masked array the mask would be lost.",
        _MODEL,
        "dev.array([1.0, 2.0])\n",
        "dev.array(np.asarray([1.0, 2.0]))\n",
    ),
    _rule(
        2,
        "The array is of a type that tensor copies have.",
        "The hardware knows unsigned integers, i32, i64 and floats of 16 to 64 bits; fp8 travels as bytes. "
        "Other types can be viewed as one of them.",
        f"{_API}, CUtensorMapDataType",
        "dev.array(np.zeros(8, np.complex64))\n",
        "dev.array(np.zeros(8, np.complex64).view(np.float32))\n",
    ),
    _rule(
        3,
        "The element type is named where numpy's static types cannot tell it.",
        "A type checker would take an ml_dtypes array for f32, and what `np.load` makes of one has no name at all.",
        _MODEL,
        "import ml_dtypes\n\ndev.array(np.zeros(8, ml_dtypes.bfloat16))\n",
        "import ml_dtypes\n\ndev.array(np.zeros(8, ml_dtypes.bfloat16), ox.bf16)\n",
    ),
    _rule(
        4,
        "The array holds the element type that is named.",
        "Bytes would be read as something else.",
        _MODEL,
        "dev.array(np.zeros(8, np.float64), ox.f32)\n",
        "dev.array(np.zeros(8, np.float64).astype(np.float32), ox.f32)\n",
    ),
    _rule(
        5,
        "The array is in this machine's byte order.",
        "The device would read the bytes of each element backwards.",
        _MODEL,
        "swapped = np.dtype(np.float32).newbyteorder()\ndev.array(np.zeros(8, swapped))\n",
        "swapped = np.dtype(np.float32).newbyteorder()\ndev.array(np.zeros(8, swapped).astype(np.float32))\n",
    ),
    _rule(
        6,
        "No dimension of an array is empty.",
        "There is nothing to copy, and no tensor map has an extent of 0.",
        _API,
        "dev.empty((0, 64), ox.f32)\n",
        "dev.empty((1, 64), ox.f32)\n",
    ),
    _rule(
        7,
        "An array has rank 1 to 5.",
        "No tensor map has another rank.",
        f"{_API}; PTX ISA 5.5",
        "dev.array(np.zeros((2, 2, 2, 2, 2, 2), np.float32))\n",
        "dev.array(np.zeros((4, 2, 2, 2, 2), np.float32))\n",
    ),
    _rule(
        8,
        "An element type is named by its class in oxidecopy.",
        "numpy has no name for most of them, and types such as tf32 and f32 share their storage.",
        _MODEL,
        "dev.empty((4, 4), np.float32)\n",
        "dev.empty((4, 4), ox.f32)\n",
    ),
    _rule(
        9,
        "A shape is a tuple of positive integers.",
        "Its length is the array's rank, which the type knows.",
        _MODEL,
        "dev.empty((128 / 2, 64), ox.f32)\n",
        "dev.empty((128 // 2, 64), ox.f32)\n",
    ),
    _rule(
        10,
        "The device has the element type.",
        "The packed 4-bit and 6-bit types came with compute capability 10.0.",
        f"{_API}, CUtensorMapDataType; measured on an H200",
        "dev.empty((64, 128), ox.u4x16_align8b)\n",
        "dev.empty((64, 64), ox.u8)\n",
    ),
    _rule(
        11,
        "An array fits into memory.",
        "A GPU has its own memory; the simulator keeps device arrays in this machine's.",
        "CUDA driver API, cuMemGetInfo; this machine's physical memory",
        "dev.empty((1 << 30, 1 << 30), ox.f32)\n",
        "dev.empty((1 << 8, 1 << 8), ox.f32)\n",
    ),
    _rule(
        12,
        "A device is asked for by its name.",
        "There is no device of that name.",
        "the names of this version",
        'ox.Device.open("gpu")\n',
        'ox.Device.open("sim")\n',
        error="UsageError",
    ),
    _rule(
        13,
        "The device is there and can be used.",
        "By name there is no way around it: a GPU with tensor maps, and a driver that knows them. Without a name the simulator steps in.",
        "CUDA driver API, cuTensorMapEncodeTiled: compute capability 9.0 or newer",
        'ox.Device.open("cuda:999")\n',
        "ox.Device.open()\n",
        error="DeviceError",
    ),
    _rule(
        14,
        "Checks are asked of a device that makes them.",
        '"sim-fast" leaves out the clocks that find races and missing fences.',
        "the engines of this version",
        'ox.Device.open("sim-fast", checked=True)\n',
        'ox.Device.open("sim", checked=True)\n',
        error="UsageError",
    ),
    _rule(
        15,
        "`empty_like` takes an array of a device.",
        "It takes over element type and strides, which a numpy array does not have in this form.",
        _MODEL,
        "dev.empty_like(np.zeros((4, 4), np.float32))\n",
        "dev.empty_like(dev.array(np.zeros((4, 4), np.float32)))\n",
    ),
    _rule(
        16,
        "What is asked with a yes or a no is answered with True or False.",
        'Any word is true in Python, "no" as well.',
        "the signatures: `bool`",
        _PIPELINE + 'clear[1].attributes(cooperative="no")\n',
        _PIPELINE + "clear[1].attributes(cooperative=False)\n",
        error="ArgumentError",
    ),
    _rule(
        17,
        "A yes or a no in the environment is one of the words for it.",
        "1, true, yes, on; 0, false, no, off, or nothing; in any case. A word that is guessed at is a wish that may not be granted. "
        "`Device.open()` without a name ignores such a word with a warning.",
        "the environment variable OXIDECOPY_CHECKED",
        error="UsageError",
    ),
    _rule(
        18,
        "A packed value has no more bits than its type.",
        "numpy holds one value of 4 or 6 bits in each uint8; what does not fit would be cut without a word.",
        _MODEL,
        "ox.Device.open('sim', arch=100).array(np.full((8, 128), 16, np.uint8), ox.u4x16_align8b)\n",
        "ox.Device.open('sim', arch=100).array(np.full((8, 128), 15, np.uint8), ox.u4x16_align8b)\n",
    ),
    _rule(20, "An input file exists.", "There is nothing to read.", _NPY, _FILES + "load_npy(folder / 'x.npy')\n", _GOOD),
    _rule(21, "An input is a file.", "A directory or device has no array in it.", _NPY, _FILES + "load_npy(folder)\n", _GOOD),
    _rule(
        22,
        "An input file can be read.",
        "The system refuses it: its permissions, or a path that leads through a file.",
        "the file system",
        _GOOD + "load_npy(folder / 'x.npy' / 'x.npy')\n",
        _GOOD,
    ),
    _rule(
        23,
        "An input is a .npy file.",
        "Its first bytes are those of something else.",
        _NPY,
        _FILES + "np.savez(folder / 'x.npz', x=np.ones(8))\nload_npy(folder / 'x.npz')\n",
        _GOOD,
    ),
    _rule(
        24,
        "The header of a .npy file is whole.",
        "What lies behind it cannot be understood.",
        _NPY,
        _FILES + "(folder / 'x.npy').write_bytes(b'\\x93NUMPY' + bytes(20))\nload_npy(folder / 'x.npy')\n",
        _GOOD,
    ),
    _rule(
        25,
        "A .npy file has the bytes that its header declares.",
        "It was cut short, or its header is damaged: part of the array would be made up.",
        _NPY,
        _FILES + "np.save(folder / 'x.npy', np.ones(8, np.float32))\nwhole = (folder / 'x.npy').read_bytes()\n"
        "(folder / 'x.npy').write_bytes(whole[:-4])\nload_npy(folder / 'x.npy')\n",
        _GOOD,
    ),
    _rule(
        26,
        "A .npy file holds numbers.",
        "Loading pickled objects runs code from the file.",
        _NPY,
        _FILES + "np.save(folder / 'x.npy', np.array([None, 1]), allow_pickle=True)\nload_npy(folder / 'x.npy')\n",
        _GOOD,
    ),
    _rule(
        27,
        "The output file can be written.",
        "The system refuses it; a file that was there before is left as it was.",
        "the file system",
        _FILES + "save_npy(folder / 'missing' / 'x.npy', np.ones(8))\n",
        _FILES + "save_npy(folder / 'x.npy', np.ones(8))\n",
        error="UsageError",
    ),
    _rule(
        43,
        "An architecture is chosen for a simulator.",
        "A GPU is of its own. Before compute capability 9.0 there were no tensor maps; what came after it was not held against hardware.",
        "`Device.open`",
        "ox.Device.open('cuda:0', arch=100)\n",
        "ox.Device.open('sim', arch=100)\n",
        error="UsageError",
    ),
    _rule(
        44,
        "Packed elements are viewed as the bytes that they lie in.",
        "Elements of 4 and 6 bits have no address. `a.bytes` is an array of bytes, with all views; `.packed(dtype)` leads back.",
        _MODEL,
        "a = ox.Device.open('sim', arch=100).zeros((8, 128), ox.u4x16_align8b)\nprint(a[2:4])\n",
        "a = ox.Device.open('sim', arch=100).zeros((8, 128), ox.u4x16_align8b)\nprint(a.bytes[2:4].packed(ox.u4x16_align8b))\n",
        error="UsageError",
    ),
)
