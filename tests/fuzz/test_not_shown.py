"""The table of rules that a schedule need not show is complete: the smallest program of any other rule is seen to go wrong."""

from __future__ import annotations

import pytest

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap
from oxidecopy.engines.sim import SimEngine, explore
from oxidecopy.fuzz.judge import BAD_SEEDS, NOT_SHOWN
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.verify.report import WARNING_PREFIX
from tests.helpers.stored_rules import RULES, launch_of, program_of

SHOWN = [rule for rule in RULES if not rule.startswith(WARNING_PREFIX) and rule not in NOT_SHOWN]
BESIDE = 16  # bytes behind an array, as stores are clipped in steps of it


def bindings(rule: str, engine: SimEngine) -> Bindings:
    """Memory for the launch that is stored."""
    launch = launch_of(rule)

    def memory(outer: tuple[int, ...], strides: tuple[int, ...], row: int) -> int:
        return sum((n - 1) * s for n, s in zip(outer, strides, strict=True)) + row + BESIDE

    maps = {}
    for name, m in launch.maps:
        maps[name] = BoundMap(map=m, buffer=engine.allocate(memory(m.global_dim[:-1], m.global_strides, m.row_bytes)))
    arrays = {}
    for name, info in launch.arrays:
        size = memory(info.shape, info.strides_bytes, DTYPES[info.dtype].nbytes)
        arrays[name] = BoundArray(info=info, buffer=engine.allocate(size))
    return Bindings(grid=launch.grid, maps=maps, arrays=arrays, idx=dict(launch.idx), scalars={})


@pytest.mark.parametrize("rule", SHOWN)
def test_a_rule_that_is_not_in_the_table_is_shown(rule: str) -> None:
    engine = SimEngine(sm=launch_of(rule).sm)
    bound = bindings(rule, engine)
    runs = (explore(program_of(rule), bound, seed=seed, max_steps=2000) for seed in BAD_SEEDS)
    assert any(run.outcome != "ok" or run.findings for run in runs), f"{rule}: give a reason in NOT_SHOWN, or let the simulator notice it"


def test_the_table_holds_rules_and_reasons() -> None:
    assert set(NOT_SHOWN) <= set(RULES)
    assert all(len(reason) > 20 for reason in NOT_SHOWN.values())
    assert len(SHOWN) > 40
