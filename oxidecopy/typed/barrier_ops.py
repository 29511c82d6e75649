"""What the life of mbarriers records, and the operands that several of their methods check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oxidecopy.errors import RecordError
from oxidecopy.isa import expr, limits, ops
from oxidecopy.isa.ops import BarrierRef
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.smem import SharedArray

if TYPE_CHECKING:
    from oxidecopy.typed.recorder import Recorder


def record_init(recorder: Recorder, decl: int, stages: int, count: object, thread: object) -> None:
    """One thread initialises, fences for the cluster where there is one, then the CTA syncs (PTX mbarrier.init, fence.mbarrier_init)."""
    recorder.require_once("`init`")
    arrivals = whole(count)
    if arrivals is None or not 1 <= arrivals <= limits.MBARRIER_COUNT_MAX:
        refuse(
            RecordError,
            "OX1044",
            f"barrier {recorder.barriers[decl].name!r} cannot count to that",
            got=described(count),
            required=f"a plain int from 1 to {limits.MBARRIER_COUNT_MAX} (PTX mbarrier.init)",
            fix="pass the number of threads that arrive in each phase",
        )
    threads = recorder.thread(thread, "`init_by`")
    frame = recorder.push(ops.Scope(role="thread", threads=threads), threads)
    for i in range(stages):
        recorder.emit(ops.MbarrierInit(bar=BarrierRef(decl, expr.Const(i)), count=arrivals))
    if recorder.clustered:
        recorder.emit(ops.FenceMbarrierInit())
    recorder.pop(frame)
    recorder.emit(ops.BarSync(number=0, threads=recorder.threads))


def record_inval(recorder: Recorder, decl: int, stages: int, thread: object) -> None:
    """The CTA syncs, so that nobody still waits, then one thread invalidates."""
    recorder.require_once("`inval`")
    threads = recorder.thread(thread, "`inval_by`")
    recorder.emit(ops.BarSync(number=0, threads=recorder.threads))
    frame = recorder.push(ops.Scope(role="thread", threads=threads), threads)
    for i in range(stages):
        recorder.emit(ops.MbarrierInval(bar=BarrierRef(decl, expr.Const(i))))
    recorder.pop(frame)


def tx_bytes(parts: tuple[object, ...]) -> int:
    """The bytes that numbers and tiles come to."""
    total = 0
    for part in parts:
        n = part.nbytes if isinstance(part, SharedArray) else whole(part)
        if n is None or n < 0 or total + n > limits.MBARRIER_TX_MAX:
            refuse(
                RecordError,
                "OX1039",
                "the bytes that a phase is told to expect are out of range",
                got=described(part) if n is None or not total else f"{total} + {n}",
                required=f"plain ints or tiles, 0 to {limits.MBARRIER_TX_MAX} in all (2^20 - 1, PTX mbarrier)",
                fix="pass the tile, or `tile.nbytes`",
            )
        total += n
    return total
