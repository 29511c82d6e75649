"""Roles: how warps are laid out, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import UsageError
from oxidecopy.isa import ops
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import Program, RegisterHint
from oxidecopy.program.text import from_text, to_text
from oxidecopy.tiles.cta import Cta
from oxidecopy.typed.recording import record


def spans(roles: ox.Roles) -> list[tuple[str, int, int]]:
    return [(str(r), r.first, r.stop) for r in roles.all]


def test_consumers_come_first_so_that_fours_are_warpgroups() -> None:
    assert spans(ox.roles(producer=1, consumers=(4, 4), store=2)) == [
        ("consumers", 0, 4),
        ("consumers(1)", 4, 8),
        ("producer", 8, 9),
        ("storer", 9, 11),
    ]


def test_explicit_warps_and_idle_ones_between() -> None:
    roles = ox.roles(producer=range(1), consumers=range(2, 4))
    assert spans(roles) == [("consumers", 2, 4), ("producer", 0, 1)]
    assert roles.threads == 128


@pytest.mark.parametrize(
    "wrong",
    [
        {"producer": 0},
        {"consumers": ()} | {"producer": 40},
        {"producer": range(1), "consumers": range(2)},
        {"producer": range(0, 4, 2), "consumers": range(4, 5)},
        {"producer": True},
        {"consumers": 1.5},
        {"consumers": None},
        {"consumers": "44"},
        {"consumers": {4: 4}},
        {"consumers": ((1, 2),)},
        {"registers": {"producer": 20}},
        {"registers": {"producer": 300}},
        {"registers": {"producer": 25}},
        {"registers": {"producer": True}},
        {"registers": {"producer": "40"}},
        {"registers": {"storer": 40}},
        {"registers": {"prodcer": 40, 1: 40}},
        {"registers": 40},
        {"registers": {"consumers": 256}, "consumers": (4, 4)},
        {"registers": {"consumers": 240}, "consumers": (4, 4), "producer": 8},
    ],
)
def test_what_makes_no_role(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        ox.roles(**wrong)
    assert set(refused.value.rules) == {"OX1101"}


def test_all_broken_roles_at_once() -> None:
    with pytest.raises(UsageError) as refused:
        ox.roles(producer=0, consumers=(0, 1), registers={"producer": 7})
    assert len(refused.value.diagnostics) == 3


def test_register_hints_are_of_the_threads_of_each_role() -> None:
    roles = ox.roles(producer=1, consumers=(4, 4), store=1, registers={"producer": 24, "consumers": 232})
    assert roles.hints == tuple(
        RegisterHint(ThreadSet((span,)), count) for span, count in (((0, 128), 232), ((128, 256), 232), ((256, 288), 24))
    )
    assert ox.roles(consumers=(4, 4), producer=4, registers={"consumers": 240, "producer": 24}).hints[-1].registers == 24


def test_a_program_holds_the_hints() -> None:
    def body(cta: Cta) -> None:
        with cta.producer(), cta.when(False):
            pass
        with cta.consumers():
            pass

    roles = ox.roles(producer=range(2, 3), consumers=range(2), registers={"producer": 40, "consumers": 64})
    program = recorded(body, roles)
    assert program.registers == roles.hints
    assert check_operands(program) == []
    text = to_text(program)
    assert "registers {0..63}: 64\n  registers {64..95}: 40\n" in text
    assert from_text(text) == program
    assert recorded(body, ox.roles(producer=range(2, 3), consumers=range(2))).registers == ()


def recorded(body: Any, roles: ox.Roles) -> Program:
    return record(body, threads=roles.threads, cluster=(1, 1, 1), arguments={}, cta=lambda recorder: Cta(recorder, roles))


def test_a_groups_sync_is_its_own_named_barrier() -> None:
    def body(cta: Cta) -> None:
        with cta.producer():
            pass
        for i in range(2):
            with cta.consumers(i) as group:
                group.sync()

    program = recorded(body, ox.roles(producer=1, consumers=(1, 2)))
    syncs = [s.op for s in program.walk() if isinstance(s.op, ops.BarSync)]
    assert [(s.number, s.threads) for s in syncs] == [(1, 32), (2, 64)]


def test_leaders_are_one_lane() -> None:
    def body(cta: Cta) -> None:
        with cta.producer():
            pass
        with cta.storer():
            pass
        with cta.consumers():
            pass

    program = recorded(body, ox.roles(producer=1, consumers=1, store=1))
    scopes = [s.op for s in program.walk() if isinstance(s.op, ops.Scope)]
    assert [(s.role, s.threads.ranges) for s in scopes] == [("producer", ((32, 33),)), ("storer", ((64, 65),)), ("consumers", ((0, 32),))]


def test_a_role_nobody_declared() -> None:
    with pytest.raises(ox.errors.ScopeError) as refused:
        recorded(lambda cta: cta.consumers(1), ox.roles(producer=1, consumers=1))
    assert refused.value.rule == "OX1111"


def test_either_threads_or_roles() -> None:
    with pytest.raises(UsageError) as refused:
        ox.pipeline(threads=32, warps=ox.roles())  # type: ignore[call-overload]  # what is refused
    assert refused.value.rule == "OX1114"
