"""Device code as text: one line per record with the user's names, and what follows a record indented below it."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import COMPUTE_ARGUMENT, NO_REG, ComputeFn, DeviceOp, DTypeCode, ElementForm, ElemFn, EvalFn
from oxidecopy.engines.cuda.code.compute import INSTRUCTION as COMPUTE
from oxidecopy.engines.cuda.code.coordinates import COORDINATE
from oxidecopy.engines.cuda.code.image import Image
from oxidecopy.engines.cuda.code.records import APPLY, CONTRACT, COPY, EPILOGUE, INSTRUCTION, ONCE, PRODUCT, RECORD, RING, ROWS
from oxidecopy.isa.dtypes import REDUCE_OPS
from oxidecopy.isa.ops import FOLDS, MAP_FIELDS, PRIMARY_POLICIES, SECONDARY_POLICIES

_ELEM: Final = struct.Struct("<4BI")
_EXTRA: Final = struct.Struct("<4BfiB19x")
_LAYOUT: Final = struct.Struct("<6i4Bi")
_AXES: Final = ("", " of its row", " of its column", " of its row and its column")
_UNITS: Final = struct.Struct("<6I")
_FLIP: Final = struct.Struct("<3I4B4I")
_FOLD: Final = struct.Struct("<3I4B")
_STENCIL: Final = struct.Struct("<5I4B2I")
_TAP: Final = struct.Struct("<if")
_OFFSETS: Final = struct.Struct("<4i")
_TILES: Final = frozenset({ComputeFn.STORE, *[fn for fn in ComputeFn if ComputeFn.LOAD_A <= fn <= ComputeFn.COLUMN_B]})
_NUMBERED: Final = frozenset(fn for fn in ComputeFn if fn <= ComputeFn.TAKE or fn.name.endswith(("SELECT", "_32_MUL")))  # input or vector
_COORDINATES: Final = {
    DeviceOp.TENSOR_G2S,
    DeviceOp.TENSOR_G2S_MULTICAST,
    DeviceOp.TENSOR_S2G,
    DeviceOp.TENSOR_REDUCE,
    DeviceOp.STORE_GLOBAL,
    DeviceOp.LOAD_ROWS,
    DeviceOp.COPY_EXTRA,
    DeviceOp.CONTRACT,
}
_OF_ARRAYS: Final = (
    DeviceOp.BULK_G2S,
    DeviceOp.BULK_G2S_MULTICAST,
    DeviceOp.BULK_S2G,
    DeviceOp.BULK_REDUCE,
    DeviceOp.BULK_PREFETCH,
    DeviceOp.TENSORMAP_REPLACE_ARRAY,
    DeviceOp.TENSORMAP_CP_FENCEPROXY,
    DeviceOp.FENCE_PROXY_TENSORMAP,
)
_RESHAPES: Final = (DeviceOp.TRANSPOSE_TILE, DeviceOp.REDUCE_TILE, DeviceOp.STENCIL_TILE)
_JUMPS: Final = {DeviceOp.JUMP: 0, DeviceOp.JUMP_UNLESS: 0, DeviceOp.LOOP: 4, DeviceOp.NEXT: 4, DeviceOp.NEXT_STAGE: 4}
_TOKENS: Final = {
    DeviceOp.MBARRIER_ARRIVE,
    DeviceOp.MBARRIER_ARRIVE_EXPECT_TX,
    DeviceOp.MBARRIER_ARRIVE_DROP,
    DeviceOp.MBARRIER_WAIT_TOKEN,
    DeviceOp.MBARRIER_TEST_TOKEN,
}
_SYMBOLS: Final = {
    EvalFn.ADD: "+",
    EvalFn.MUL: "*",
    EvalFn.FLOORDIV: "//",
    EvalFn.MOD: "%",
    EvalFn.SHR: ">>",
    EvalFn.AND: "&",
    EvalFn.LT: "<",
    EvalFn.LE: "<=",
    EvalFn.EQ: "==",
    EvalFn.NE: "!=",
    EvalFn.MIN: "min",
    EvalFn.MAX: "max",
}
_REGISTERED: Final = {EvalFn.ADD_REG: "+ r", EvalFn.MUL_REG: "* r", EvalFn.STORE: "-> r", EvalFn.OUT: "-> coordinate "}


def listing(image: Image) -> str:
    """The whole image, agent by agent."""
    lines = [f"{image.entry_point}: {image.name}, {image.threads} threads, {len(image.code) // abi.RECORD_BYTES} records"]
    lines += [f"  map {i}: {name}" for i, name in enumerate(image.maps)]
    size = abi.WIDE_ARRAY_WORDS if image.family in abi.CREW_FAMILIES else abi.ARRAY_WORDS
    lines += [f"  words {word}-{word + size - 1}: array {name}" for name, word in image.arrays.items()]
    lines += [f"  word {s.word}: scalar {s.name} as {s.dtype}" for s in image.scalars]
    lines += [f"  share {name}: {how}" for name, how in image.shares.items()]
    if image.left:
        lines.append(f"  left to the interpreter: {image.left}")
    for i, agent in enumerate(image.agents):
        warps = sum(warp.agent == i for warp in image.warps)
        lines.append(f"{agent.words}, {warps} warp{'s' if warps != 1 else ''}:")
        if image.family == abi.APPLY_FAMILY:
            lines += _applied(image, agent.entry)
        elif not image.tiles:
            lines += _agent(image, agent.entry, agent.entry + agent.records)
        elif agent.records:
            lines.append(_product(image, agent.entry))
    return "\n".join(lines) + "\n"


def _product(image: Image, pc: int) -> str:
    """What an agent of family product does in each turn; the head says it, and the table where."""
    fields = dict(zip([name for name, _, _ in abi.PRODUCT], PRODUCT.unpack_from(image.code), strict=True))
    words = f"product_{'contract' if pc else 'loads'}"
    if pc:
        count, fn = image.code[abi.PRODUCT_FINISH_AT + 1], abi.FinishFn(image.code[abi.PRODUCT_FINISH_AT + 2])
        end = "" if not count and not fn else f", {count} steps" + (f" and {fn.name.lower()}" if fn else "")
        words += f" {abi.ContractShape(fields['shape']).name} {abi.ContractType(fields['type']).name}{end}"
    else:
        words += f" {fields['loads']} of a stage"
    line = f"  {pc:5}  {words}, {fields['steps']} stages of {fields['turns']} turns"
    where = image.sites[pc]
    return f"{line:<72}  # {where.words.splitlines()[0]}{f'  :{where.site.line}' if where.site else ''}"


def _applied(image: Image, pc: int) -> Iterator[str]:
    """What an agent of family apply does with each tile."""
    _, loads, read, pending, full, empty, nbytes, coordinates, stages, staged, tiles = APPLY.unpack_from(image.code)
    where, names = image.sites[pc], [image.barriers.get(at, str(at)) for at in (full, empty)]
    what = "apply_loads" if not pc else "apply_stores" if pc == abi.APPLY_STORES else "apply_makes"
    line = f"  {pc:5}  {what} each of {tiles} tiles, {stages} stages"
    yield f"{line:<72}  # {where.words.splitlines()[0]}{f'  :{where.site.line}' if where.site else ''}"
    if pc not in (0, abi.APPLY_STORES):
        tail = image.code[abi.APPLY_COMPUTE + abi.RECORD_BYTES :]
        count: int = RECORD.unpack_from(image.code, abi.APPLY_COMPUTE)[12 + 1]
        aux = image.code[abi.APPLY_COMPUTE + 1]
        steps = _OFFSETS.unpack_from(tail, abi.RECORD_BYTES + _OFFSETS.size)
        yield f"           wait {names[0]}; sync; inputs {', '.join(f'+ {step} * stage' for step in steps[:aux])}; fence; sync"
        yield from (f"           {text}" for text in _tail(image, DeviceOp.COMPUTE, aux, [0, count], b"", tail))
        return
    stores = f"wait {names[0]}; {pending} stores pending; sync; fence; sync"
    yield f"           {stores if pc else f'wait {names[1]}, announce {nbytes} on {names[0]}'}"
    for i in range(loads) if not pc else (abi.APPLY_LOADS,):
        slot, rank, kind, _, tile, stride, _, begin, *_ = COPY.unpack_from(image.code, abi.RECORD_BYTES * (1 + i))
        at = ", ".join(_coordinate(image.code, coordinates + abi.COORDINATE_BYTES * (begin + d), ("tile",)) for d in reversed(range(rank)))
        turn = "stage" if not pc else f"(k % {staged})"
        yield f"           {DeviceOp(kind).name.lower()} {image.maps[slot]} {tile} + {stride} * {turn} [{at}]"
    if pc:
        yield f"           commit, release {names[1]}; in the end wait for " + ("their reads" if read else "them")


def _agent(image: Image, begin: int, end: int) -> Iterator[str]:
    heads = sorted(pc for pc in image.sites if begin <= pc < end)
    for pc, following in zip(heads, [*heads[1:], end], strict=True):
        op, aux, slot, flags, *rest = RECORD.unpack_from(image.code, pc * abi.RECORD_BYTES)
        regs, imms = rest[:8], rest[8:]
        where = image.sites[pc]
        tail = image.code[(pc + 1) * abi.RECORD_BYTES : following * abi.RECORD_BYTES]
        named = "once" if op == DeviceOp.ONCE else _head(image, DeviceOp(op), tail, (aux, slot, flags), regs, imms)
        line = f"  {pc:5}  {named}"
        words = where.words.splitlines()[0]
        site = f"  :{where.site.line}" if where.site else ""
        yield f"{line:<72}  # {words}{site}"
        head = image.code[pc * abi.RECORD_BYTES : (pc + 1) * abi.RECORD_BYTES]
        for text in _tail(image, DeviceOp(op), aux, imms, head, tail):
            yield f"           {text}"


def _head(image: Image, op: DeviceOp, tail: bytes, fields: tuple[int, int, int], regs: list[int], imms: list[int]) -> str:  # noqa: C901 - sorts
    aux, slot, flags = fields
    words = [op.name.lower()]
    first = 3 if op in _COORDINATES or (op in _TOKENS and flags) else 5
    extra = DeviceOp(tail[0]) if op is DeviceOp.COPY_EXTRA else None
    if op in (DeviceOp.STORE_GLOBAL, DeviceOp.LOAD_INDEX) or extra in _OF_ARRAYS:
        words.append(list(image.arrays)[slot])
    elif extra is not None and _EXTRA.unpack_from(tail)[-1]:
        words.append(f"{list(image.arrays)[slot]}[{_operand((imms[3] - 1) % (NO_REG + 1), imms[4])}]")
    elif extra is DeviceOp.TENSORMAP_REPLACE:
        words.append(f"{MAP_FIELDS[aux]} {flags}")
    elif op in _COORDINATES and extra not in (DeviceOp.BULK_S2S, DeviceOp.BULK_REDUCE_S2S):
        words.append(f"map {slot + imms[4]} + r{imms[3] - 1}" if imms[3] else image.maps[slot + imms[4]])
    if op in (DeviceOp.STORE_GLOBAL, DeviceOp.FILL, DeviceOp.IOTA, DeviceOp.MAP_TILES, DeviceOp.COMPUTE):
        words += [_operand(regs[0], imms[0]), _share(imms)]
        if op is not DeviceOp.STORE_GLOBAL:
            words.append(f"#{imms[1]}")
    elif op in _RESHAPES:
        words += [_operand(regs[0], imms[0]), "of", _operand(regs[1], imms[1]), _share(imms)]
        if op is DeviceOp.REDUCE_TILE:
            words.insert(1, f"{FOLDS[aux & 1]} axis {aux >> 1 & 1}{' onto' if aux & 4 else ''}")
    else:
        words += [_operand(r, i) for r, i in zip(regs[:first], imms[:first], strict=False) if r != NO_REG or i] or ["0"]
    if op in _COORDINATES and extra is not DeviceOp.TENSORMAP_REPLACE:
        words.append("[" + ", ".join("0" if r == NO_REG else f"r{r}" for r in regs[3 : 3 + aux]) + "]")
    if op is DeviceOp.TENSOR_REDUCE:
        words.append(REDUCE_OPS[flags])
    if op in _TOKENS and flags:
        words += _token(flags, regs, imms)
    if op in _JUMPS:
        words.append(f"-> {imms[_JUMPS[op]]}")
    return " ".join(words)


def _share(imms: list[int]) -> str:
    return f"share {imms[2] & 0xFFFF}-{imms[2] >> 16} of {imms[3]}"


def _token(flags: int, regs: list[int], imms: list[int]) -> Iterator[str]:
    yield f"stamp {_operand(regs[7], 0)}"
    if flags & abi.TOKEN_KEPT:
        yield f"kept r{regs[5]} r{regs[6]}"
    if flags & abi.TOKEN_SHARED:
        yield f"shared at {imms[3]}, {imms[4]} entries"


def _operand(reg: int, imm: int) -> str:
    if reg == NO_REG:
        return str(imm)
    return f"r{reg}" + (f"{imm:+}" if imm else "")


def _tail(image: Image, op: DeviceOp, aux: int, imms: list[int], head: bytes, tail: bytes) -> Iterator[str]:  # noqa: C901 - sorts
    if op is DeviceOp.EVAL:
        yield _evals(tail, 0, imms[0])
    elif op in (DeviceOp.PRODUCE, DeviceOp.DRAIN):
        yield from _ring(image, op, tail)
    elif op is DeviceOp.LOAD_ROWS:
        yield _rows(image, tail)
    elif op is DeviceOp.COPY_EXTRA:
        yield _extra(tail)
    elif op is DeviceOp.ONCE:
        yield from _once(image, head, tail)
    elif op in (DeviceOp.STORE_GLOBAL, DeviceOp.FILL, DeviceOp.IOTA):
        yield _layout(tail, 0)
    elif op is DeviceOp.PLACE:
        registers = [r for r in range(32) if imms[1] >> r & 1]
        for i, register in enumerate(registers):
            yield f"r{register} = {_placed(COORDINATE.unpack_from(tail, i * abi.COORDINATE_BYTES))}"
    elif op is DeviceOp.CONTRACT:
        yield from _contract(image, tail)
    elif op is DeviceOp.COMPUTE:
        units, per_row, *_ = _UNITS.unpack_from(tail)
        yield f"units {units}, {per_row} to a row; inputs at {', '.join(map(str, _OFFSETS.unpack_from(tail, abi.RECORD_BYTES)[:aux]))}"
        yield "; ".join(_compute(tail, 2 * abi.RECORD_BYTES + 8 * i) for i in range(imms[1]))
    elif op is DeviceOp.TRANSPOSE_TILE:
        blocks, *pitches, _, _, element, side, across, _, down, _ = _FLIP.unpack_from(tail)
        cut = f"{1 << (imms[4] >> 16 & 0xFF)} by {1 << (imms[4] >> 24)} of them, {down} by {across}"
        yield f"{blocks} blocks of {1 << side} by {1 << side} elements of {1 << element} bytes; {cut}; pitches {pitches[0]}, {pitches[1]}"
    elif op is DeviceOp.REDUCE_TILE:
        rows, columns, pitch, _, _, form, whole = _FOLD.unpack_from(tail)
        yield f"{rows} by {columns} of {ElementForm(form).name.lower()}, pitch {pitch}{', by 16 bytes' if whole else ''}"
    elif op is DeviceOp.STENCIL_TILE:
        rows, columns, pitch, out_pitch, start, _, _, way, _, _, places = _STENCIL.unpack_from(tail)
        how = abi.StencilWay(way).name.lower() + (", in order" if places else "")
        yield f"from {start} on, {rows} by {columns}, {how}; pitches {pitch}, {out_pitch}"
        taps = (_TAP.unpack_from(tail, abi.RECORD_BYTES + 8 * i) for i in range(aux))
        yield "; ".join(f"{weight:g} times {offset:+}" for offset, weight in taps)
    elif op is DeviceOp.MAP_TILES:
        for i in range(1 + aux):
            yield ("out " if not i else f"in {i - 1} ") + _layout(tail, i)
        yield "; ".join(_elem(tail, (1 + aux) * abi.RECORD_BYTES + 8 * i) for i in range(imms[1]))


def _contract(image: Image, tail: bytes) -> Iterator[str]:
    full, empty, a, a_stride, b, b_stride, stages, peers, shape, kind, number, _, axes, _ = CONTRACT.unpack_from(tail)
    names = [image.barriers.get(at, str(at)) for at in (full, empty)]
    yield f"k, {stages} stages: wait {names[0]} for k // {stages}, release {names[1]}" + (
        f" on {peers} blocks{_AXES[axes]}" if peers else ""
    )
    what = f"{abi.ContractType(kind).name.lower()} {abi.ContractShape(shape).name.lower()}"
    yield f"{what}: {a} + {a_stride} * stage times {b} + {b_stride} * stage, barrier {number}"
    out, out_stages, form, adds, instructions, *sources = EPILOGUE.unpack_from(tail, abi.RECORD_BYTES)
    yield f"staged at {out}, {out_stages} tiles, as {ElementForm(form).name.lower()}" + (", added" if adds else "")
    if instructions:
        yield f"arrays {sources}: " + "; ".join(_compute(tail, 2 * abi.RECORD_BYTES + 8 * i) for i in range(instructions))


def _rows(image: Image, tail: bytes) -> str:
    array, _, dim, scale, count, tile_step, index_step, most, below = ROWS.unpack_from(tail)
    until = f", at most {most}" if most < (1 << 31) - 1 else ""
    index = f"index {list(image.arrays)[array]} {index_step:+} * j{until}, below {below}"
    return f"row j of {count}: {index}; tile {tile_step:+} * j; {scale} times it on coordinate {dim}, innermost first"


def _extra(tail: bytes) -> str:
    kind, im2col, policy, dtype, fraction, nbytes, _ = _EXTRA.unpack_from(tail)
    if kind == DeviceOp.TENSORMAP_REPLACE:
        return "tensormap_replace, one at least" if nbytes else "tensormap_replace"
    words = [DeviceOp(kind).name.lower()] + ["im2col"] * im2col
    if nbytes:
        words.append(f"{nbytes} bytes of {DTypeCode(dtype).name.lower()}")
    if policy:
        words.append(f"{PRIMARY_POLICIES[policy - 1 & 3]}({fraction:g}, {SECONDARY_POLICIES[policy - 1 >> 2]})")
    return " ".join(words)


def _ring(image: Image, op: DeviceOp, tail: bytes) -> Iterator[str]:
    full, empty, nbytes, offset, stages, copies, flags, _, behind, first, peers = RING.unpack_from(tail)
    names = [image.barriers.get(at, str(at)) for at in (full, empty)]
    if op is DeviceOp.PRODUCE:
        text = f"k = counter{offset:+}, {stages} stages: wait {names[1]} for k // {stages} - 1, announce {nbytes} on {names[0]}"
    else:
        text = f"k = counter{offset:+}, {stages} stages: wait {names[0]} for k // {stages}, {nbytes} groups pending"
        text += f", release {names[1]} of k - {behind} from k = {first}" if first < (1 << 31) - 1 else ", no release"
        text += f" on {peers} blocks" if peers else ""
    yield text + (", tiles from the counter" if flags & abi.RING_FLAG_COUNTER else "")
    for i in range(copies):
        slot, rank, kind, _, tile, stride, mask, begin, end, tile_reg, mask_reg = COPY.unpack_from(tail, (1 + i) * abi.RECORD_BYTES)
        words = [DeviceOp(kind).name.lower(), image.maps[slot], f"{_operand(tile_reg, tile)} + {stride} * stage"]
        if kind == DeviceOp.TENSOR_G2S_MULTICAST:
            words.append(f"mask {_operand(mask_reg, mask)}")
        code = tail[(1 + copies) * abi.RECORD_BYTES :]
        if flags & abi.RING_FLAG_PLACED:
            number = "tile" if flags & abi.RING_FLAG_COUNTER else "counter"
            at = ", ".join(_coordinate(code, abi.COORDINATE_BYTES * (begin + d), (number,)) for d in reversed(range(rank)))
            yield " ".join(words) + f" [{at}]"
        else:
            yield " ".join(words) + ": " + _evals(code, begin, end)


def _once(image: Image, head: bytes, tail: bytes) -> Iterator[str]:
    _, loads, stores, flags, bar, nbytes = ONCE.unpack(head)
    name = image.barriers.get(bar, str(bar))
    yield f"init {name}, announce {nbytes} on it"
    for i in range(loads + stores):
        if i == loads:
            yield f"wait {name} for 0"
        slot, rank, kind, how, tile, _, _, begin, *_ = COPY.unpack_from(tail, i * abi.RECORD_BYTES)
        at = (loads + stores) * abi.RECORD_BYTES
        coordinates = ", ".join(_coordinate(tail, at + abi.COORDINATE_BYTES * (begin + d)) for d in reversed(range(rank)))
        words = [DeviceOp(kind).name.lower(), image.maps[slot], str(tile), f"[{coordinates}]"]
        yield " ".join(words + [REDUCE_OPS[how]] * (kind == DeviceOp.TENSOR_REDUCE))
    if not stores:
        yield f"wait {name} for 0"
    yield "commit, wait for " + ("its reads" if flags & abi.ONCE_FLAG_READ else "it")
    if flags & abi.ONCE_FLAG_INVAL:
        yield f"inval {name}"


def _coordinate(tail: bytes, at: int, moving: Sequence[str] = ("r0", "r1", "r2")) -> str:
    """`moving` are the names of what the steps are for."""
    *steps, offset, magic, _, shift, _, reg, base_reg, modulus, scale, base, _ = COORDINATE.unpack_from(tail, at)
    terms = [name if step == 1 else f"{step} * {name}" for name, step in zip(moving, steps, strict=False) if step]
    terms += [f"r{reg}"] * (reg != NO_REG)
    text = " + ".join(terms + [str(offset)] * bool(offset or not terms))
    for sign, number in (("//", -(-(1 << (32 + shift)) // magic) if magic else 0), ("%", modulus), ("*", scale if scale != 1 else 0)):
        if number:
            text = f"({text}) {sign} {number}" if " " in text else f"{text} {sign} {number}"
    words = [text] * (text != "0") + [f"r{base_reg}"] * (base_reg != NO_REG) + [str(base)] * (base != 0)
    return " + ".join(words).replace("+ -", "- ") or "0"


def _layout(tail: bytes, at: int) -> str:
    *shape, pitch, rank, size, mask, dtype, tile = _LAYOUT.unpack_from(tail, at * abi.RECORD_BYTES)
    return f"{DTypeCode(dtype).name.lower()} {shape[:rank]} of {size} bytes, pitch {pitch}, swizzle {mask}, at {tile}"


def _evals(code: bytes, begin: int, end: int) -> str:
    return "; ".join(_eval(*INSTRUCTION.unpack_from(code, abi.EVAL_BYTES * i)) for i in range(begin, end))


def _eval(fn: int, reg: int, _spare: int, imm: int) -> str:
    match EvalFn(fn):
        case EvalFn.IMM:
            return f"push {imm}"
        case EvalFn.REG:
            return f"push {_operand(reg, imm)}"
        case EvalFn.COUNTER:
            return "push tile" if reg else "push counter"
        case EvalFn.HIGH:
            return f"high {imm}"
        case named if named in _REGISTERED:
            return f"{_REGISTERED[named]}{reg}"
        case plain if plain in _SYMBOLS:
            return f"{_SYMBOLS[plain]} {imm}"
        case other:
            return other.name.lower()


def _placed(part: tuple[int, ...]) -> str:
    """A part of PLACE as the function that it is."""
    *steps, offset, magic, modulus_magic, shift, _, reg, base_reg, modulus, scale, base, reg_z = part
    moves = " + ".join(f"{step} * r{r}" for step, r in zip(steps, (reg, base_reg, reg_z), strict=True) if step)
    text = f"({moves} + {offset})"
    if magic:
        text += f" // {_divisor(magic, shift)}"
    if modulus_magic:
        text += f" % {modulus}"
    return f"{text} * {scale} + {base}"


def _divisor(magic: int, shift: int) -> int:
    """The number that `magic_of` was made of."""
    return -(-(1 << (32 + shift)) // magic)


def _compute(tail: bytes, at: int) -> str:
    fn, form, index, _, word = COMPUTE.unpack_from(tail, at)
    made = ComputeFn(fn)
    words = [made.name.lower()]
    if made in _TILES:
        words += [str(index), ElementForm(form).name.lower()]
    elif made in _NUMBERED:
        words.append(str(index))
    elif made is ComputeFn.ROUND:
        words.append(ElementForm(form).name.lower())
    elif made is ComputeFn.SCALAR_B:
        words.append(f"word {word} {ElementForm(form).name.lower()}")
    elif made is ComputeFn.MORE:
        words.append(str(word))
    elif form == COMPUTE_ARGUMENT:
        words.append(f"word {word}")
    elif form:
        words.append(f"{word:#010x}")
    return " ".join(words)


def _elem(tail: bytes, at: int) -> str:
    fn, dtype, source, along, word = _ELEM.unpack_from(tail, at)
    name = DTypeCode(dtype).name.lower()
    match ElemFn(fn):
        case ElemFn.INPUT:
            return f"push in {source}" + ("", " by row", " by column")[along]
        case ElemFn.WORD:
            return f"push word {word}"
        case ElemFn.CAST:
            return f"cast {DTypeCode(source).name.lower()} -> {name}"
        case other:
            return f"{other.name.lower()} {name}"
