"""Rules of the one-liners: `ox.copy`, `ox.transform`, `ox.reduce_into`, `ox.gather_rows`, `ox.matmul`."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_DESIGN: Final = "design of the one-liners"
_TENSOR: Final = "PTX ISA 5.5 and 9.7.9.27, tensor copies; measured on an H200"
_WGMMA: Final = "PTX 9.7.16, wgmma: element types, target ISA notes"
_A: Final = "a = dev.array(np.ones((8, 32), np.float32))\n"


def _rule(number: str, error: str, title: str, why: str, scripts: tuple[str, str], source: str = _DESIGN) -> Rule:
    wrong, right = scripts
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=_A + wrong, right=_A + right)


_FILE: Final = """\
import json

header = json.dumps({"w": {"dtype": "<type>", "shape": [8], "data_offsets": <offsets>}}).encode()
with open("w.safetensors", "wb") as file:
    file.write(len(header).to_bytes(8, "little") + header + bytes(16))
ox.read_safetensors("w.safetensors", <name>)
"""


def _file(number: str, title: str, why: str, edit: tuple[str, str]) -> Rule:
    def script(word: str) -> str:
        text = _FILE.replace("<type>", word if word[0] in "IU" else "U16")
        text = text.replace("<offsets>", word if word[0] == "[" else "[0, 16]")
        return text.replace("<name>", word if word[0] == "'" else "'w'").replace("'", '"')

    source = "the .safetensors format (huggingface.co/docs/safetensors)"
    return Rule(id=number, title=title, error="InputError", why=why, source=source, wrong=script(edit[0]), right=script(edit[1]))


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1200",
        "ShapeError",
        "The arrays of a one-liner have shapes that fit each other",
        "`copy` and the outputs of all take one shape; inputs of `transform` are repeated along dimensions of one element, and "
        "`reduce_into` "
        "combines along those of its output. A copy repeats nothing by itself: that a source is shorter is more often a mistake.",
        ("ox.copy(dev.empty((8, 16), ox.f32), a)", "ox.copy(dev.empty((8, 16), ox.f32), a[:, :16])"),
    ),
    _rule(
        "OX1201",
        "DTypeError",
        "Element types are converted where that is asked for",
        "`copy` converts, and so does `cast` in a function. An output that would be rounded to another type than its values have, "
        "numbers of "
        "rows that are no integers and packed types that have no values of their own are refused.",
        (
            "ox.transform(lambda v: v * 2, a, out=dev.empty((8, 32), ox.f16))",
            "ox.transform(lambda v: (v * 2).cast(ox.f16), a, out=dev.empty((8, 32), ox.f16))",
        ),
    ),
    _rule(
        "OX1202",
        "ArgumentError",
        "An output shares no memory with what is read meanwhile",
        "Boxes are loaded and stored in no certain order, so an element may be overwritten before it is read. `transform` may work in "
        "place: "
        "then each element is read before it is written, and by nobody else.",
        ("ox.copy(a[1:], a[:-1])", "ox.copy(a[:4], a[4:])"),
    ),
    _rule(
        "OX1203",
        "ArgumentError",
        "There is a way to load what is copied",
        "Loads begin at multiples of 16 bytes and take whole rows of elements that follow each other. A source that begins elsewhere "
        "is loaded "
        "from the multiple before it, which must be memory of the same array. Where no elements follow each other, one more dimension "
        "says so; "
        "a tensor map has five at most.",
        (
            "b = a.as_strided((2, 2, 2, 2, 2), (32, 64, 128, 256, 12))\nox.copy(None, b)",
            "b = a.as_strided((2, 2, 2, 2, 2), (32, 64, 128, 256, 12))\nox.copy(None, b.select(0, 0))",
        ),
        _TENSOR,
    ),
    _rule(
        "OX1204",
        "ArgumentError",
        "One-liners take arrays",
        "Arrays of this package say where they lie, and those of other libraries by DLPack or the CUDA array interface. Lists and "
        "numbers lie "
        "nowhere on a device.",
        ("ox.copy(a, [1.0, 2.0])", "ox.copy(a[:1, :2], np.array([[1.0, 2.0]], np.float32))"),
    ),
    _rule(
        "OX1205",
        "ArgumentError",
        "`transform` takes one to four inputs, and numbers with their type",
        "An operation has one element type on both sides. A plain number would have to be given one, so it is written out; inside the "
        "function "
        "a number takes the type of what it meets. More than four inputs do not fit into one map.",
        ("ox.transform(lambda v, s: v * s, a, 1.7)", "ox.transform(lambda v, s: v * s, a, ox.value(1.7, ox.f32))"),
    ),
    _rule(
        "OX1206",
        "ArgumentError",
        "`reduce_into` combines: it does not count",
        "`inc` and `dec` change what is in memory by one, bounded by the element that comes: the result depends on the order, which "
        "nobody knows.",
        (
            "out = dev.zeros((8, 32), ox.u32)\nox.reduce_into(out, dev.array(np.ones((8, 32), np.uint32)), ox.reduce.inc)",
            "out = dev.zeros((8, 32), ox.u32)\nox.reduce_into(out, dev.array(np.ones((8, 32), np.uint32)), ox.reduce.add)",
        ),
    ),
    _rule(
        "OX1207",
        "ArgumentError",
        "Rows that are gathered begin at multiples of 16 bytes",
        "Each row is a copy of its own, and copies begin at multiples of 16 bytes. The table is not copied to a better place unseen: "
        "it is what "
        "is large, and a few rows of it are wanted.",
        (
            "t = dev.array(np.ones((8, 30), np.float32))\nox.gather_rows(t, dev.array(np.array([3, 1], np.int32)))",
            "t = dev.array(np.ones((8, 30), np.float32), pad=True)\nox.gather_rows(t, dev.array(np.array([3, 1], np.int32)))",
        ),
        _TENSOR,
    ),
    _rule(
        "OX1240",
        "ShapeError",
        "Shapes of a product fit each other as numpy's `@` has them",
        "The second dimension of the one and the first of the other are summed over. Weights of a linear layer mostly lie the other way "
        "round: as a transposed view they are multiplied the fastest.",
        (
            "x = dev.zeros((8, 64), ox.bf16)\nox.matmul(x, dev.zeros((16, 64), ox.bf16))",
            "x = dev.zeros((8, 64), ox.bf16)\nox.matmul(x, dev.zeros((16, 64), ox.bf16).T)",
        ),
        _WGMMA,
    ),
    _rule(
        "OX1241",
        "DTypeError",
        "Products are of bf16, f16, tf32 or fp8, and their results are f32, bf16 or f16",
        "Tensor cores multiply no f32. Its numbers can be rounded to tf32, which keeps 10 of their 23 digits: that is asked for, not done.",
        ("ox.matmul(a, a.T)", "x = dev.array(np.ones((8, 32), np.float32), ox.tf32)\nox.matmul(x, x.T)"),
        _WGMMA,
    ),
    _rule(
        "OX1242",
        "ArgumentError",
        "`matmul` runs on compute capability 9.0",
        "It is made of wgmma, which sm_90a alone has. docs/contract.md says what newer devices need.",
        (
            "dev = ox.Device.open('sim', arch=100)\nx = dev.zeros((8, 64), ox.bf16)\nox.matmul(x, x.T)",
            "dev = ox.Device.open('sim', arch=90)\nx = dev.zeros((8, 64), ox.bf16)\nox.matmul(x, x.T)",
        ),
        _WGMMA,
    ),
    _rule(
        "OX1243",
        "ShapeError",
        "An epilogue reads up to three arrays: vectors for every row or column, or arrays of the result's shape",
        "(N,) is one element for each column, (M, 1) one for each row. Anything else would have to be guessed.",
        (
            "x = dev.zeros((8, 64), ox.bf16)\nox.matmul(x, x.T, epilogue=lambda s, b: s + b, reads=(dev.zeros((4,), ox.f32),))",
            "x = dev.zeros((8, 64), ox.bf16)\nox.matmul(x, x.T, epilogue=lambda s, b: s + b, reads=(dev.zeros((8,), ox.f32),))",
        ),
    ),
    _file(
        "OX1220",
        "A .safetensors file is what its header says",
        "Its header says where each tensor lies. Bytes that are not there would be read as weights.",
        ("[0, 32]", "[0, 16]"),
    ),
    _file(
        "OX1221",
        "A tensor is read by a name that the file has",
        "A file of weights has hundreds of them; which one is meant is not guessed.",
        ("'v'", "'w'"),
    ),
    _file(
        "OX1222",
        "A tensor that is read has a type that arrays have",
        "Types without an element type here (booleans, complex numbers, 16-bit integers with a sign) have no tensor maps either.",
        ("I16", "U16"),
    ),
)
