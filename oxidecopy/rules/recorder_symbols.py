"""Pages of the recorder's rules about loops, conditions and symbolic integers."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import Twins, scripts, twins

_RECORDER: Final = "the recorder: the function runs once, before any thread does"
_ONCE: Final = "the recorder: a loop's body is recorded once"
_AFFINE: Final = "the recorder: integers are affine, so that the verifier can decide about them"


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins) -> Rule:
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=shown.wrong, right=shown.right)


_STORE: Final = """
    tile = cta.shared(src)
    cta.fill(tile, 1)
    cta.sync()
    cta.store(out, tile, (cta.block_idx.y * 64, <gap>))
"""
_OPEN: Final = """
    i = cta.block_idx.x
    <gap>
        cta.sync()
"""

SYMBOL_RULES: Final[tuple[Rule, ...]] = (
    # ---- loops and conditions
    _rule(
        "OX1025",
        "RecordError",
        "A recorded loop or condition is not left early",
        "Its body is recorded once, for all iterations and threads. `break`, `continue` and `return` would end the recording, not the loop "
        "or the thread on the device: what follows them would be left out. Of conditions this is seen where the source can be read.",
        _ONCE,
        twins(
            """
            for i in cta.range(n):
                cta.sync()
                <gap>
            cta.sync()
            """,
            "break",
            "",
        ),
    ),
    _rule(
        "OX1027",
        "SymbolicError",
        "Conditions are comparisons, combined by &, | and ~",
        "Only those are recorded. Where `==` stands between two conditions, parentheses are missing: Python binds & and | tighter than ==.",
        _RECORDER,
        twins(_OPEN, "with cta.when(3):", "with cta.when(i == 3):"),
    ),
    _rule(
        "OX1063",
        "RecordError",
        "A loop's step is a constant other than 0",
        "With a step of 0 it would never end, and the sign says where it ends.",
        _ONCE,
        twins(_OPEN, "for i in cta.range(0, n, 0):", "for i in cta.range(0, n, 1):"),
    ),
    _rule(
        "OX1068",
        "ScopeError",
        "A loop's counter is used inside its loop",
        "Outside the loop it has no value on the device.",
        _ONCE,
        twins(
            """
            for i in cta.range(n):
                cta.sync()
            <gap>
                cta.sync()
            """,
            "with cta.when(i == 3):",
            "with cta.when(n == 4):",
        ),
    ),
    _rule(
        "OX1069",
        "ScopeError",
        "Shared memory is not asked for in a recorded loop",
        "The body is recorded once, so it would be the same memory in every iteration, while the one before may still use it.",
        _ONCE,
        twins(
            """
            <gap>
                cta.sync()
            """,
            "for i in cta.range(n):\n    tile = cta.shared(src)",
            "tile = cta.shared(src)\nfor i in cta.range(n):",
        ),
    ),
    # ---- symbolic integers and values
    _rule(
        "OX1020",
        "SymbolicError",
        "Python does not branch on recorded values",
        "`if`, `while`, `and`, `or` and `not` ask for a truth value now, while the block index is known only on the device.",
        _RECORDER,
        twins(_OPEN, "if i == 0:", "with cta.when(i == 0):"),
    ),
    _rule(
        "OX1021",
        "SymbolicError",
        "Recorded values do not index, count or become Python numbers",
        "They have no value while recording: Python's range, lists and int() cannot use them.",
        _RECORDER,
        twins(_OPEN, "for k in range(n):", "for k in cta.range(n):"),
    ),
    _rule(
        "OX1022",
        "SymbolicError",
        "Arithmetic on recorded integers is affine",
        "One factor of a product, and every divisor, has one value for the whole launch: an int, an `Idx` parameter, an extent or a grid "
        "dimension. `+`, `-`, `ox.minimum` and `ox.maximum` take anything; there are no powers, shifts or bit operations.",
        _AFFINE,
        twins(_STORE, "cta.block_idx.x * (cta.block_idx.y + 64)", "cta.block_idx.x * (n + 60)"),
    ),
    _rule(
        "OX1023",
        "SymbolicError",
        "Recorded integers are divided by //",
        "`/` would give a fraction. `//` rounds down, as in Python.",
        _AFFINE,
        twins(_STORE, "cta.block_idx.x * 128 / 2", "cta.block_idx.x * 128 // 2"),
    ),
    _rule(
        "OX1024",
        "SymbolicError",
        "A Scalar is no index",
        "Scalars are values for tiles and may change from launch to launch; coordinates and trip counts are part of what is verified.",
        "the recorder: `Scalar` and `Idx`",
        scripts(
            """
            @ox.pipeline(threads=128)
            def pipe(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2], n: <gap>) -> None:
                for i in cta.range(n):
                    cta.sync()

            pipe[2](dev.empty((64, 64), ox.f32), 4)
            """,
            "ox.Scalar[ox.i32]",
            "ox.Idx",
        ),
    ),
    _rule(
        "OX1029",
        "SymbolicError",
        "Coordinates, indices and trip counts are integers",
        "There is no half element. An integer has at most 64 bits.",
        "PTX ISA, tensor copies: coordinates are s32",
        twins(_STORE, "0.5", "cta.block_idx.x * 64"),
    ),
    _rule(
        "OX1058",
        "RecordError",
        "A recording has bounds: 64 levels of blocks, 4,096 parts of an expression, 65,536 tokens",
        "The verifier and the engines walk all of it. An expression doubled forty times has more parts than memory.",
        "the op table and the program's limits",
        twins(
            """
            i = cta.block_idx.x
            <gap>
            with cta.when(i > 3):
                cta.sync()
            """,
            "for _ in range(40):\n    i = i + i",
            "i = i * (1 << 40)",
        ),
    ),
    _rule(
        "OX1062",
        "SymbolicError",
        "No divisor is 0",
        "Division by zero has no result.",
        _AFFINE,
        twins(_STORE, "cta.block_idx.x * 128 // 0", "cta.block_idx.x * 128 // 2"),
    ),
)
