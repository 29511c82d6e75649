"""Shared addresses by the user's names, and classes of threads in words."""

from __future__ import annotations

from oxidecopy.engines.sim.classes import thread_classes
from oxidecopy.engines.sim.findings import LIMIT, Findings
from oxidecopy.engines.sim.names import barrier_name, tile_name
from oxidecopy.errors import Diagnostic
from tests.helpers.programs import Builder


def test_names() -> None:
    b = Builder()
    b.tile("ring", shape=(8, 32), stages=2)
    b.tile("one", shape=(8, 32))
    b.bar("full", stages=2)
    b.bar("done")
    program = b.program()
    base = 1024
    tiles, bars = program.tiles, program.barriers
    assert tile_name(program, base + 1024, base + 2048) == "ring[1]"
    assert tile_name(program, base + tiles[1].offset + 64, base + tiles[1].offset + 128) == "one"
    assert "shared bytes" in tile_name(program, 0, 16)
    assert barrier_name(program, base + bars[0].offset + 8) == "full[1]"
    assert barrier_name(program, base + bars[1].offset) == "done"
    assert "shared address" in barrier_name(program, base + bars[0].offset + 4)


def test_classes_are_the_threads_in_the_same_scopes() -> None:
    b = Builder(threads=96)
    with b.scope((0, 32), (64, 96)), b.elect(5):
        b.sync()
    with b.elect(5):
        b.sync()
    words = [str(kind) for kind in thread_classes(b.program())]
    assert words == ["threads 0-4, 6-31, 64-95 (warps)", "thread 5 (warps, elect)", "threads 32-63"]
    assert sum(len(kind.threads) for kind in thread_classes(b.program())) == 96


def test_findings_are_bounded() -> None:
    findings = Findings()
    for i in range(2 * LIMIT):
        findings.add(Diagnostic(rule="OX4101", what=str(i)))
        findings.add(Diagnostic(rule="OX4101", what=str(i)))
    assert len(findings.all()) == LIMIT
