"""Tokens: one wait each, in the iteration and the role they were made in, on their own barrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from tests.helpers.recordings import marked_line, recorded, refused

Src = ox.TmaDescriptor[ox.f32, ox.D2]


# ---- once
def test_waited_for_twice() -> None:
    def later(cta: ox.Cta) -> None:
        full = cta.barrier().init(1)
        token = full.arrive()
        full.wait(token)
        full.wait(token)  # type: ignore[oxidecopy-moved]  # here

    def at_once(cta: ox.Cta) -> None:
        full = cta.barrier().init(1)
        token = full.arrive()
        full.wait(token, token)  # type: ignore[oxidecopy-moved]  # here

    def asked(cta: ox.Cta) -> None:
        full = cta.barrier().init(1)
        token = full.arrive()
        full.try_wait(token)
        full.wait(token)
        full.test_wait(token)  # type: ignore[oxidecopy-moved]  # here

    def copied(cta: ox.Cta, src: Src) -> None:
        full = cta.barrier().init(1)
        tile = cta.shared(src)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            full.wait(token)
            src.g2s(leader, tile, (0, 0), token)  # type: ignore[oxidecopy-moved]  # here

    for pipe in (later, at_once, asked, copied):
        made, waited = refused(pipe, "OX1004").causes
        assert (made.what, waited.what) == ("the token was made here", "waited for here")
        assert waited.site
        assert waited.site.line == marked_line(pipe) - (pipe is not at_once)


# ---- borders
def into_a_loop(cta: ox.Cta, n: ox.Idx) -> None:
    full = cta.barrier().init(1)
    token = full.arrive()
    for _ in cta.range(n):
        full.wait(token)  # type: ignore[oxidecopy-moved]  # here


def out_of_a_loop(cta: ox.Cta, n: ox.Idx) -> None:
    full = cta.barrier().init(1)
    (token,) = (full.arrive() for _ in cta.range(n))
    full.wait(token)  # type: ignore[oxidecopy-moved]  # here


def from_loop_to_loop(cta: ox.Cta, n: ox.Idx) -> None:
    full = cta.barrier().init(1)
    (token,) = (full.arrive() for _ in cta.range(n))
    for _ in cta.range(n):
        full.wait(token)  # type: ignore[oxidecopy-moved]  # here


def carried_to_the_next_iteration(cta: ox.Cta, n: ox.Idx) -> None:
    full = cta.barrier().init(1)
    token = full.arrive()
    for _ in cta.range(n):
        fresh = full.arrive()
        full.try_wait(token)  # type: ignore[oxidecopy-moved]  # here
        token = fresh


def into_an_inner_loop(cta: ox.Cta, n: ox.Idx) -> None:
    full = cta.barrier().init(1)
    for _ in cta.range(n):
        token = full.arrive()
        for _ in cta.range(n):
            full.wait(token)  # type: ignore[oxidecopy-moved]  # here


def from_role_to_role(cta: ox.Cta) -> None:
    full = cta.barrier().init(1)
    with cta.warps(0, 1):
        token = full.arrive()
    with cta.warps(1, 2):
        full.wait(token)  # here


def to_a_second_block_of_the_same_warps(cta: ox.Cta) -> None:
    full = cta.barrier().init(1)
    with cta.warps(0, 1):
        token = full.arrive()
    with cta.warps(0, 1):
        full.wait(token)  # here


def for_a_copy_in_another_role(cta: ox.Cta, src: Src) -> None:
    full = cta.barrier().init(1)
    tile = cta.shared(src)
    with cta.warps(0, 1) as one, one.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
    with cta.warps(1, 2) as two, two.elect() as leader:
        src.g2s(leader, tile, (0, 0), token)  # here


def for_a_copy_behind_its_loop(cta: ox.Cta, src: Src, n: ox.Idx) -> None:
    full = cta.barrier().init(1)
    tile = cta.shared(src)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        for _ in cta.range(n):
            token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0), token)  # type: ignore[oxidecopy-moved]  # here


@pytest.mark.parametrize(
    "pipe",
    [
        into_a_loop,
        for_a_copy_behind_its_loop,
        out_of_a_loop,
        from_loop_to_loop,
        carried_to_the_next_iteration,
        into_an_inner_loop,
        from_role_to_role,
        to_a_second_block_of_the_same_warps,
        for_a_copy_in_another_role,
    ],
)
def test_borders(pipe: Callable[..., None]) -> None:
    assert "wait_phase" in refused(pipe, "OX1007").fix


def test_copies_of_an_inner_loop_count_for_one_phase() -> None:
    def pipe(cta: ox.Cta, src: Src, n: ox.Idx) -> None:
        full = cta.barrier().init(1)
        tile = cta.shared(src)
        for _ in cta.range(n):
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, 4 * tile.nbytes)
                for i in cta.range(4):
                    src.g2s(leader, tile, (i, 0), token)
            full.wait(token)

    recorded(pipe)


def test_what_is_no_border() -> None:
    def pipe(cta: ox.Cta, n: ox.Idx) -> None:
        full = cta.barrier().init(1)
        with cta.when(n == 0), cta.elect():
            narrow = full.arrive()
        with cta.warps(0, 2), cta.warps(0, 1):
            full.wait(narrow)  # from the code around into a role
            inner = full.arrive()
        full.wait(inner)  # and out of it
        for _ in cta.range(n):
            with cta.elect():
                token = full.arrive()
            full.wait(token)

    recorded(pipe)


# ---- whose they are
def test_of_another_barrier_or_recording() -> None:
    kept: list[Any] = []

    def first(cta: ox.Cta) -> None:
        full = cta.barrier().init(1)
        kept.append(full.arrive())
        cta.barrier().init(1).wait(full.arrive())  # type: ignore[oxidecopy-token]  # here

    def second(cta: ox.Cta) -> None:
        cta.barrier().init(1).wait(kept[0])  # here

    assert refused(first, "OX1005").got == "a token of 'bar0'"
    refused(second, "OX1019")


def test_a_token_of_an_earlier_barrier_of_the_same_name() -> None:
    class Full: ...

    def pipe(cta: ox.Cta) -> None:
        one = cta.barrier(brand=Full).init(1)
        two = cta.barrier(brand=Full).init(1)
        two.wait(one.arrive())  # type: ignore[oxidecopy-token]  # here

    assert refused(pipe, "OX1005").got == "a token of 'full'"


@pytest.mark.parametrize("wrong", [None, 0, "token", ox.BarrierToken])
def test_no_token(wrong: Any) -> None:
    def wait(cta: ox.Cta) -> None:
        cta.barrier().init(1).wait(wrong)  # here

    def ask(cta: ox.Cta) -> None:
        cta.barrier().init(1).try_wait(wrong)  # here

    def copy(cta: ox.Cta, src: Src) -> None:
        tile = cta.shared(src)
        with cta.elect() as leader:
            src.g2s(leader, tile, (0, 0), wrong)  # here

    refused(wait, "OX1055")
    refused(ask, "OX1055")
    refused(copy, "OX1006")
