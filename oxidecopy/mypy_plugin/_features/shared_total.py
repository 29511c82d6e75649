"""The running total of shared memory: `cta.shared`, rings and store rings of one function, against what a block can have.

A total is the least that any path to here has made, so an error is one on every path: `a if big else b` counts neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final, final

from mypy.nodes import (
    AssignmentStmt,
    Block,
    BreakStmt,
    CallExpr,
    ClassDef,
    ConditionalExpr,
    ContinueStmt,
    Decorator,
    DictionaryComprehension,
    Expression,
    ForStmt,
    FuncDef,
    FuncItem,
    GeneratorExpr,
    IfStmt,
    LambdaExpr,
    MatchStmt,
    NameExpr,
    OpExpr,
    RaiseStmt,
    RefExpr,
    ReturnStmt,
    TryStmt,
    TupleExpr,
    WhileStmt,
)
from mypy.types import Instance

from oxidecopy.mypy_plugin import _names
from oxidecopy.mypy_plugin._codes import SMEM
from oxidecopy.mypy_plugin._features.literals import (
    Problem,
    View,
    dense,
    element,
    extents,
    made_bytes,
    named,
    positional,
    receiver,
    tile_bytes,
    variable,
)
from oxidecopy.mypy_plugin._features.literals_walk import Walker, any_of, nothing

SHARED_BYTES_MAX: Final = 232_448  # as in oxidecopy.isa.limits, for the block that has most
RINGS: Final = ("ring", "multicast_ring", "store_ring")
METHODS: Final = frozenset({"shared", *RINGS})
CTA: Final = "oxidecopy.typed.cta.Cta"

Totals = dict[object, int]

_JUMPS: Final[frozenset[type[object]]] = frozenset({BreakStmt, ContinueStmt, ReturnStmt, RaiseStmt})


def problems(fn: FuncItem, view: View, cluster: int | None, calls: Iterable[CallExpr], loops: Iterable[ForStmt]) -> list[Problem]:
    """Calls of `fn` that bring a total over the limit; `cluster` is the CTAs of a declared cluster, `calls` and `loops` are what it has."""
    walk = _Walk(fn, view, cluster or 1)
    if walk.most(calls, loops) <= SHARED_BYTES_MAX:
        return []
    for statement in fn.body.body if not isinstance(fn, LambdaExpr) else ():
        walk.visit(statement)
    return walk.found


@final
class _Walk(Walker):
    """Visits in order of execution. `totals` are bytes by `cta` parameter; None after a jump: nothing comes here."""

    def __init__(self, fn: FuncItem, view: View, cluster: int) -> None:
        super().__init__(
            {
                IfStmt: self._if,
                MatchStmt: self._match,
                WhileStmt: self._while,
                ForStmt: self._for,
                TryStmt: self._try,
                ReturnStmt: self._jump,
                RaiseStmt: self._jump,
                BreakStmt: self._jump,
                ContinueStmt: self._jump,
                FuncDef: nothing,
                Decorator: nothing,
                ClassDef: nothing,
                LambdaExpr: nothing,
                ConditionalExpr: self._conditional,
                OpExpr: self._operator,
                GeneratorExpr: self._comprehension,
                DictionaryComprehension: self._comprehension,
                AssignmentStmt: self._assignment,
                CallExpr: self._call,
            }
        )
        self._view = view
        self._cluster = cluster
        # Of other objects it is not known that they stay the same block.
        self._parameters = {a.variable for a in fn.arguments}
        self._totals: Totals | None = {}
        self._last: dict[object, CallExpr] = {}
        self._doubtful = 0  # inside what may not be executed, or not once
        self.found: list[Problem] = []

    def most(self, calls: Iterable[CallExpr], loops: Iterable[ForStmt]) -> int:
        """No total is more than this: as if each call were executed, as often as all loops around each other say."""
        made = (self._made(call)[1] for call in calls)
        return sum(nbytes for nbytes in made if nbytes is not None) * prod(max(1, self._times(loop.expr)) for loop in loops)

    # ---- paths
    def _least(self, ends: Iterable[Totals | None]) -> Totals | None:
        """What is sure whichever of these paths was taken."""
        alive = [end for end in ends if end is not None]
        if not alive:
            return None
        return {key: min(end.get(key, 0) for end in alive) for key in alive[0]}

    def _from(self, start: Totals | None, block: Block | None) -> Totals | None:
        """The totals after a block that begins with `start`."""
        self._totals = dict(start) if start is not None else None
        if block is not None and self._totals is not None:
            self.visit(block)
        return self._totals

    def _if(self, o: IfStmt) -> None:
        for condition in o.expr[:1]:
            self.visit(condition)
        start = self._totals
        ends = [self._from(start, body) for body in o.body if not body.is_unreachable]
        if not (o.unreachable_else or (o.else_body is not None and o.else_body.is_unreachable)):
            ends.append(self._from(start, o.else_body))
        self._totals = self._least(ends)

    def _match(self, o: MatchStmt) -> None:
        self.visit(o.subject)
        start = self._totals
        self._totals = self._least([*[self._from(start, body) for body in o.bodies], start])

    def _while(self, o: WhileStmt) -> None:
        start = self._totals
        self._from(start, o.body)
        self._totals = start
        if o.else_body is not None:
            self._maybe(o.else_body)

    def _for(self, o: ForStmt) -> None:
        self.visit(o.expr)
        start = self._totals
        end = self._from(start, o.body)
        times = 0 if _jumps(o.body) else self._times(o.expr)
        self._totals = start
        if start is not None and end is not None and times:
            self._totals = {key: start.get(key, 0) + times * (n - start.get(key, 0)) for key, n in end.items()}
            self._repeated(end, self._totals, times)
        if o.else_body is not None:
            self._maybe(o.else_body)

    def _repeated(self, once: Totals, totals: Totals, times: int) -> None:
        """Says so when it is only the repetition that goes over the limit, at the last call that counts."""
        for key, total in totals.items():
            call = self._last.get(key)
            if once[key] <= SHARED_BYTES_MAX < total and call is not None:
                words = (
                    f"Shared memory: {times} rounds of this loop bring the total to {total}, over the limit of {SHARED_BYTES_MAX} (227 KiB)"
                )
                self.found.append(Problem(node=call, code=SMEM, message=words))

    def _times(self, e: Expression) -> int:
        """How often a loop over `e` runs, as far as it is sure."""
        if isinstance(e, CallExpr) and isinstance(e.callee, RefExpr) and e.callee.fullname == "builtins.range" and len(e.args) == 1:
            return max(self._view.integer(e.args[0]) or 0, 0)
        return len(e.items) if isinstance(e, TupleExpr) else 0

    def _try(self, o: TryStmt) -> None:
        start = self._totals
        body = self._from(start, o.body)
        if o.else_body is not None:
            body = self._from(body, o.else_body)
        self._totals = self._least([body, *[self._from(start, handler) for handler in o.handlers]])
        if o.finally_body is not None:
            after = self._totals
            self._from(start if after is None else after, o.finally_body)
            if after is None:
                self._totals = None

    def _maybe(self, block: Block) -> None:
        """A block that may not be executed: looked into, and forgotten."""
        start = self._totals
        self._from(start, block)
        self._totals = start

    def _jump(self, o: ReturnStmt | RaiseStmt | BreakStmt | ContinueStmt) -> None:
        self.deeper(o)
        self._totals = None

    # ---- what may not be executed, or not here
    def _conditional(self, o: ConditionalExpr) -> None:
        self.visit(o.cond)
        self._doubt(o.if_expr)
        self._doubt(o.else_expr)

    def _operator(self, o: OpExpr) -> None:
        self.visit(o.left)
        if o.op in {"and", "or"}:
            self._doubt(o.right)
        else:
            self.visit(o.right)

    def _comprehension(self, o: GeneratorExpr | DictionaryComprehension) -> None:
        before = self._totals
        self._doubtful += 1
        self.deeper(o)
        self._doubtful -= 1
        self._totals = before

    def _doubt(self, e: Expression) -> None:
        self._doubtful += 1
        self.visit(e)
        self._doubtful -= 1

    def _assignment(self, o: AssignmentStmt) -> None:
        self.deeper(o)
        for target in o.lvalues:
            if self._totals is not None and isinstance(target, NameExpr):
                self._totals.pop(target.node, None)

    # ---- what takes memory
    def _call(self, o: CallExpr) -> None:
        self.deeper(o)
        if self._totals is None:
            return
        key, nbytes, what = self._made(o)
        if nbytes is None or key not in self._parameters:
            return
        before = self._totals.get(key, 0)
        after = before + nbytes
        if before <= SHARED_BYTES_MAX < after:
            over = f"brings the total to {after}, over" if before else "is over"
            words = f"Shared memory: this {what} {over} the limit of {SHARED_BYTES_MAX} (227 KiB)"
            self.found.append(Problem(node=o, code=SMEM, message=words, notes=self._fitting(o, before, nbytes)))
        if not self._doubtful:
            self._totals[key] = after
            self._last[key] = o

    def _made(self, call: CallExpr) -> tuple[object, int | None, str]:
        """The cta, the bytes, and what they are for."""
        cta = receiver(call, self._view, "shared", CTA)
        if cta is not None:
            one, stages = made_bytes(call, self._view), self._stages(call)
            if one is not None and stages is not None:
                return variable(cta), one * stages, f"array of {one} bytes" if stages == 1 else f"array of {stages} stages x {one} bytes"
            return variable(cta), None, ""
        for method in RINGS:
            cta = receiver(call, self._view, method, CTA)
            if cta is not None:
                one, stages = self._ring_bytes(call, method), self._stages(call)
                if one is not None and stages is not None and "stages" in call.arg_names:
                    return variable(cta), one * stages, f"ring of {stages} stages x {one} bytes"
        return None, None, ""

    def _stages(self, call: CallExpr) -> int | None:
        given = named(call, "stages")
        stages = 1 if given is None else self._view.integer(given)
        return stages if stages is not None and stages >= 1 else None

    def _ring_bytes(self, call: CallExpr, method: str) -> int | None:
        """One stage: a tile for every descriptor; those of a multicast ring are as many boxes tall as the cluster has CTAs."""
        if method == "store_ring":
            given = positional(call)
            return self._descriptor_bytes(given[0]) if given else None
        tiles = named(call, "tiles")
        if not isinstance(tiles, TupleExpr) or named(call, "along") is not None:  # then fewer share a tile
            return None
        parts = [self._descriptor_bytes(e) for e in tiles.items]
        known = [n for n in parts if n is not None]
        if len(known) != len(parts):
            return None
        return sum(known) * (self._cluster if method == "multicast_ring" else 1)

    def _descriptor_bytes(self, e: Expression) -> int | None:
        t = self._view.type_of(e)
        if not isinstance(t, Instance) or t.type.fullname != _names.DESCRIPTOR or len(t.args) != 4:
            return tile_bytes(t)
        return dense(element(t.args[0]), extents(t.args[3]))

    def _fitting(self, call: CallExpr, before: int, nbytes: int) -> tuple[str, ...]:
        stages = self._stages(call) or 1
        fit = (SHARED_BYTES_MAX - before) // (nbytes // stages)
        return (f"at most {fit} stages fit here",) if stages > 1 and fit else ()


def _jumps(block: Block) -> bool:
    """Does something in it leave it early?"""
    return any_of(block, _JUMPS)
