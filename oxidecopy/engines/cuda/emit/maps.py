"""Statements of ops on maps that the kernel replaces: one call of the PTX function of its field each."""

from __future__ import annotations

from oxidecopy.engines.cuda.emit.context import Context
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Expr, sub
from oxidecopy.isa.ops import ArrayRef, SlotRef, TileRef
from oxidecopy.program.replaced import SLOT_BYTES, slots_per_cta

_ATOM = 8


def map_statements(ctx: Context, op: ops.Instr) -> list[str] | None:
    """The statements of an op on a map; None of other ops."""
    match op:
        case ops.TensormapCopy(map=ref, tile=tile):
            source = f"&{ctx.params[ref.name]}" + (f"[{ctx.exprs.text(ref.index)}]" if ref.index is not None else "")
            return [f"{ctx.ptx.use('tensormap_copy')}({_tile(ctx, tile)}, {source});"]
        case ops.TensormapReplace():
            raise TypeError("no verified program replaces a field alone")  # a bug of ours
        case ops.TensormapReplaceArray(array=array, first=first, stop=stop, tile=tile):
            return _window(ctx, array, first, stop, _tile(ctx, tile))
        case ops.TensormapCpFenceproxy(slot=slot, tile=tile):
            # The instruction asks for the whole warp at once, behind what one of its threads has edited.
            return ["__syncwarp();", f"{ctx.ptx.use('tensormap_cp_fenceproxy')}({slot_text(ctx, slot)}, {_tile(ctx, tile)});"]
        case ops.FenceProxyTensormap(slot=slot):
            return [f"{ctx.ptx.use('fence_proxy_tensormap_acquire')}({slot_text(ctx, slot)});"]
        case _:
            return None


def slot_text(ctx: Context, slot: SlotRef) -> str:
    """The address of a place of this block."""
    count, name = slots_per_cta(ctx.program)[slot.array], ctx.params[slot.array]
    row = ctx.ptx.use("block_number") + "()" + (f" * {count} + {slot.number}" if count > 1 else "")
    return f"reinterpret_cast<TensorMap*>({name} + {SLOT_BYTES} * ({row}))"


def _tile(ctx: Context, ref: TileRef) -> str:
    return f"smem + {ctx.tile(ref)}"


def _window(ctx: Context, array: ArrayRef, first: tuple[Expr, ...], stop: tuple[Expr, ...], to: str) -> list[str]:
    name, rank = array.name, len(first)
    size, named = DTYPES[ctx.arrays[name].dtype].nbytes, ctx.strides_of(name)
    strides = [ctx.array_stride(name, axis) if axis in named else str(size) for axis in range(rank)]
    parts = [f"(const char*){ctx.params[name]}"]
    parts += [f"(i64){ctx.exprs.write(e).at(_ATOM)} * {stride}" for e, stride in zip(first, strides, strict=True) if e != ZERO]
    lines = [f"{ctx.ptx.replace('global_address')}({to}, (u64)({' + '.join(parts)}));"]
    check = ctx.ptx.use("tensormap_extent")
    for ord_, axis in enumerate(reversed(range(rank))):
        if ord_:
            lines.append(f"{ctx.ptx.replace('global_stride', ord_ - 1)}({to}, (u64){strides[axis]});")
        lines.append(f"{ctx.ptx.replace('global_dim', ord_)}({to}, {check}({ctx.exprs.text(sub(stop[axis], first[axis]))}));")
    return lines
