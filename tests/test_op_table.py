"""Guards of the op table: what every consumer relies on, and that every consumer knows every op."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

import oxidecopy
from oxidecopy.isa import limits, ops
from oxidecopy.isa.ops import Choice, Imm, Instr, Kind

PACKAGE = Path(oxidecopy.__file__).parent
BLOCKS = {op.__name__ for op in ops.BLOCKS}
STAGES = frozenset(op.__name__ for op in ops.STAGES)
# Functions that tell ops apart, and the ops that they leave to others.
CONSUMERS = [
    ("verify/requirements.py", "_needs", frozenset[str]()),
    ("verify/requirements.py", "_harmless", frozenset[str]()),
    ("verify/transfer.py", "effect_of", frozenset[str]()),
    ("engines/sim/lower_ops.py", "lower_op", frozenset(BLOCKS) | STAGES),
    ("engines/sim/footprints.py", "touches", frozenset(BLOCKS) | STAGES),
    ("engines/cuda/code/lower_ops.py", "lower_op", (frozenset(BLOCKS) | STAGES) - {"Contract", "ContractDrain"}),  # which stay whole
]
NAMES = {op.__name__ for op in ops.OPS}

every_op = pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.__name__)


def test_opcodes_are_unique_and_never_zero() -> None:
    assert len(ops.BY_OPCODE) == len(ops.OPS)
    assert all(0 < opcode < 256 for opcode in ops.BY_OPCODE)


def test_mnemonics_are_unique() -> None:
    assert len(ops.BY_MNEMONIC) == len(ops.OPS)
    assert all(mnemonic == mnemonic.lower() and " " not in mnemonic for mnemonic in ops.BY_MNEMONIC)


def test_the_union_holds_every_op_of_the_module() -> None:
    declared = {c for c in vars(ops).values() if isinstance(c, type) and hasattr(c, "opcode")}
    assert declared == set(ops.OPS)
    assert set(ops.BLOCKS) < set(ops.OPS)


@every_op
def test_ops_are_final_frozen_and_slotted(op: type[Instr]) -> None:
    assert getattr(op, "__final__", False)
    assert vars(op)["__dataclass_params__"].frozen
    assert vars(op)["__slots__"] == tuple(f.name for f in fields(op))
    assert all(f.kw_only for f in fields(op))
    assert op.__doc__


@every_op
def test_every_operand_has_a_kind(op: type[Instr]) -> None:
    for field in fields(op):
        assert isinstance(field.metadata.get("kind"), Imm | Choice | Kind), field.name
    assert [name for name, _ in ops.operands(op)] == [f.name for f in fields(op)]


@every_op
def test_bounds_mean_something(op: type[Instr]) -> None:
    assert op.min_sm in limits.SHARED_BYTES_MAX
    for name, kind in ops.operands(op):
        match kind:
            case Imm(low, high):
                assert low <= high, name
                assert not kind.makes or kind.sigil, name
            case Choice(words):
                assert len(words) == len(set(words)) > 1, name
            case Kind(word):
                assert getattr(ops, word.upper()) == kind, name


@every_op
def test_coordinates_have_something_to_point_into(op: type[Instr]) -> None:
    """The generic check takes the number of coordinates from the one map or array beside them."""
    kinds = [kind for _, kind in ops.operands(op)]
    assert ops.COORDS not in kinds or ops.ARRAYS in kinds or sum(kinds.count(k) for k in (ops.MAP, ops.ARRAY)) == 1


def patterns(function: ast.FunctionDef) -> set[str]:
    """The names of the classes that its `match` statements tell apart."""
    classes = (node.cls for node in ast.walk(function) if isinstance(node, ast.MatchClass))
    return {c.attr if isinstance(c, ast.Attribute) else getattr(c, "id", "") for c in classes}


@pytest.mark.parametrize(("path", "name", "elsewhere"), CONSUMERS, ids=[f"{path}:{name}" for path, name, _ in CONSUMERS])
def test_consumers_know_every_op(path: str, name: str, elsewhere: frozenset[str]) -> None:
    tree = ast.parse((PACKAGE / path).read_text())
    (function,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    assert patterns(function) & NAMES == NAMES - elsewhere
    called = {n.func.id for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert "assert_never" in called, "a silent default would hide a new op from mypy"


def test_every_module_that_tells_many_ops_apart_is_listed() -> None:
    """A new consumer over the whole table must be added above."""
    listed = {(path, name) for path, name, _ in CONSUMERS}
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "  match " in text else ():
            if isinstance(node, ast.FunctionDef) and len(patterns(node) & NAMES) > len(NAMES) // 2:
                found.add((path.relative_to(PACKAGE).as_posix(), node.name))
    assert found == listed
