"""A token is waited for on the barrier that it came from."""

from __future__ import annotations

from oxidecopy import Cta, ManagedBarrier, Ready, TmaBarrier

R = ManagedBarrier[Ready, TmaBarrier]


def make(cta: Cta) -> R:
    return cta.barrier().init(1)


def wait_ok(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    a.wait(a.arrive())
    b.wait(b.arrive())


def wait_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    a.wait(b.arrive())  # E: [oxidecopy-token]


def drop_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    a.wait(b.arrive_drop())  # E: [oxidecopy-token]


def more_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    a.wait(a.arrive(), b.arrive())  # E: [oxidecopy-token]


def expect_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    with cta.elect() as leader:
        tok = b.arrive_expect_tx(leader, 0)
    a.wait(tok)  # E: [oxidecopy-token]


def expect_ok(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    with cta.elect() as leader:
        tok = a.arrive_expect_tx(leader, 0)
    a.wait(tok)


def test_wait_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    tok = b.arrive()
    a.test_wait(tok)  # E: [oxidecopy-token]
    b.wait(tok)


def test_wait_ok(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    tok = b.arrive()
    b.test_wait(tok)
    b.wait(tok)


def try_wait_bad(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    tok = b.arrive()
    a.try_wait(tok)  # E: [oxidecopy-token]
    b.wait(tok)


def try_wait_ok(cta: Cta) -> None:
    a, b = make(cta), make(cta)
    tok = b.arrive()
    b.try_wait(tok)
    b.wait(tok)


def either_ok(cta: Cta, c: bool) -> None:
    a, b = make(cta), make(cta)
    r = a if c else b
    tok = r.arrive()
    r.wait(tok)


def alias_ok(cta: Cta) -> None:
    a = make(cta)
    b = a
    a.wait(b.arrive())


def elements_ok(cta: Cta, i: int) -> None:
    full = cta.barriers(4).init(1)
    full[i].wait(full[i].arrive())
    full[0].wait(full[i].arrive())
    full.inval()


def elements_bad(cta: Cta) -> None:
    full = cta.barriers(4).init(1)
    full[0].wait(full[1].arrive())  # E: [oxidecopy-token]
    full.inval()


def elements_mended_ok(cta: Cta) -> None:
    full = cta.barriers(4).init(1)
    full[0].wait(full[0].arrive())
    full.inval()
