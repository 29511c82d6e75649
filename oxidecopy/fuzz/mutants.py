"""One-edit mutants of a program: its tree of steps taken as data, with one thing dropped, doubled, moved or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from random import Random
from typing import Any, Final, Protocol, TypeAlias, get_args

from oxidecopy.errors import Site
from oxidecopy.fuzz.case import Case
from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Cond, Const, Expr
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import Program, Step

Path: TypeAlias = tuple[int, ...]
Steps: TypeAlias = tuple[Step, ...]


class Edit(Protocol):
    """Changes one thing in a program: the changed program and the change in words, or None where there is nothing of the kind."""

    __name__: str

    def __call__(self, rng: Random, program: Program, /) -> tuple[Program, str] | None: ...


_RUNS: Final = (*get_args(ops.BulkCopy), *get_args(ops.Send), ops.BulkPrefetch)
_REFERENCES: Final = (ops.BARRIER, *ops.ONE_TILE, ops.TOKENS, ops.MAP, ops.ARRAY, ops.TILES)
_CHILDREN: Final = (expr.Add, expr.Mul, expr.FloorDiv, expr.Mod, expr.Min, expr.Max)


# ---- paths in the tree
def paths(steps: Steps, prefix: Path = ()) -> Iterator[tuple[Path, Step]]:
    for i, step in enumerate(steps):
        yield (*prefix, i), step
        yield from paths(step.body, (*prefix, i))


def splice(steps: Steps, path: Path, new: Steps) -> Steps:
    """`steps` with the step at `path` replaced by `new`."""
    i, *rest = path
    if not rest:
        return (*steps[:i], *new, *steps[i + 1 :])
    inner = replace(steps[i], body=splice(steps[i].body, tuple(rest), new))
    return (*steps[:i], inner, *steps[i + 1 :])


def at(steps: Steps, path: Path) -> Step:
    i, *rest = path
    return at(steps[i].body, tuple(rest)) if rest else steps[i]


def copied(step: Step) -> Step:
    """An equal step that shares no object with `step`: consumers may tell ops apart by identity."""
    line = step.site.line + 1000 if step.site else 0
    return Step(replace(step.op), Site("copy", line), tuple(copied(s) for s in step.body))


def _with(program: Program, steps: Steps) -> Program:
    return replace(program, steps=steps)


def _pick(rng: Random, program: Program, kind: type[Any] | tuple[type[Any], ...] = object) -> tuple[Path, Step] | None:
    found = [(p, s) for p, s in paths(program.steps) if isinstance(s.op, kind)]
    return rng.choice(found) if found else None


def _of(found: tuple[Path, Step]) -> Any:
    """The op found. Any: of one of the classes that were asked for."""
    return found[1].op


def _name(step: Step) -> str:
    return f"{step.op.mnemonic} at op:{step.site.line if step.site else 0}"


# ---- edits of the tree
def drop(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program)
    return found and (_with(program, splice(program.steps, found[0], ())), f"drop {_name(found[1])}")


def drop_leaf(rng: Random, program: Program) -> tuple[Program, str] | None:
    leaves = [(p, s) for p, s in paths(program.steps) if not s.body]
    path, step = rng.choice(leaves)
    return _with(program, splice(program.steps, path, ())), f"drop {_name(step)}"


def double(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program)
    return found and (_with(program, splice(program.steps, found[0], (found[1], copied(found[1])))), f"double {_name(found[1])}")


def unwrap(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program, (ops.When, ops.Scope))
    return found and (_with(program, splice(program.steps, found[0], found[1].body)), f"unwrap {_name(found[1])}")


def swap(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program)
    if found is None:
        return None
    path, step = found
    last = (*path[:-1], path[-1] + 1)
    body = at(program.steps, path[:-1]).body if len(path) > 1 else program.steps
    if path[-1] + 1 >= len(body):
        return None
    other = body[path[-1] + 1]
    steps = splice(program.steps, last, ())
    return _with(program, splice(steps, path, (other, step))), f"swap {_name(step)} and {_name(other)}"


def move(rng: Random, program: Program) -> tuple[Program, str] | None:
    """Takes a step out and puts it before any other one, at any level."""
    found = _pick(rng, program)
    if found is None:
        return None
    without = splice(program.steps, found[0], ())
    places = list(paths(without))
    if not places:
        return None
    path, target = rng.choice(places)
    new = (target, found[1]) if rng.random() < 0.5 else (found[1], target)
    return _with(program, splice(without, path, new)), f"move {_name(found[1])} to {_name(target)}"


# ---- edits of operands
def nbytes(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(
        rng,
        program,
        (
            *(ops.MbarrierArriveExpectTx, ops.MbarrierExpectTx, ops.MbarrierArriveExpectTxRemote, ops.MbarrierCompleteTx),
            *(ops.ProduceStage, *_RUNS),
        ),
    )
    if found is None:
        return None
    old: int = _of(found).nbytes
    new = max(0, rng.choice((old + 16, old - 16, 2 * old, old // 2, 0)))
    return _changed(program, found, nbytes=new)


def count(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program, ops.MbarrierInit)
    if found is None:
        return None
    old: int = _of(found).count
    new = max(1, rng.choice((old + 1, old - 1, 1, 2 * old, program.threads)))
    if len(found[0]) == 1 or rng.random() < 0.3:
        return _changed(program, found, count=new)
    steps = program.steps  # all elements of the array alike
    for path, step in paths(program.steps):
        if isinstance(step.op, ops.MbarrierInit) and step.op.bar.barrier == _of(found).bar.barrier:
            steps = splice(steps, path, (replace(step, op=replace(step.op, count=new)),))
    return _with(program, steps), f"count {old} -> {new} at {_name(found[1])}"


def pending(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program, (ops.WaitGroup, ops.WaitGroupRead))
    return found and _changed(program, found, pending=max(0, _of(found).pending + rng.choice((1, 1, -1, 2))))


def wait_kind(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program, (ops.WaitGroup, ops.WaitGroupRead))
    if found is None:
        return None
    n: int = _of(found).pending
    new: ops.Instr = ops.WaitGroup(pending=n) if isinstance(found[1].op, ops.WaitGroupRead) else ops.WaitGroupRead(pending=n)
    return _with(program, splice(program.steps, found[0], (replace(found[1], op=new),))), f"other form of {_name(found[1])}"


def sync(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program, ops.BarSync)
    if found is None:
        return None
    threads: int = _of(found).threads
    if rng.random() < 0.5:
        return _changed(program, found, number=rng.choice((0, 1, 2, 3)))
    return _changed(program, found, threads=min(program.threads, max(32, threads + rng.choice((-32, 32, program.threads)))))


def scope(rng: Random, program: Program) -> tuple[Program, str] | None:
    found = _pick(rng, program, ops.Scope)
    if found is None:
        return None
    n = program.threads
    one = rng.randrange(n)
    ranges = rng.choice((((0, 1),), ((one, one + 1),), ((0, n),), ((0, max(1, n // 2)),), ((n // 2, n),)))
    return _changed(program, found, threads=ops.ThreadSet(ranges))


def reference(rng: Random, program: Program) -> tuple[Program, str] | None:
    """Another barrier, tile, token, map or array of the program."""
    choices = [
        (path, step, f.name, f.metadata["kind"])
        for path, step in paths(program.steps)
        for f in fields(step.op)
        if f.metadata["kind"] in _REFERENCES
    ]
    if not choices:
        return None
    path, step, name, kind = rng.choice(choices)
    return _changed(program, (path, step), **{name: _another(rng, program, kind, getattr(step.op, name))})


def _another(rng: Random, program: Program, kind: ops.OperandKind, old: Any) -> Any:
    """Any: a reference of the same kind as it came."""
    if kind == ops.BARRIER:
        return replace(old, barrier=rng.randrange(len(program.barriers)))
    if kind in ops.ONE_TILE:
        return replace(old, tile=rng.randrange(len(program.tiles)))
    if kind == ops.TILES:
        return (replace(old[0], tile=rng.randrange(len(program.tiles))), *old[1:])
    if kind == ops.TOKENS:
        return (rng.randrange(1 + max(*old, 3)),)
    return replace(old, name=rng.choice(sorted(program.maps if kind == ops.MAP else program.arrays)))


def value(rng: Random, program: Program) -> tuple[Program, str] | None:
    """One of the expressions or conditions of some op, changed somewhere inside."""
    choices = [(path, step, hole) for path, step in paths(program.steps) for hole in _holes(step.op)]
    if not choices:
        return None
    path, step, (name, old, put) = rng.choice(choices)
    return _changed(program, (path, step), **{name: put(_edited(rng, old))})


def _holes(op: ops.Instr) -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """Each expression or condition in an op: its field, itself, and what makes the field's value of another one."""
    for f in fields(op):
        old, kind = getattr(op, f.name), f.metadata["kind"]
        if kind in (ops.EXPR, ops.COND):
            yield f.name, old, _itself
        if kind in (ops.BARRIER, *ops.ONE_TILE):
            yield f.name, old.index, partial(_put_index, old)
        if kind in ops.ONE_TILE and old.part is not None:
            yield f.name, old.part.rank, partial(_put_rank, old)
        if kind == ops.MAP and old.index is not None:
            yield f.name, old.index, partial(_put_index, old)
        if kind in (ops.COORDS, ops.GATHER, ops.OFFSETS):
            yield from ((f.name, e, partial(_put_coord, old, i)) for i, e in enumerate(old))


def _itself(new: Any) -> Any:
    return new


def _put_index(old: Any, new: Expr) -> Any:
    return replace(old, index=new)


def _put_rank(old: ops.TileRef, new: Expr) -> ops.TileRef:
    return old if old.part is None else replace(old, part=replace(old.part, rank=new))


def _put_coord(old: tuple[Expr, ...], i: int, new: Expr) -> tuple[Expr, ...]:
    return (*old[:i], new, *old[i + 1 :])


def _edited(rng: Random, e: Any) -> Any:
    """Any: an expression or a condition, of the same kind as it came."""
    if isinstance(e, expr.Bool):
        return expr.Bool(not e.value)
    if isinstance(e, expr.Not | expr.And | expr.Or | expr.Answer):
        return _edited_logic(rng, e)
    if isinstance(e, expr.Cmp):
        which = rng.randrange(4)
        if which == 0:
            return replace(e, op=rng.choice(list(expr.CmpOp)))
        if which == 1:
            return replace(e, a=_edited(rng, e.a))
        return replace(e, b=_edited(rng, e.b)) if which == 2 else expr.Not(e)
    return _edited_expr(rng, e)


def _edited_logic(rng: Random, c: Cond) -> Cond:
    if isinstance(c, expr.And | expr.Or):
        return rng.choice((c.a, c.b, expr.Not(c)))
    return c.a if isinstance(c, expr.Not) else expr.Not(c)


def _edited_expr(rng: Random, e: Expr) -> Expr:
    if isinstance(e, _CHILDREN) and rng.random() < 0.6:
        side = rng.choice(("a", "b")) if not isinstance(e.b, Const) else rng.choice(("a", "b", "b"))
        if side == "b" and isinstance(e.b, Const) and isinstance(e, expr.Mod | expr.FloorDiv):
            return replace(e, b=Const(max(1, e.b.value + rng.choice((-1, 1)))))
        return replace(e, **{side: _edited_expr(rng, getattr(e, side))})
    choice = rng.randrange(6)
    if choice == 5 and isinstance(e, Const):
        return Const(e.value * 2)
    if choice == 4 and isinstance(e, _CHILDREN):
        return e.a
    return expr.add(e, Const(rng.choice((1, -1, 1, -1, 2, 16))))


def opcode(rng: Random, program: Program) -> tuple[Program, str] | None:
    """An op turned into a near relative."""
    found = _pick(
        rng, program, (ops.MbarrierArrive, ops.MbarrierArriveExpectTx, ops.TensorG2S, ops.TensorG2SMulticast, ops.MbarrierWaitPhase)
    )
    if found is None:
        return None
    op = found[1].op
    match op:
        case ops.MbarrierArrive():
            new: ops.Instr = rng.choice(
                (ops.MbarrierArriveDrop(bar=op.bar, token=op.token), ops.MbarrierArriveRemote(bar=op.bar, rank=Const(0)))
            )
        case ops.MbarrierArriveExpectTx():
            new = rng.choice((ops.MbarrierExpectTx(bar=op.bar, nbytes=op.nbytes), ops.MbarrierArrive(bar=op.bar, token=op.token)))
        case ops.TensorG2S():
            mask = Const(rng.randrange(1, 1 << program.cluster_size))
            new = ops.TensorG2SMulticast(map=op.map, tile=op.tile, coords=op.coords, bar=op.bar, cta_mask=mask)
        case ops.TensorG2SMulticast():
            new = ops.TensorG2S(map=op.map, tile=op.tile, coords=op.coords, bar=op.bar)
        case ops.MbarrierWaitPhase():
            new = ops.MbarrierWaitParity(bar=op.bar, parity=expr.mod(op.phase, Const(2)))
        case _:
            return None
    return _with(program, splice(program.steps, found[0], (replace(found[1], op=new),))), f"{_name(found[1])} becomes {new.mnemonic}"


def _changed(program: Program, found: tuple[Path, Step], **changes: Any) -> tuple[Program, str] | None:
    """Any: whatever the changed operands hold."""
    path, step = found
    new = replace(step.op, **changes)
    if new == step.op:
        return None
    words = ", ".join(f"{k}: {getattr(step.op, k)} -> {v}" for k, v in changes.items())
    return _with(program, splice(program.steps, path, (replace(step, op=new),))), f"{_name(step)}: {words}"


# Some edits twice or more: those of which a program has many different ones.
EDITS: Final[tuple[Edit, ...]] = (
    *(drop, drop_leaf, drop_leaf, double, unwrap, swap, swap, move, move),
    *(nbytes, count, pending, wait_kind, sync, scope, reference, value, value, value, opcode),
)


def mutate(rng: Random, program: Program) -> tuple[Program, str, str]:
    """A program that differs from `program` in one edit, the edit in words, and its name."""
    while True:
        edit = rng.choice(EDITS)
        made = edit(rng, program)
        if made is not None:
            return *made, edit.__name__


def mutants(case: Case, seed: int, count: int) -> Iterator[Case]:
    """Up to `count` mutants of a case that mean something, every fourth with two edits."""
    for m in range(1, count + 1):
        made = mutant(case, seed, m)
        if made is not None:
            yield made


def mutant(case: Case, seed: int, number: int) -> Case | None:
    """Mutant `number` (from 1) of a case; None where the edit leaves no program that means anything."""
    rng = Random(f"{seed}.{number}")
    program, words, name = mutate(rng, case.program)
    edits: tuple[str, ...] = (name,)
    if number % 4 == 0 and program.steps:
        program, more, name = mutate(rng, program)
        words, edits = f"{words}; {more}", (*edits, name)
    return None if check_operands(program) else case.mutant(program, words, edits)
