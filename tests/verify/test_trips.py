"""Counter-driven pipelines: accepted only when they are right for every number of tiles, refused when that is not certain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import pytest

import oxidecopy as ox
from oxidecopy.program.program import ArrayParam, Launch, Program
from oxidecopy.program.text import from_text, to_text
from oxidecopy.verify import inspect, trips
from oxidecopy.verify.report import Report

Indices: TypeAlias = ox.GlobalArray[ox.i32, ox.D1]
TILES = 60
BODY = """\
program p threads=64 cluster=(1, 1, 1) shared=1024:
  map src: f32 box=(1, 8) swizzle=none
  array rows: i32 rank=1
  array out: i32 rank=1
  barrier bar: GeneralBarrier stages=2 at=0
  barrier ack: GeneralBarrier stages=2 at=16
"""
INIT = """
  scope thread {0}:
    mbarrier.init bar[0], count=1
    mbarrier.init bar[1], count=1
    mbarrier.init ack[0], count=1
    mbarrier.init ack[1], count=1
  bar.sync number=0, threads=64
  share.tiles n, tiles=src.dim[0]
"""
# Thread 0 says `bar`, thread 32 answers `ack`, two stages deep.
SAY = """
  scope thread {0}:
    loop i, start=0, stop=n, step=1:
      mbarrier.wait.phase ack[i % 2], phase=i // 2 - 1
      mbarrier.arrive bar[i % 2] -> %0
"""
ANSWER = """
  scope thread {32}:
    loop j, start=0, stop=n, step=1:
      mbarrier.wait.phase bar[j % 2], phase=j // 2
      mbarrier.arrive ack[j % 2] -> %1
"""


def launch(tiles: int = TILES) -> Launch:
    dev = ox.Device.open("sim")

    @ox.pipeline(threads=64)
    def p(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], rows: Indices, out: Indices) -> None:
        cta.sync()

    src = ox.TmaDescriptor.tiled(dev.zeros((tiles, 8), ox.f32), box=(1, 8))
    return p[3].bind(src, dev.zeros((16,), ox.i32), dev.zeros((16,), ox.i32)).launch


def program(*parts: str) -> Program:
    return from_text(BODY + "".join(parts))


def found(*parts: str, tiles: int = TILES) -> Report:
    return inspect(program(*parts), launch(tiles))


def rules(*parts: str, tiles: int = TILES) -> set[str]:
    return {d.rule for d in found(*parts, tiles=tiles).violations}


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of tiles that were walked in full."""
    counts: list[int] = []
    clean = trips.Counts._clean

    def noted(self: trips.Counts, count: int, tail: Any = None) -> bool:
        counts.append(count)
        return clean(self, count, tail)

    monkeypatch.setattr(trips.Counts, "_clean", noted)
    return counts


@pytest.mark.parametrize("tiles", [1, 2, 3, 60, 100_000])
def test_a_handshake_is_right_for_every_number(tiles: int, walked: list[int]) -> None:
    assert rules(INIT, SAY, ANSWER, tiles=tiles) == set()
    assert max(walked) < 20
    assert set(range(max(walked) + 1)) == set(walked), "all small numbers are walked"


# Each breaks the handshake for some numbers of tiles: all, odd ones, large ones, a single one.
ARRIVE = "      mbarrier.arrive ack[j % 2] -> %1\n"
ONCE_MORE = """\
    mbarrier.wait.phase ack[n % 2], phase=n // 2 - 1
    mbarrier.arrive bar[n % 2] -> %7
"""
SKIPPED = """
  scope thread {32}:
    when n != 41:
      loop j, start=0, stop=n, step=1:
        mbarrier.wait.phase bar[j % 2], phase=j // 2
        mbarrier.arrive ack[j % 2] -> %1
"""
BROKEN = {
    "an answer too many": (INIT, SAY, ANSWER.replace(ARRIVE, ARRIVE + ARRIVE.replace("%1", "%2"))),
    "says once more": (INIT, SAY + ONCE_MORE, ANSWER + "    mbarrier.wait.phase bar[(n + 1) % 2], phase=(n + 1) // 2\n"),
    "a trip count of its own": (INIT, SAY, ANSWER.replace("stop=n", "stop=7")),
    "none of 41": (INIT, SAY, SKIPPED),
    "a phase that is long over": (INIT, SAY, ANSWER + "    when 3 <= n:\n      mbarrier.wait.phase bar[0], phase=0\n"),
    "an odd tile out": (INIT, SAY, ANSWER.replace(ARRIVE, "      when j != 50:\n  " + ARRIVE)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_for_one_number_is_refused(name: str) -> None:
    assert rules(*BROKEN[name])
    assert rules(*BROKEN[name], tiles=100_000)


@pytest.mark.parametrize("name", BROKEN)
def test_the_verdict_is_that_of_trying_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the argument, every number of tiles is walked: whatever that finds must be found, or refused, with it."""
    for tiles in (2, 7, 12, 45, TILES):
        by_argument = rules(*BROKEN[name], tiles=tiles)
        with monkeypatch.context() as m:
            m.setattr(trips.Counts, "_probe", lambda *_: None)
            one_by_one = rules(*BROKEN[name], tiles=tiles)
        assert not one_by_one or by_argument
        assert not by_argument or one_by_one, "few tiles: nothing right is refused"


def test_what_hangs_on_a_far_tile_is_refused_when_all_cannot_be_tried() -> None:
    odd = ANSWER.replace(ARRIVE, "      when j == 1000:\n        mbarrier.wait.phase ack[0], phase=-1\n" + ARRIVE)
    assert rules(INIT, SAY, odd, tiles=100) == set()
    assert rules(INIT, SAY, odd, tiles=5000) == {"OX3094"}


def test_the_numbers_that_are_not_tried_are_a_bound_of_the_proof() -> None:
    whats = {tiles: [b.what for b in found(INIT, SAY, ANSWER, tiles=tiles).bounds if "tiles" in b.what] for tiles in (2, 100_000)}
    assert whats[2] == []
    assert len(whats[100_000]) == 1
    assert whats[100_000][0].startswith("of 0 to 100000 tiles that the counter may give a CTA, 0 to ")


def test_a_value_that_is_read_is_taken_over_its_range() -> None:
    whats = [b.what for b in found(READ).bounds]
    assert "the index read here is taken to be any of 0 to 1" in whats


def test_a_violation_says_for_how_many_tiles() -> None:
    d = found(INIT, SAY, ANSWER.replace("stop=n", "stop=1")).violations[0]
    assert "(when the counter gives this CTA no tile)" in d.what


NEXT = "      share.next t, trips=n, index=i\n"
COUNTER = {
    "twice": (INIT, "  share.tiles m, tiles=src.dim[0]\n"),
    "not by all": (INIT.replace("  share.tiles n", "  scope thread {1}:\n    share.tiles n"),),
    "its own for each CTA": (INIT.replace("tiles=src.dim[0]", "tiles=block_idx.x"),),
    "nested": (INIT, "  loop k, start=0, stop=2, step=1:\n    loop i, start=0, stop=n, step=1:\n      bar.sync number=0, threads=64\n"),
    "a part": (INIT, "  loop i, start=1, stop=n, step=1:\n    bar.sync number=0, threads=64\n"),
    "another tile": (INIT, "  loop i, start=0, stop=n, step=1:\n    share.next t, trips=n, index=i + 1\n"),
    "another loop": (INIT, "  loop i, start=0, stop=4, step=1:\n    share.next t, trips=n, index=i\n"),
}


@pytest.mark.parametrize("name", COUNTER)
def test_shares_are_taken_and_visited_plainly(name: str) -> None:
    assert rules(*COUNTER[name]) == {"OX3093"}


def test_a_cluster_has_no_share() -> None:
    assert {d.rule for d in inspect(replace(program(INIT), cluster=(3, 1, 1)), launch()).violations} == {"OX3093"}


READ = "  ld.global.index r, rows, index=block_idx.x, below=2\n"
STEERED = {
    "a loop": "  loop i, start=0, stop=r, step=1:\n    bar.sync number=0, threads=64\n",
    "a condition": "  when r == 0:\n    bar.sync number=0, threads=64\n",
    "a barrier": "  scope thread {0}:\n    mbarrier.arrive bar[r] -> %0\n",
    "a phase": "  mbarrier.wait.phase bar[0], phase=r - 1\n",
    "a bound": "  ld.global.index q, rows, index=0, below=r\n",
}


@pytest.mark.parametrize("name", STEERED)
def test_a_value_that_is_read_steers_nothing(name: str) -> None:
    assert "OX3086" in rules(INIT, READ, STEERED[name])


def test_a_value_that_is_read_may_be_an_index() -> None:
    assert rules(READ, "  ld.global.index q, rows, index=r * 7, below=100\n") == set()


@pytest.mark.parametrize("index", ["block_idx.x + 14", "block_idx.x - 1", "16"])
def test_reads_are_inside_their_array(index: str) -> None:
    assert rules(f"  ld.global.index q, rows, index={index}, below=100\n") == {"OX3088"}


def test_reads_under_a_condition_are_judged_by_instance() -> None:
    loop = "  loop i, start=0, stop=40, step=1:\n    when i <= {}:\n      ld.global.index q, rows, index=i, below=100\n"
    assert rules(loop.format(15)) == set()
    assert rules(loop.format(16)) == {"OX3088"}


@pytest.mark.parametrize("below", ["0", "block_idx.x", "1 << 40", "-3"])
def test_a_bound_is_one_positive_value(below: str) -> None:
    text = below.replace("1 << 40", str(1 << 40))
    assert rules(f"  ld.global.index q, rows, index=0, below={text}\n") == {"OX3087"}


def test_indices_are_integers() -> None:
    floats = replace(
        program(READ),
        params=tuple(replace(p, dtype="f32") if isinstance(p, ArrayParam) and p.name == "rows" else p for p in program(READ).params),
    )
    bound = launch()
    arrays = tuple((n, replace(a, dtype="f32") if n == "rows" else a) for n, a in bound.arrays)
    assert {d.rule for d in inspect(floats, replace(bound, arrays=arrays)).violations} == {"OX3087"}


def test_it_prints() -> None:
    p = program(INIT, SAY, ANSWER, READ)
    assert from_text(to_text(p)) == p
