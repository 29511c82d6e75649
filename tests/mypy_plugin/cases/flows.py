"""Values that change places: two names that never hold the same one, tuples with names, overloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, overload

from oxidecopy import BarrierToken, Cta, ManagedBarrier, Owned, Ready, TmaBarrier

R = ManagedBarrier[Ready, TmaBarrier]
T = BarrierToken[TmaBarrier]


def make(cta: Cta) -> R:
    return cta.barrier().init(1)


def both(a: Owned[R], b: Owned[R]) -> None:
    a.inval()
    b.inval()


# ---- each side of a choice, whatever its condition is made of
def either_side_ok(cta: Cta, c: bool, d: int) -> None:
    one, two, three = cta.barrier(), cta.barrier(), cta.barrier()
    (one.init(1) if not c else one.init(2)).inval()
    (two.init(1) if not (c and d) else two.init(2)).inval()
    (three.init(1) if d or not c else three.init(2)).inval()


def either_side_bad(cta: Cta, c: bool, d: int) -> None:
    one, two, three = cta.barrier(), cta.barrier(), cta.barrier()
    (one.init(1) if not c else one.init(2)).inval()
    (two.init(1) if not (c and d) else three.init(2)).inval()
    (three.init(1) if d or not c else three.init(2)).inval()  # E: [oxidecopy-moved]


# ---- two names that a loop swaps
def swap_ok(cta: Cta, n: int) -> None:
    current, spare = make(cta), make(cta)
    for _ in range(n):
        current.arrive()
        current, spare = spare, current
    current.inval()
    spare.inval()


def swap_bad(cta: Cta, n: int) -> None:
    current, spare = make(cta), make(cta)
    for _ in range(n):
        current.arrive()
        current, spare = spare, spare
    current.inval()
    spare.inval()  # E: [oxidecopy-moved]


def swap_then_use_ok(cta: Cta, n: int) -> None:
    current, spare = make(cta), make(cta)
    for _ in range(n):
        current, spare = spare, current
    current.inval()
    spare.arrive()


def swap_then_use_bad(cta: Cta, n: int) -> None:
    current, spare = make(cta), make(cta)
    for _ in range(n):
        current, spare = spare, current
    current.inval()
    current.arrive()  # E: [oxidecopy-moved]


def third_name_ok(cta: Cta, n: int) -> None:
    current, spare = make(cta), make(cta)
    for _ in range(n):
        third = current
        current = spare
        spare = third
    both(current, spare)


def third_name_bad(cta: Cta, n: int) -> None:
    current, spare = make(cta), make(cta)
    for _ in range(n):
        third = spare
        current = spare
        spare = third
    both(current, spare)  # E: [oxidecopy-moved]


def rotated_ok(cta: Cta, n: int) -> None:
    a, b, c = make(cta), make(cta), make(cta)
    for _ in range(n):
        a, b, c = b, c, a
    a.inval()
    b.inval()
    c.inval()


def rotated_bad(cta: Cta, n: int) -> None:
    a, b, c = make(cta), make(cta), make(cta)
    for _ in range(n):
        a, b, c = b, c, b
    a.inval()
    b.inval()
    c.inval()  # E: [oxidecopy-moved]


def chosen_ok(cta: Cta, c: bool) -> None:
    first, second = make(cta), make(cta)
    if c:
        first, second = second, first
    first.inval()
    second.inval()


def chosen_bad(cta: Cta, c: bool) -> None:
    first, second = make(cta), make(cta)
    if c:
        first = second
    first.inval()
    second.inval()  # E: [oxidecopy-moved]


def one_of_two_ok(cta: Cta, c: bool) -> None:
    a, b = make(cta), make(cta)
    first, second = (a, b) if c else (b, a)
    first.inval()
    second.inval()


def one_of_two_bad(cta: Cta, c: bool) -> None:
    a, b = make(cta), make(cta)
    first, second = (a, b) if c else (a, a)
    first.inval()
    second.inval()  # E: [oxidecopy-moved]


def refilled_ok(cta: Cta, n: int) -> None:
    a, b = make(cta), make(cta)
    for _ in range(n):
        a.inval()
        a, b = b, make(cta)
    a.inval()
    b.inval()


def refilled_bad(cta: Cta, n: int) -> None:
    a, b = make(cta), make(cta)
    for _ in range(n):
        a.inval()  # E: [oxidecopy-moved]
        b = make(cta)
    b.inval()


def alias_after_ok(cta: Cta, n: int) -> None:
    current, spare = make(cta), make(cta)
    for _ in range(n):
        current, spare = spare, current
    spare = make(cta)
    current.inval()
    spare.arrive()


def alias_after_bad(cta: Cta, n: int) -> None:
    current, spare = make(cta), make(cta)
    for _ in range(n):
        current, spare = spare, current
    spare = current
    current.inval()
    spare.arrive()  # E: [oxidecopy-moved]


def two_behind_ok(cta: Cta, n: int) -> None:
    older: R | None = None
    old: R | None = None
    for _ in range(n):
        new = make(cta)
        if older is not None:
            older.inval()
        older, old = old, new


def two_behind_bad(cta: Cta, n: int) -> None:
    older: R | None = None
    old: R | None = None
    for _ in range(n):
        new = make(cta)
        if older is not None:
            older.inval()
            older.inval()  # E: [oxidecopy-moved]
        older, old = old, new


def elements_ok(cta: Cta, n: int) -> None:
    held = [make(cta), make(cta)]
    for _ in range(n):
        held[0], held[1] = held[1], held[0]
    held[0].inval()
    held[1].inval()


def elements_bad(cta: Cta, n: int) -> None:
    held = [make(cta), make(cta)]
    for _ in range(n):
        held[0], held[1] = held[1], held[1]
    held[0].inval()
    held[1].inval()  # E: [oxidecopy-moved]


class Stage:
    """Made of one."""

    def __init__(self, full: R) -> None:
        self.full = full


@dataclass
class Buffer:
    """Has one."""

    full: R


def objects_ok(cta: Cta, n: int) -> None:
    current, spare = Buffer(make(cta)), Buffer(make(cta))
    for _ in range(n):
        current.full.arrive()
        current, spare = spare, current
    current.full.inval()
    spare.full.inval()


def objects_bad(cta: Cta, n: int) -> None:
    current, spare = Buffer(make(cta)), Buffer(make(cta))
    for _ in range(n):
        current.full.arrive()
        current, spare = spare, spare
    current.full.inval()
    spare.full.inval()  # E: [oxidecopy-moved]


def unknown_objects_ok(cta: Cta, n: int) -> None:
    current, spare = Stage(make(cta)), Stage(make(cta))
    for _ in range(n):
        current, spare = spare, current
    current.full.inval()
    print(spare)
    spare.full.arrive()


def unknown_objects_bad(cta: Cta, n: int) -> None:
    current, spare = Stage(make(cta)), Stage(make(cta))
    for _ in range(n):
        current, spare = spare, current
    current.full.inval()
    print(current)  # E: [oxidecopy-moved]
    spare.full.arrive()


def objects_by_name_ok(cta: Cta, c: bool, n: int) -> None:
    current, spare = Buffer(make(cta)), Buffer(make(cta))
    for _ in range(n):
        current, spare = spare, current
    if c:
        current.full.inval()
    spare.full.inval()


def objects_by_name_bad(cta: Cta, c: bool, n: int) -> None:
    current, spare = Buffer(make(cta)), Buffer(make(cta))
    for _ in range(n):
        current, spare = spare, current
    if c:
        spare.full.inval()
    spare.full.inval()  # E: [oxidecopy-moved]


# ---- the one after it is made before the one in hand is used up
def pipelined_ok(bar: R, steps: int) -> None:
    pending = bar.arrive()
    for step in range(steps):
        following = None
        if step + 1 < steps:
            following = bar.arrive()
        bar.wait(pending)
        if following is None:
            break
        pending = following


def pipelined_bad(bar: R, steps: int) -> None:
    pending = bar.arrive()
    for step in range(steps):
        following = None
        if step + 1 < steps:
            following = bar.arrive()
        bar.wait(pending)  # E: [oxidecopy-moved]
        if following is None:
            break


def one_ahead_ok(cta: Cta, n: int) -> None:
    held = make(cta)
    for _ in range(n):
        following = make(cta)
        held.inval()
        held = following
    held.inval()


def one_ahead_bad(cta: Cta, n: int) -> None:
    held = make(cta)
    for _ in range(n):
        following = make(cta)
        held.inval()  # E: [oxidecopy-moved]
        following.arrive()


# ---- overloads
@overload
def either(b: R, n: int) -> int: ...
@overload
def either(b: Owned[R], n: str) -> str: ...
def either(b: R, n: int | str) -> int | str:
    return n


class Sink:
    """Takes it only for good."""

    @overload
    def put(self, b: R) -> None: ...
    @overload
    def put(self, b: Owned[R], *, last: bool) -> None: ...
    def put(self, b: R, *, last: bool = False) -> None:
        print(b, last)


def overload_ok(cta: Cta) -> None:
    b = make(cta)
    either(b, 1)
    either(b, 2)
    either(b, "x")


def overload_bad(cta: Cta) -> None:
    b = make(cta)
    either(b, 1)
    either(b, "x")
    either(b, "x")  # E: [oxidecopy-moved]


def overload_any_ok(cta: Cta, n: int | str) -> None:
    b = make(cta)
    either(b, n)
    b.inval()


def overload_any_bad(cta: Cta, n: str) -> None:
    b = make(cta)
    either(b, n)
    b.inval()  # E: [oxidecopy-moved]


def overload_keyword_ok(cta: Cta, sink: Sink) -> None:
    b = make(cta)
    sink.put(b)
    sink.put(b, last=True)


def overload_keyword_bad(cta: Cta, sink: Sink) -> None:
    b = make(cta)
    sink.put(b, last=True)
    sink.put(b)  # E: [oxidecopy-moved]


# ---- the rest of a display
def rest_ok(cta: Cta) -> None:
    first, *rest = [make(cta), make(cta), make(cta)]
    first.inval()
    print(len(rest))
    rest[0].inval()
    rest[1].inval()


def rest_bad(cta: Cta) -> None:
    first, *rest = [make(cta), make(cta), make(cta)]
    rest[0].inval()
    print(rest)  # E: [oxidecopy-moved]


def rest_mended_ok(cta: Cta) -> None:
    first, *rest = [make(cta), make(cta), make(cta)]
    print(rest)
    rest[0].inval()


def rest_between_ok(cta: Cta) -> None:
    first, *rest, last = make(cta), make(cta), make(cta)
    first.inval()
    last.inval()
    rest[0].inval()


def rest_between_bad(cta: Cta) -> None:
    first, *rest, last = make(cta), make(cta), make(cta)
    first.inval()
    last.inval()
    last.inval()  # E: [oxidecopy-moved]


def rest_of_list_ok(cta: Cta) -> None:
    held = [make(cta), make(cta), make(cta)]
    first, *rest = held
    first.inval()
    print(rest)


def rest_of_list_bad(cta: Cta) -> None:
    held = [make(cta), make(cta), make(cta)]
    first, *rest = held
    held[1].inval()
    print(rest)  # E: [oxidecopy-moved]


# ---- a tuple with names
class Pair(NamedTuple):
    """Two of them."""

    full: R
    empty: R


def named_ok(cta: Cta) -> None:
    p = Pair(make(cta), make(cta))
    full, _e = p
    full.inval()
    p.empty.arrive()


def named_bad(cta: Cta) -> None:
    p = Pair(make(cta), make(cta))
    full, _e = p
    full.inval()
    p.full.arrive()  # E: [oxidecopy-moved]


def named_index_ok(cta: Cta) -> None:
    p = Pair(make(cta), make(cta))
    p[0].inval()
    p.empty.arrive()


def named_index_bad(cta: Cta) -> None:
    p = Pair(make(cta), make(cta))
    p[-1].inval()
    p.empty.arrive()  # E: [oxidecopy-moved]


def named_match_ok(cta: Cta) -> None:
    p = Pair(make(cta), make(cta))
    match p:
        case (full, _):
            full.inval()
    p.empty.arrive()


def named_match_bad(cta: Cta) -> None:
    p = Pair(make(cta), make(cta))
    match p:
        case (full, _):
            full.inval()
    p.full.arrive()  # E: [oxidecopy-moved]


def named_in_loop_ok(cta: Cta) -> None:
    pairs = [Pair(make(cta), make(cta))]
    for full, empty in pairs:
        full.inval()
        empty.arrive()
    pairs[0].empty.arrive()


def named_in_loop_bad(cta: Cta) -> None:
    pairs = [Pair(make(cta), make(cta))]
    for full, empty in pairs:
        full.inval()
        empty.arrive()
    pairs[0].full.arrive()  # E: [oxidecopy-moved]


# ---- elements of a list that are only known together: one at each index
def comprehended_ok(cta: Cta) -> None:
    bars = [make(cta) for _ in range(2)]
    bars[0].inval()
    bars[1].inval()


def comprehended_bad(cta: Cta) -> None:
    bars = [make(cta) for _ in range(2)]
    bars[0].inval()
    bars[0].inval()  # E: [oxidecopy-moved]


def unpacked_ok(cta: Cta) -> None:
    a, b = (make(cta) for _ in range(2))
    a.inval()
    b.inval()


def unpacked_bad(cta: Cta) -> None:
    a, b = (make(cta) for _ in range(2))
    a.inval()
    a.inval()  # E: [oxidecopy-moved]
    b.inval()


def by_index_after_all_ok(cta: Cta) -> None:
    bars = [make(cta) for _ in range(2)]
    for b in bars:
        b.arrive()
    bars[0].inval()


def by_index_after_all_bad(cta: Cta) -> None:
    bars = [make(cta) for _ in range(2)]
    for b in bars:
        b.inval()
    bars[0].inval()  # E: [oxidecopy-moved]


# ---- shift registers
def shifted_ok(cta: Cta, n: int) -> None:
    pair = (make(cta), make(cta))
    for _ in range(n):
        pair[0].inval()
        pair = (pair[1], make(cta))
    pair[0].inval()
    pair[1].inval()


def shifted_bad(cta: Cta, n: int) -> None:
    pair = (make(cta), make(cta))
    for _ in range(n):
        pair[0].inval()  # E: [oxidecopy-moved]
    pair[1].inval()


def rotated_list_ok(cta: Cta, n: int) -> None:
    bars = [make(cta) for _ in range(3)]
    for _ in range(n):
        first, *bars = bars
        first.inval()
        bars = [*bars, make(cta)]
    for b in bars:
        b.inval()


def rotated_list_bad(cta: Cta, n: int) -> None:
    bars = [make(cta) for _ in range(3)]
    first, *bars = bars
    for _ in range(n):
        first.inval()  # E: [oxidecopy-moved]
        bars = [*bars, make(cta)]
    for b in bars:
        b.inval()


def replaced_ok(cta: Cta, c: bool) -> None:
    pair = [make(cta), make(cta)]
    if c:
        pair[0].inval()
        pair = [pair[1], make(cta)]
    pair[0].inval()


def replaced_bad(cta: Cta, c: bool) -> None:
    pair = [make(cta), make(cta)]
    if c:
        pair[0].inval()
    pair[0].inval()  # E: [oxidecopy-moved]


# ---- the next one, or none
def next_or_none_ok(cta: Cta, n: int) -> None:
    now: R | None = make(cta)
    while now is not None:
        n -= 1
        following = make(cta) if n > 0 else None
        now.inval()
        now = following


def next_or_none_bad(cta: Cta, n: int) -> None:
    now: R | None = make(cta)
    while now is not None:  # E: [oxidecopy-moved]
        n -= 1
        following = make(cta) if n > 0 else now
        now.inval()
        now = following  # E: [oxidecopy-moved]


# ---- an object that nothing leads to any more
def renewed_ok(cta: Cta, c: bool) -> None:
    stage = Stage(make(cta))
    if c:
        stage.full.inval()
        stage = Stage(make(cta))
    stage.full.inval()


def renewed_bad(cta: Cta, c: bool) -> None:
    stage = Stage(make(cta))
    if c:
        stage.full.inval()
    stage.full.inval()  # E: [oxidecopy-moved]
