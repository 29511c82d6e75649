"""Texts that are refused, each beside the one edit that makes it right, and all broken lines in one report."""

from __future__ import annotations

import pytest

from oxidecopy.errors import ProgramTextError
from oxidecopy.isa.expr import ZERO
from oxidecopy.isa.ops import BarrierRef, MbarrierInit
from oxidecopy.program.text import from_text, to_text
from oxidecopy.program.text.parser import ERRORS_MAX, TEXT_MAX

GOOD = """\
program tma_load threads=128 cluster=(1, 1, 1) shared=16392:                     # load.py:10 tma_load
  map src: f32 box=(64, 64)
  array out: f32 rank=2
  idx n
  scalar alpha: f32
  tile t0: f32 (64, 64) align=1024 at=0 step=16384                               # :14
  barrier full: TmaBarrier at=16384

  mbarrier.init full, count=1
  scope elect {0}:
    mbarrier.arrive.expect_tx full, nbytes=16384 -> %0                           # :17
    cp.async.bulk.tensor.g2s src, t0, [block_idx.y * 64, block_idx.x * 64], full  # :18
  mbarrier.wait full, %0
  loop i0, start=0, stop=n, step=1:
    when (i0 < n - 1) & ~(i0 == 3):
      st.shared.fill t0, alpha
  st.global.tile out, t0, [block_idx.y * 64, block_idx.x * 64]
"""


def edited(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def refused(text: str) -> tuple[tuple[str, int], ...]:
    with pytest.raises(ProgramTextError) as caught:
        from_text(text)
    return tuple((d.rule, d.site.line if d.site else 0) for d in caught.value.diagnostics)


def test_the_text_is_printed_as_it_was_read() -> None:
    assert to_text(from_text(GOOD)).split() == GOOD.split()


def test_call_sites_line_up() -> None:
    columns = {line.index("#") for line in to_text(from_text(GOOD)).splitlines() if "#" in line}
    assert len(columns) == 1


def test_comments_blank_lines_and_carriage_returns_mean_nothing() -> None:
    noisy = "# a remark\n\n" + GOOD.replace("\n", "\r\n").replace("  idx n", "        # deep remark\n\n  idx n   # see load.py line 3")
    assert from_text(noisy) == from_text(GOOD)


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ("program tma_load", "programme tma_load", "OX1901", 1),
        ("threads=128", "threads=0", "OX1919", 1),
        ("threads=128", "threads=1025", "OX1919", 1),
        ("cluster=(1, 1, 1)", "cluster=(1, 1)", "OX1919", 1),
        ("cluster=(1, 1, 1)", "cluster=(4, 4, 2)", "OX1919", 1),
        ("16392:", "16392", "OX1901", 1),
        ("map src: f32", "map src: f33", "OX1919", 2),
        ("box=(64, 64)", "box=(64, 257)", "OX1919", 2),
        ("box=(64, 64)", "box=(64, 64) box=(64, 64)", "OX1901", 2),
        ("rank=2", "rank=6", "OX1919", 3),
        ("  idx n\n", "  idx src\n", "OX1917", 14),
        ("  idx n\n", "  idx n\n  idx alpha\n", "OX1916", 5),
        ("  idx n\n", "    idx n\n", "OX1902", 4),
        ("  idx n\n", "   idx n\n", "OX1902", 4),
        ("  idx n\n", "\tidx n\n", "OX1901", 4),
        ("(64, 64) align", "() align", "OX1919", 6),
        ("box=(64, 64)\n", "box=(64, 64) swizzle=256B\n", "OX1919", 2),
        ("box=(64, 64)\n", "box=(64, 64) swizzle=128B\n", "", 0),
        ("barrier full: TmaBarrier", "barrier full: Barrier", "OX1919", 7),
        ("mbarrier.init full, count=1", "mbarrier.init full, count=1048576", "OX1910", 9),
        ("mbarrier.init full, count=1", "mbarrier.init empty, count=1", "OX1912", 9),
        ("mbarrier.init full, count=1", "mbarrier.init full[1], count=1", "OX1912", 9),
        ("mbarrier.init full, count=1", "mbarrier.init full, 1", "OX1901", 9),
        ("mbarrier.init full, count=1", "mbarrier.init full, count=1, 2", "OX1901", 9),
        ("mbarrier.init full, count=1", "mbarrier.init full, count=1 -> %1", "OX1901", 9),
        ("mbarrier.init full", "mbarrier.start full", "OX1904", 9),
        ("mbarrier.init full", "idx k\n  mbarrier.init full", "", 0),
        ("  mbarrier.wait", "  idx k\n  mbarrier.wait", "OX1901", 13),
        ("scope elect {0}:", "scope elect {0}", "OX1901", 10),
        ("scope elect {0}:", "scope elect {128}:", "OX1914", 10),
        ("scope elect {0}:", "scope chosen {0}:", "OX1911", 10),
        ("nbytes=16384 ->", "nbytes=-1 ->", "OX1910", 11),
        ("16384 -> %0", "16384", "OX1901", 11),
        ("16384 -> %0", "16384 -> %65536", "OX1910", 11),
        ("16384 -> %0", "16384 -> ?0", "OX1901", 11),
        ("g2s src,", "g2s out,", "OX1912", 12),
        ("* 64], full", "* 64, 0], full", "OX1913", 12),
        ("full, %0\n", "full, %1\n", "OX1918", 13),
        ("full, %0\n", "full, ()\n", "OX1910", 13),
        ("  idx n\n", "  idx n\n  idx i0\n", "OX1916", 15),
        ("step=1:", "step=0:", "OX1915", 14),
        ("stop=n", "stop=i0", "OX1917", 14),
        ("~(i0 == 3)", "~(k == 3)", "OX1917", 15),
        ("~(i0 == 3)", "i0", "OX1901", 15),
        ("fill t0, alpha", "fill t0, beta", "OX1912", 16),
        ("fill t0, alpha", "fill t0, 18446744073709551616", "OX1910", 16),
        ("fill t0, alpha", "fill t0, -1.5e3", "", 0),
        ("fill t0, alpha", "fill t0.part(1, of=3), 0", "OX1912", 16),
        ("fill t0, alpha", "fill t0.part(4, of=4), 0", "OX1912", 16),
        ("fill t0, alpha", "fill t0.part(3, of=4), 0", "", 0),
        ("tile out, t0", "tile src, t0", "OX1912", 17),
    ],
)
def test_one_edit(old: str, new: str, rule: str, line: int) -> None:
    if rule:
        assert (rule, line) in refused(edited(old, new))
    else:
        from_text(edited(old, new))


def test_every_broken_line_is_reported() -> None:
    text = edited("count=1", "count").replace("nbytes=16384 ", "").replace("%0\n", "0\n").replace("stop=n,", "")
    assert [line for _, line in refused(text)] == [9, 11, 13, 14, 15]


def test_a_broken_block_line_still_has_its_body() -> None:
    assert refused(edited("scope elect {0}:", "scope elect 0:")) == (("OX1901", 10),)


def test_reports_end_somewhere() -> None:
    assert len(refused("program p threads=1 cluster=(1, 1, 1) shared=0:\n" + "  what\n" * 1000)) == ERRORS_MAX


def test_ops_are_not_read_without_their_declarations() -> None:
    assert refused(edited("barrier full: TmaBarrier", "barrier full TmaBarrier")) == (("OX1901", 7),)


def test_a_text_holds_one_program() -> None:
    assert refused("") == (("OX1901", 1),)
    assert refused("# nothing\n") == (("OX1901", 1),)
    assert refused(GOOD + GOOD)[0] == ("OX1901", 18)


def test_a_text_has_a_size() -> None:
    assert refused(GOOD + "#" * TEXT_MAX) == (("OX1900", 1),)
    assert from_text(GOOD + "#" * (TEXT_MAX - len(GOOD))) == from_text(GOOD)


def test_errors_name_the_file() -> None:
    with pytest.raises(ProgramTextError) as caught:
        from_text(edited("count=1", "count"), "a.txt")
    assert str(caught.value).startswith("a.txt:9: unexpected text in column 28 [OX1901]")


TWO = """\
program p threads=1 cluster=(1, 1, 1) shared=16:
  barrier full@0: TmaBarrier at=0
  barrier full@1: TmaBarrier at=8

  mbarrier.init full@1, count=1
"""


def test_equal_names_are_told_apart_by_position() -> None:
    program = from_text(TWO)
    assert [b.name for b in program.barriers] == ["full", "full"]
    assert program.steps[0].op == MbarrierInit(bar=BarrierRef(1, ZERO), count=1)
    assert to_text(program) == TWO
    assert refused(TWO.replace("init full@1", "init full")) == (("OX1912", 5),)
    assert refused(TWO.replace("init full@1", "init full@2")) == (("OX1912", 5),)
    assert refused(TWO.replace("full@1: Tma", "full@2: Tma")) == (("OX1912", 3),)
    assert from_text(TWO.replace("init full@1", "init @1")) == program
    assert refused(TWO.replace("init full@1", "init @7")) == (("OX1912", 5),)
