"""Tokens whose phase cannot be told, in C++: a variable of the thread that made it, or words of shared memory.

The latter where others wait for it, or that thread does in other loops. As in device code (`code.tokens`), but by threads instead of
classes, and with words for each element of an array of barriers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple, final

from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.tokens import stamp_part
from oxidecopy.engines.cuda.emit.exprs import Exprs
from oxidecopy.errors import DeviceCodeError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.expr import ZERO, Const, Expr, Sym, SymKind, add, mod, mul
from oxidecopy.isa.ops import Scope, ThreadSet
from oxidecopy.program.program import Program, Step

ENTRY_BYTES: Final = 16
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
    """A token: the thread that hands it on and where, or offset -1 where each thread has its own. With `stages` in so many places."""

    token: int
    first: int
    offset: int = -1
    entries: int = 0
    stages: int = 1

    @property
    def step(self) -> int:
        """Bytes from one of the places to the next."""
        return 8 + ENTRY_BYTES * self.entries

    @property
    def end(self) -> int:
        """Offset behind the last of them."""
        return self.offset + self.step * self.stages


@final
class _Uses(NamedTuple):
    """Who makes a token, in which loops (by identity), and who waits for it: `waiters` there, `others` in other loops."""

    makers: ThreadSet
    loops: tuple[int, ...]
    waiters: set[int]
    others: set[int]
    bar: ops.BarrierRef


def carried_tokens(program: Program, unknown: Collection[int], at: int, sm: int) -> tuple[dict[int, Carried], int]:
    """All of them, and the bytes of shared memory that a block has with their words; `at` without.

    Raises:
        DeviceCodeError: OX5501, where that is too much.
    """
    found: dict[int, Carried] = {}
    end = -(-at // 8) * 8
    for token, uses in _uses(program, unknown).items():
        if not uses.others and all(thread in uses.makers for thread in uses.waiters):
            found[token] = Carried(token, uses.makers.first)
            continue
        counts = [s.op.count for s in program.walk() if isinstance(s.op, ops.MbarrierInit) and s.op.bar.barrier == uses.bar.barrier]
        entries = 2 * -(-max(counts, default=1) // len(uses.makers)) + 1  # no count: nobody ever comes to the op
        stages = 1 if isinstance(uses.bar.index, Const) else program.barriers[uses.bar.barrier].stages
        found[token] = Carried(token, uses.makers.first, end, entries, stages)
        end = found[token].end
    shared = any(c.offset >= 0 for c in found.values())
    most = limits.SHARED_BYTES_MAX[sm]
    if shared and end > most:
        raise DeviceCodeError(refusals.no_room(program, at, end - at, most))
    return found, end if shared else at


def _uses(program: Program, unknown: Collection[int]) -> dict[int, _Uses]:
    found: dict[int, _Uses] = {}
    visits = list(_walk(program.steps, ThreadSet(((0, program.threads),)), ()))
    for op, threads, loops in visits:
        if isinstance(op, ops.MbarrierArrive | ops.MbarrierArriveExpectTx | ops.MbarrierArriveDrop) and op.token in unknown:
            found[op.token] = _Uses(threads, loops, set(), set(), op.bar)
    for op, threads, loops in visits:  # a wait may stand before the arrival of other threads
        for token in op.tokens if isinstance(op, ops.MbarrierWait) else (op.token,) if isinstance(op, ops.MbarrierTestToken) else ():
            if token in found:
                uses = found[token]
                (uses.waiters if loops == uses.loops else uses.others).update(_members(threads))
    return {token: uses for token, uses in found.items() if uses.waiters or uses.others}


def _members(threads: ThreadSet) -> Iterator[int]:
    for low, high in threads.ranges:
        yield from range(low, high)


def _walk(steps: Sequence[Step], threads: ThreadSet, loops: tuple[int, ...]) -> Iterator[tuple[ops.Instr, ThreadSet, tuple[int, ...]]]:
    for step in steps:
        op = step.op
        yield op, threads, loops
        around = (*loops, id(step)) if isinstance(op, ops.Loop) else loops
        yield from _walk(step.body, op.threads if isinstance(op, Scope) else threads, around)


def stamp(exprs: Exprs, counters: Sequence[str]) -> Expr:
    """The counters of the loops around, outermost first, as one number from 1 on: the same in other loops with the same counters.

    Of large ones it is the remainder by an odd number, since what loops step by is often a power of two.
    """
    made: Expr = ZERO
    bits, odd = stamp_part(len(counters))
    for i, name in enumerate(reversed(counters)):
        counter, span = Sym(name, SymKind.LOOP), exprs.spans[name]
        whole = span.lo >= 0 and span.hi < odd
        made = add(made, mul(counter if whole else mod(counter, Const(odd)), Const(1 << bits * i)))
    return add(made, Const(1))
