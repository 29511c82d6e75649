"""How deep and how large the trees of a program may be: blocks, expressions and conditions.

Consumers walk these trees recursively, and an expression may share subtrees, so that a short recording can stand for a huge tree. The
walks here keep their own stack and stop at the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from oxidecopy.errors import Diagnostic, Site
from oxidecopy.isa import elem, ops
from oxidecopy.isa.elem import Elem
from oxidecopy.isa.expr import Add, And, Answer, Bool, Cmp, Cond, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym
from oxidecopy.isa.ops import BarrierRef, Instr, MapRef, TileRef
from oxidecopy.program.program import Program

NESTING_MAX: Final = 64  # levels of blocks, and of operators in one expression
NODES_MAX: Final = 4096  # of one expression, shared subtrees counted each time
PLACES: Final = (ops.COORDS, ops.GATHER, ops.OFFSETS)  # kinds that hold several expressions, which choose a place in global memory

Node: TypeAlias = Expr | Cond | Elem
_PAIRS: Final = (Add, Mul, FloorDiv, Mod, Min, Max, Cmp, And, Or)


def nodes(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node below `root` with its level, `root` itself first at level 1."""
    stack = [(root, 1)]
    while stack:
        node, level = stack.pop()
        yield node, level
        if isinstance(node, Elem):
            stack += ((e, level + 1) for e in elem.operands_of(node))
        elif isinstance(node, Not):
            stack.append((node.a, level + 1))
        elif not isinstance(node, Const | Sym | Bool | Answer):
            stack += ((node.b, level + 1), (node.a, level + 1))


def all_nodes(root: Node) -> list[Node] | None:
    """Every node below `root`, level by level; None when the tree is beyond one of the limits."""
    found: list[Node] = []
    layer = [root]
    for _ in range(NESTING_MAX):
        found += layer
        if len(found) > NODES_MAX:
            return None
        layer = [below for node in layer for below in _below(node)]
        if not layer:
            return found
    return None


def _below(node: Node) -> Sequence[Node]:
    if isinstance(node, _PAIRS):
        return node.a, node.b
    if isinstance(node, Elem):
        return elem.operands_of(node)
    return (node.a,) if isinstance(node, Not) else ()


def excess(root: Node) -> str:
    """In words, which limit a tree is beyond that does not fit."""
    layer, count = [root], 0
    for _ in range(NESTING_MAX):
        count += len(layer)
        if count > NODES_MAX:
            return f"more than {NODES_MAX:,} operators and operands"
        layer = [below for node in layer for below in _below(node)]
    return f"more than {NESTING_MAX} levels"


def fits(root: Node) -> bool:
    """True when the tree below `root` is within both limits."""
    return all_nodes(root) is not None


def expressions(op: Instr) -> Iterator[tuple[str, Node]]:
    """Every expression and condition among the operands of `op`, with the operand's name."""
    for name, kind in ops.operands(type(op)):
        value = getattr(op, name)
        if kind in (ops.EXPR, ops.COND, ops.ELEM):
            yield name, value
        elif kind in PLACES:
            yield from ((name, e) for e in value)
        elif kind == ops.TILES:
            yield from ((name, e) for ref in value for e in _of_place(ref))
        elif isinstance(value, MapRef):
            if value.index is not None:
                yield name, value.index
        elif isinstance(value, BarrierRef | TileRef):
            yield from ((name, e) for e in _of_place(value))


def _of_place(ref: BarrierRef | TileRef) -> Iterator[Expr]:
    yield ref.index
    if isinstance(ref, TileRef) and ref.part is not None:
        yield ref.part.rank


def steering(op: Instr) -> Iterator[Expr | Cond]:
    """The operands of `op` that choose more than where in global memory it works."""
    kinds = dict(ops.operands(type(op)))
    for name, e in expressions(op):
        placed = kinds[name] in (*PLACES, ops.MAP) or (isinstance(op, ops.LoadIndex) and name == "index")
        placed = placed or (isinstance(op, ops.TensormapReplace) and name == "value")
        if not placed and isinstance(e, Expr | Cond):
            yield e


def check_nesting(program: Program, places: Sequence[Site | None] | None = None) -> list[Diagnostic]:
    """Every expression that is too large, and the first step of every block that is too deep; `places` in the order of `Program.walk`."""
    found = [_too_large("a requirement is too large", excess(r.cond), r.site) for r in program.requires if not fits(r.cond)]
    found = found if places is None else []
    stack = [(step, 1) for step in reversed(program.steps)]
    count = 0
    while stack:
        step, level = stack.pop()
        place = step.site if places is None else places[count]
        count += 1
        if level == NESTING_MAX + 1:
            found.append(_too_large("blocks are nested too deeply", f"level {level}", place))
        found += (
            _too_large(f"{step.op.mnemonic}: {name} is too large", excess(e), place) for name, e in expressions(step.op) if not fits(e)
        )
        stack += [(inner, level + 1) for inner in reversed(step.body)]
    return found


def _too_large(what: str, got: str, site: Site | None) -> Diagnostic:
    required = f"at most {NESTING_MAX} levels of blocks or operators and {NODES_MAX} operators and operands in one expression"
    return Diagnostic(
        rule="OX1903",
        what=what,
        got=got,
        required=required,
        fix="split the expression, or put the blocks in a pipeline of their own",
        site=site,
    )
