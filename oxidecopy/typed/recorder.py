"""The recording under way: a stack of open blocks that ops are appended to, and the shared memory asked for.

Handles (barriers, tiles, leaders) hold the recorder that made them; nothing here is global. A recorder is used once: `finish` turns it
into a frozen `Program`, after which every handle of it is refused. What it appends is well-formed by itself: every expression is checked
where it becomes part of an op, so that no counter is used outside its loop, whichever handle carried it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from oxidecopy.errors import Cause, ClusterError, RecordError, ScopeError, ShapeError, Site, TokenError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.expr import Cond, Const, Expr, Sym, SymKind, symbols
from oxidecopy.isa.ops import Instr, ThreadSet
from oxidecopy.program.nesting import NESTING_MAX, expressions, nodes, steering
from oxidecopy.program.program import BarrierDecl, Param, Program, RegisterHint, Requirement, Step
from oxidecopy.typed.frames import Frame, Position, fresh
from oxidecopy.typed.layout import TileRequest, place
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.symbolic import Idx, Pred, bounded, owner_of, refuse_foreign, to_cond, to_expr

if TYPE_CHECKING:
    from oxidecopy.typed.tokens import BarrierToken

_NUMBERS_MAX: Final = ops.NEW_TOKEN.high  # of tokens and of answers: what the op table can number


@final
class Recorder:
    """Collects one pipeline's ops. `site` is where the pipeline function is defined; `clustered` says that it declares a cluster."""

    __slots__ = (
        "_blocks",
        "_left",
        "_loops",
        "_named",
        "_preds",
        "_tokens",
        "_unclosed",
        "barriers",
        "closed",
        "cluster",
        "clustered",
        "frames",
        "name",
        "params",
        "reads",
        "registers",
        "requires",
        "site",
        "slots",
        "threads",
        "tiles",
    )

    def __init__(self, name: str, threads: int, cluster: tuple[int, int, int] | None, site: Site | None) -> None:
        self.name = name
        self.threads = threads
        self.cluster = cluster or (1, 1, 1)
        self.clustered = cluster is not None
        self.site = site
        self.params: list[Param] = []
        self.tiles: list[TileRequest] = []
        self.barriers: list[BarrierDecl] = []
        self.frames: list[Frame] = [Frame(None, ThreadSet(((0, threads),)), site, 0)]
        self.reads: dict[str, Frame] = {}  # integers read while the pipeline runs, with the block in which they are known
        self.registers: tuple[RegisterHint, ...] = ()  # of the roles
        self.requires: list[Requirement] = []
        self.slots: dict[str, int] = {}  # by array: how many descriptors of a block lie in it
        self.closed = False
        self._named: dict[ThreadSet, int] = {}
        self._tokens = 0
        self._preds = 0
        self._loops = 0
        self._blocks = 0
        self._left: Frame | None = None
        self._unclosed: Frame | None = None

    @property
    def cluster_size(self) -> int:
        """CTAs of the cluster; 1 without one."""
        x, y, z = self.cluster
        return x * y * z

    # ---- blocks
    @property
    def scope(self) -> ThreadSet:
        """The threads that execute what is recorded now."""
        return self.frames[-1].threads

    @property
    def position(self) -> Position:
        """The loops and roles that are open now."""
        return Position(
            loops=tuple(f.number for f in self.frames if f.is_loop),
            roles=tuple(f.number for f in self.frames if f.is_role),
        )

    def check_open(self, what: str, recorder: Recorder | None = None) -> None:
        """Refuses `what` when this recording is over or was left by a `break`, or when it is not the recording that uses it."""
        if self.closed or recorder not in (None, self):
            refuse_foreign(what)
        self._check_blocks()

    def leave(self, frame: Frame) -> None:
        """Notes that the loop of `frame` ended before its body did. A generator that is dropped cannot raise: the next op does."""
        self._left = self._left or frame

    def _check_blocks(self) -> None:
        """Refuses to go on after a block that did not end as it should: what it held is lost."""
        if self._left is not None:
            refuse(
                RecordError,
                "OX1025",
                "a recorded loop was left by break, return or an exception: its body is recorded once and has no early end",
                required="a body that runs to its end",
                fix="guard the rest of the body with `with cta.when(cond):`",
                site=self._left.site,
            )
        if self._unclosed is not None:
            refuse(
                ScopeError,
                "OX1026",
                "a block was opened and not closed",
                required="blocks that close in the order in which they were opened",
                fix="open blocks by `with`, and loops by `for`",
                site=self._unclosed.site,
            )

    def push(self, op: ops.Block, threads: ThreadSet) -> Frame:
        """Opens a block."""
        self._check_operands(op)
        if len(self.frames) > NESTING_MAX:
            refuse(
                RecordError,
                "OX1058",
                "blocks are nested too deeply",
                got=f"{len(self.frames)} levels",
                required=f"at most {NESTING_MAX} levels",
                fix="put the inner blocks in a pipeline of their own",
            )
        self._blocks += 1
        frame = Frame(op, threads, caller_site(), self._blocks)
        self.frames.append(frame)
        return frame

    def pop(self, frame: Frame, *, failed: bool = False) -> None:
        """Closes `frame`; `failed` when an exception is on its way through it, which is then the one to hear about."""
        if frame not in self.frames:
            return  # it went with the block around it, and that was refused
        inner = self.frames[self.frames.index(frame) + 1 :]
        if not inner and not failed:
            self._close(frame)
        del self.frames[self.frames.index(frame) :]
        if frame.op is not None:
            self.frames[-1].steps.append(Step(frame.op, frame.site, tuple(frame.steps)))
        if inner and not failed:
            self._unclosed = self._unclosed or inner[0]
            self._check_blocks()

    def _close(self, frame: Frame) -> None:
        for close in frame.closing:
            close(frame)

    def require_once(self, what: str) -> None:
        """`what` must be executed by all threads, once: not by fewer threads, not under a condition, not in a loop."""
        for frame in self.frames:
            if frame.is_loop or isinstance(frame.op, ops.When) or len(frame.threads) < self.threads:
                refuse(
                    ScopeError,
                    "OX1028",
                    f"{what} must be executed once, by all threads of the CTA",
                    got="a narrower scope, a condition or a recorded loop around it",
                    required="the level of the pipeline function",
                    fix="move it out of the block",
                    causes=(Cause("the block it is in", frame.site),),
                )

    def require_of_launch(self, cond: Cond, what: str, fix: str) -> None:
        """Lets the launch be held to `cond`, once for all calls that ask the same of it."""
        if all((r.cond, r.what) != (cond, what) for r in self.requires):
            self.requires.append(Requirement(cond=cond, what=what, fix=fix, site=caller_site()))

    def require_no_loop(self, what: str) -> None:
        """`what` sets memory aside, once: a loop that asks for more in each iteration cannot be recorded."""
        for frame in self.frames:
            if frame.is_loop:
                refuse(
                    ScopeError,
                    "OX1069",
                    f"{what} in a recorded loop would be the same memory in each iteration",
                    got="a recorded loop around it",
                    required="shared memory set aside once",
                    fix="ask for it before the loop; `stages=n` and `cta.barriers(n)` give several",
                    causes=(Cause("the loop it is in", frame.site),),
                )

    def require_cluster(self, what: str) -> None:
        """`what` reaches other CTAs: there must be some."""
        if not self.clustered:
            refuse(
                ClusterError,
                "OX1017",
                f"{what} needs a cluster",
                got="a pipeline without one",
                required="`cluster=` in the pipeline's declaration",
                fix=f"declare {self.name!r} with cluster=(2, 1) and `cta: ox.ClusterCta`",
            )

    # ---- ops
    def emit(self, op: Instr) -> None:
        """Appends an op of the user's line."""
        self._check_blocks()
        self._check_operands(op)
        self.frames[-1].steps.append(Step(op, caller_site()))

    def _check_operands(self, op: Instr) -> None:
        counters = {frame.op.counter for frame in self.frames if isinstance(frame.op, ops.Loop)}
        for name, root in expressions(op):
            for node in bounded(root):
                if isinstance(node, Sym) and node.kind is SymKind.LOOP and node.name not in counters:
                    refuse(
                        ScopeError,
                        "OX1068",
                        f"{op.mnemonic}: {name} uses the counter of a loop that is over",
                        got=node.name,
                        required="use inside the loop's body",
                        fix="move the call into the loop, or compute the value from the trip count",
                    )
                if isinstance(node, Const):
                    to_expr(node.value, f"{op.mnemonic}: {name}")
        if self.reads:
            self._check_reads(op)

    def _check_reads(self, op: Instr) -> None:
        """A value read from memory steers nothing: what threads do must not depend on data, or no proof covers it."""
        for _, root in expressions(op):
            for name in (s.name for s, _ in nodes(root) if isinstance(s, Sym) and s.kind is SymKind.OPAQUE):
                if self.reads[name] not in self.frames:
                    refuse(
                        ScopeError,
                        "OX1146",
                        f"`{op.mnemonic}` uses a value that was read in a block that is over",
                        got=name,
                        required="use in the block that it was read in",
                        fix="move the call into the block, or read before it",
                        causes=(Cause("the block it was read in", self.reads[name].site),),
                    )
        for root in steering(op):
            for name in (s.name for s in symbols(root) if s.kind is SymKind.OPAQUE):
                refuse(
                    RecordError,
                    "OX1140",
                    f"`{op.mnemonic}` is steered by a value that is read from memory",
                    got=f"{name}, known only while the pipeline runs",
                    required="coordinates, and indices of further reads",
                    fix="let conditions, loops, stages and barriers depend on block indices, counters and `Idx` parameters",
                )

    def read(self) -> Sym:
        """A new integer that is read while the pipeline runs, known to the end of the block that is open now."""
        name = fresh("read", {*self.reads, *(p.name for p in self.params)})
        self.reads[name] = self.frames[-1]
        return Sym(name, SymKind.OPAQUE)

    def index(self, value: Idx, what: str) -> Expr:
        """The expression of an integer that is used in this recording."""
        e = to_expr(value, what)
        if owner_of(value) not in (None, self):
            refuse_foreign(what)
        return e

    def below(self, value: Idx, stop: int, what: str, error: type[RecordError], rule: str, fix: str) -> Expr:
        """As `index`, for values from 0 to `stop` - 1: plain ones are checked now, as a list would, the others by the verifier."""
        e = self.index(value, what)
        if isinstance(e, Const) and not 0 <= e.value < stop:
            refuse(error, rule, f"{what} is out of range", got=str(e.value), required=f"0 to {stop - 1}", fix=fix)
        return e

    def condition(self, value: Pred | bool) -> Cond:  # noqa: FBT001  # a condition, not an option
        """The condition that a block of this recording runs under."""
        if owner_of(value) not in (None, self):
            refuse_foreign("a condition")
        return to_cond(value)

    def coordinates(self, coords: object, rank: int, what: str) -> tuple[Expr, ...]:
        """Coordinates as expressions; the rank must be right."""
        if not isinstance(coords, tuple) or len(coords) != rank:
            got = f"{len(coords)} coordinates" if isinstance(coords, tuple) else described(coords)
            fix = "coordinates are elements, outermost first: (y, x) for rank 2"
            refuse(ShapeError, "OX1013", f"{what} has rank {rank}", got=got, required=f"a tuple of {rank}", fix=fix)
        return tuple(self.index(c, f"a coordinate of {what}") for c in coords)

    def thread(self, i: object, what: str) -> ThreadSet:
        """The set of one thread of the CTA."""
        n = whole(i)
        if n is None or not 0 <= n < self.threads:
            refuse(
                ScopeError,
                "OX1043",
                f"{what} names a thread that the CTA does not have",
                got=described(i),
                required=f"a plain int from 0 to {self.threads - 1}",
                fix="use thread 0, or ask for more threads in the pipeline's declaration",
            )
        return ThreadSet(((n, n + 1),))

    # ---- numbers
    def next_token(self) -> int:
        """A number for a new token."""
        self._tokens = self._counted(self._tokens, "tokens")
        return self._tokens - 1

    def next_pred(self) -> int:
        """A number for a new answer of try_wait or test_wait."""
        self._preds = self._counted(self._preds, "answers of try_wait and test_wait")
        return self._preds - 1

    def next_counter(self) -> str:
        """A name for a new loop counter, which no parameter has."""
        taken = {p.name for p in self.params}
        while (name := f"i{self._loops}") in taken:
            self._loops += 1
        self._loops += 1
        return name

    def _counted(self, made: int, what: str) -> int:
        if made > _NUMBERS_MAX:
            refuse(
                RecordError,
                "OX1058",
                f"too many {what}",
                got=f"{made + 1:,}",
                required=f"at most {_NUMBERS_MAX + 1} in one pipeline",
                fix="record the loop once: `for i in cta.range(n)` instead of Python's range",
            )
        return made + 1

    def barrier_number(self, threads: ThreadSet) -> int:
        """The named barrier of a group of threads; 0 is the whole CTA."""
        if len(threads) == self.threads:
            return 0
        if threads not in self._named:
            if len(self._named) + 1 >= limits.NAMED_BARRIERS:
                refuse(
                    ScopeError,
                    "OX1040",
                    "too many groups with a sync of their own",
                    got=f"{len(self._named) + 1} groups",
                    required=f"at most {limits.NAMED_BARRIERS - 1} named barriers beside cta.sync (PTX bar)",
                    fix="let groups share a barrier, or use mbarriers",
                )
            self._named[threads] = len(self._named) + 1
        return self._named[threads]

    def check_token_place(self, token: BarrierToken[Any, Any], *, copies: bool) -> None:
        """A token lives in the loop iteration and the role it was made in; from a role it may pass to the code around it and back.

        With `copies`, also in loops inside of that iteration: each copy there counts for the same phase. A wait would be a second one.
        """
        here, made = self.position, token._position
        shared = min(len(here.roles), len(made.roles))
        loops = here.loops[: len(made.loops)] if copies else here.loops
        if loops == made.loops and here.roles[:shared] == made.roles[:shared]:
            return
        border = "recorded loop" if loops != made.loops else "role"
        refuse(
            TokenError,
            "OX1007",
            f"a token crosses the border of a {border}",
            required="use in the same loop iteration and role",
            fix="use `bars = cta.barriers(n)` and `bars[i].wait_phase(k)`, which need no token",
            causes=(Cause("the token was made here", token._made),),
        )

    # ---- the end
    def finish(self) -> Program:
        """The program; nothing can be recorded afterwards."""
        self._unclosed = self._unclosed or (self.frames[1] if len(self.frames) > 1 else None)
        self._check_blocks()
        self._close(self.frames[0])
        self.closed = True
        tiles, barriers, total = place(self.tiles, self.barriers)
        return Program(
            name=self.name,
            threads=self.threads,
            cluster=self.cluster,
            params=tuple(self.params),
            tiles=tiles,
            barriers=barriers,
            shared_bytes=total,
            registers=self.registers,
            requires=tuple(self.requires),
            steps=tuple(self.frames[0].steps),
            site=self.site,
        )

    def add_barrier(self, kind: str, stages: int, stem: str) -> int:
        """Sets a barrier (array) aside; the result is its number."""
        name = fresh(stem, {b.name for b in self.barriers})
        self.barriers.append(BarrierDecl(name=name, kind=kind, stages=stages, offset=0, site=caller_site()))
        return len(self.barriers) - 1
