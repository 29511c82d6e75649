"""What is only borrowed may not be taken: parameters, parts of them, captured and module-level variables, unknown elements."""

from __future__ import annotations

from oxidecopy import Cta, ManagedBarrier, Owned, Ready, TmaBarrier

R = ManagedBarrier[Ready, TmaBarrier]


def make(cta: Cta) -> R:
    return cta.barrier().init(1)


def parameter_ok(b: Owned[R]) -> None:
    b.inval()


def parameter_bad(b: R) -> None:
    b.inval()  # E: [oxidecopy-borrowed]


class Pipe:
    def __init__(self, cta: Cta) -> None:
        self.full = make(cta)

    def close(self: Owned[Pipe]) -> None:
        self.full.inval()

    def close_bad(self) -> None:
        self.full.inval()  # E: [oxidecopy-borrowed]

    def renew(self, cta: Cta) -> None:
        self.full.inval()
        self.full = make(cta)

    def renew_bad(self, cta: Cta, c: bool) -> None:
        self.full.inval()  # E: [oxidecopy-borrowed]
        if c:
            self.full = make(cta)

    def renew_ok(self, cta: Cta, c: bool) -> None:
        self.full.arrive()
        if c:
            self.full = make(cta)


def taken_whole_ok(cta: Cta) -> None:
    p = Pipe(cta)
    p.renew(cta)
    p.close()


def taken_whole_bad(cta: Cta) -> None:
    p = Pipe(cta)
    p.close()
    p.renew(cta)  # E: [oxidecopy-moved]


def captured_ok(cta: Cta) -> None:
    def inner() -> None:
        r = make(cta)
        r.inval()

    inner()


def captured_bad(cta: Cta) -> None:
    r = make(cta)

    def inner() -> None:
        r.inval()  # E: [oxidecopy-borrowed]

    inner()


def captured_mended_ok(cta: Cta) -> None:
    r = make(cta)

    def inner() -> None:
        r.arrive()

    inner()


def lambda_captured_bad(cta: Cta) -> None:
    r = make(cta)
    act = lambda: r.inval()  # noqa: E731  # E: [oxidecopy-borrowed]
    act()


def lambda_captured_ok(cta: Cta) -> None:
    r = make(cta)
    act = lambda: r.arrive()  # noqa: E731
    act()


G: R


def module_level_bad() -> None:
    G.inval()  # E: [oxidecopy-borrowed]


def index_ok(cta: Cta) -> None:
    rs = [make(cta), make(cta)]
    rs[0].inval()


def index_bad(cta: Cta, i: int) -> None:
    rs = [make(cta), make(cta)]
    rs[i].inval()  # E: [oxidecopy-borrowed]


def elements_bad(rs: list[R]) -> None:
    for r in rs:
        r.inval()  # E: [oxidecopy-borrowed]


def elements_ok(rs: Owned[list[R]]) -> None:
    for r in rs:
        r.inval()
