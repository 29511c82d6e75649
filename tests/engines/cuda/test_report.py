"""Reports in words: who waited for what and where, what else can be in one, and what is left out when a state is not known."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import ReportKind
from oxidecopy.engines.cuda.code.image import AgentNote, Image, Warp, Where
from oxidecopy.engines.cuda.report import Facts, barrier_name, failure, is_silent, read_entries
from oxidecopy.errors import DeadlockError, ExecutionError, Site
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.isa.limits import CTA_WINDOW_BYTES, SHARED_BASE
from oxidecopy.program.program import BarrierDecl, Program

FULL, DONE = SHARED_BASE + 2048, SHARED_BASE + 2080
BARRIERS = (
    BarrierDecl(name="full", kind="TmaBarrier", stages=4, offset=2048),
    BarrierDecl(name="done", kind="GeneralBarrier", stages=1, offset=2080),
)
PROGRAM = Program(
    name="pipe", threads=64, cluster=(1, 1, 1), params=(), tiles=(), barriers=BARRIERS, shared_bytes=2088, steps=(), site=Site("user.py", 1)
)
WAIT = ops.MbarrierWaitPhase(bar=ops.BarrierRef(1, Const(0)), phase=Const(0))
SITES = {1: Where(Site("user.py", 10), PROGRAM, WAIT), 2: Where(Site("user.py", 20), PROGRAM, None)}
IMAGE = Image(
    name="pipe",
    family="move",
    form="small",
    code=b"",
    warps=tuple(Warp(entry=0, threads=32, first_lane=0, lanes=32, agent=n) for n in (0, 1, 1)),
    agents=(AgentNote(words="thread 0 (producer)", entry=0, records=1), AgentNote(words="threads 32-63 (consumers)", entry=1, records=2)),
    shared_bytes=2088,
    counted=False,
    maps=(),
    arrays={},
    scalars=(),
    sites=SITES,
    barriers={**{2048 + 8 * n: f"full[{n}]" for n in range(4)}, 2080: "done"},
    loops=(),
    shares={},
    template=b"",
    args_at=0,
)
FACTS = Facts(image=IMAGE, grid=(4, 2, 1), limit_us=4_000_000, sm=90, site=Site("user.py", 1))
FULL_2 = FULL + 16


def word(*, parity: int = 0, pending: int = 0, expected: int = 1, landed: int = 0) -> int:
    """A barrier's bits as measured on compute capability 9.0."""
    return parity << 63 | (-pending % (1 << 20)) << 43 | (landed % (1 << 21)) << 21 | (-expected % (1 << 20)) << 1


def entry(kind: int = ReportKind.TIMEOUT, **fields: int) -> bytes:
    state, value = fields.pop("state", 0), fields.pop("value", 0)
    low = {"state_low": state & 0xFFFFFFFF, "state_high": state >> 32, "value_low": value & 0xFFFFFFFF, "value_high": value >> 32}
    given = {"kind": int(kind), **low, **fields}
    return struct.pack("<12I", *(given.get(name, 0) for name, _, _ in abi.REPORT_ENTRY))


def report(*entries: bytes, count: int | None = None, skip: int = 1) -> bytes:
    head = struct.pack("<4I", skip, len(entries) if count is None else count, 0, 0)
    return (head + b"".join(entries)).ljust(abi.REPORT_BYTES, b"\0")


def test_the_first_barrier_measured() -> None:
    assert word(pending=1, expected=1) == 0x7FFFF800001FFFFE  # after init(1), tma.md section D.1


def test_silence() -> None:
    raw = report(skip=0)
    assert is_silent(raw)
    assert failure(raw, FACTS) is None
    assert not is_silent(report(skip=0, count=1))
    assert not is_silent(report())


def test_layout_is_the_declared_one() -> None:
    assert 16 + abi.REPORT_ENTRIES * struct.calcsize("<12I") == abi.REPORT_BYTES
    assert [offset for _, _, offset in abi.REPORT_ENTRY] == [4 * i for i in range(abi.REPORT_ENTRY_WORDS)]
    assert [(name, offset) for name, _, offset in abi.REPORT_HEADER][:2] == [("skip", 0), ("count", 4)]


def test_a_wait_names_threads_barrier_line_and_what_is_missing() -> None:
    state = word(pending=1, expected=2, landed=-4096, parity=1)
    raw = report(entry(cta=5, warp=1, pc=2, barrier=FULL_2, parity=1, state=state, iteration=7))
    error = failure(raw, FACTS)
    assert type(error) is DeadlockError
    (found,) = error.diagnostics
    assert found.rule == "OX5331"
    assert found.site == SITES[2].site
    assert "threads 32-63 (consumers) of CTA (1, 1, 0) wait for" in found.what
    assert "`full[2]`" in found.what
    for words in ("1 of 2 arrivals missing", "4096 announced bytes not landed", "parity 1", "iteration 7", "4 s"):
        assert words in found.got


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (word(pending=0, landed=64), "64 bytes landed that were never announced"),
        (word(pending=3, expected=3), "3 of 3 arrivals missing"),
        (0x7FFFFBFE00000000, "1 arrival missing, up to 4096 announced bytes not landed"),  # as a device reported it
        (word(landed=-(1 << 20) + 1), f"{(1 << 20) - 1} announced bytes not landed"),
    ],
)
def test_states(state: int, words: str) -> None:
    error = failure(report(entry(pc=1, barrier=FULL_2, state=state)), FACTS)
    assert error is not None
    assert words in error.diagnostics[0].got
    elsewhere = failure(report(entry(pc=1, barrier=FULL_2, state=state)), replace(FACTS, sm=100))
    assert elsewhere is not None
    assert words not in elsewhere.diagnostics[0].got  # measured for 9.0 only


@pytest.mark.parametrize("state", [0, 1, 1 << 42 | word(pending=1)])
def test_words_that_are_no_barrier_say_nothing(state: int) -> None:
    error = failure(report(entry(pc=1, barrier=FULL_2, state=state)), FACTS)
    assert error is not None
    assert "arrivals" not in error.diagnostics[0].got
    assert "bytes" not in error.diagnostics[0].got


def test_a_token_that_nobody_has_made_is_said_to_be_missing() -> None:
    """What families wide and many report for it; the barrier's state may look well."""
    error = failure(report(entry(pc=1, barrier=DONE, parity=abi.NO_TOKEN, state=word(expected=2))), FACTS)
    assert error is not None
    (found,) = error.diagnostics
    assert "`done`" in found.what
    assert "nobody has made the token that it waits for" in found.got
    assert "parity" not in found.got


def test_warps_that_wait_alike_are_one_and_those_that_gave_up_first_come_first() -> None:
    told = [entry(ReportKind.TOLD, cta=n, warp=w, pc=2, barrier=FULL_2) for n in range(6) for w in (1, 2)]
    error = failure(report(*told, entry(cta=1, pc=1, barrier=DONE)), FACTS)
    assert error is not None
    first, second = error.diagnostics
    assert "thread 0 (producer) of CTA (1, 0, 0) waits " in first.what
    assert "`done`" in first.what
    assert "CTAs (0, 0, 0), (1, 0, 0), (2, 0, 0) and 3 more" in second.what
    assert "was waiting when" in second.got
    assert "mbarrier.wait" in first.got
    assert "mbarrier.wait" not in second.got


def test_a_full_report_says_how_many_are_left_out() -> None:
    error = failure(report(*[entry(pc=1, barrier=FULL_2)] * abi.REPORT_ENTRIES, count=1000), FACTS)
    assert error is not None
    assert f"{1000 - abi.REPORT_ENTRIES} more warps" in error.diagnostics[-1].what
    assert len(read_entries(report(count=1000))[0]) == abi.REPORT_ENTRIES


def test_an_index_is_to_blame_for_the_waits_behind_it() -> None:
    index = entry(ReportKind.INDEX, warp=1, pc=2, value=(1 << 64) - 3, bound=8)
    error = failure(report(entry(ReportKind.TOLD, pc=1, barrier=FULL_2), index, index), FACTS)
    assert type(error) is ExecutionError
    (found,) = error.diagnostics
    assert (found.rule, found.got, found.required, found.site) == ("OX5332", "-3", "0 to 7", SITES[2].site)


def test_an_index_names_its_array_and_all_that_read_it() -> None:
    """Two agents of one line read the same: one diagnostic."""
    read = ops.LoadIndex(name="t0", array=ops.ArrayRef("rows"), index=Const(0), below=Const(8))
    facts = replace(FACTS, image=replace(IMAGE, sites={**SITES, 3: SITES[2]._replace(op=read), 4: SITES[2]._replace(op=read)}))
    entries = [entry(ReportKind.INDEX, warp=warp, pc=3 + warp, value=9, bound=8, parity=parity) for parity in (0, 1) for warp in (0, 1)]
    error = failure(report(*entries), facts)
    assert error is not None
    found, looked = error.diagnostics
    assert found.what == "thread 0 (producer) and threads 32-63 (consumers) of CTA (0, 0, 0) read an index from 'rows' that is out of range"
    assert "look for an index outside 'rows'" in looked.what
    assert found.site == SITES[2].site


def test_a_position_outside_the_array_is_told_from_what_the_array_holds() -> None:
    error = failure(report(entry(ReportKind.INDEX, pc=1, value=9, bound=8, parity=1)), FACTS)
    assert error is not None
    assert "outside its array" in error.diagnostics[0].what


def test_a_window_without_elements_is_told_from_an_index() -> None:
    error = failure(report(entry(ReportKind.EMPTY, pc=1, value=(1 << 64) - 2, bound=1)), FACTS)
    assert type(error) is ExecutionError
    (found,) = error.diagnostics
    assert (found.rule, found.got.split()[0]) == ("OX5332", "-2")
    assert "without elements" in found.what


@pytest.mark.parametrize("kind", [ReportKind.OPCODE, ReportKind.PLACE, 99])
def test_mistakes_of_the_interpreter_are_said_to_be_ours(kind: int) -> None:
    error = failure(report(entry(pc=1, barrier=FULL_2), entry(kind, pc=70, warp=9)), FACTS)
    assert type(error) is ExecutionError
    (found,) = error.diagnostics
    assert found.rule == "OX5333"
    assert "oxidecopy" in found.fix
    assert found.site is None  # record 70 is not in the table


def test_a_launch_that_was_given_up_without_a_word_is_not_taken_for_a_good_one() -> None:
    error = failure(report(), FACTS)
    assert error is not None
    assert error.rules == ("OX5333",)
    assert error.diagnostics[0].site == FACTS.site


def test_a_cut_report_is_refused() -> None:
    with pytest.raises(ValueError, match="12304"):
        failure(report()[:100], FACTS)


def test_barriers_have_the_users_names_in_every_window() -> None:
    names: list[Any] = [barrier_name(IMAGE, address) for address in (FULL_2, CTA_WINDOW_BYTES * 3 + FULL_2, DONE)]
    assert names == ["full[2]", "full[2]", "done"]
    assert "0x999" in barrier_name(IMAGE, 0x999)
