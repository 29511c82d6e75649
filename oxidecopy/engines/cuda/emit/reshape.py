"""Transposes, reductions and stencils of tiles as C++ functions, beside those of `Tiles`."""

from __future__ import annotations

import struct
from math import gcd, prod
from typing import Final

from oxidecopy.engines.cuda.emit.elements import Elements, storage
from oxidecopy.engines.cuda.emit.tiles import Tiles, View
from oxidecopy.isa import ops
from oxidecopy.isa.elem import Binary, Cast, ElemOp, Input

_SIDES: Final = {1: 8, 2: 8, 4: 4, 8: 2}  # elements of a block's side, by their bytes
_BANKS: Final = 128  # bytes that shared memory moves at once
_FOLDS: Final = {"sum": ElemOp.ADD, "max": ElemOp.MAX}
_NEUTRAL: Final = {"sum": "-0.0f", "max": "__uint_as_float(0xff800000u)"}


def transpose(tiles: Tiles, source: View, out: View, name: str) -> str:
    """`out` is `source` with its last two dimensions swapped; parameters: the two tiles."""
    rows, columns = source.shape[-2:]
    n = _SIDES[source.element]
    if rows % n or columns % n or any(v.unit % (n * v.element) for v in (source, out)):
        n = 1
    high, wide = rows // n, columns // n
    tall, broad = (gcd(k, _BANKS // (n * source.element)) if n > 1 else 1 for k in (high, wide))
    across, kind = wide // broad, storage(source.dtype)
    low, few = max(tall, broad), min(tall, broad)
    i, j = ("b", "a") if broad >= tall else ("a", "b")
    vec = f"Vec<{kind}, {n}>"
    body = [
        f"for (int unit = rank; unit < {prod(source.shape[:-2]) * high * wide}; unit += count) {{",
        f"    const int inside = unit % {tall * broad}, square = unit / {tall * broad};",
        f"    const int a = inside % {low}, b = (a ^ inside / {low}) % {few};  // along a diagonal: no two threads meet in a bank",
        f"    const int i = square / {across} * {tall} + {i}, j = square % {across} * {broad} + {j};",
        f"    {vec} v[{n}];",
        "    #pragma unroll",
        f"    for (int r = 0; r < {n}; ++r) {{",
        f"        const int row = i * {n} + r, x = j * {n};",
        f"        v[r] = *reinterpret_cast<const {vec}*>({tiles.at(source, 'tile')});",
        "    }",
        "    #pragma unroll",
        f"    for (int c = 0; c < {n}; ++c) {{",
        f"        const int row = (i / {high} * {wide} + j) * {n} + c, x = i % {high} * {n};",
        f"        {vec} w;",
        "        #pragma unroll",
        f"        for (int r = 0; r < {n}; ++r) w.v[r] = v[r].v[c];",
        f"        *reinterpret_cast<{vec}*>({tiles.at(out, 'out')}) = w;",
        "    }",
        "}",
    ]
    return tiles.function(f"transpose_{name}", f"Element (i, j) of {name} from element (j, i).", ["u32 tile", "u32 out"], body)


def fold(tiles: Tiles, elements: Elements, views: tuple[View, View], op: ops.ReduceTile, name: str) -> str:
    """The rows or columns of a tile, each put together in the order that `ops.ReduceTile` states; parameters: the two tiles."""
    source, out = views
    rows, columns = source.shape
    kind = storage(source.dtype)
    lines, length = (rows, columns) if op.axis else (columns, rows)
    parts = ops.FOLD_BYTES // source.element if op.axis else ops.FOLD_ROWS
    n = min(source.unit // source.element, parts) if op.axis else 1
    vec = f"Vec<{kind}, {n}>"
    read = elements.value(Cast(Input(0, source.dtype), "f32"), ["v.v[e]"], {})
    both = Binary(_FOLDS[op.op], Input(0, "f32"), Input(1, "f32"))

    def put_together(x: str, y: str) -> str:
        return elements.value(both, [f"__float_as_uint({x})", f"__float_as_uint({y})"], {})

    elements.use("f32_bits")
    place = ("line", "k + p") if op.axis else ("k + p", "line")
    body = [
        f"for (int line = rank; line < {lines}; line += count) {{",
        f"    float part[{parts}];",
        "    #pragma unroll",
        f"    for (int p = 0; p < {parts}; ++p) part[p] = {_NEUTRAL[op.op]};",
        f"    for (int k = 0; k < {length}; k += {parts}) {{",
        "        #pragma unroll",
        f"        for (int p = 0; p < {parts}; p += {n}) {{",
        f"            const int row = {place[0]}, x = {place[1]};",
        f"            if (k + p >= {length}) continue;",
        f"            const {vec} v = *reinterpret_cast<const {vec}*>({tiles.at(source, 'tile')});",
        "            #pragma unroll",
        f"            for (int e = 0; e < {n}; ++e) part[p + e] = {put_together('part[p + e]', read)};",
        "        }",
        "    }",
        "    #pragma unroll",
        f"    for (int width = {parts // 2}; width > 0; width /= 2) {{",
        f"        for (int i = 0; i < width; ++i) part[i] = {put_together('part[2 * i]', 'part[2 * i + 1]')};",
        "    }",
        "    const int x = line;",
        f"    u32* to = reinterpret_cast<u32*>({tiles.at(out, 'out')});",
        f"    *to = {elements.bits(both, ['*to', '__float_as_uint(part[0])'], {}) if op.onto else 'num::f32_bits(part[0])'};",
        "}",
    ]
    note = f"{'Sums' if op.op == 'sum' else 'Maxima'} of {'rows' if op.axis else 'columns'} into {name}, in a fixed order."
    return tiles.function(f"{op.op}_{name}", note, ["u32 tile", "u32 out"], body)


def stencil(tiles: Tiles, elements: Elements, views: tuple[View, View], op: ops.StencilTile, name: str) -> str:
    """Weighted sums of what lies around each element, in the order that `ops.StencilTile` states; parameters: the two tiles."""
    source, out = views
    around = ops.margin(source.shape, out.shape)
    assert around is not None  # the generic check has seen it
    rows, columns = out.shape
    product, total = (Binary(which, Input(0, "f32"), Input(1, "f32")) for which in (ElemOp.MUL, ElemOp.ADD))
    elements.use("f32_bits")
    body = [
        f"for (int unit = rank; unit < {rows * columns}; unit += count) {{",
        f"    const int i = unit / {columns}, j = unit % {columns};",
        "    float sum;",
    ]
    for n, tap in enumerate(op.taps):
        weight = f"0x{int.from_bytes(struct.pack('<f', tap.weight), 'little'):08x}u"
        made = elements.value(product, ["v", weight], {})
        body += [
            f"    {{  // {tap.weight:g} times ({tap.row:+}, {tap.column:+})",
            f"        const int row = i + {around[0] + tap.row}, x = j + {around[1] + tap.column};",
            f"        const u32 v = *reinterpret_cast<const u32*>({tiles.at(source, 'tile')});",
            f"        sum = {made if n == 0 else elements.value(total, ['__float_as_uint(sum)', f'__float_as_uint({made})'], {})};",
            "    }",
        ]
    body += [
        "    const int row = i, x = j;",
        f"    *reinterpret_cast<u32*>({tiles.at(out, 'out')}) = num::f32_bits(sum);",
        "}",
    ]
    return tiles.function(f"stencil_{name}", f"Each element of {name} from those around it.", ["u32 tile", "u32 out"], body)
