"""`from_bytes(to_bytes(p)) == p` for every program, one form for each, and all other bytes are refused by the byte and nothing else."""

from __future__ import annotations

import time
import tracemalloc
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oxidecopy.errors import ProgramBinaryError, Site
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Add, Const, Expr, Sym, SymKind
from oxidecopy.isa.ops import Instr, Kind
from oxidecopy.program.binary import SIZE_MAX, from_bytes, is_binary, to_bytes
from oxidecopy.program.binary.encoder import HEADER, MAGIC
from oxidecopy.program.binary.operands import FORMS
from oxidecopy.program.binary.stream import Writer
from oxidecopy.program.check import check_operands
from oxidecopy.program.nesting import NESTING_MAX
from oxidecopy.program.program import Program, Step
from oxidecopy.program.text import from_text, to_text
from tests.helpers.program_strategy import programs

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

slow = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

SMALL = from_text("""\
program p threads=64 cluster=(1, 1, 1) shared=4104:             # a.py:1 p
  idx n
  tile t: f32 (32, 32) align=1024 at=0 step=4096                # :2
  barrier full: TmaBarrier at=4096                              # :3

  scope elect {0}:                                              # :4
    mbarrier.init full, count=1                                 # :4
    loop i, start=0, stop=n, step=1:                            # :5
      st.shared.fill t, 1.5
      map.tiles (t), t, fn=cast(x0:f32, f32)
""")


# ---- what comes back
@slow
@given(programs())
def test_every_program_comes_back(program: Program) -> None:
    data = to_bytes(program)
    assert is_binary(data)
    again = from_bytes(data)
    assert again == program
    assert to_bytes(again) == data


@slow
@given(programs())
def test_binary_and_text_tell_the_same(program: Program) -> None:
    assert to_bytes(from_text(to_text(program))) == to_bytes(program)
    assert to_text(from_bytes(to_bytes(program))) == to_text(program)


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.__name__)
def test_every_op_comes_back(op: type[Instr]) -> None:
    @settings(slow, max_examples=5)
    @given(programs(max_steps=0, holding=op))
    def comes_back(program: Program) -> None:
        assert from_bytes(to_bytes(program)) == program

    comes_back()


def test_every_kind_has_a_form() -> None:
    assert {kind for op in ops.OPS for _, kind in ops.operands(op) if isinstance(kind, Kind)} == FORMS.keys()


@slow
@given(programs(max_steps=3), programs(max_steps=3))
def test_equal_programs_and_no_others_have_equal_bytes(a: Program, b: Program) -> None:
    assert (to_bytes(a) == to_bytes(b)) == (to_text(a) == to_text(b))
    assert to_bytes(a) != to_bytes(b) or a == b


def test_shared_parts_change_nothing() -> None:
    n = Sym("n", SymKind.PARAM)
    shared, apart = Add(n, n), Add(Sym("n", SymKind.PARAM), Sym("n", SymKind.PARAM))
    assert to_bytes(with_phase(Add(shared, shared))) == to_bytes(with_phase(Add(apart, Add(n, n))))


@pytest.mark.parametrize("value", ["-0.0", "0.0", "0", "nan", "-inf", "5e-324", str((1 << 64) - 1), str(-(1 << 63))])
def test_numbers_keep_their_class_and_bits(value: str) -> None:
    text = to_text(SMALL).replace("1.5", value)
    assert to_text(from_bytes(to_bytes(from_text(text)))) == text


@pytest.mark.parametrize("file", ["\ud800.py", "é\U0001f600", "", "\x00\x1b[31m"])
def test_names_of_files_survive(file: str) -> None:
    program = replace(SMALL, site=Site(file, -1, file))
    assert from_bytes(to_bytes(program)) == program


def test_strings_and_sites_are_written_once() -> None:
    long = "x" * 500
    steps = tuple(Step(ops.CommitGroup(), Site(long, 7, long)) for _ in range(100))
    assert len(to_bytes(replace(SMALL, steps=steps))) < 900


def test_a_broken_program_is_not_written() -> None:
    with pytest.raises(ProgramBinaryError) as caught:
        to_bytes(replace(SMALL, threads=0))
    assert caught.value.rule == "OX1919"


@pytest.mark.parametrize("line", [1 << 64, -(1 << 63) - 1])
def test_a_line_of_more_than_64_bits_is_not_written(line: int) -> None:
    with pytest.raises(ProgramBinaryError, match="OX1965"):
        to_bytes(replace(SMALL, site=Site("a.py", line)))


def test_a_program_that_is_too_large_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxidecopy.program.binary.encoder.SIZE_MAX", len(DATA))
    assert to_bytes(SMALL) == DATA
    with pytest.raises(ProgramBinaryError, match="OX1960"):
        to_bytes(replace(SMALL, name="pp"))


# ---- damaged files: the header
def refused(data: bytes, *rules: str) -> ProgramBinaryError:
    with pytest.raises(ProgramBinaryError) as caught:
        from_bytes(data, "a.oxp")
    assert not rules or caught.value.rules == rules, str(caught.value)
    assert all(d.what.startswith("a.oxp") for d in caught.value.diagnostics)
    return caught.value


DATA = to_bytes(SMALL)


@pytest.mark.parametrize("size", range(len(DATA)))
def test_every_cut_is_refused(size: int) -> None:
    refused(DATA[:size], "OX1961" if size < len(MAGIC) else "OX1964")


def test_every_flipped_bit_is_refused() -> None:
    found = {refused(bytes(b ^ (1 << bit) * (i == at) for i, b in enumerate(DATA))).rule for at in range(len(DATA)) for bit in range(8)}
    assert found == {"OX1961", "OX1962", "OX1963", "OX1964"}


def test_what_is_left_over_is_refused() -> None:
    refused(DATA + b"\0", "OX1964")
    refused(framed(DATA[HEADER.size :] + b"\0"), "OX1964")
    refused(DATA + bytes(SIZE_MAX), "OX1960")
    refused(b"", "OX1961")
    refused(to_text(SMALL).encode(), "OX1961")


# ---- damaged bodies behind a header that is true of them
def framed(body: bytes) -> bytes:
    return DATA[:25] + len(body).to_bytes(4, "little") + zlib.crc32(body).to_bytes(4, "little") + body


@st.composite
def mutated(draw: DrawFn) -> bytes:
    """The body of a valid program with a few edits: bits, cut, inserted, repeated and swapped pieces."""
    body = bytearray(to_bytes(draw(programs(max_steps=4)))[HEADER.size :])
    for _ in range(draw(st.integers(1, 4))):
        start, stop = sorted((draw(st.integers(0, len(body))), draw(st.integers(0, len(body)))))
        match draw(st.integers(0, 4)):
            case 0:
                del body[start : min(stop, start + 8)]
            case 1:
                body[start:start] = draw(st.binary(max_size=4) | st.sampled_from([b"\xff" * 12, b"\x80\x00", b"\xff" * 9 + b"\x01"]))
            case 2 if start < len(body):
                body[start] ^= 1 << draw(st.integers(0, 7))
            case 3:
                body[start : start + 1] = draw(st.binary(min_size=1, max_size=1))
            case _:
                body[stop:stop] = body[start : min(stop, start + 20)]
    return bytes(body)


def reads_or_is_refused(body: bytes) -> None:
    data = framed(body)
    found = outcome(data)
    if isinstance(found, Program):
        assert check_operands(found) == []
        assert to_bytes(found) == data, "a second form of one program"
        return
    assert 1 <= len(found.diagnostics) <= 20
    for d in found.diagnostics:
        place = d.what.removeprefix("a.oxp, byte ").partition(":")[0]
        assert HEADER.size <= int(place) <= len(data), d.what
        assert d.rule.startswith("OX19")
        assert d.site is None


def outcome(data: bytes) -> Program | ProgramBinaryError:
    try:
        return from_bytes(data, "a.oxp")
    except ProgramBinaryError as error:
        return error


@settings(slow, max_examples=150)
@given(mutated())
def test_a_damaged_body_is_refused_by_byte(body: bytes) -> None:
    reads_or_is_refused(body)


@settings(slow, max_examples=150)
@given(st.binary())
def test_any_body_is_refused_by_byte(body: bytes) -> None:
    reads_or_is_refused(body)
    reads_or_is_refused(DATA[HEADER.size : -40] + body)


def test_every_byte_of_a_body_changed() -> None:
    body = DATA[HEADER.size :]
    for at, byte in enumerate(body):
        for value in {0, 1, 2, 3, 0x10, 0x7F, 0x80, 0xFF, byte ^ 1, (byte + 1) % 256, (byte - 1) % 256}:
            reads_or_is_refused(body[:at] + bytes([value]) + body[at + 1 :])


# ---- one malformed value each. `before` is a body up to the steps.
def before() -> bytes:
    return to_bytes(replace(SMALL, steps=()))[HEADER.size : -1]


def with_phase(phase: Expr) -> Program:
    wait = ops.MbarrierWaitPhase(bar=ops.BarrierRef(0, Const(0)), phase=phase)
    return replace(SMALL, steps=(Step(wait),))


WAIT = bytes([1, 0x1A, 0, 0, 1, 0, 0])  # one step, its opcode, no site, barrier 0, stage: one node, Const, 0. The phase comes next.


def test_the_pieces_below_are_what_they_say() -> None:
    assert framed(before() + WAIT + b"\1\0\0") == to_bytes(with_phase(Const(0)))


@pytest.mark.parametrize(
    ("tail", "rule"),
    [
        (b"\1\xee", "OX1965"),  # an opcode
        (b"\1\0", "OX1965"),  # the opcode that is none
        (b"\1\x1a\x7f", "OX1965"),  # a call site
        (b"\xff\xff\xff\xff\x0f", "OX1964"),  # four billion steps
        (WAIT + b"\1\0" + b"\x80" * 11, "OX1965"),  # a number without an end
        (WAIT + b"\1\0" + b"\xff" * 9 + b"\x7f", "OX1965"),  # of 70 bits
        (WAIT + b"\1\0\x80\0", "OX1965"),  # longer than it need be
        (WAIT + b"\1\0\x80", "OX1964"),  # cut off
        (WAIT + b"\0", "OX1966"),  # an expression of no nodes
        (WAIT + b"\x81\x20" + b"\0\0" * 4097, "OX1966"),  # of too many
        (WAIT + b"\xff\x7f", "OX1964"),  # of more than there are bytes
        (WAIT + b"\1\x63\0", "OX1965"),  # no such node
        (WAIT + b"\1\2", "OX1966"),  # an addition of nothing
        (WAIT + b"\2\0\0\2", "OX1966"),  # of one number
        (WAIT + b"\2\0\0\0\0", "OX1966"),  # two trees
        (WAIT + b"\1\x08\1", "OX1966"),  # a condition where an integer is needed
        (WAIT + b"\3\x08\1\0\0\2", "OX1966"),  # an addition of a condition
        (WAIT + b"\1\1\x7f", "OX1965"),  # a string
        (WAIT + b"\1\1\x08\x7f", "OX1964"),  # a string longer than what is left
        (WAIT + b"\1\1\x08\1\xff", "OX1965"),  # a string that is no UTF-8
        (WAIT + b"\1\1\x08\1n", "OX1965"),  # a string that was there before
        (WAIT + b"\1\1\1\x63", "OX1965"),  # a sort of integers
    ],
)
def test_one_malformed_value(tail: bytes, rule: str) -> None:
    refused(framed(before() + tail), rule)
    reads_or_is_refused(before() + tail)


def test_a_string_and_a_site_have_one_place() -> None:
    site = b"\4\x08\1q\0\x08"  # the fourth site: a new file `q`, line 0, in the function of that name
    commit = bytes([2, 0x28])
    assert refused(framed(before() + commit + site + bytes([0x28]) + b"\5\x08\0\x08")).rule == "OX1965"
    program = from_bytes(framed(before() + commit + site + bytes([0x28]) + b"\4"))
    assert program.steps[0] == program.steps[1]


def test_what_breaks_the_op_table_is_named_by_its_byte() -> None:
    (broken,) = refused(framed(before() + bytes([1, 0x10, 0, 0, 1, 0, 0, 0])), "OX1910").diagnostics
    assert f"byte {HEADER.size + len(before()) + 1}: mbarrier.init: count" in broken.what


def test_few_of_many_broken_operands_are_reported() -> None:
    inits = bytes([0x10, 0, 0, 1, 0, 0, 0]) * 100
    refused(framed(before() + bytes([100]) + inits), *["OX1910"] * 20)


# ---- bounds of time and memory
def counted(value: int) -> bytes:
    writer = Writer()
    writer.unsigned(value)
    return bytes(writer.out)


def blocks(depth: int) -> bytes:
    when = bytes([2, 0, 1, 8, 1])  # opcode, no site, one node, Bool, true
    return before() + (b"\1" + when) * depth + b"\0"


def chain(levels: int) -> bytes:
    return before() + WAIT + counted(2 * levels - 1) + b"\0\0" * levels + b"\2" * (levels - 1)


def reads(body: bytes) -> None:
    assert to_bytes(from_bytes(framed(body))) == framed(body)


def test_64_levels_are_read_and_65_are_not() -> None:
    reads(blocks(NESTING_MAX))
    refused(framed(blocks(NESTING_MAX + 1)), "OX1966")
    reads(chain(NESTING_MAX))
    refused(framed(chain(NESTING_MAX + 1)), "OX1966")


LARGE = SIZE_MAX - 300


@pytest.mark.unmeasured  # a bound of time
@pytest.mark.parametrize(
    "body",
    [
        blocks(LARGE // 6),
        before() + counted(LARGE // 2) + b"\x28\0" * (LARGE // 2),
        before() + counted(LARGE // 2) + b"\x32\0\0\0" * (LARGE // 4),
        before() + counted(LARGE // 8) + bytes([0x10, 0, 0, 1, 0, 0, 0]) * (LARGE // 8),
        before() + counted(1 << 69),
        before() + WAIT[:-2] + counted(LARGE // 2) + b"\0\0" * (LARGE // 2),
        before() + counted(LARGE // 1100) + (bytes([1, 0, 0]) + counted(500) + b"".join(map(bytes, [(0, 2)] * 500))) * (LARGE // 1100),
        before() + bytes([1, 0x28]) + b"\4\x08" + counted(LARGE) + b"q" * LARGE,
        b"\xff" * LARGE,
        b"\x80" * LARGE,
        bytes(LARGE),
    ],
    ids=["blocks", "steps", "cut", "broken", "count", "expression", "threads", "string", "ones", "varint", "zeros"],
)
def test_no_body_takes_long_or_much(body: bytes) -> None:
    start = time.process_time()
    reads_or_is_refused(body[:LARGE])
    assert time.process_time() - start < 20, "seconds, on a slow machine"


def test_memory_is_bounded_by_the_size() -> None:
    body = before() + counted(10_000) + b"\x28\0" * 10_000
    tracemalloc.start()
    reads_or_is_refused(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400 * len(body)


def test_nothing_depends_on_how_deep_the_caller_is() -> None:
    def deep(levels: int, data: Sequence[bytes]) -> None:
        if levels:
            deep(levels - 1, data)
        else:
            for one in data:
                from_bytes(one)

    deep(700, [framed(blocks(NESTING_MAX)), framed(chain(NESTING_MAX))])
