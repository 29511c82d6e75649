"""Ordinary programs in many styles. Each accepted function has a twin with one mistake."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import threading
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial, singledispatch, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, ParamSpec, Protocol, TypedDict, TypeVar, cast, overload

import oxidecopy as ox
from oxidecopy import Cta, Idx, Leader, ManagedBarrier, Owned, Ready, TmaBarrier

if TYPE_CHECKING:
    from collections.abc import Hashable

R = ManagedBarrier[Ready, TmaBarrier]
T = TypeVar("T")
P = ParamSpec("P")
Source = ox.TmaDescriptor[ox.f32, ox.D2]


def make(cta: Cta) -> R:
    return cta.barrier().init(1)


def keyed(x: Hashable) -> int:
    return hash(x)


def lend(_b: object) -> bool:
    return True


def consume(b: Owned[R]) -> None:
    b.inval()


# ---- classes
class Pipe:
    """Owns a barrier."""

    def __init__(self, cta: Cta) -> None:
        self.full: R = cta.barrier().init(1)
        self.phase = 0

    def step(self) -> None:
        self.full.arrive()
        self.phase += 1

    def close(self: Owned[Pipe]) -> None:
        self.full.inval()

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @property
    def armed(self) -> bool:
        return self.phase > 0


def class_ok(cta: Cta) -> None:
    p = Pipe(cta)
    p.step()
    if p.armed:
        p.step()
    p.close()


def class_bad(cta: Cta) -> None:
    p = Pipe(cta)
    p.close()
    p.step()  # E: [oxidecopy-moved]


def class_mended_ok(cta: Cta) -> None:
    p = Pipe(cta)
    p.step()
    p.close()


def property_bad(cta: Cta) -> None:
    p = Pipe(cta)
    p.close()
    print(p.armed)  # E: [oxidecopy-moved]


def property_ok(cta: Cta) -> None:
    p = Pipe(cta)
    print(p.armed)
    p.close()


class Derived(Pipe):
    """Adds a tile count."""

    def __init__(self, cta: Cta, n: int) -> None:
        super().__init__(cta)
        self.n = n

    def step(self) -> None:
        for _ in range(self.n):
            super().step()


def derived_ok(cta: Cta) -> None:
    d = Derived(cta, 3)
    d.step()
    d.close()


def derived_bad(cta: Cta) -> None:
    d = Derived(cta, 3)
    d.close()
    d.close()  # E: [oxidecopy-moved]


class Base(ABC):
    """What steps share."""

    @abstractmethod
    def make(self, cta: Cta) -> R: ...

    def run_ok(self, cta: Cta) -> None:
        bar = self.make(cta)
        bar.arrive()
        bar.inval()

    def run_bad(self, cta: Cta) -> None:
        bar = self.make(cta)
        bar.inval()
        bar.arrive()  # E: [oxidecopy-moved]


class Concrete(Base):
    """A step."""

    count: ClassVar[int] = 0

    def make(self, cta: Cta) -> R:
        type(self).count += 1
        return cta.barrier().init(1)

    @staticmethod
    def static_ok(cta: Cta) -> None:
        make(cta).inval()

    @staticmethod
    def static_bad(cta: Cta) -> None:
        b = make(cta)
        b.inval()
        lend(b)  # E: [oxidecopy-moved]

    @staticmethod
    def static_mended_ok(cta: Cta) -> None:
        b = make(cta)
        lend(b)
        b.inval()

    @classmethod
    def class_bad(cls, cta: Cta) -> None:
        b = make(cta)
        consume(b)
        consume(b)  # E: [oxidecopy-moved]

    @classmethod
    def class_ok(cls, cta: Cta) -> None:
        b = make(cta)
        lend(b)
        consume(b)


class Lazy:
    """Made when first asked for."""

    def __init__(self, cta: Cta) -> None:
        self.cta = cta

    @cached_property
    def size(self) -> int:
        return 32

    def go_ok(self) -> None:
        b = make(self.cta)
        for _ in range(self.size):
            b.arrive()
        b.inval()

    def go_bad(self) -> None:
        b = make(self.cta)
        for _ in range(self.size):
            b.inval()  # E: [oxidecopy-moved]


# ---- dataclasses, named tuples, dictionaries with types
@dataclass
class Stage:
    """A barrier and its number."""

    full: R
    index: int = 0
    extra: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """Not to be changed."""

    full: R
    name: str


class Pair(NamedTuple):
    """Two of them."""

    full: R
    empty: R


class Held(TypedDict):
    """By name."""

    full: R
    n: int


def dataclass_ok(cta: Cta) -> None:
    s = Stage(make(cta))
    s.full.arrive()
    s.extra.append(s.index)
    s.full.inval()


def dataclass_bad(cta: Cta) -> None:
    s = Stage(make(cta))
    s.full.inval()
    s.full.arrive()  # E: [oxidecopy-moved]


def dataclass_mended_ok(cta: Cta) -> None:
    s = Stage(make(cta))
    s.full.arrive()
    s.full.inval()


def frozen_ok(cta: Cta) -> None:
    s = Frozen(full=make(cta), name="a")
    print(s.name)
    s.full.inval()


def frozen_bad(cta: Cta) -> None:
    b = make(cta)
    s = Frozen(full=b, name="a")
    s.full.inval()
    b.arrive()  # E: [oxidecopy-moved]


def frozen_mended_ok(cta: Cta) -> None:
    b = make(cta)
    b.arrive()
    s = Frozen(full=b, name="a")
    s.full.inval()


def pair_ok(cta: Cta) -> None:
    full, empty = Pair(make(cta), make(cta))
    full.inval()
    empty.inval()


def pair_bad(cta: Cta) -> None:
    p = Pair(make(cta), make(cta))
    p.full.inval()
    p.full.arrive()  # E: [oxidecopy-moved]


def pair_mended_ok(cta: Cta) -> None:
    p = Pair(make(cta), make(cta))
    p.full.arrive()
    p.full.inval()


def typed_dict_ok(cta: Cta) -> None:
    h: Held = {"full": make(cta), "n": 3}
    h["full"].arrive()
    h["full"].inval()


def typed_dict_bad(cta: Cta) -> None:
    h: Held = {"full": make(cta), "n": 3}
    h["full"].inval()
    h["full"].arrive()  # E: [oxidecopy-moved]


# ---- control flow
def match_ok(cta: Cta, mode: str) -> None:
    b = make(cta)
    match mode:
        case "a":
            b.arrive()
        case "b" | "c":
            b.arrive()
            b.arrive()
        case _:
            pass
    b.inval()


def match_bad(cta: Cta, mode: str) -> None:
    b = make(cta)
    match mode:
        case "a":
            b.inval()
        case _:
            pass
    b.arrive()  # E: [oxidecopy-moved]


def match_mended_ok(cta: Cta, mode: str) -> None:
    b = make(cta)
    b.arrive()
    match mode:
        case "a":
            b.inval()
        case _:
            pass


class Mode(Enum):
    """How."""

    FAST = 1
    SLOW = 2


def enum_ok(cta: Cta, mode: Mode) -> None:
    b = make(cta)
    if mode is Mode.FAST:
        b.arrive()
        b.inval()
        return
    b.inval()


def enum_bad(cta: Cta, mode: Mode) -> None:
    b = make(cta)
    if mode is Mode.FAST:
        b.inval()
    b.inval()  # E: [oxidecopy-moved]


def finally_ok(cta: Cta) -> None:
    b = make(cta)
    try:
        b.arrive()
        print("x")
    except ValueError:
        print("y")
    finally:
        b.inval()


def finally_bad(cta: Cta) -> None:
    b = make(cta)
    try:
        b.inval()
    finally:
        b.arrive()  # E: [oxidecopy-moved]


def finally_mended_ok(cta: Cta) -> None:
    b = make(cta)
    try:
        pass
    finally:
        b.arrive()


def early_ok(cta: Cta, xs: Sequence[int]) -> int:
    b = make(cta)
    for x in xs:
        if x < 0:
            b.inval()
            return x
        if x == 0:
            continue
        b.arrive()
    else:
        b.arrive()
    b.inval()
    return 0


def early_bad(cta: Cta, xs: Sequence[int]) -> int:
    b = make(cta)
    for x in xs:
        if x < 0:
            b.inval()
            break
    b.inval()  # E: [oxidecopy-moved]
    return 0


def early_mended_ok(cta: Cta, xs: Sequence[int]) -> int:
    b = make(cta)
    for x in xs:
        if x < 0:
            break
    b.inval()
    return 0


def while_ok(cta: Cta, n: int) -> None:
    b = make(cta)
    while n > 0:
        b.inval()
        b = make(cta)
        n -= 1
    b.inval()


def while_bad(cta: Cta, n: int) -> None:
    b = make(cta)
    while n > 0:
        b.inval()  # E: [oxidecopy-moved]
        n -= 1


def optional_ok(cta: Cta, wide: bool) -> None:
    b: R | None = make(cta) if wide else None
    if b is not None:
        b.arrive()
        b.inval()


def optional_bad(cta: Cta, wide: bool) -> None:
    b: R | None = make(cta) if wide else None
    if b is not None:
        b.inval()
    if b:  # E: [oxidecopy-moved]
        print(b)


def optional_mended_ok(cta: Cta, wide: bool) -> None:
    b: R | None = make(cta) if wide else None
    if b is not None:
        pass
    if b:
        print(b)


def walrus_ok(cta: Cta) -> None:
    if lend(b := make(cta)):
        b.arrive()
    b.inval()


def walrus_bad(cta: Cta) -> None:
    (b := make(cta)).inval()
    b.arrive()  # E: [oxidecopy-moved]


# ---- with
def stack_ok(cta: Cta) -> None:
    with ExitStack() as stack:
        leader = stack.enter_context(cta.elect())
        b = make(cta)
        b.arrive()
        stack.callback(print, "bye")
        lend(leader)
        b.inval()


def nested_with_ok(cta: Cta, src: Source, *, log: bool) -> None:
    tile = cta.shared(src)
    full = make(cta)
    with nullcontext(), cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0, 0), token)
        if log:
            print("issued")
    full.wait(token)
    full.inval()


def nested_with_bad(cta: Cta, src: Source) -> None:
    tile = cta.shared(src)
    full = make(cta)
    with nullcontext(), cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
    src.g2s(leader, tile, (0, 0), token)  # E: [oxidecopy-scope]
    full.wait(token)


def nested_with_mended_ok(cta: Cta, src: Source) -> None:
    tile = cta.shared(src)
    full = make(cta)
    with nullcontext(), cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)


def suppress_ok(cta: Cta) -> None:
    b = make(cta)
    with contextlib.suppress(KeyError):
        b.arrive()
    b.inval()


@contextmanager
def barrier_of(cta: Cta) -> Iterator[R]:
    b = cta.barrier().init(1)
    try:
        yield b
    finally:
        b.inval()


def manager_ok(cta: Cta) -> None:
    with barrier_of(cta) as b:
        b.arrive()


def manager_bad(cta: Cta) -> None:
    with Pipe(cta) as p:
        p.step()
        p.close()
        p.step()  # E: [oxidecopy-moved]


def manager_mended_ok(cta: Cta) -> None:
    with Pipe(cta) as p:
        p.step()
        p.step()
        p.close()


# ---- generics, protocols, overloads
class Box(Generic[T]):
    """Holds one thing."""

    def __init__(self, item: T) -> None:
        self.item = item

    def get(self) -> T:
        return self.item


def generic_ok(cta: Cta) -> None:
    b = Box(make(cta))
    b.item.arrive()
    b.get().arrive()


def identity(x: T) -> T:
    return x


def first_of(xs: Sequence[T]) -> T:
    return xs[0]


def generic_function_ok(cta: Cta) -> None:
    b = identity(make(cta))
    b.arrive()
    first_of([b]).arrive()
    b.inval()


def generic_function_bad(cta: Cta) -> None:
    b = identity(make(cta))
    b.inval()
    b.arrive()  # E: [oxidecopy-moved]


def generic_function_mended_ok(cta: Cta) -> None:
    b = identity(make(cta))
    b.arrive()
    b.inval()


class HasFull(Protocol):
    """Has a barrier."""

    full: R


def protocol_ok(x: HasFull) -> None:
    x.full.arrive()
    lend(x.full)


def protocol_bad(x: HasFull) -> None:
    x.full.inval()  # E: [oxidecopy-borrowed]


@overload
def either(b: R, n: int) -> int: ...
@overload
def either(b: Owned[R], n: str) -> str: ...
def either(b: R, n: int | str) -> int | str:
    return n


def overload_ok(cta: Cta) -> None:
    b = make(cta)
    either(b, "x")


def overload_bad(cta: Cta) -> None:
    b = make(cta)
    either(b, "x")
    either(b, 1)  # E: [oxidecopy-moved]


# ---- functions as values
def lambda_ok(cta: Cta) -> None:
    b = make(cta)
    f = lambda: b.arrive()  # noqa: E731
    f()
    b.inval()


def lambda_bad(cta: Cta) -> None:
    b = make(cta)
    g = lambda: b.inval()  # noqa: E731  # E: [oxidecopy-borrowed]
    g()


def lambda_mended_ok(cta: Cta) -> None:
    b = make(cta)
    g = lambda: b.arrive()  # noqa: E731
    g()


def partial_ok(cta: Cta) -> None:
    b = make(cta)
    f = partial(lend, b)
    f()
    b.inval()


def nested_ok(cta: Cta) -> None:
    b = make(cta)

    def arrive(times: int) -> None:
        for _ in range(times):
            b.arrive()

    arrive(3)
    b.inval()


def nested_bad(cta: Cta) -> None:
    b = make(cta)

    def done() -> None:
        b.inval()  # E: [oxidecopy-borrowed]

    done()


def nested_mended_ok(cta: Cta) -> None:
    b = make(cta)

    def done() -> None:
        b.arrive()

    done()


def traced(fn: Callable[P, T]) -> Callable[P, T]:
    @wraps(fn)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        print(fn.__name__)
        return fn(*args, **kwargs)

    return inner


@traced
def decorated(b: R) -> None:
    b.arrive()


@traced
def decorated_ok(cta: Cta) -> None:
    b = make(cta)
    decorated(b)
    b.inval()


@traced
def decorated_bad(cta: Cta) -> None:
    b = make(cta)
    b.inval()
    decorated(b)  # E: [oxidecopy-moved]


def callback_ok(cta: Cta, use: Callable[[R], None]) -> None:
    b = make(cta)
    use(b)
    use(b)
    b.inval()


# ---- stars
def star_ok(cta: Cta) -> None:
    def all_of(*bars: R, **more: R) -> None:
        for b in (*bars, *more.values()):
            b.arrive()

    a, b = make(cta), make(cta)
    all_of(a, b, a=a)
    both = (a, b)
    all_of(*both)
    a.inval()
    b.inval()


def star_bad(cta: Cta) -> None:
    first, *rest = [make(cta), make(cta), make(cta)]
    first.inval()
    first.arrive()  # E: [oxidecopy-moved]
    del rest


def star_mended_ok(cta: Cta) -> None:
    first, *rest = [make(cta), make(cta), make(cta)]
    first.arrive()
    first.inval()
    del rest


# ---- comprehensions, iterators, containers
def comprehension_ok(cta: Cta) -> None:
    bars = [make(cta) for _ in range(4)]
    print(sum(lend(b) for b in bars))
    by_name = {str(i): b for i, b in enumerate(bars)}
    print(len(by_name))
    for b in bars:
        b.arrive()
    for b in bars:
        b.inval()


def comprehension_bad(cta: Cta) -> None:
    bars = [make(cta) for _ in range(4)]
    for b in bars:
        b.inval()
    for b in bars:  # E: [oxidecopy-moved]
        b.arrive()


def comprehension_mended_ok(cta: Cta) -> None:
    bars = [make(cta) for _ in range(4)]
    for b in bars:
        pass
    for b in bars:
        b.arrive()


def zipped_ok(cta: Cta) -> None:
    full, empty = [make(cta) for _ in range(2)], [make(cta) for _ in range(2)]
    for f, e in zip(full, empty, strict=True):
        f.arrive()
        e.arrive()
    for f, e in zip(full, empty, strict=True):
        f.inval()
        e.inval()


def zipped_bad(cta: Cta) -> None:
    full, empty = [make(cta) for _ in range(2)], [make(cta) for _ in range(2)]
    for f, e in zip(full, empty, strict=True):
        f.inval()
        f.arrive()  # E: [oxidecopy-moved]
        e.inval()


def zipped_mended_ok(cta: Cta) -> None:
    full, empty = [make(cta) for _ in range(2)], [make(cta) for _ in range(2)]
    for f, e in zip(full, empty, strict=True):
        f.arrive()
        f.inval()
        e.inval()


def deque_ok(cta: Cta) -> None:
    queue: deque[R] = deque(make(cta) for _ in range(3))
    while queue:
        b = queue.popleft()
        b.arrive()
        b.inval()


def deque_bad(cta: Cta) -> None:
    queue: deque[R] = deque(make(cta) for _ in range(3))
    while queue:
        b = queue.popleft()
        b.inval()
        b.arrive()  # E: [oxidecopy-moved]


def grouped_ok(cta: Cta) -> None:
    groups: defaultdict[str, list[R]] = defaultdict(list)
    for i in range(4):
        groups["even" if i % 2 == 0 else "odd"].append(make(cta))
    for bars in groups.values():
        for b in bars:
            b.arrive()


def dict_ok(cta: Cta) -> None:
    bars = {"full": make(cta), "empty": make(cta)}
    bars["full"].arrive()
    bars["full"].inval()
    bars["empty"].inval()


def dict_bad(cta: Cta) -> None:
    bars = {"full": make(cta), "empty": make(cta)}
    bars["full"].inval()
    bars["full"].arrive()  # E: [oxidecopy-moved]


def swap_ok(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    a, b = b, a
    a.inval()
    b.inval()


def swap_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    c = a
    a, b = b, a
    b.inval()
    c.arrive()  # E: [oxidecopy-moved]
    a.inval()


def swap_mended_ok(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    c = a
    c.arrive()
    a, b = b, a
    b.inval()
    a.inval()


def chained_ok(cta: Cta) -> None:
    for i, b in enumerate(itertools.islice([make(cta), make(cta)], 1)):
        b.arrive()
        print(i)


# ---- async, threads, generators on the host
async def fetch_ok(cta: Cta) -> None:
    b = make(cta)
    await asyncio.sleep(0)
    b.arrive()
    async with asyncio.timeout(1):
        b.arrive()
    b.inval()


async def fetch_bad(cta: Cta) -> None:
    b = make(cta)
    b.inval()
    await asyncio.sleep(0)
    b.arrive()  # E: [oxidecopy-moved]


async def fetch_mended_ok(cta: Cta) -> None:
    b = make(cta)
    b.arrive()
    b.inval()
    await asyncio.sleep(0)


async def numbers(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i


async def async_for_ok(cta: Cta) -> None:
    b = make(cta)
    async for _ in numbers(3):
        b.arrive()
    b.inval()


async def async_for_bad(cta: Cta) -> None:
    b = make(cta)
    async for _ in numbers(3):
        b.inval()  # E: [oxidecopy-moved]


def generator_ok(cta: Cta) -> Iterator[int]:
    b = make(cta)
    for i in range(3):
        b.arrive()
        yield i
    b.inval()


def generator_bad(cta: Cta) -> Iterator[int]:
    b = make(cta)
    b.inval()
    yield 1
    b.arrive()  # E: [oxidecopy-moved]


def generator_mended_ok(cta: Cta) -> Iterator[int]:
    b = make(cta)
    b.arrive()
    b.inval()
    yield 1


def thread_ok(dev: ox.Device) -> None:
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(1))
    thread.start()
    thread.join()
    print(dev, results)


# ---- pipelines
@ox.pipeline(threads=128)
def load_ok(cta: Cta, src: Source, out: ox.GlobalArray[ox.f32, ox.D2], n: Idx) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for k in cta.range(n):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, (k * 64, 0), token)
        full.wait(token)
        cta.store(out, tile, (k * 64, 0))
        cta.sync()
    full.inval()


@ox.pipeline(threads=128)
def load_bad(cta: Cta, src: Source, out: ox.GlobalArray[ox.f32, ox.D2], n: Idx) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0, 0), token)
    for k in cta.range(n):
        full.wait(token)  # E: [oxidecopy-moved]
        cta.store(out, tile, (k * 64, 0))
    full.inval()


@ox.pipeline(threads=128)
def load_mended_ok(cta: Cta, src: Source, out: ox.GlobalArray[ox.f32, ox.D2], n: Idx) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)
    for k in cta.range(n):
        cta.store(out, tile, (k * 64, 0))
    full.inval()


@ox.pipeline(threads=128)
def configured_ok(cta: Cta, src: Source, out: ox.GlobalArray[ox.f32, ox.D2], stages: int, wide: bool) -> None:
    bars = [cta.barrier().init(1) for _ in range(stages)]
    tile = cta.shared(src)
    if wide and stages > 1:
        for b in bars:
            b.arrive()
    with cta.when(cta.block_idx.x == 0):
        cta.store(out, tile, (0, 0))
    for b in bars:
        b.inval()


@ox.pipeline(threads=128)
def configured_bad(cta: Cta, src: Source, out: ox.GlobalArray[ox.f32, ox.D2], stages: int) -> None:
    tile = cta.shared(src)
    if cta.block_idx.x == 0:  # E: [oxidecopy-symbolic]
        cta.store(out, tile, (0, 0))
    print(stages)


@ox.pipeline(threads=128)
def configured_mended_ok(cta: Cta, src: Source, out: ox.GlobalArray[ox.f32, ox.D2], stages: int) -> None:
    tile = cta.shared(src)
    if stages == 0:
        cta.store(out, tile, (0, 0))
    print(stages)


@ox.pipeline(threads=128)
def helper_ok(cta: Cta, src: Source, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = issue(leader, src, tile, full)
    full.wait(token)
    finish(cta, out, tile, full)


@ox.pipeline(threads=128)
def helper_bad(cta: Cta, src: Source, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = issue(leader, src, tile, full)
    full.wait(token)
    finish(cta, out, tile, full)
    full.arrive()  # E: [oxidecopy-moved]


def issue(leader: Leader, src: Source, tile: Any, full: R) -> ox.TxToken[TmaBarrier]:
    token = full.arrive_expect_tx(leader, tile.nbytes)
    src.g2s(leader, tile, (0, 0), token)
    return token


def finish(cta: Cta, out: ox.GlobalArray[ox.f32, ox.D2], tile: Any, full: Owned[R]) -> None:
    cta.store(out, tile, (0, 0))
    full.inval()


class Kernel:
    """A pipeline that is built by a class."""

    def __init__(self, threads: int) -> None:
        @ox.pipeline(threads=threads)
        def run(cta: Cta, src: Source) -> None:
            b = cta.barrier().init(1)
            tile = cta.shared(src)
            with cta.elect() as leader:
                token = b.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, (0, 0), token)
            b.wait(token)
            b.inval()

        self.run = run

    @staticmethod
    def body_bad(cta: Cta, src: Source) -> None:
        b = cta.barrier().init(1)
        tile = cta.shared(src)
        with cta.elect() as leader:
            token = b.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, (0, 0), token)
        b.wait(token)
        b.wait(token)  # E: [oxidecopy-moved]
        b.inval()

    @staticmethod
    def body_ok(cta: Cta, src: Source) -> None:
        b = cta.barrier().init(1)
        tile = cta.shared(src)
        with cta.elect() as leader:
            token = b.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, (0, 0), token)
        b.wait(token)
        b.inval()


@singledispatch
def describe(x: object) -> str:
    return str(x)


@describe.register
def _(x: int) -> str:
    return f"int {x}"


def factory_ok(cta: Cta, n: int) -> Mapping[str, Sequence[R]]:
    made: dict[str, list[R]] = {"full": [], "empty": []}
    for name in made:
        made[name].extend(make(cta) for _ in range(n))
    return made


def cast_ok(cta: Cta) -> None:
    b = cast("R", make(cta))
    b.arrive()
    b.inval()


def cast_bad(cta: Cta) -> None:
    b = cast("R", make(cta))
    b.inval()
    b.arrive()  # E: [oxidecopy-moved]


def replaced_ok(cta: Cta) -> None:
    s = Stage(make(cta), 1)
    t = replace(s, index=2)
    t.full.arrive()


def deleted_ok(cta: Cta) -> None:
    b = make(cta)
    b.inval()
    del b
    b = make(cta)
    b.inval()


def global_ok(cta: Cta) -> None:
    b = make(cta)
    print(f"{b!r}", functools.reduce(lambda a, c: a + c, [1, 2]))
    b.inval()


def builder(cta: Cta) -> tuple[R, Callable[[], None]]:
    b = make(cta)
    return b, lambda: None


def builder_ok(cta: Cta) -> None:
    b, stop = builder(cta)
    b.arrive()
    stop()
    b.inval()


def builder_bad(cta: Cta) -> None:
    b, stop = builder(cta)
    b.inval()
    stop()
    b.arrive()  # E: [oxidecopy-moved]


def builder_mended_ok(cta: Cta) -> None:
    b, stop = builder(cta)
    b.arrive()
    b.inval()
    stop()


def assertion_ok(cta: Cta, maybe: R | None) -> None:
    assert maybe is not None
    maybe.arrive()
    lend(cta)


def parameter_bad(maybe: R | None) -> None:
    if maybe is None:
        return
    maybe.inval()  # E: [oxidecopy-borrowed]


def parameter_ok(maybe: R | None) -> None:
    if maybe is None:
        return
    maybe.arrive()


def raising_ok(cta: Cta, n: int) -> None:
    b = make(cta)
    if n < 0:
        b.inval()
        raise ValueError(n)
    b.inval()


def ternary_ok(cta: Cta, wide: bool) -> None:
    a, b = make(cta), make(cta)
    (a if wide else b).arrive()
    a.inval()
    b.inval()


def ternary_bad(cta: Cta, wide: bool) -> None:
    a, b = make(cta), make(cta)
    (a if wide else b).inval()
    a.arrive()  # E: [oxidecopy-moved]
    lend(b)  # E: [oxidecopy-moved]


def ternary_mended_ok(cta: Cta, wide: bool) -> None:
    a, b = make(cta), make(cta)
    a.arrive()
    lend(b)


# ---- parts of a list
def slices_ok(cta: Cta) -> None:
    bars = [make(cta) for _ in range(4)]
    for b in bars[:2]:
        b.inval()
    for b in bars[2:]:
        b.inval()


def slices_bad(cta: Cta) -> None:
    bars = [make(cta) for _ in range(4)]
    for b in bars[:]:
        b.inval()
    for b in bars[2:]:  # E: [oxidecopy-moved]
        b.inval()


def written_out_ok(cta: Cta) -> None:
    bars = [make(cta), make(cta), make(cta)]
    bars[0].inval()
    for b in bars[1:]:
        b.inval()


def written_out_bad(cta: Cta) -> None:
    bars = [make(cta), make(cta), make(cta)]
    bars[0].inval()
    for b in bars[:-1]:  # E: [oxidecopy-moved]
        b.inval()


def lent_slice_ok(bars: list[R]) -> None:
    for b in bars[1:]:
        b.arrive()


def lent_slice_bad(bars: list[R]) -> None:
    for b in bars[1:]:
        b.inval()  # E: [oxidecopy-borrowed]


# ---- conditions of two parts
def popped_in_condition_ok(bar: R, tokens: list[ox.TxToken[TmaBarrier]], token: Owned[ox.TxToken[TmaBarrier]]) -> None:
    while tokens and (token := tokens.pop()):
        bar.wait(token)


def popped_in_condition_bad(bar: R, tokens: list[ox.TxToken[TmaBarrier]], token: Owned[ox.TxToken[TmaBarrier]]) -> None:
    while tokens or (token := tokens.pop()):
        bar.wait(token)  # E: [oxidecopy-moved]


def taken_in_condition_ok(cta: Cta, c: bool) -> None:
    bar = make(cta)
    if c and taken(bar):
        return
    bar = make(cta)
    bar.inval()


def taken_in_condition_bad(cta: Cta, c: bool) -> None:
    bar = make(cta)
    if c and taken(bar):
        return
    bar.arrive()  # E: [oxidecopy-moved]
    bar = make(cta)
    bar.inval()


def taken_or_ok(cta: Cta, c: bool) -> None:
    bar = make(cta)
    if not (c or taken(bar)):
        return
    if c:
        bar = make(cta)
        bar.inval()


def taken_or_bad(cta: Cta, c: bool) -> None:
    bar = make(cta)
    if not (c or taken(bar)):
        bar.inval()  # E: [oxidecopy-moved]
        return
    if c:
        bar = make(cta)
        bar.inval()


def taken(b: Owned[R]) -> bool:
    b.inval()
    return True


# ---- taken and lent at once
def swapped_roles(_taken: Owned[R], _lent: R) -> None:
    _taken.inval()


def lent_too_ok(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    swapped_roles(a, b)
    b.inval()


def lent_too_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    swapped_roles(a, a)  # E: [oxidecopy-moved]
    b.inval()


# ---- arrivals that nobody waits for, all at once
def arrivals_ok(cta: Cta) -> None:
    bars = [make(cta) for _ in range(2)]
    [bar.arrive() for bar in bars]
    for bar in bars:
        bar.inval()


def arrivals_bad(cta: Cta) -> None:
    bars = [make(cta) for _ in range(2)]
    tokens = [bar.arrive() for bar in bars]  # E: [oxidecopy-leak]
    for bar in bars:
        bar.inval()
