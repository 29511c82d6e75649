"""Tokens whose phase cannot be told, in C++: a variable of the thread that made it, or words of shared memory where others wait for it.

As in device code (`code.tokens`), but by threads instead of classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple, final

from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.emit.exprs import Exprs
from oxidecopy.errors import DeviceCodeError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.expr import ZERO, Const, Expr, Sym, SymKind, add, mul, sub
from oxidecopy.isa.ops import Scope, ThreadSet
from oxidecopy.program.program import Program, Step

ENTRY_BYTES: Final = 16
_STAMPS: Final = 1 << 40
HELPER: Final = """// Tokens that others wait for: what an arrival returned, found by its iteration plus 1, of the last few.
__device__ __forceinline__ void put_token(u32 tokens, u32 entries, u64 stamp, u64 state) {
    const u32 at = tokens + 8 + 16 * (ptx::atom_add_shared(tokens, 1) % entries);
    ptx::st_shared(at + 8, state);
    ptx::st_release_shared(at, stamp);
}

__device__ __forceinline__ bool find_token(u32 tokens, u32 entries, u64 stamp, u64* state) {
    for (u32 i = 0; i < entries; ++i) {
        const u32 at = tokens + 8 + 16 * i;
        if (ptx::ld_acquire_shared(at) == stamp) {
            *state = ptx::ld_acquire_shared(at + 8);
            return true;
        }
    }
    return false;
}

__device__ __forceinline__ bool test_token(u32 bar, u32 tokens, u32 entries, u64 stamp) {
    u64 state = 0;
    return find_token(tokens, entries, stamp, &state) && ptx::mbarrier_try_wait(bar, state);
}

__device__ __forceinline__ void wait_token(u32 bar, u32 tokens, u32 entries, u64 stamp) {
#ifdef OXIDECOPY_BOUNDED_WAITS
    for (u32 tries = 0; !test_token(bar, tokens, entries, stamp); ++tries) {
        if (tries == 100u * OXIDECOPY_WAIT_TRIES) __trap();
    }
#else
    while (!test_token(bar, tokens, entries, stamp)) {
    }
#endif
}
"""


@final
class Carried(NamedTuple):
    """A token: the thread that hands it on and where, or offset -1 where each thread has its own."""

    token: int
    first: int
    offset: int = -1
    entries: int = 0


@final
class _Uses(NamedTuple):
    makers: ThreadSet
    waiters: set[int]
    bar: int


def carried_tokens(program: Program, unknown: Collection[int], at: int, sm: int) -> tuple[dict[int, Carried], int]:
    """All of them, and the bytes of shared memory that a block has with their words; `at` without.

    Raises:
        DeviceCodeError: OX5501, where that is too much.
    """
    found: dict[int, Carried] = {}
    end = -(-at // 8) * 8
    for token, uses in _uses(program, unknown).items():
        if all(thread in uses.makers for thread in uses.waiters):
            found[token] = Carried(token, uses.makers.first)
            continue
        counts = [s.op.count for s in program.walk() if isinstance(s.op, ops.MbarrierInit) and s.op.bar.barrier == uses.bar]
        entries = 2 * -(-max(counts, default=1) // len(uses.makers)) + 1  # no count: nobody ever comes to the op
        found[token] = Carried(token, uses.makers.first, end, entries)
        end += 8 + ENTRY_BYTES * entries
    shared = any(c.offset >= 0 for c in found.values())
    most = limits.SHARED_BYTES_MAX[sm]
    if shared and end > most:
        raise DeviceCodeError(refusals.no_room(program, at, end - at, most))
    return found, end if shared else at


def _uses(program: Program, unknown: Collection[int]) -> dict[int, _Uses]:
    found: dict[int, _Uses] = {}
    for op, threads in _walk(program.steps, ThreadSet(((0, program.threads),))):
        match op:
            case ops.MbarrierArrive() | ops.MbarrierArriveExpectTx() | ops.MbarrierArriveDrop() if op.token in unknown:
                found[op.token] = _Uses(threads, set(), op.bar.barrier)
            case ops.MbarrierWait(tokens=tokens):
                for token in set(tokens) & found.keys():
                    found[token].waiters.update(_members(threads))
            case ops.MbarrierTestToken(token=token) if token in found:
                found[token].waiters.update(_members(threads))
            case _:
                pass
    return {token: uses for token, uses in found.items() if uses.waiters}


def _members(threads: ThreadSet) -> Iterator[int]:
    for low, high in threads.ranges:
        yield from range(low, high)


def _walk(steps: Sequence[Step], threads: ThreadSet) -> Iterator[tuple[ops.Instr, ThreadSet]]:
    for step in steps:
        yield step.op, threads
        yield from _walk(step.body, step.op.threads if isinstance(step.op, Scope) else threads)


def stamp(exprs: Exprs, counters: Sequence[str]) -> Expr:
    """The iteration of the loops around, outermost first, as one number from 1 on."""
    total, step = ZERO, 1
    made: Expr = total
    for name in reversed(counters):
        if step > _STAMPS:
            break
        span = exprs.spans[name]
        made = add(made, mul(sub(Sym(name, SymKind.LOOP), Const(span.lo)), Const(step)))
        step *= span.hi - span.lo + 1
    return add(made, Const(1))
