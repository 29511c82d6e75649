"""The kernel's statements: one for each op, blocks as blocks, with the user's line beside each."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePath
from typing import Final, assert_never, final

from oxidecopy.engines.cuda.code.numbers import bits_of
from oxidecopy.engines.cuda.emit.barriers import synchronisation
from oxidecopy.engines.cuda.emit.context import Context
from oxidecopy.engines.cuda.emit.copies import copy_text
from oxidecopy.engines.cuda.emit.elements import literal_bits
from oxidecopy.engines.cuda.emit.maps import map_statements
from oxidecopy.engines.cuda.emit.names import comment
from oxidecopy.engines.cuda.emit.ranges import Span
from oxidecopy.engines.cuda.emit.reshape import fold, stencil, transpose
from oxidecopy.engines.cuda.emit.shares import SLOT_BYTES, CountedShare, fixed_tile, fixed_trips
from oxidecopy.engines.cuda.emit.tiles import view_of
from oxidecopy.errors import Site
from oxidecopy.isa import elem, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Const, Sym, SymKind, mod
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.program import Step

COMMENT_COLUMN: Final = 100


@final
class Body:
    """Writes statements; `lines` grow from the outside in."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.lines: list[str] = []
        self._depth = 1
        self._site = ""

    def run(self) -> list[str]:
        self._name_common("")
        self._steps(self.ctx.program.steps)
        self._drop_unused()
        return self.lines

    def _drop_unused(self) -> None:
        """Names that larger names have made superfluous."""
        while True:
            words = Counter(word for line in self.lines for word in re.findall(r"\w+", line.partition("//")[0]))
            unused = {text.text for text in self.ctx.exprs.common.values() if words[text.text] == 1}
            if not unused:
                return
            self.lines = [line for line in self.lines if not unused.intersection(re.findall(r"^ *const \w+ (\w+) = ", line))]

    # ---- lines
    def _line(self, text: str, site: Site | None = None) -> None:
        text = "    " * self._depth + text
        place = comment(f"{PurePath(site.file.replace(chr(92), '/')).name}:{site.line}") if site is not None else ""
        if place and place != self._site:
            self._site = place
            text = f"{text:<{COMMENT_COLUMN}}  // {place}"
        self.lines.append(text)

    def _name_common(self, symbol: str) -> None:
        for text in self.ctx.name_common(symbol):
            self._line(text)

    def _open(self, head: str, site: Site | None) -> None:
        self._line(f"{head} {{" if head else "{", site)
        self._depth += 1

    def _close(self) -> None:
        self._depth -= 1
        self._line("}")

    def _steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            self.ctx.exprs.site = step.site
            self._step(step)

    def _step(self, step: Step) -> None:
        op = step.op
        match op:
            case ops.Scope():
                self._scope(op, step)
            case ops.When(cond=cond):
                self._open(f"if ({self.ctx.exprs.cond(cond)})", step.site)
                self._steps(step.body)
                self._close()
            case ops.Loop():
                self._loop(op, step)
            case _ if isinstance(op, ops.Stage):
                raise TypeError("stages are expanded before a program is emitted")  # a bug of ours
            case _:
                for text in self._statements(op):
                    self._line(text, step.site)
                if isinstance(op, ops.LoadIndex | ops.ShareTiles | ops.NextTile):
                    self._name_common(op.name)

    # ---- blocks
    def _scope(self, op: ops.Scope, step: Step) -> None:
        outer = self.ctx.threads
        test = members(op.threads, outer)
        self._open(f"if ({test})" if test else "", step.site)
        self.ctx.threads = op.threads
        self._steps(step.body)
        self.ctx.threads = outer
        self._close()

    def _loop(self, op: ops.Loop, step: Step) -> None:
        exprs = self.ctx.exprs
        share = self.ctx.counted.get(op.stop.name) if isinstance(op.stop, Sym) else None
        start, stop = exprs.span(op.start), exprs.span(op.stop)
        reach = Span(start.lo, max(start.lo, stop.hi - 1)) if op.step > 0 else Span(min(start.hi, stop.lo + 1), start.hi)
        first, end = exprs.text(op.start), exprs.text(op.stop)
        if share is not None:
            reach = Span(0, stop.hi)  # the stage that brings no tile comes behind all that do, so there is one more
        past = Span(reach.lo, reach.hi + op.step) if op.step > 0 else Span(reach.lo + op.step, reach.hi)
        kind = "int" if past.narrow and stop.narrow and not exprs.write(op.stop).wide else "i64"
        name = self.ctx.fresh(op.counter, reach)
        if share is not None:
            self.ctx.loops.append(op.counter)
            self._counted(share, name, op.counter, step)
            self.ctx.loops.pop()
            return
        step_text = {1: f"++{name}", -1: f"--{name}"}.get(op.step, f"{name} += {op.step}")
        sign = "<" if op.step > 0 else ">"
        if end.isidentifier() or isinstance(op.stop, Const):
            head = f"for ({kind} {name} = {first}; {name} {sign} {end}; {step_text})"
        else:
            head = f"for ({kind} {name} = {first}, {name}_end = {end}; {name} {sign} {name}_end; {step_text})"
        self._open(head, step.site)
        self._name_common(op.counter)
        self.ctx.loops.append(op.counter)
        self._steps(step.body)
        self.ctx.loops.pop()
        self._close()

    def _counted(self, share: CountedShare, name: str, counted: str, step: Step) -> None:
        """A loop over what a counter deals; its first ops are the tile's number and the stage's wait."""
        op = step.body[0].op
        if not isinstance(op, ops.NextTile) or not isinstance(op.trips, Sym):
            raise TypeError("no loop over a share")  # a bug of ours
        given = op.trips.name
        counter, tiles = self.ctx.counters[given], self.ctx.names_of_tiles[given]
        tile = self.ctx.fresh(op.name, Span(0, max(0, self.ctx.exprs.spans[given].hi - 1)))
        wait, rest = step.body[1], step.body[2:]
        if isinstance(rest[0].op, ops.MbarrierArriveExpectTx) if rest else False:
            taken = f"atomicAdd({counter}, 1u)"
            self._line(f"u32 {tile}_next = {taken};  // the next tile is asked for while this one is on its way", step.site)
            self._open(f"for (int {name} = 0;; ++{name})", step.site)
            self._name_common(counted)
            full, slot = self._stage_of(share, given, counted)
            self._line(f"const int {tile} = {tile}_next < (u32){tiles} ? (int){tile}_next : -1;", step.body[0].site)
            self._step(wait)
            self._line(f"{slot} = {tile};", step.body[0].site)
            self._open(f"if ({tile} < 0)", None)
            self._line(f"{self.ctx.ptx.use('mbarrier_arrive')}({full});  // no more tiles: the stage brings only the word of it")
            self._line("break;")
            self._close()
            self._line(f"{tile}_next = {taken};")
        else:
            self._open(f"for (int {name} = 0;; ++{name})", step.site)
            self._name_common(counted)
            self._step(wait)
            _, slot = self._stage_of(share, given, counted)
            self._line(f"const int {tile} = {slot};", step.body[0].site)
            self._line(f"if ({tile} < 0) break;")
        self._name_common(op.name)
        self._steps(rest)
        self._close()

    def _stage_of(self, share: CountedShare, given: str, counted: str) -> tuple[str, str]:
        """The barrier of the stage whose turn it is, and the slot with its tile's number."""
        turn = mod(Sym(counted, SymKind.LOOP), Const(share.stages))
        place = f"{self.ctx.slot_names[given]} + {self.ctx.exprs.write(turn).at(8)} * {SLOT_BYTES}"
        return self.ctx.barrier(ops.BarrierRef(share.full, turn)), f"*reinterpret_cast<volatile int*>(shared + {place})"

    # ---- ops
    def _statements(self, op: ops.Instr) -> list[str]:
        ctx = self.ctx
        match op:
            case op if isinstance(op, ops.Copy):
                return [copy_text(ctx, op)]
            case ops.StoreGlobal() | ops.Fill() | ops.Iota() | ops.MapTiles() | ops.TransposeTile() | ops.ReduceTile() | ops.StencilTile():
                return [self._together(op)]
            case ops.LoadIndex():
                return [self._load_index(op)]
            case ops.ShareTiles():
                return self._share(op)
            case ops.NextTile(name=name, trips=trips, index=index):
                made = ctx.exprs.write(fixed_tile(index))
                most = ctx.exprs.span(trips).hi
                kind = "i64" if made.wide else "int"
                return [f"const {kind} {ctx.fresh(name, Span(0, max(0, most - 1)))} = {made.text};"]
            case _:
                found = map_statements(ctx, op)
                return synchronisation(ctx, op) if found is None else found

    # ---- all threads in scope together
    def _together(self, op: ops.StoreGlobal | ops.Fill | ops.Iota | ops.Made) -> str:
        ctx = self.ctx
        who = f"{rank_of(ctx.threads)}, {len(ctx.threads)}"
        match op:
            case ops.StoreGlobal():
                return f"{self._store(op)}, {who});"
            case ops.Fill(tile=ref, value=value):
                view = view_of(ctx.program, ref)
                if isinstance(value, ops.ScalarRef):
                    bits = ctx.scalar(value.name, cast=False)
                else:
                    bits = literal_bits(bits_of(value, view.dtype, cast=False), view.dtype)
                return f"{ctx.tiles.fill(view, ctx.tile_names[ref.tile])}({ctx.tile(ref)}, {bits}, {who});"
            case ops.Iota(tile=ref, axis=axis):
                return f"{ctx.tiles.iota(view_of(ctx.program, ref), axis, ctx.tile_names[ref.tile])}({ctx.tile(ref)}, {who});"
            case ops.MapTiles(inputs=inputs, out=out, fn=fn):
                views = [view_of(ctx.program, ref) for ref in inputs]
                scalars = {e.name: e.dtype for e in elem.elements(fn) if isinstance(e, elem.Parameter)}
                name = ctx.tiles.map(views, view_of(ctx.program, out), op, scalars, ctx.tile_names[out.tile])
                values = [*(ctx.tile(ref) for ref in (*inputs, out)), *(ctx.scalar(s, cast=True) for s in scalars)]
                return f"{name}({', '.join(values)}, {who});"
            case ops.TransposeTile(source=source, out=out) | ops.ReduceTile(source=source, out=out):
                pair, name = (view_of(ctx.program, source), view_of(ctx.program, out)), ctx.tile_names[out.tile]
                function = (
                    fold(ctx.tiles, ctx.elements, pair, op, name) if isinstance(op, ops.ReduceTile) else transpose(ctx.tiles, *pair, name)
                )
                return f"{function}({ctx.tile(source)}, {ctx.tile(out)}, {who});"
            case ops.StencilTile(source=source, out=out):
                pair = (view_of(ctx.program, source), view_of(ctx.program, out))
                function = stencil(ctx.tiles, ctx.elements, pair, op, ctx.tile_names[out.tile])
                return f"{function}({ctx.tile(source)}, {ctx.tile(out)}, {who});"
            case _:
                assert_never(op)

    def _store(self, op: ops.StoreGlobal) -> str:
        ctx = self.ctx
        name, info = op.array.name, ctx.arrays[op.array.name]
        view = view_of(ctx.program, op.tile)
        spans = [ctx.exprs.span(c) for c in op.coords]
        reach = [Span(s.lo, s.hi + n) for s, n in zip(spans, view.shape, strict=True)]
        wide = not all(s.narrow for s in reach) or not all(Span(n, n).narrow for n in info.shape)
        names = (ctx.tile_names[op.tile.tile], ctx.params[name])
        dims = [ctx.array_dim(name, d) for d in range(len(info.shape))]
        strides = [ctx.array_stride(name, d) for d in ctx.strides_of(name)]
        coords = [ctx.exprs.text(c) for c in op.coords]
        function = ctx.tiles.store(view, ctx.params[name], info, wide=wide, names=names)
        return f"{function}({', '.join([ctx.tile(op.tile), ctx.params[name], *dims, *strides, *coords])}"

    # ---- integers known at run time
    def _load_index(self, op: ops.LoadIndex) -> str:
        ctx = self.ctx
        name, info = op.array.name, ctx.arrays[op.array.name]
        ctx.helpers.add("load_index")
        kind = f"{'i' if info.dtype.startswith('i') else 'u'}{DTYPES[info.dtype].bits}"
        step = ctx.array_stride(name, 0) if ctx.strides_of(name) else f"{DTYPES[info.dtype].nbytes}"
        values = [ctx.exprs.text(op.index), ctx.array_dim(name, 0), step, ctx.exprs.text(op.below)]
        most = ctx.exprs.span(op.below).hi - 1
        made = ctx.fresh(op.name, Span(0, max(0, most)))
        cast = "(int)" if Span(0, most).narrow else ""
        return f"const {'int' if cast else 'i64'} {made} = {cast}load_index<{kind}>({ctx.params[name]}, {', '.join(values)});"

    def _share(self, op: ops.ShareTiles) -> list[str]:
        ctx = self.ctx
        span = Span(0, max(0, ctx.exprs.span(op.tiles).hi))
        if op.name in ctx.counted:
            tiles = ctx.exprs.text(op.tiles)
            ctx.counters[op.name] = ctx.names.new(f"{op.name}_counter")
            total = ctx.names_of_tiles[op.name] = ctx.names.new(f"{op.name}_tiles")
            ctx.fresh(op.name, span)
            return [f"const int {total} = {tiles};"]
        made = ctx.exprs.write(fixed_trips(op.tiles))
        return [f"const {'i64' if made.wide else 'int'} {ctx.fresh(op.name, span)} = {made.text};"]


# ---- sets of threads
def members(inner: ThreadSet, outer: ThreadSet) -> str:
    """The test that picks `inner` out of `outer`; empty where that is all of it."""
    if inner == outer:
        return ""
    left = _gaps(inner, outer)
    if len(left) == 1 and len(inner.ranges) > 1:
        return f"thread != {left[0]}"
    first, last = outer.ranges[0][0], outer.ranges[-1][1]
    tests = []
    for low, high in inner.ranges:
        if high == low + 1:
            tests.append(f"thread == {low}")
            continue
        bounds = [f"thread >= {low}"] if low > first else []
        bounds += [f"thread < {high}"] if high < last else []
        tests.append(" && ".join(bounds) or "true")
    if len(tests) == 1:
        return tests[0]
    return " || ".join(f"({t})" if "&&" in t else t for t in tests)


def _gaps(inner: ThreadSet, outer: ThreadSet) -> list[int]:
    """Threads of `outer` outside `inner`, as far as two of them."""
    missing: list[int] = []
    for low, high in outer.ranges:
        for t in range(low, high):
            if t not in inner:
                missing.append(t)
                if len(missing) > 1:
                    return missing
    return missing


def rank_of(threads: ThreadSet) -> str:
    """Number of the executing thread among `threads`."""
    text, before = "", 0
    for i, (low, high) in enumerate(threads.ranges):
        shift = low - before
        number = f"(int)thread - {shift}" if shift > 0 else "(int)thread"
        text += number if i == len(threads.ranges) - 1 else f"thread < {high} ? {number} : "
        before += high - low
    return text
