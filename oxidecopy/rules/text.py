"""Rules of program texts, and of the op table's generic check that every text goes through."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_HEADER: Final = "program p threads=64 cluster=(1, 1, 1) shared=4104:"
_TEXT: Final = "the text form of programs, oxidecopy.program.text"
_TABLE: Final = "the op table, oxidecopy.isa.ops"


def _script(*lines: str, header: str = _HEADER) -> str:
    """A script that parses a program with these lines below its header."""
    body = "\n".join(f"  {line}" for line in lines)
    return f'{_IMPORT}from_text("""\\\n{header}\n{body}\n""")\n'


def _rule(rule: str, title: str, why: str, wrong: str, right: str, source: str = _TABLE) -> Rule:
    return Rule(id=rule, title=title, error="ProgramTextError", why=why, source=source, wrong=wrong, right=right)


_IMPORT: Final = "from oxidecopy.program.text import from_text\n\n"
_LONG: Final = f'{_IMPORT}from_text("{_HEADER}\\n" + "  # a remark\\n" * {{count}})\n'
_NEST: Final = 'blocks = "".join("  " * n + "when true:\\n" for n in range(1, {count}))\n'
_DEEP: Final = f'{_IMPORT}{_NEST}from_text("{_HEADER}\\n" + blocks)\n'
_MAP: Final = "map src: f32 box=(32, 32)"
_TILE: Final = "tile t: f32 (32, 32) align=1024 at=0 step=4096"
_BARRIER: Final = "barrier full: TmaBarrier at=4096"

RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1900",
        "a program text has at most 8,388,608 characters",
        "Parsing would take minutes; a recorded program is a few thousand characters long.",
        _LONG.format(count=1_000_000),
        _LONG.format(count=3),
        _TEXT,
    ),
    _rule(
        "OX1901",
        "every line follows the grammar of the text form",
        "A line that is guessed at could run as another program than the one that was printed.",
        _script(_BARRIER, "mbarrier.init full 1"),
        _script(_BARRIER, "mbarrier.init full, count=1"),
        _TEXT,
    ),
    _rule(
        "OX1902",
        "lines are indented by two spaces per block, and only the program and blocks have a body",
        "Indentation says which threads run a line and how often.",
        _script("bar.sync number=0, threads=64", "  fence.proxy.async.shared::cta"),
        _script("bar.sync number=0, threads=64", "fence.proxy.async.shared::cta"),
        _TEXT,
    ),
    _rule(
        "OX1903",
        "blocks and expressions nest at most 64 levels deep, and an expression has at most 4,096 parts",
        "The verifier and the engines walk these trees; an expression doubled 40 times has more parts than memory.",
        _DEEP.format(count=80),
        _DEEP.format(count=3),
        _TEXT,
    ),
    _rule(
        "OX1904",
        "every line names an op of the table",
        "An op that is not in the table has no meaning, neither for the verifier nor for an engine.",
        _script(_BARRIER, "mbarrier.inti full, count=1"),
        _script(_BARRIER, "mbarrier.init full, count=1"),
    ),
    _rule(
        "OX1910",
        "numbers are within the bounds of their operand",
        "The bounds are those of the instruction: an mbarrier that is told more arrivals or bytes than it can count breaks.",
        _script(_BARRIER, "mbarrier.init full, count=0"),
        _script(_BARRIER, "mbarrier.init full, count=1"),
        f"{_TABLE}; PTX 9.7.13.15 for mbarriers",
    ),
    _rule(
        "OX1911",
        "a word operand is one of its list",
        "There is no such form of the op.",
        _script(_MAP, _TILE, "cp.reduce.async.bulk.tensor.s2g mul src, t, [0, 0]"),
        _script(_MAP, _TILE, "cp.reduce.async.bulk.tensor.s2g add src, t, [0, 0]"),
    ),
    _rule(
        "OX1912",
        "tiles, barriers, their stages and parts, and parameters are there when an op names them",
        "The op would touch memory that nobody asked for.",
        _script(_BARRIER, "mbarrier.init full[1], count=1"),
        _script(
            _BARRIER.replace("Barrier at", "Barrier stages=2 at"), "mbarrier.init full[1], count=1", header=_HEADER.replace("4104", "4112")
        ),
    ),
    _rule(
        "OX1913",
        "an op has as many coordinates as its map or array has dimensions",
        "The instruction for another number of dimensions faults (715) when it meets this map.",
        _script(_MAP, _TILE, "cp.async.bulk.tensor.s2g src, t, [0]"),
        _script(_MAP, _TILE, "cp.async.bulk.tensor.s2g src, t, [0, 0]"),
        f"{_TABLE}; measured on an H200",
    ),
    _rule(
        "OX1914",
        "the threads of a block are sorted, disjoint, there, and among those of the block around it",
        "A block narrows who executes; threads from outside never reach it, and whoever waits for them waits for ever.",
        _script("scope thread {64}:"),
        _script("scope thread {63}:"),
    ),
    _rule(
        "OX1915",
        "a loop's step is not zero",
        "The loop would never end.",
        _script("loop i, start=0, stop=4, step=0:"),
        _script("loop i, start=0, stop=4, step=1:"),
    ),
    _rule(
        "OX1916",
        "parameters and loop counters have names of their own",
        "Integers are looked up by name: two of one name would have one value.",
        _script("idx n", "loop n, start=0, stop=4, step=1:"),
        _script("idx n", "loop i, start=0, stop=4, step=1:"),
    ),
    _rule(
        "OX1917",
        "an expression only uses integers that are known where it stands",
        "A loop's counter has no value outside its loop, other names none anywhere.",
        _script("loop i, start=0, stop=4, step=1:", "when i < 2:"),
        _script("loop i, start=0, stop=4, step=1:", "  when i < 2:"),
    ),
    _rule(
        "OX1918",
        "every token and every answer is made by one op",
        "A token names the phase in which its arrival counts; without an arrival there is no phase to wait for.",
        _script(_BARRIER, "mbarrier.wait full, %0"),
        _script(_BARRIER, "mbarrier.arrive full -> %0", "mbarrier.wait full, %0"),
    ),
    _rule(
        "OX1919",
        "the header and the declarations are within their bounds",
        "The bounds are those of the hardware and the driver, so that no program is larger than a launch can be.",
        _script("map src: f32 box=(512, 32)"),
        _script("map src: f32 box=(256, 32)"),
        "oxidecopy.isa.limits, with a source for each",
    ),
    _rule(
        "OX1920",
        "the tiles of a map have one shape, and its function their element types",
        "Elements that are not there would be read, or bits of one type taken for another's.",
        _script(_TILE, "map.tiles (t), t, fn=x0:f16"),
        _script(_TILE, "map.tiles (t), t, fn=x0:f32"),
    ),
)
