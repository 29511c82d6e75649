"""The shape of fast tile computations: a counter deals the tiles, a producer loads them, consumers map them into a store ring.

Proven for every number of tiles, for rings of any size; its one-edit twins are refused, whatever the ring's size; and on random ones of
that shape the simulator says the same.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any, TypeAlias

import pytest

import oxidecopy as ox
from oxidecopy.fuzz.case import Case
from oxidecopy.fuzz.drafts import Draft
from oxidecopy.fuzz.judge import judge
from oxidecopy.fuzz.mutants import mutants
from oxidecopy.fuzz.pipelines import recorded
from oxidecopy.fuzz.ring_scenes import TileRing, drawn_roles
from oxidecopy.program.program import Launch
from oxidecopy.program.text import from_text, to_text
from oxidecopy.verify import inspect, snapshot, walk
from oxidecopy.verify.report import Report

Map: TypeAlias = ox.TmaDescriptor[Any, Any, Any, Any]
ROWS = 4096


def computation(stages: int = 2, outs: int = 2, *, warps: int = 2, rows: int = ROWS) -> tuple[str, Launch]:
    """Its text, which is easily edited, and a launch over `rows` tiles."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=warps))
    def doubled(cta: ox.Cta, src: Map, dst: Map) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        out = cta.store_ring(dst, stages=outs)
        work = cta.schedule(src, order=ox.order.counter())
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                (tile,) = stage.tiles
                with out.put(group, stage.at) as made:
                    group.map(lambda v: v + v, tile, out=made)

    dev = ox.Device.open("sim")
    src, dst = (ox.TmaDescriptor.tiled(dev.zeros((rows, 8), ox.f32), box=(1, 8)) for _ in range(2))
    bound = doubled[7].bind(src, dst)
    return re.sub(r" +#.*", "", to_text(bound.program)), bound.launch  # without call sites


def found(text: str, launch: Launch) -> Report:
    return inspect(from_text(text), launch)


@pytest.mark.parametrize(("stages", "outs", "warps"), [(1, 1, 1), (2, 2, 8), (3, 2, 1), (4, 3, 4), (6, 4, 2), (5, 1, 1)])
def test_it_is_proven_for_every_number_of_tiles(stages: int, outs: int, warps: int) -> None:
    report = found(*computation(stages, outs, warps=warps))
    assert not report.violations, report.violations
    assert not report.warnings
    assert any(f"of 0 to {ROWS} tiles" in b.what for b in report.bounds)


def test_it_repeats_because_only_who_runs_the_map_is_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer never comes to the consumers' map: how many tiles it is away from it tells no two states apart."""
    assert not found(*computation()).violations
    monkeypatch.setattr(walk, "STEPS_MAX", 20_000)
    monkeypatch.setattr(snapshot._Taker, "_steps", lambda taker, _agent: {id(s) for s in taker.machine.program.walk()})
    assert {d.rule for d in found(*computation()).violations} == {"OX3091"}


# ---- one edit away: old and new text, and the rules that say so, no others
WAIT = "          cp.async.bulk.wait_group.read pending={}\n"
SYNC = "        bar.sync number=1, threads=64\n"
FENCE = "        fence.proxy.async.shared::cta\n"
BROKEN = {
    "no wait for a free staging tile": (WAIT.format("{k}"), f"  {FENCE}", {"OX3043"}),
    "one store more in flight than tiles": (WAIT.format("{k}"), WAIT.format("{n}"), {"OX3043"}),
    "one staging tile too few": ("dst_out[i1 % {n}]", "dst_out[i1 % {k}]", {"OX3043"}),
    "the phase before": ("landed=i1 // {s}", "landed=i1 // {s} - 1", {"OX3014", "OX3040", "OX3051"}),
    "the phase after": ("landed=i1 // {s}", "landed=i1 // {s} + 1", {"OX3012"}),
    "loads over what is read": ("free=i0 // {s} - 1", "free=i0 // {s} - 2", {"OX3014"}),
    "no wait at the end": (WAIT.format(0)[4:], FENCE[2:], {"OX3050"}),
    "no fence": (FENCE, "", {"OX3046"}),
    "no sync before the store": (FENCE + SYNC, FENCE, {"OX3045"}),
    "no sync before the map": (SYNC + "        map", "        map", {"OX3043"}),
    "a store that is not committed": ("          cp.async.bulk.commit_group\n", "", {"OX3050"}),
}


@pytest.mark.parametrize(("stages", "outs"), [(2, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("name", BROKEN)
def test_its_broken_twins_are_refused(name: str, stages: int, outs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "STEPS_MAX", 10_000)
    text, launch = computation(stages, outs)
    old, new, rules = BROKEN[name]
    numbers = {"s": stages, "n": outs, "k": outs - 1}
    old, new = old.format(**numbers), new.format(**numbers)
    assert old in text
    assert {d.rule for d in found(text.replace(old, new), launch).violations} == rules


# ---- the simulator's word
def drawn(seed: int) -> Case:
    """A random ring whose tiles are dealt by a counter and mapped into a store ring."""
    rng = Random(seed)
    while True:
        chosen = drawn_roles(rng, cluster=False)
        draft = Draft(rng, chosen.threads, (1, 1, 1), (rng.choice((1, 1, 2)), 1, 1), chosen)
        ring = TileRing(draft)
        if ring.use == "map" and ring.counted:
            return recorded(draft, [ring])


@pytest.mark.parametrize("seed", range(6))
def test_simulator_and_verifier_agree_on_random_ones(seed: int) -> None:
    case = drawn(seed)
    verdict = judge(case)
    assert verdict.accepted, verdict.detail
    assert not verdict.problem, verdict
    for mutant in mutants(case, seed, 4):
        verdict = judge(mutant)
        assert not verdict.problem, (mutant.label, verdict)
