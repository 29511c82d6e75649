"""What must be used up: tokens, Ready barriers and commit groups, on every path. Each mistake has a twin, one edit away, that is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import oxidecopy as ox

R = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]
T = ox.BarrierToken[ox.TmaBarrier]
D = ox.TmaDescriptor[ox.f32, ox.D2]


def take(bar: ox.Owned[R]) -> None:
    bar.inval()


def look(bar: R) -> None:
    bar.wait_phase(0)


def keep(token: T) -> None:
    print(token)


# ---- straight on
def barrier_bad(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    bar.arrive()


def barrier_ok(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    bar.arrive()
    bar.inval()


def barriers_bad(cta: ox.Cta) -> None:
    bars = cta.barriers(4).init(1)  # E: [oxidecopy-leak]
    bars[0].arrive()


def barriers_ok(cta: ox.Cta) -> None:
    bars = cta.barriers(4).init(1)
    bars[0].arrive()
    bars.inval()


def by_thread_bad(cta: ox.Cta) -> None:
    bar = cta.barrier().init_by(1, 32)  # E: [oxidecopy-leak]
    bars = cta.barriers(2).init_by(1, 32)  # E: [oxidecopy-leak]
    bar.arrive()
    bars[0].arrive()


def by_thread_ok(cta: ox.Cta) -> None:
    bar = cta.barrier().init_by(1, 32)
    bars = cta.barriers(2).init_by(1, 32)
    bar.inval_by(32)
    bars.inval_by(32)


def token_bad(bar: R) -> None:
    token = bar.arrive()  # E: [oxidecopy-leak]


def token_ok(bar: R) -> None:
    token = bar.arrive()
    bar.wait(token)


def dropped_bad(bar: R) -> None:
    token = bar.arrive_drop()  # E: [oxidecopy-leak]


def dropped_ok(bar: R) -> None:
    bar.arrive_drop()
    _ = bar.arrive()


def announced_bad(cta: ox.Cta, bar: R) -> None:
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, 0)  # E: [oxidecopy-leak]


def announced_ok(cta: ox.Cta, bar: R) -> None:
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, 0)
    bar.wait(token)


def copied_bad(cta: ox.Cta, d: D) -> None:
    bar = cta.barrier().init(1)
    tile = cta.shared(d)
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)  # E: [oxidecopy-leak]
        d.g2s(leader, tile, (0, 0), token)
    bar.inval()


def copied_ok(cta: ox.Cta, d: D) -> None:
    bar = cta.barrier().init(1)
    tile = cta.shared(d)
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        d.g2s(leader, tile, (0, 0), token)
    bar.wait_phase(0)
    bar.inval()


def parity_ok(cta: ox.Cta, d: D) -> None:
    bar = cta.barrier().init(1)
    tile = cta.shared(d)
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        d.g2s(leader, tile, (0, 0), token)
    bar.wait_parity(0)
    bar.inval()


def asked_parity_ok(cta: ox.Cta, d: D) -> None:
    one, two = cta.barrier().init(1), cta.barrier().init(1)
    tile = cta.shared(d)
    with cta.elect() as leader:
        first = one.arrive_expect_tx(leader, tile)
        d.g2s(leader, tile, (0, 0), first)
        second = two.arrive_expect_tx(leader, tile)
        d.g2s(leader, tile, (0, 0), second)
    print(one.try_wait_parity(0), two.test_wait_parity(0))
    one.inval()
    two.inval()


def lent_barrier_ok(cta: ox.Cta, d: D, bar: R) -> None:
    tile = cta.shared(d)
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        d.g2s(leader, tile, (0, 0), token)  # whoever lent the barrier may wait by number


def lent_to_many_ok(cta: ox.ClusterCta, d: D, bar: R) -> None:
    tile = cta.shared(d)
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        d.g2s_multicast(leader, tile, (0, 0), token, cta_mask=3)


def helper_waits_ok(cta: ox.Cta, d: D) -> None:
    bar = cta.barrier().init(1)
    tile = cta.shared(d)
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        d.g2s(leader, tile, (0, 0), token)
    look(bar)
    bar.inval()


def asked_ok(bar: R) -> None:
    token = bar.arrive()
    other = bar.arrive()
    print(bar.try_wait(token), bar.test_wait(other))


def asked_bad(bar: R) -> None:
    token = bar.arrive()
    other = bar.arrive()  # E: [oxidecopy-leak]
    print(bar.try_wait(token))


# ---- branches
def branch_bad(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    if c:
        bar.inval()


def branch_ok(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1)
    if c:
        bar.inval()
    else:
        bar.inval()


def chain_bad(bar: R, n: int) -> None:
    token = bar.arrive()  # E: [oxidecopy-leak]
    if n == 0:
        bar.wait(token)
    elif n == 1:
        pass
    else:
        bar.wait(token)


def chain_ok(bar: R, n: int) -> None:
    token = bar.arrive()
    if n == 0:
        bar.wait(token)
    elif n == 1:
        bar.wait(token)


def same_condition_bad(cta: ox.Cta, c: bool, n: int) -> None:
    if c and n > 2:
        bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    look(cta.barrier().init(2) if c else cta.barrier().init(3))
    if c and n > 3:
        bar.inval()


def same_condition_mended_ok(cta: ox.Cta, c: bool, n: int) -> None:
    if c and n > 2:
        bar = cta.barrier().init(1)
    look(cta.barrier().init(2) if c else cta.barrier().init(3))
    if c and n > 2:
        bar.inval()


def same_condition_ok(cta: ox.Cta, c: bool, n: int) -> None:
    if c and n > 2:
        bar = cta.barrier().init(1)
    if not c:
        return
    if n <= 2:
        return
    bar.inval()


def other_word_ok(cta: ox.Cta, c: bool, n: int) -> None:
    one = two = None
    if n != 3:
        one = cta.barrier().init(1)
    if one is not None:
        one.inval()
    if not c:
        two = cta.barrier().init(1)
    print("between")
    if two:
        two.inval()


def changed_condition_bad(cta: ox.Cta, c: bool) -> None:
    if c:
        bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    c = not c
    if c:
        bar.inval()


def changed_condition_ok(cta: ox.Cta, c: bool) -> None:
    if c:
        bar = cta.barrier().init(1)
    if c:
        bar.inval()


def early_bad(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    if c:
        return
    bar.inval()


def early_ok(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1)
    if c:
        raise ValueError(c)  # recording ends here, nothing runs
    bar.inval()


def match_bad(bar: R, n: int) -> None:
    token = bar.arrive()  # E: [oxidecopy-leak]
    match n:
        case 0:
            bar.wait(token)
        case _:
            pass


def match_mended_ok(bar: R, n: int) -> None:
    token = bar.arrive()
    match n:
        case 0:
            bar.wait(token)
        case _:
            bar.wait(token)


def match_ok(bar: R, n: int) -> None:
    token = bar.arrive()
    match n:
        case 0:
            bar.wait(token)
        case _:
            bar.wait(token)
    match n:
        case 1:
            second = bar.arrive()
        case _:
            pass
    if n == 1:
        bar.wait(second)


def ternary_bad(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    bar.inval() if c else None


def ternary_ok(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1) if c else cta.barrier().init(2)
    bar.inval()
    other = cta.barrier().init(1)
    other.inval() if c else take(other)


# ---- loops
def loop_bad(bar: R) -> None:
    for _ in range(3):
        token = bar.arrive()  # E: [oxidecopy-leak]
    bar.wait(token)


def loop_ok(bar: R) -> None:
    for _ in range(3):
        token = bar.arrive()
        bar.wait(token)


def pipelined_bad(a: R) -> None:
    previous = a.arrive()
    for _ in range(4):
        a.wait(previous)
        previous = a.arrive()  # E: [oxidecopy-leak]


def pipelined_ok(a: R) -> None:
    previous = a.arrive()
    for _ in range(4):
        a.wait(previous)
        previous = a.arrive()
    a.wait(previous)


def primed_ok(a: R) -> None:
    previous: T | None = None
    for _ in range(4):
        token = a.arrive()
        if previous is not None:
            a.wait(previous)
        previous = token
    if previous is not None:
        a.wait(previous)


def counted_ok(a: R) -> None:
    previous: T
    for i in range(4):
        token = a.arrive()
        if i > 0:
            a.wait(previous)
        previous = token
    a.wait(previous)


def first_round_ok(a: R) -> None:
    previous: T
    for i in range(4):
        token = a.arrive()
        if i == 0:
            previous = token
            continue
        a.wait(previous)
        previous = token
    a.wait(previous)


def counted_bad(a: R) -> None:
    for i in range(4):
        token = a.arrive()  # E: [oxidecopy-leak]
        if i > 0:
            a.wait(token)


def counted_mended_ok(a: R) -> None:
    for i in range(4):
        token = a.arrive()
        if i > 0:
            a.wait(token)
        else:
            a.wait(token)


def break_bad(bar: R, c: bool) -> None:
    for _ in range(3):
        token = bar.arrive()  # E: [oxidecopy-leak]
        if c:
            break
        bar.wait(token)


def break_ok(bar: R, c: bool) -> None:
    for _ in range(3):
        token = bar.arrive()
        if c:
            bar.wait(token)
            break
        bar.wait(token)


def continue_bad(bar: R, c: bool) -> None:
    n = 3
    while n > 0:
        n -= 1
        token = bar.arrive()  # E: [oxidecopy-leak]
        if c:
            continue
        bar.wait(token)


def continue_ok(bar: R, c: bool) -> None:
    n = 3
    while n > 0:
        n -= 1
        if c:
            continue
        token = bar.arrive()
        bar.wait(token)


def from_outside_ok(cta: ox.Cta, n: int) -> None:
    bar = cta.barrier().init(1)
    while True:
        n -= 1
        if n == 0:
            bar.inval()
            break


def some_turn_ok(cta: ox.Cta, xs: list[int]) -> None:
    bar = cta.barrier().init(1)
    for x in xs:
        if x > 3:
            bar.inval()
            break


def inner_bad(cta: ox.Cta, xs: list[int]) -> None:
    for _ in xs:
        bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
        for _ in xs:
            bar.arrive()
        if xs:
            bar.inval()


def inner_ok(cta: ox.Cta, xs: list[int]) -> None:
    for _ in xs:
        bar = cta.barrier().init(1)
        for _ in xs:
            bar.arrive()
        bar.inval()


def endless_bad(cta: ox.Cta, xs: list[int]) -> None:
    for x in xs:
        bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
        while True:
            bar.arrive()
            break
        if x > 3:
            bar.inval()


def endless_mended_ok(cta: ox.Cta, xs: list[int]) -> None:
    for x in xs:
        bar = cta.barrier().init(1)
        while True:
            bar.arrive()
        if x > 3:
            bar.inval()


def endless_ok(cta: ox.Cta, xs: list[int]) -> None:
    for _ in xs:
        bar = cta.barrier().init(1)
        while True:
            bar.arrive()
            break
        bar.inval()


def recorded_bad(cta: ox.Cta, bar: R) -> None:
    for _ in cta.range(8):
        token = bar.arrive()  # E: [oxidecopy-leak]


def recorded_ok(cta: ox.Cta, bar: R) -> None:
    for _ in cta.range(8):
        token = bar.arrive()
        bar.wait(token)


# ---- with, try
def finally_bad(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    try:
        if c:
            return
        bar.inval()
    finally:
        print(c)


def finally_mended_ok(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1)
    try:
        if c:
            pass
        bar.inval()
    finally:
        print(c)


def finally_ok(cta: ox.Cta, c: bool) -> None:
    bar = cta.barrier().init(1)
    try:
        if c:
            return
        look(bar)
    finally:
        bar.inval()


def handler_bad(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    try:
        bar.arrive()
    except ValueError:
        return
    bar.inval()


def handler_mended_ok(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    try:
        bar.arrive()
    except ValueError:
        pass
    bar.inval()


def handler_ok(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    try:
        token = bar.arrive()
        bar.wait(token)
        bar.inval()
    except ValueError:
        print("what the block did is not known here")


def suppressed_ok(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    with suppress(ValueError):
        bar.inval()


def suppressed_bad(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    with suppress(ValueError):
        bar.arrive()


def skipped_ok(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    with cta.when(cta.block_idx.x == 0):
        token = bar.arrive()
        bar.wait(token)
    bar.inval()


def skipped_bad(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    with cta.when(cta.block_idx.x == 0):
        token = bar.arrive()  # E: [oxidecopy-leak]
    bar.inval()


# ---- containers and attributes
def display_bad(a: R, b: R) -> None:
    tokens = [
        a.arrive(),
        b.arrive(),  # E: [oxidecopy-leak]
    ]
    a.wait(tokens[0])


def display_mended_ok(a: R, b: R) -> None:
    tokens = [
        a.arrive(),
        b.arrive(),
    ]
    a.wait(tokens[0])
    b.wait(tokens[1])


def display_ok(a: R, b: R) -> None:
    tokens = [a.arrive(), b.arrive()]
    a.wait(tokens[0])
    b.wait(tokens[1])


def comprehension_bad(cta: ox.Cta) -> None:
    bars = [cta.barrier().init(1) for _ in range(4)]  # E: [oxidecopy-leak]
    for bar in bars:
        bar.arrive()


def comprehension_ok(cta: ox.Cta) -> None:
    bars = [cta.barrier().init(1) for _ in range(4)]
    for bar in bars:
        bar.inval()


def appended_bad(cta: ox.Cta) -> None:
    bars = []
    for _ in range(4):
        bars.append(cta.barrier().init(1))  # E: [oxidecopy-leak]
    bars[0].arrive()


def appended_ok(cta: ox.Cta) -> None:
    bars = []
    for _ in range(4):
        bars.append(cta.barrier().init(1))
    for bar in bars:
        bar.inval()


def popped_ok(a: R) -> None:
    tokens = [a.arrive(), a.arrive()]
    while tokens:
        a.wait(tokens.pop())


def values_ok(a: R) -> None:
    tokens = {"a": a.arrive(), "b": a.arrive()}
    for token in tokens.values():
        a.wait(token)


def values_bad(a: R) -> None:
    tokens = {"a": a.arrive()}  # E: [oxidecopy-leak]
    for token in tokens.values():
        a.arrive()


def items_ok(a: R) -> None:
    tokens = {n: a.arrive() for n in range(2)}
    for _, token in tokens.items():
        a.wait(token)


def items_bad(a: R) -> None:
    tokens = {n: a.arrive() for n in range(2)}  # E: [oxidecopy-leak]
    for _, token in tokens.items():
        a.arrive()


def pairs_bad(a: R, b: R) -> None:
    pairs = [
        (a, a.arrive()),  # E: [oxidecopy-leak]
    ]
    for i, (bar, token) in enumerate(pairs):
        bar.arrive()


def pairs_mended_ok(a: R, b: R) -> None:
    pairs = [
        (a, a.arrive()),
    ]
    for i, (bar, token) in enumerate(pairs):
        bar.wait(token)


def pairs_ok(a: R, b: R) -> None:
    for i, (bar, token) in enumerate([(a, a.arrive()), (b, b.arrive())]):
        bar.wait(token)


def zipped_ok(a: R, b: R) -> None:
    tokens = [bar.arrive() for bar in (a, b)]
    for bar, token in zip((a, b), tokens):
        bar.wait(token)


def starred_ok(a: R) -> None:
    tokens = [a.arrive(), a.arrive()]
    a.wait(*tokens)


@dataclass
class Pair:
    full: R
    empty: R


class Holder:
    token: T
    bar: R

    def store_ok(self, cta: ox.Cta) -> None:
        self.bar = cta.barrier().init(1)
        self.token = self.bar.arrive()

    def made_ok(self, cta: ox.Cta) -> Callable[[], object]:
        bar = cta.barrier().init(1)
        return bar.inval

    def made_bad(self, cta: ox.Cta) -> object:
        bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
        return bar.arrive


def attributes_bad(cta: ox.Cta) -> None:
    pair = Pair(
        cta.barrier().init(1),
        cta.barrier().init(1),  # E: [oxidecopy-leak]
    )
    pair.full.inval()


def attributes_mended_ok(cta: ox.Cta) -> None:
    pair = Pair(
        cta.barrier().init(1),
        cta.barrier().init(1),
    )
    pair.full.inval()
    pair.empty.inval()


def attributes_ok(cta: ox.Cta) -> None:
    pair = Pair(cta.barrier().init(1), cta.barrier().init(1))
    pair.full.inval()
    pair.empty.inval()


# ---- somebody else's
GLOBAL: R


def module_level_ok(cta: ox.Cta) -> None:
    global GLOBAL
    GLOBAL = cta.barrier().init(1)


def returned_ok(cta: ox.Cta) -> R:
    bar = cta.barrier().init(1)
    return bar


def returned_pair_ok(cta: ox.Cta) -> tuple[R, T]:
    bar = cta.barrier().init(1)
    token = bar.arrive()
    return bar, token


def yielded_ok(cta: ox.Cta) -> Iterator[R]:
    bar = cta.barrier().init(1)
    yield bar


def passed_ok(bar: R, into: list[T]) -> None:
    token = bar.arrive()
    keep(token)
    into.append(bar.arrive())


def captured_ok(cta: ox.Cta, bar: R) -> Callable[[], None]:
    token = bar.arrive()
    first = cta.barrier().init(1)

    def later() -> None:
        keep(token)
        print(first)

    return later


def class_ok(bar: R) -> object:
    class Inner:
        token = bar.arrive()

    return Inner


def class_bad(bar: R) -> object:
    token = bar.arrive()  # E: [oxidecopy-leak]

    class Inner:
        other = bar.arrive()

    return Inner


def class_mended_ok(bar: R) -> object:
    token = bar.arrive()

    class Inner:
        other = bar.arrive()

    bar.wait(token)
    return Inner


def lambda_ok(bar: R) -> object:
    token = bar.arrive()
    return lambda: keep(token)


def owned(cta: ox.Cta) -> ox.Owned[R]:
    return cta.barrier().init(1)


def lent(cta: ox.Cta) -> R:
    return cta.barrier().init(1)


def given_bad(cta: ox.Cta) -> None:
    bar = owned(cta)  # E: [oxidecopy-leak]
    bar.arrive()


def given_ok(cta: ox.Cta) -> None:
    bar = owned(cta)
    take(bar)
    other = lent(cta)  # whose it is, the function does not say
    other.arrive()


# ---- objects that hold them
@dataclass
class Work:
    """Its barrier, and a number."""

    full: R
    index: int = 0


def works_ok(cta: ox.Cta) -> None:
    works = [Work(full=cta.barrier().init(1), index=i) for i in range(3)]
    for work in works:
        work.full.inval()


def works_bad(cta: ox.Cta) -> None:
    works = [Work(full=cta.barrier().init(1), index=i) for i in range(3)]  # E: [oxidecopy-leak]
    for work in works:
        work.full.arrive()


def backwards_ok(cta: ox.Cta) -> None:
    works = [Work(full=cta.barrier().init(1), index=i) for i in range(3)]
    for work in reversed(works):
        work.full.inval()


def backwards_bad(cta: ox.Cta) -> None:
    works = [Work(full=cta.barrier().init(1), index=i) for i in range(3)]  # E: [oxidecopy-leak]
    for work in reversed(works):
        work.full.arrive()


def numbered_ok(cta: ox.Cta) -> None:
    works = [Work(cta.barrier().init(1))]
    for i, work in enumerate(works):
        print(i)
        work.full.inval()


def numbered_bad(cta: ox.Cta) -> None:
    works = [Work(cta.barrier().init(1))]  # E: [oxidecopy-leak]
    for i, work in enumerate(works):
        print(i)
        work.full.arrive()


def with_names_ok(cta: ox.Cta, names: list[str]) -> None:
    pairs = [(name, cta.barrier().init(1)) for name in names]
    for name, bar in pairs:
        print(name)
        bar.inval()


def with_names_bad(cta: ox.Cta, names: list[str]) -> None:
    pairs = [(name, cta.barrier().init(1)) for name in names]  # E: [oxidecopy-leak]
    for name, bar in pairs:
        print(name)
        bar.arrive()


def in_dict_ok(cta: ox.Cta, names: list[str]) -> None:
    works = {name: Work(cta.barrier().init(1)) for name in names}
    for work in works.values():
        work.full.inval()


def in_dict_bad(cta: ox.Cta, names: list[str]) -> None:
    works = {name: Work(cta.barrier().init(1)) for name in names}  # E: [oxidecopy-leak]
    for work in works.values():
        work.full.arrive()


def lent_part_ok(cta: ox.Cta) -> None:
    works = [Work(full=cta.barrier().init(1), index=i) for i in range(3)]
    for work in works:
        print(work.full)


# ---- commit groups
@ox.pipeline(threads=128)
def group_bad(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()  # E: [oxidecopy-leak]


def group_ok(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()
        leader.wait_group(0)


def left_to_the_caller_ok(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()


def group_read_ok(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()
    with cta.elect() as leader:
        leader.wait_group_read(0)


def group_branch_bad(cta: ox.Cta, c: bool) -> None:
    with cta.elect() as leader:
        leader.commit_group()  # E: [oxidecopy-leak]
        if c:
            leader.wait_group(0)


def group_branch_ok(cta: ox.Cta, c: bool) -> None:
    with cta.elect() as leader:
        leader.commit_group()
        if c:
            leader.wait_group(0)
        else:
            leader.wait_group(0)


def newest_bad(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()
        leader.commit_group()  # E: [oxidecopy-leak]
        leader.wait_group(1)


def newest_ok(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()
        leader.commit_group()
        leader.wait_group(1)
        leader.wait_group_read(0)


def rounds_bad(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        for _ in range(4):
            leader.commit_group()  # E: [oxidecopy-leak]
            leader.wait_group(1)


def rounds_ok(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        for _ in range(4):
            leader.commit_group()
            leader.wait_group(1)
        leader.wait_group(0)


def unknown_number_ok(cta: ox.Cta, n: int) -> None:
    with cta.elect() as leader:
        leader.commit_group()
        leader.wait_group(n)


def lent_leader_ok(leader: ox.Leader) -> None:
    leader.commit_group()


@ox.pipeline(threads=128)
def drained_elsewhere_ok(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()
        drain(leader)


def drain(leader: ox.Leader) -> None:
    leader.wait_group(0)


def stores(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()


def caller_ok(cta: ox.Cta) -> None:
    stores(cta)
    with cta.elect() as leader:
        leader.wait_group(0)


# ---- pipelines
@ox.pipeline(threads=128)
def ends_ready_bad(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)  # E: [oxidecopy-leak]
    bar.arrive()


@ox.pipeline(threads=128)
def ends_ok(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    bar.inval()


@ox.pipeline(threads=128)
def pipeline_token_bad(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    token = bar.arrive()  # E: [oxidecopy-leak]
    bar.inval()
    with cta.elect() as leader:
        leader.commit_group()  # E: [oxidecopy-leak]


@ox.pipeline(threads=128)
def pipeline_token_ok(cta: ox.Cta) -> None:
    bar = cta.barrier().init(1)
    token = bar.arrive()
    bar.wait(token)
    bar.inval()
    with cta.elect() as leader:
        leader.commit_group()
        leader.wait_group(0)


# ---- conditions of several parts, and what they leave when they are false
def unless_both_ok(bar: R, a: bool, b: bool) -> None:
    if not (a and b):
        token = bar.arrive()
    if not (a and b):
        bar.wait(token)


def unless_both_bad(bar: R, a: bool, b: bool) -> None:
    if not (a and b):
        token = bar.arrive()  # E: [oxidecopy-leak]
    if not (a or b):
        bar.wait(token)


def counted_down_ok(bar: R, n: int) -> None:
    if n > 0:
        token = bar.arrive()
        n -= 1
        bar.wait(token)


def counted_down_bad(bar: R, n: int) -> None:
    if n > 0:
        token = bar.arrive()  # E: [oxidecopy-leak]
        n -= 1
    if n > 0:
        bar.wait(token)
