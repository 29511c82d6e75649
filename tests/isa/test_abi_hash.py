"""The fingerprint of the op table follows what both sides of an encoding must agree on, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from oxidecopy.isa import ops
from oxidecopy.isa.abi_hash import describe_table, table_hash


def one(opcode: int = 0x10, word: str = "bar.sync", **kinds: ops.OperandKind) -> str:
    """The description of a table of one op with these operands."""
    fields = {name: ops._op(kind) for name, kind in kinds.items()}

    class Op:
        """An op."""

        __annotations__ = dict.fromkeys(fields, "int")

    for name, field in fields.items():
        setattr(Op, name, field)
    made: Any = dataclass(Op)
    made.mnemonic = word
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops, "BY_OPCODE", {opcode: made})
        return describe_table()


BASE = ops.Imm(0, 15)


def test_the_fingerprint_is_one_sha256() -> None:
    assert len(bytes.fromhex(table_hash())) == 32
    assert table_hash() == table_hash()


def test_every_op_and_operand_is_in_it() -> None:
    lines = describe_table().splitlines()
    assert len(lines) == len(ops.OPS)
    for opcode, line in zip(sorted(ops.BY_OPCODE), lines, strict=True):
        assert [word.partition(":")[0] for word in line.split()[1:]] == [name for name, _ in ops.operands(ops.BY_OPCODE[opcode])]


@pytest.mark.parametrize(
    "other",
    [
        one(0x11, a=BASE),
        one(b=BASE),
        one(a=BASE, b=BASE),
        *(one(a=replace(BASE, **change)) for change in ({"low": 1}, {"high": 16}, {"sigil": "%"}, {"nonzero": True})),
        one(a=ops.Imm(0, 15, "%", makes=True)),
        one(a=ops.EXPR),
        one(a=ops.Choice(("x", "y"))),
    ],
)
def test_each_part_counts(other: str) -> None:
    assert other != one(a=BASE)


def test_order_counts_and_words_for_readers_do_not() -> None:
    assert one(a=BASE, b=ops.EXPR) != one(b=ops.EXPR, a=BASE)
    assert one(a=ops.Choice(("x", "y"))) != one(a=ops.Choice(("y", "x")))
    assert one(a=ops.EXPR) != one(a=ops.COND)
    assert one(word="other", a=BASE) == one(a=BASE)
