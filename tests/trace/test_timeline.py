"""Stamps as lanes, copies and tiles; and that a source which knows less than the simulator gives the same picture with less in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.stamps import Stamped, ThreadGroup
from oxidecopy.trace import words
from oxidecopy.trace.follow import shown
from oxidecopy.trace.timeline import Timeline, role_of, timeline
from tests.helpers.timelines import computation, followed, two_loads


@pytest.fixture(scope="module")
def run() -> Stamped:
    return followed(computation(2, ctas=2), ctas=1)


@pytest.fixture(scope="module")
def line(run: Stamped) -> Timeline:
    return timeline(run)


def test_a_lane_for_each_class_that_does_something(line: Timeline) -> None:
    [track] = line.tracks
    assert [(lane.role, lane.who, lane.threads) for lane in track.lanes] == [
        ("consumers", "warp 0, thread 0", 1),
        ("consumers", "warps 0-1, threads 1-63", 63),
        ("producer", "warp 2, thread 64", 1),
    ]
    assert line.notes == (
        "1 of 2 CTAs are shown",
        "31 threads of each CTA have no lane: they come to syncs of the whole CTA and nothing else",
    )


def test_ops_are_named_with_the_integers_they_saw(line: Timeline) -> None:
    producer = line.tracks[0].lanes[2]
    assert [(s.kind, s.label) for s in producer.spans[1:8]] == [
        ("wait", "wait for ring0_empty[0], phase -1"),
        ("barrier", "expect 4,096 bytes at ring0_full[0]"),
        ("copy", "load src[0, 0] to ring0_src[0]"),
        ("wait", "wait for ring0_empty[1], phase -1"),
        ("barrier", "expect 4,096 bytes at ring0_full[1]"),
        ("copy", "load src[0, 512] to ring0_src[1]"),
        ("wait", "wait for ring0_empty[0], phase 0"),
    ]
    elected = {s.label for s in line.tracks[0].lanes[0].spans}
    assert {
        "map.tiles of ring0_src[0] to dst_out[0]", "sync 1 of 64 threads", "store dst_out[1] to dst[0, 512]", "arrive at ring0_empty[1]",
        "wait until all but 1 stores are read", "wait until all stores are read",
    } <= elected  # fmt: skip
    assert all(s.site.rpartition("/")[2].startswith("timelines.py:") for s in producer.spans)


def test_copies_in_flight_at_one_time_lie_in_rows(line: Timeline) -> None:
    [track] = line.tracks
    for way in ("load", "store"):
        rows = [[t for t in track.transfers if t.way == way and t.row == row] for row in range(4)]
        assert rows[0]
        for row in rows:
            assert all(a.end <= b.start for a, b in pairwise(row))
    assert max(t.row for t in track.transfers if t.way == "load") == 1


def test_tiles_fill_are_full_are_used_and_stored(line: Timeline) -> None:
    states = {stage.name: [s.state for s in stage.segments[:4]] for stage in line.tracks[0].stages}
    assert states == {
        "ring0_src[0]": ["filling", "full", "used", "filling"],
        "ring0_src[1]": ["filling", "full", "used", "filling"],
        "dst_out[0]": ["filling", "full", "stored", "filling"],
        "dst_out[1]": ["filling", "full", "stored", "filling"],
    }


def test_times_alone_make_a_picture_too(run: Stamped, line: Timeline) -> None:
    """As of a GPU that stamps its ops: nothing is known of when copies land and of who woke whom, nor perhaps of a loop's counter."""
    less = replace(
        run,
        source="GPU",
        stamps=tuple(replace(s, woken=None, names={k: v for k, v in s.names.items() if k != "i0"}) for s in run.stamps),
        flights=tuple(replace(f, begun=None, moved=None, read=None, end=None) for f in run.flights),
    )
    made = shown(less)
    assert [len(lane.spans) for lane in made.timeline.tracks[0].lanes] == [len(lane.spans) for lane in line.tracks[0].lanes]
    assert "wait for ring0_empty[?], phase ?" in {s.label for s in made.timeline.tracks[0].lanes[2].spans}
    assert all(t.open for t in made.timeline.tracks[0].transfers)
    assert made.summary.lines[0].startswith("copies were in flight 9")
    assert not any("bytes moved" in text for text in made.summary.lines)
    assert "GPU" in made.html()


def test_roles() -> None:
    def role(*roles: str, threads: int = 2) -> str:
        return role_of(ThreadGroup(threads=ThreadSet(((0, threads),)), roles=roles))

    assert role("consumers", "elect") == "consumers"
    assert role("elect") == role(threads=1) == "elected thread"
    assert role("threads_except") == "threads"


def test_a_program_without_roles() -> None:
    made = timeline(followed(two_loads()))
    assert [(lane.role, lane.who) for lane in made.tracks[0].lanes] == [
        ("elected thread", "warp 0, thread 0"),
        ("threads", "warp 0, threads 1-31"),
    ]
    assert made.notes == ()


def test_every_op_has_a_kind_and_words(run: Stamped) -> None:
    kinds = {words.kind_of(s.step.op) for s in run.stamps}
    assert kinds == {"wait", "sync", "copy", "compute", "barrier"}
    assert all(words.label(run.program, s.step.op, {}) for s in run.stamps), "also with no integer known"
