"""Work on tiles by all threads in scope together, as one C++ function per kind of it: plain stores, fills, iotas and maps.

A thread takes units of up to 16 bytes of a row, which no swizzle tears apart. Tiles are offsets into `shared`; the swizzle works on them as
it does on addresses, because the array starts at a multiple of 1,024.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Final, final

from oxidecopy.engines.cuda.code.swizzles import chunk_mask
from oxidecopy.engines.cuda.emit.elements import Elements, storage
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import Along, ways
from oxidecopy.program.program import ArrayInfo, Program, TileDecl

UNIT_BYTES: Final = 16
# How an index becomes the bits of an element, as a fill with the same number would.
_IOTA: Final[dict[str, str]] = {
    "f32": "__float_as_uint((float){})",
    "f32_ftz": "__float_as_uint((float){})",
    "f64": "(u64)__double_as_longlong((double){})",
    "f16": "num::f16_bits((float){})",
    "bf16": "num::bf16_bits((float){})",
    "tf32": "num::to_tf32((float){})",
    "tf32_ftz": "num::to_tf32((float){})",
    "e4m3": "num::plain_e4m3((float){})",
    "e5m2": "num::plain_e5m2((float){})",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A tile or part of one, as its threads see it; `unit` is the most bytes that they can take at once."""

    dtype: str
    shape: tuple[int, ...]
    row_bytes: int
    pitch_bytes: int
    swizzle: str
    unit: int

    @property
    def element(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype].nbytes

    @property
    def rows(self) -> int:
        """Innermost rows."""
        count = 1
        for n in self.shape[:-1]:
            count *= n
        return count


def view_of(program: Program, ref: ops.TileRef) -> View:
    """What `ref` names."""
    decl = program.tiles[ref.tile]
    layout = decl.layout
    shape = layout.shape if ref.part is None else (layout.shape[0] // ref.part.of, *layout.shape[1:])
    row_bytes = shape[-1] * layout.element_bytes
    steps = [row_bytes, decl.offset, layout.pitch_bytes if len(shape) > 1 else 0, decl.stage_bytes if decl.stages > 1 else 0]
    steps.append(part_bytes(decl, ref.part.of) if ref.part is not None else 0)
    unit = max(gcd(UNIT_BYTES, *steps), layout.element_bytes)
    return View(dtype=decl.dtype, shape=shape, row_bytes=row_bytes, pitch_bytes=layout.pitch_bytes, swizzle=layout.swizzle, unit=unit)


def part_bytes(decl: TileDecl, of: int) -> int:
    """From one part of a tile to the next."""
    layout = decl.layout
    return (layout.rows * layout.pitch_bytes if len(layout.shape) > 1 else layout.row_bytes) // of


@final
class Tiles:
    """The functions that a program needs; each method gives the name of one."""

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self._made: dict[str, str] = {}  # text without its name -> name
        self._swizzles: set[str] = set()
        self._taken: set[str] = set()

    def text(self) -> str:
        """All of them, in a namespace of their own; empty without any."""
        if not self._made:
            return ""
        parts = [_SWIZZLE.format(name=name, mask=chunk_mask(name)) for name in sorted(self._swizzles)]
        parts += [text.replace("@", name, 1) for text, name in self._made.items()]
        return f"{_VEC}\nnamespace coop {{\n\n" + "\n\n".join(parts) + "\n\n}  // namespace coop\n"

    def function(self, name: str, note: str, parameters: list[str], body: list[str]) -> str:
        """The name of a function of all threads together with this body, which is there once; it knows `rank` and `count`."""
        head = f"// {note}\n__device__ __forceinline__ void @({', '.join([*parameters, 'int rank', 'int count'])}) {{"
        text = "\n".join([head, *(f"    {line}" for line in body), "}"])
        found = self._made.get(text)
        if found is None:
            found, number = name, 1
            while found in self._taken:
                number += 1
                found = f"{name}_{number}"
            self._taken.add(found)
            self._made[text] = found
        return f"coop::{found}"

    def at(self, view: View, base: str) -> str:
        """The bytes of the unit at `row`, `x`."""
        inner = f"{base} + x * {view.element}" if view.rows == 1 else f"{base} + row * {view.pitch_bytes} + x * {view.element}"
        if view.swizzle == "none":
            return f"shared + ({inner})"
        self._swizzles.add(view.swizzle)
        return f"shared + swizzle_{view.swizzle}({inner})"

    def _in_vector(self, view: View, base: str, number: str, out: View) -> str:
        """The bytes of element `number` of a tile of one row, beside an output."""
        inner = f"{base} + {'0' if number == 'row' and out.rows == 1 else number} * {view.element}"
        if view.swizzle == "none":
            return f"shared + ({inner})"
        self._swizzles.add(view.swizzle)
        return f"shared + swizzle_{view.swizzle}({inner})"

    def _loop(self, view: View, n: int) -> list[str]:
        """Opens the loop over units of `n` elements."""
        per_row = view.shape[-1] // n
        lines = [f"for (int unit = rank; unit < {view.rows * per_row}; unit += count) {{"]
        if view.rows > 1:
            lines.append(f"    const int row = unit / {per_row};")
        lines.append(f"    const int x = unit{f' % {per_row}' if view.rows > 1 else ''}{f' * {n}' if n > 1 else ''};")
        return lines

    # ---- plain stores
    def store(self, view: View, array: str, info: ArrayInfo, *, wide: bool, names: tuple[str, str]) -> str:
        """`view` to an array; parameters: tile, array, extents, strides of all but the innermost dimension, coordinates."""
        n = view.unit // view.element
        kind, vec = storage(view.dtype), f"Vec<{storage(view.dtype)}, {n}>"
        number = "i64" if wide else "int"
        rank = len(view.shape)
        dense = info.strides_bytes[-1] == view.element
        parameters = ["u32 tile", f"{kind}* array", *(f"i64 dim{d}" if wide else f"int dim{d}" for d in range(rank))]
        parameters += [f"i64 stride{d}" for d in range(rank - dense)] + [f"{number} c{d}" for d in range(rank)]
        body = self._loop(view, n)
        last = rank - 1
        for d in range(last):
            body.append(f"    const {number} at{d} = c{d} + {_digit(view, d)};")
        body.append(f"    const {number} at{last} = c{last} + x;")
        if rank > 1:
            outside = " || ".join(f"at{d} < 0 || at{d} >= dim{d}" for d in range(last))
            body.append(f"    if ({outside}) continue;")
        step = "" if dense else f" + at{last} * stride{last}"
        rows = "".join(f" + at{d} * stride{d}" for d in range(last)) + step
        body.append(f"    const {vec} v = *reinterpret_cast<const {vec}*>({self.at(view, 'tile')});")
        there = f"reinterpret_cast<u8*>(array){rows}" if rows else "reinterpret_cast<u8*>(array)"
        if dense:
            body.append(f"    {kind}* to = reinterpret_cast<{kind}*>({there}) + at{last};")
        else:
            body.append(f"    u8* to = {there};")
        body += self._clipped(kind, vec, n, last, dense=dense)
        body.append("}")
        return self.function(f"store_{names[0]}_to_{names[1]}", f"{array}: clipped at its edges.", parameters, body)

    def _clipped(self, kind: str, vec: str, n: int, last: int, *, dense: bool) -> list[str]:
        at, dim = f"at{last}", f"dim{last}"
        if n == 1:
            target = "*to" if dense else f"*reinterpret_cast<{kind}*>(to)"
            return [f"    if ({at} >= 0 && {at} < {dim}) {target} = v.v[0];"]
        one = "to[e]" if dense else f"*reinterpret_cast<{kind}*>(to + e * stride{last})"
        lines = [
            "    #pragma unroll",
            f"    for (int e = 0; e < {n}; ++e) {{",
            f"        if ({at} + e >= 0 && {at} + e < {dim}) {one} = v.v[e];",
        ]
        if not dense:
            return [*lines, "    }"]
        return [
            f"    if ({at} >= 0 && {at} + {n} <= {dim} && reinterpret_cast<u64>(to) % sizeof({vec}) == 0) {{",
            f"        *reinterpret_cast<{vec}*>(to) = v;",
            "        continue;",
            "    }",
            *lines,
            "    }",
        ]

    # ---- writes
    def fill(self, view: View, name: str) -> str:
        """Every element to some bits; parameters: tile, bits."""
        n = view.unit // view.element
        vec = f"Vec<{storage(view.dtype)}, {n}>"
        body = [f"{vec} v;", "#pragma unroll", f"for (int e = 0; e < {n}; ++e) v.v[e] = bits;", *self._loop(view, n)]
        body += [f"    *reinterpret_cast<{vec}*>({self.at(view, 'tile')}) = v;", "}"]
        return self.function(
            f"fill_{name}", f"Every element of {name} to the same bits.", ["u32 tile", f"{storage(view.dtype)} bits"], body
        )

    def iota(self, view: View, axis: int, name: str) -> str:
        """Every element to its index along `axis`; parameter: tile."""
        n = view.unit // view.element
        kind = storage(view.dtype)
        vec = f"Vec<{kind}, {n}>"
        index = "(x + e)" if axis == len(view.shape) - 1 else f"({_digit(view, axis)})"
        form = _IOTA.get(view.dtype, f"({kind}){{}}")
        for used in ("f16_bits", "bf16_bits", "to_tf32", "plain_e4m3", "plain_e5m2"):
            if f"num::{used}(" in form:
                self._elements.use(used)
        body = [
            *self._loop(view, n),
            f"    {vec} v;",
            "    #pragma unroll",
            f"    for (int e = 0; e < {n}; ++e) v.v[e] = {form.format(index)};",
        ]
        body += [f"    *reinterpret_cast<{vec}*>({self.at(view, 'tile')}) = v;", "}"]
        return self.function(f"iota_{name}", f"Every element of {name} to its index along axis {axis}.", ["u32 tile"], body)

    def map(self, views: list[View], out: View, op: ops.MapTiles, scalars: dict[str, str], name: str) -> str:
        """`op.fn` of each element; parameters: a tile for each input, the output's, scalars as bits in the order given."""
        alongs = [min(used, key=lambda a: a.value) for used in (ways(op.fn).get(i, {Along.ALL}) for i in range(len(views)))]
        n = min(v.unit // v.element for v, along in zip((*views, out), (*alongs, Along.ALL), strict=True) if along is not Along.ROW)
        parameters = [f"u32 in{i}" for i in range(len(views))] + ["u32 out"]
        parameters += [f"{storage(dtype)} scalar{i}" for i, dtype in enumerate(scalars.values())]
        body = self._loop(out, n)
        for i, (v, along) in enumerate(zip(views, alongs, strict=True)):
            vec = storage(v.dtype) if along is Along.ROW else f"Vec<{storage(v.dtype)}, {n}>"
            at = self.at(v, f"in{i}") if along is Along.ALL else self._in_vector(v, f"in{i}", "x" if along is Along.COLUMN else "row", out)
            body.append(f"    const {vec} x{i} = *reinterpret_cast<const {vec}*>({at});")
        vec = f"Vec<{storage(out.dtype)}, {n}>"
        texts = [f"x{i}" if along is Along.ROW else f"x{i}.v[e]" for i, along in enumerate(alongs)]
        fn = self._elements.bits(op.fn, texts, {s: f"scalar{i}" for i, s in enumerate(scalars)})
        body += [f"    {vec} y;", "    #pragma unroll", f"    for (int e = 0; e < {n}; ++e) y.v[e] = {fn};"]
        body += [f"    *reinterpret_cast<{vec}*>({self.at(out, 'out')}) = y;", "}"]
        return self.function(f"map_{name}", f"Every element of {name} from those at the same place.", parameters, body)


def _digit(view: View, d: int) -> str:
    """Index along outer dimension `d` of the row."""
    behind = 1
    for n in view.shape[d + 1 : -1]:
        behind *= n
    if view.rows == 1:
        return "0"
    text = f"row / {behind}" if behind > 1 else "row"
    return f"{text} % {view.shape[d]}" if d else text


_VEC: Final = """// Elements that one thread moves at once.
template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
    T v[N];
};
"""
_SWIZZLE: Final = """// Where the byte of an unswizzled tile lies.
__device__ __forceinline__ u32 swizzle_{name}(u32 at) {{
    return at ^ ((at >> 7 & {mask}) << 4);
}}"""
