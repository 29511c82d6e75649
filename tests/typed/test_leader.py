"""Blocks: who executes what, and that leaders and groups end with their blocks."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import ScopeError
from oxidecopy.isa.ops import Scope, ThreadSet
from oxidecopy.program.program import Program
from oxidecopy.typed.leader import intersect
from tests.helpers.recordings import marked_line, recorded, refused

Src = ox.TmaDescriptor[ox.f32, ox.D2]


def scopes(program: Program) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    return [(step.op.role, step.op.threads.ranges) for step in program.walk() if isinstance(step.op, Scope)]


def test_blocks_narrow_the_threads() -> None:
    def pipe(cta: ox.Cta) -> None:
        with cta.elect(), cta.thread(0):
            pass
        with cta.threads_except(0), cta.threads_except(99):
            pass
        with cta.threads_except(64), cta.warps(1, 3):
            pass
        with cta.threads_except(32), cta.warps(1, 3) as group, group.elect():
            pass
        with cta.warps(1, 2), cta.elect():
            pass
        with cta.threads_except(0), cta.elect():
            pass

    assert scopes(recorded(pipe, threads=100)) == [
        ("elect", ((0, 1),)),
        ("thread", ((0, 1),)),
        ("threads_except", ((1, 100),)),
        ("threads_except", ((1, 99),)),
        ("threads_except", ((0, 64), (65, 100))),
        ("warps", ((32, 64), (65, 96))),
        ("threads_except", ((0, 32), (33, 100))),
        ("warps", ((33, 96),)),
        ("elect", ((33, 34),)),
        ("warps", ((32, 64),)),
        ("elect", ((32, 33),)),
        ("threads_except", ((1, 100),)),
        ("elect", ((1, 2),)),
    ]


def test_the_last_warp_may_be_partial() -> None:
    def pipe(cta: ox.Cta) -> None:
        with cta.warps(0, 1), cta.warps(0, 2):
            pass
        with cta.warps(1, 2) as group:
            group.sync()

    assert scopes(recorded(pipe, threads=33)) == [("warps", ((0, 32),)), ("warps", ((0, 32),)), ("warps", ((32, 33),))]


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        (((0, 4),), ((2, 8),), ((2, 4),)),
        (((0, 2), (4, 8)), ((1, 6),), ((1, 2), (4, 6))),
        (((0, 2),), ((2, 4),), None),
    ],
)
def test_intersect(a: Any, b: Any, both: Any) -> None:
    assert intersect(ThreadSet(a), ThreadSet(b)) == (ThreadSet(both) if both else None)


def test_a_block_without_threads() -> None:
    def pipe(cta: ox.Cta) -> None:
        with cta.warps(0, 1), cta.thread(64):  # here
            pass

    assert refused(pipe, "OX1030").got == "threads 64 inside 0 to 31"


def test_all_threads_but_the_only_one() -> None:
    def pipe(cta: ox.Cta) -> None:
        with cta.threads_except(0):  # here
            pass

    recorded(pipe, threads=2)
    refused(pipe, "OX1030", threads=1)


# ---- leaders end with their blocks
def test_a_leader_after_its_block() -> None:
    def pipe(cta: ox.Cta) -> None:
        with cta.elect() as leader:
            leader.commit_group()
        leader.commit_group()  # type: ignore[oxidecopy-scope]  # here

    causes = refused(pipe, "OX1018").causes
    assert [cause.site.line for cause in causes if cause.site] == [marked_line(pipe) - 2]


def test_a_leader_of_an_earlier_block_like_this_one() -> None:
    def pipe(cta: ox.Cta) -> None:
        kept: list[ox.Leader] = []
        for _ in range(2):
            with cta.elect() as leader:
                kept.append(leader)
                kept[0].commit_group()  # here

    refused(pipe, "OX1018")


def test_a_leader_in_a_narrower_block_of_other_threads() -> None:
    def same(cta: ox.Cta) -> None:
        with cta.elect() as leader, cta.when(True), cta.thread(0):
            leader.commit_group()

    def wider(cta: ox.Cta) -> None:
        with ExitStack() as blocks:
            leader = blocks.enter_context(cta.elect())
            blocks.close()
            with cta.threads_except(5):
                leader.commit_group()  # here

    recorded(same)
    refused(wider, "OX1018")


def test_a_group_after_its_block() -> None:
    def sync(cta: ox.Cta) -> None:
        with cta.warps(0, 1) as group:
            pass
        group.sync()  # type: ignore[oxidecopy-scope]  # here

    def elect(cta: ox.Cta) -> None:
        with cta.warps(0, 1) as group:
            pass
        with group.elect():  # type: ignore[oxidecopy-scope]  # here
            pass

    refused(sync, "OX1018")
    refused(elect, "OX1018")


def test_leaders_are_given() -> None:
    def leader(cta: ox.Cta) -> None:
        ox.Leader(cta)  # type: ignore[arg-type]  # here

    def cluster(cta: ox.Cta) -> None:
        ox.ClusterLeader()  # type: ignore[call-arg]  # here

    def group(cta: ox.Cta) -> None:
        ox.Group(frame=1)  # type: ignore[call-arg]  # here

    for pipe in (leader, cluster, group):
        refused(pipe, "OX1015")


def test_leaders_of_a_cluster_may_multicast() -> None:
    def pipe(cta: ox.ClusterCta) -> None:
        with cta.elect() as one, cta.thread(0) as two:
            assert type(one) is type(two) is ox.ClusterLeader
        with cta.warps(0, 1) as group, group.elect() as three:
            assert type(three) is ox.ClusterLeader

    recorded(pipe, cluster=(2, 1, 1))


# ---- blocks open and close
def test_a_block_entered_twice() -> None:
    def one_after_the_other(cta: ox.Cta) -> None:
        block = cta.elect()
        with block:
            pass
        with block:  # here
            pass

    def nested(cta: ox.Cta, n: ox.Idx) -> None:
        block = cta.when(n == 0)
        with block, block:  # here
            pass

    refused(one_after_the_other, "OX1071")
    refused(nested, "OX1071")


def test_a_block_that_never_closes() -> None:
    def at_the_end(cta: ox.Cta) -> None:
        cta.elect().__enter__()  # here

    def in_a_loop(cta: ox.Cta, n: ox.Idx) -> None:
        for _ in cta.range(n):
            cta.elect().__enter__()  # here

    def in_a_block(cta: ox.Cta) -> None:
        with cta.warps(0, 1):
            cta.elect().__enter__()  # here

    for pipe in (at_the_end, in_a_loop, in_a_block):
        refused(pipe, "OX1026")


def test_a_refusal_of_blocks_cannot_be_suppressed() -> None:
    def pipe(cta: ox.Cta) -> None:
        block = cta.elect()
        with suppress(ScopeError), cta.warps(0, 1):
            block.__enter__()  # here
        block.__exit__(None, None, None)
        cta.sync()

    refused(pipe, "OX1026")


def test_a_block_closed_without_being_opened() -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.elect().__exit__(None, None, None)

    assert recorded(pipe).steps == ()


def test_an_exception_closes_its_blocks() -> None:
    def pipe(cta: ox.Cta) -> None:
        with suppress(ValueError), cta.elect(), cta.when(True):
            int("x")
        cta.sync()

    program = recorded(pipe)
    assert [step.op.mnemonic for step in program.steps] == ["scope", "bar.sync"]


def test_blocks_on_an_exit_stack_name_the_users_line() -> None:
    def pipe(cta: ox.Cta) -> None:
        with ExitStack() as blocks:
            blocks.enter_context(cta.warps(0, 1))
            blocks.enter_context(cta.thread(64))  # here

    refused(pipe, "OX1030")


def test_leaders_belong_to_one_recording() -> None:
    kept: list[ox.Leader] = []

    def first(cta: ox.Cta) -> None:
        with cta.elect() as leader:
            kept.append(leader)

    def second(cta: ox.Cta, dst: Src) -> None:
        with cta.elect():
            dst.s2g(kept[0], cta.shared(dst), (0, 0))  # here

    recorded(first)
    refused(second, "OX1019")
    with pytest.raises(ScopeError) as caught:
        kept[0].commit_group()
    assert caught.value.rules == ("OX1019",)


@pytest.mark.parametrize("pending", [-1, 16, 1.0, True, None])
def test_pending_groups(pending: Any) -> None:
    def wait(cta: ox.Cta) -> None:
        with cta.elect() as leader:
            leader.wait_group(pending)  # here

    def read(cta: ox.Cta) -> None:
        with cta.elect() as leader:
            leader.wait_group_read(pending)  # here

    refused(wait, "OX1064")
    refused(read, "OX1064")
