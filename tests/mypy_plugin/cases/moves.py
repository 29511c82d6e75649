"""Use after move on all of Python's ways to hold a value. Each accepted function has a twin that differs by one edit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from oxidecopy import D2, BarrierToken, Cta, Group, Leader, ManagedBarrier, Owned, Ready, TensorMapSlot, TmaBarrier, f32

R = ManagedBarrier[Ready, TmaBarrier]
Slot = TensorMapSlot[f32, D2]


def make(cta: Cta) -> R:
    return cta.barrier().init(1)


def lend(_b: R) -> bool:
    return True


def consume(b: Owned[R]) -> None:
    b.inval()


def two(a: Owned[R], b: Owned[R]) -> None:
    a.inval()
    b.inval()


def many(*bs: Owned[R]) -> None:
    for b in bs:
        b.inval()


class Lease:
    """A user's own class: affine where a function takes it."""


def give_up(x: Owned[Lease]) -> None: ...


def name_ok(cta: Cta) -> None:
    r = make(cta)
    lend(r)
    r.inval()


def name_bad(cta: Cta) -> None:
    r = make(cta)
    r.inval()
    lend(r)  # E: [oxidecopy-moved]


def user_class_ok() -> None:
    x = Lease()
    give_up(x)
    x = Lease()
    print(x)


def user_class_bad() -> None:
    x = Lease()
    give_up(x)
    print(x)  # E: [oxidecopy-moved]


def draft_ok(slot: Slot, leader: Leader, warp: Group) -> None:
    draft = slot.edit(leader)
    released = draft.cp_fenceproxy(warp)
    draft = slot.edit(leader)
    draft.cp_fenceproxy(warp).acquire(leader)
    released.acquire(leader)


def draft_bad(slot: Slot, leader: Leader, warp: Group) -> None:
    draft = slot.edit(leader)
    released = draft.cp_fenceproxy(warp)
    draft.cp_fenceproxy(warp).acquire(leader)  # E: [oxidecopy-moved]
    released.acquire(leader)


def twice_ok(cta: Cta) -> None:
    two(make(cta), make(cta))


def twice_bad(cta: Cta) -> None:
    r = make(cta)
    two(r, r)  # E: [oxidecopy-moved]


def alias_ok(cta: Cta) -> None:
    r = make(cta)
    s = r
    r = make(cta)
    s.inval()
    lend(r)


def alias_bad(cta: Cta) -> None:
    r = make(cta)
    s = r
    s.inval()
    lend(r)  # E: [oxidecopy-moved]


def branch_ok(cta: Cta, c: bool) -> None:
    r = make(cta)
    if c:
        r.inval()
        r = make(cta)
    lend(r)


def branch_bad(cta: Cta, c: bool) -> None:
    r = make(cta)
    if c:
        r.inval()
    lend(r)  # E: [oxidecopy-moved]


def early_return_ok(cta: Cta, c: bool) -> None:
    r = make(cta)
    if c:
        r.inval()
        return
    lend(r)


def raise_ok(cta: Cta, c: bool) -> None:
    r = make(cta)
    if c:
        r.inval()
        raise ValueError
    lend(r)


def ternary_ok(cta: Cta, c: bool) -> None:
    r, s = make(cta), make(cta)
    t = r if c else s
    lend(t)


def ternary_bad(cta: Cta, c: bool) -> None:
    r, s = make(cta), make(cta)
    t = r if c else s
    t.inval()
    lend(r)  # E: [oxidecopy-moved]


def short_circuit_ok(cta: Cta, c: bool) -> None:
    r = make(cta)
    _ = c and lend(r)
    lend(r)


def short_circuit_bad(cta: Cta, c: bool) -> None:
    r = make(cta)
    _ = c and r.inval()
    lend(r)  # E: [oxidecopy-moved]


def walrus_ok(cta: Cta) -> None:
    if (r := make(cta)) is not None:
        lend(r)
    r.inval()


def walrus_bad(cta: Cta) -> None:
    s = make(cta)
    if (r := s) is not None:
        r.inval()
    lend(s)  # E: [oxidecopy-moved]


def walrus_mended_ok(cta: Cta) -> None:
    s = make(cta)
    lend(s)
    if (r := s) is not None:
        r.inval()


def loop_ok(cta: Cta) -> None:
    for _ in range(4):
        r = make(cta)
        r.inval()


def loop_bad(cta: Cta) -> None:
    r = make(cta)
    for _ in range(4):
        r.inval()  # E: [oxidecopy-moved]


def loop_break_ok(cta: Cta) -> None:
    r = make(cta)
    while True:
        r.inval()
        break


def loop_else_ok(cta: Cta, xs: list[int]) -> None:
    r = make(cta)
    for x in xs:
        if x:
            break
    else:
        r.inval()
        return
    lend(r)


def loop_else_bad(cta: Cta, xs: list[int]) -> None:
    r = make(cta)
    for x in xs:
        if x:
            break
    else:
        r.inval()
    lend(r)  # E: [oxidecopy-moved]


def while_ok(cta: Cta, n: int) -> None:
    r = make(cta)
    while n:
        n -= 1
        r.inval()
        r = make(cta)
    r.inval()


def while_bad(cta: Cta, n: int) -> None:
    r = make(cta)
    while n:
        n -= 1
        r.inval()  # E: [oxidecopy-moved]


def pipelined_ok(cta: Cta) -> None:
    r = make(cta)
    prev = r.arrive()
    for _ in range(4):
        tok = r.arrive()
        r.wait(prev)
        prev = tok
    r.wait(prev)


def pipelined_bad(cta: Cta) -> None:
    r = make(cta)
    prev = r.arrive()
    for _ in range(4):
        tok = r.arrive()
        r.wait(tok)
        prev = tok  # E: [oxidecopy-moved]
    r.wait(prev)  # E: [oxidecopy-moved]


def tuple_ok(cta: Cta) -> None:
    bars = (make(cta), make(cta))
    bars[0].inval()
    lend(bars[1])


def tuple_bad(cta: Cta) -> None:
    bars = (make(cta), make(cta))
    bars[0].inval()
    lend(bars[-2])  # E: [oxidecopy-moved]


def swap_ok(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    a, b = b, a
    a.inval()
    lend(b)


def swap_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    c = b
    a, b = b, a
    a.inval()
    lend(c)  # E: [oxidecopy-moved]


def dict_ok(cta: Cta) -> None:
    bars = {"full": make(cta), "empty": make(cta)}
    bars["full"].inval()
    lend(bars["empty"])


def dict_bad(cta: Cta) -> None:
    bars = {"full": make(cta), "empty": make(cta)}
    bars["full"].inval()
    lend(bars["full"])  # E: [oxidecopy-moved]


def comprehension_ok(cta: Cta) -> None:
    us = [cta.barrier() for _ in range(4)]
    rs = [u.init(1) for u in us]
    for r in rs:
        r.inval()


def comprehension_bad(cta: Cta) -> None:
    us = [cta.barrier() for _ in range(4)]
    rs = [u.init(1) for u in us]
    for r in rs:
        r.inval()
    for r in rs:  # E: [oxidecopy-moved]
        lend(r)


def zip_ok(cta: Cta) -> None:
    rs = [make(cta) for _ in range(4)]
    toks = [r.arrive() for r in rs]
    for r, t in zip(rs, toks, strict=True):
        r.wait(t)


def zip_bad(cta: Cta) -> None:
    rs = [make(cta) for _ in range(4)]
    toks = [r.arrive() for r in rs]
    for _i, (r, t) in enumerate(zip(rs, toks, strict=True)):
        r.wait(t)
        r.wait(t)  # E: [oxidecopy-moved]


def append_ok(cta: Cta) -> None:
    rs: list[R] = []
    r = make(cta)
    rs.append(r)
    for x in rs:
        lend(x)
    r.inval()


def append_bad(cta: Cta) -> None:
    rs: list[R] = []
    r = make(cta)
    rs.append(r)
    r.inval()
    for x in rs:  # E: [oxidecopy-moved]
        lend(x)


def clear_ok(cta: Cta) -> None:
    rs = [make(cta)]
    rs[0].inval()
    rs.clear()
    rs.append(make(cta))
    for x in rs:
        lend(x)


def try_ok(cta: Cta) -> None:
    r = make(cta)
    try:
        lend(r)
    except ValueError:
        r.inval()
        return
    finally:
        print()
    r.inval()


def try_bad(cta: Cta) -> None:
    r = make(cta)
    try:
        lend(r)
    except ValueError:
        r.inval()
    r.inval()  # E: [oxidecopy-moved]


def try_mended_ok(cta: Cta) -> None:
    r = make(cta)
    try:
        lend(r)
    except ValueError:
        pass
    r.inval()


def finally_bad(cta: Cta, c: bool) -> None:
    r = make(cta)
    try:
        if c:
            return
        lend(r)
    finally:
        r.inval()
    lend(r)  # E: [oxidecopy-moved]


def finally_ok(cta: Cta, c: bool) -> None:
    r = make(cta)
    lend(r)
    try:
        if c:
            return
        lend(r)
    finally:
        r.inval()


def finally_break_ok(cta: Cta, c: bool) -> None:
    r = make(cta)
    while c:
        try:
            break
        finally:
            r.inval()
            r = make(cta)
    lend(r)


def finally_break_bad(cta: Cta, c: bool) -> None:
    r = make(cta)
    while c:
        try:
            break
        finally:
            r.inval()
    lend(r)  # E: [oxidecopy-moved]


def handler_bad(cta: Cta) -> None:
    r = make(cta)
    try:
        r.inval()
        print()
    except ValueError:
        lend(r)  # E: [oxidecopy-moved]


def handler_ok(cta: Cta) -> None:
    r = make(cta)
    try:
        r.inval()
    except ValueError:
        lend(r)


def with_bad(cta: Cta) -> None:
    r = make(cta)
    with suppress(ValueError):
        r.inval()
    lend(r)  # E: [oxidecopy-moved]


def match_ok(cta: Cta, n: int) -> None:
    r = make(cta)
    match n:
        case 0:
            r.inval()
            return
        case _:
            lend(r)
    r.inval()


def match_bad(cta: Cta, n: int) -> None:
    r = make(cta)
    match n:
        case 0:
            r.inval()
        case _:
            lend(r)
    r.inval()  # E: [oxidecopy-moved]


def match_capture_bad(cta: Cta) -> None:
    pair = (make(cta), make(cta))
    match pair:
        case (a, _):
            a.inval()
    lend(pair[0])  # E: [oxidecopy-moved]


def match_capture_ok(cta: Cta) -> None:
    pair = (make(cta), make(cta))
    lend(pair[0])
    match pair:
        case (a, _):
            a.inval()


def generator_ok(cta: Cta) -> Iterator[R]:
    r = make(cta)
    yield r
    r.inval()


def generator_bad(cta: Cta) -> Iterator[R]:
    r = make(cta)
    r.inval()
    yield r  # E: [oxidecopy-moved]


def bound_method_ok(cta: Cta) -> None:
    r = make(cta)
    end = r.inval
    lend(r)
    end()


def bound_method_bad(cta: Cta) -> None:
    r = make(cta)
    end = r.inval
    end()
    lend(r)  # E: [oxidecopy-moved]


def star_ok(cta: Cta) -> None:
    pair = (make(cta), make(cta))
    for r in pair:
        lend(r)
    many(*pair)


def star_bad(cta: Cta) -> None:
    pair = (make(cta), make(cta))
    many(*pair)
    lend(pair[0])  # E: [oxidecopy-moved]


def star_mended_ok(cta: Cta) -> None:
    pair = (make(cta), make(cta))
    lend(pair[0])
    many(*pair)


def star_part_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    many(*(a, b))
    lend(b)  # E: [oxidecopy-moved]


@dataclass
class Both:
    full: R
    empty: R
    notes: list[str] = field(default_factory=list)


class Named(NamedTuple):
    full: R
    empty: R


def dataclass_ok(cta: Cta) -> None:
    b = Both(make(cta), make(cta))
    b.full.inval()
    lend(b.empty)


def dataclass_bad(cta: Cta) -> None:
    r = make(cta)
    b = Both(r, make(cta))
    b.full.inval()
    lend(r)  # E: [oxidecopy-moved]


def dataclass_mended_ok(cta: Cta) -> None:
    r = make(cta)
    lend(r)
    b = Both(r, make(cta))
    b.full.inval()


def named_tuple_bad(cta: Cta) -> None:
    r = make(cta)
    b = Named(full=r, empty=make(cta))
    b.full.inval()
    lend(r)  # E: [oxidecopy-moved]


def named_tuple_ok(cta: Cta) -> None:
    r = make(cta)
    lend(r)
    b = Named(full=r, empty=make(cta))
    b.full.inval()


def part_ok(cta: Cta) -> None:
    b = Both(make(cta), make(cta))
    b.full.inval()
    b.full = make(cta)
    use_both(b)


def part_bad(cta: Cta) -> None:
    b = Both(make(cta), make(cta))
    b.full.inval()
    use_both(b)  # E: [oxidecopy-moved]


def use_both(_b: Both) -> None: ...


def delete_ok(cta: Cta) -> None:
    r = make(cta)
    r.inval()
    del r


def lambda_bad(cta: Cta) -> None:
    tokens: list[BarrierToken[TmaBarrier]] = []
    r = make(cta)
    act = lambda: tokens.append(r.arrive())  # noqa: E731
    act()
    r.inval()
    r.inval()  # E: [oxidecopy-moved]


def lambda_ok(cta: Cta) -> None:
    tokens: list[BarrierToken[TmaBarrier]] = []
    r = make(cta)
    act = lambda: tokens.append(r.arrive())  # noqa: E731
    act()
    r.inval()


RESULT = [1, 2]


# ---- elements through patterns, views and nested targets
def class_pattern_bad(cta: Cta) -> None:
    both = Both(make(cta), make(cta))
    match both:
        case Both(first, _):
            first.inval()
    lend(both.full)  # E: [oxidecopy-moved]


def class_pattern_ok(cta: Cta) -> None:
    both = Both(make(cta), make(cta))
    match both:
        case Both(first, _):
            first.inval()
    lend(both.empty)
    both.empty.inval()


def views_bad(cta: Cta) -> None:
    rs = {"a": make(cta), "b": make(cta)}
    for r in rs.values():
        r.inval()
    lend(rs["a"])  # E: [oxidecopy-moved]


def views_mended_ok(cta: Cta) -> None:
    rs = {"a": make(cta), "b": make(cta)}
    lend(rs["a"])
    for r in rs.values():
        r.inval()


def views_ok(cta: Cta) -> None:
    rs = {"a": make(cta), "b": make(cta)}
    for r in rs.values():
        lend(r)
    lend(rs["a"])
    for _, r in rs.items():
        r.inval()


def views_again_bad(cta: Cta) -> None:
    rs = {"a": make(cta), "b": make(cta)}
    for _, r in rs.items():
        r.inval()
    for r in rs.values():  # E: [oxidecopy-moved]
        lend(r)


def views_again_ok(cta: Cta) -> None:
    rs = {"a": make(cta), "b": make(cta)}
    for _, r in rs.items():
        pass
    for r in rs.values():
        lend(r)


def nested_target_bad(cta: Cta) -> None:
    pairs = [(1, make(cta)), (2, make(cta))]
    for _i, (_n, r) in enumerate(pairs):
        r.inval()
    for _n, r in pairs:  # E: [oxidecopy-moved]
        lend(r)


def nested_target_mended_ok(cta: Cta) -> None:
    pairs = [(1, make(cta)), (2, make(cta))]
    for _i, (_n, r) in enumerate(pairs):
        pass
    for _n, r in pairs:
        lend(r)


def nested_target_ok(cta: Cta) -> None:
    pairs = [(make(cta), make(cta)), (make(cta), make(cta))]
    for _i, (a, _b) in enumerate(pairs):
        a.inval()
    for _a, b in [(1, 2)]:
        print(b)
    lend(pairs[0][1])
    pairs[1][1].inval()


def bound_below_ok(cta: Cta) -> None:
    r: R
    for i in range(3):
        if i > 0:
            r.inval()
        r = make(cta)
    r.inval()


def appended_bad(cta: Cta) -> None:
    rs = []
    rs.append(make(cta))
    for r in rs:
        r.inval()
    lend(rs[0])  # E: [oxidecopy-moved]


def appended_ok(cta: Cta) -> None:
    rs = []
    rs.append(make(cta))
    lend(rs[0])
    for r in rs:
        r.inval()
