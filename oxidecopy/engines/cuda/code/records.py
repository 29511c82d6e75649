"""Records as bytes: their layouts, for who writes and who reads them, and the code of all agents while it is written."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, final

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import NO_REG, DeviceOp
from oxidecopy.engines.cuda.code.image import Where

RECORD: Final = struct.Struct("<4B8B5i")  # abi.RECORD
INSTRUCTION: Final = struct.Struct("<BBHi")  # abi.EVAL_INSTR
RING: Final = struct.Struct("<4iHBBHHii")  # abi.RING
COPY: Final = struct.Struct("<4B3iHHBB10x")  # abi.COPY
ROWS: Final = struct.Struct("<3BxiIiiiI4x")  # abi.ROWS
ONCE: Final = struct.Struct("<4B2i20x")  # abi.ONCE
APPLY: Final = struct.Struct("<4B4i2Hi4x")  # abi.APPLY
CONTRACT: Final = struct.Struct("<6i8B")  # abi.CONTRACT
EPILOGUE: Final = struct.Struct("<i3BxH2x4B16x")  # abi.EPILOGUE
PRODUCT: Final = struct.Struct("<12I16B")  # abi.PRODUCT

_NO_REGS: Final = (NO_REG,) * 8
_NO_IMMS: Final = (0,) * 5
_TAIL_MAX: Final = 255
_TIGHT: Final = frozenset({
    DeviceOp.PLACE, DeviceOp.COMPUTE, DeviceOp.BAR_SYNC, DeviceOp.WARP_SYNC, DeviceOp.MBARRIER_WAIT_PHASE, DeviceOp.NEXT_STAGE,
    DeviceOp.NEXT, DeviceOp.FENCE_PROXY_ASYNC, DeviceOp.TENSOR_S2G, DeviceOp.COMMIT_GROUP, DeviceOp.WAIT_GROUP, DeviceOp.WAIT_GROUP_READ,
    DeviceOp.MBARRIER_ARRIVE, DeviceOp.TRANSPOSE_TILE, DeviceOp.REDUCE_TILE, DeviceOp.STENCIL_TILE,
})  # fmt: skip


@final
class Records:
    """`data`: pieces of `abi.RECORD_BYTES`, records and what belongs to them; `sites`: which pieces are records, and whose."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.sites: dict[int, Where] = {}

    def __len__(self) -> int:
        return len(self.data)

    def add(
        self, op: DeviceOp, where: Where, regs: Sequence[int] = _NO_REGS, imms: Sequence[int] = _NO_IMMS, *,
        aux: int = 0, slot: int = 0, flags: int = 0,
    ) -> int:  # fmt: skip
        """The record's place."""
        pc = len(self.data)
        self.sites[pc] = where
        self.data.append(b"")
        self.put(pc, op, regs, imms, aux=aux, slot=slot, flags=flags)
        return pc

    def put(self, pc: int, op: DeviceOp, regs: Sequence[int], imms: Sequence[int], *, aux: int = 0, slot: int = 0, flags: int = 0) -> None:
        """Writes a record over the one that is there."""
        self.data[pc] = RECORD.pack(op, aux, slot, flags, *regs, *imms)

    def tail(self, data: bytes) -> None:
        """What belongs to the record before it."""
        size = abi.RECORD_BYTES
        self.data += [data[at : at + size].ljust(size, b"\0") for at in range(0, len(data), size)]

    def given(self, data: Sequence[bytes], where: Where) -> None:
        """Code that is there already, with one op in it."""
        self.sites[len(self.data)] = where
        self.data += data

    def leave_at(self, pc: int) -> None:
        """The record's last immediate becomes the place behind the code so far."""
        *fields, _ = RECORD.unpack(self.data[pc])
        self.data[pc] = RECORD.pack(*fields, len(self.data))

    def cut(self, pc: int) -> None:
        """Takes back what was written from `pc` on."""
        del self.data[pc:]
        self.sites = {at: where for at, where in self.sites.items() if at < pc}

    def tighten(self, begin: int) -> bool:
        """Writes into the records from `begin` on how many pieces follow each, if they can be a tight loop: see `abi.LOOP_TIGHT`."""
        heads = sorted(pc for pc in self.sites if pc >= begin)
        follow = [later - pc - 1 for pc, later in zip(heads, [*heads[1:], len(self.data)], strict=True)]
        fields = [RECORD.unpack(self.data[pc]) for pc in heads]
        if max(follow) > _TAIL_MAX or not all(_may_be_tight(f) for f in fields):
            return False
        for pc, tail, (op, aux, slot, _, *rest) in zip(heads, follow, fields, strict=True):
            self.data[pc] = RECORD.pack(op, aux, slot, tail, *rest)
        return True


def _may_be_tight(fields: tuple[int, ...]) -> bool:
    """True for a record that a tight loop may have: its flags are free, and a copy's map is known."""
    op, _, _, flags, *rest = fields
    return op in _TIGHT and not flags and (op != DeviceOp.TENSOR_S2G or (rest[-2] == 0 and rest[-1] == 0))
