"""The recording under way: a stack of open blocks that ops are appended to, and the shared memory asked for.

Handles (barriers, tiles, leaders) hold the recorder that made them; nothing here is global. A recorder is used once: `finish` turns it
into a frozen `Program`, after which every handle of it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

from oxidecopy.errors import Cause, ClusterError, Diagnostic, RecordError, ScopeError, Site, TokenError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.expr import SymKind, symbols
from oxidecopy.isa.ops import Instr, ThreadSet
from oxidecopy.program.nesting import steering
from oxidecopy.program.program import BarrierDecl, Param, Program, Step
from oxidecopy.typed.layout import TileRequest, place
from oxidecopy.typed.sites import caller_site

if TYPE_CHECKING:
    from oxidecopy.typed.barrier import BarrierToken


ROLES: Final = frozenset({"warps", "producer", "consumers", "storer"})


@final
@dataclass(slots=True)
class Frame:
    """An open block. `threads` are those that execute it; `steps` grows until the block closes."""

    op: ops.Block | None
    threads: ThreadSet
    site: Site | None
    steps: list[Step] = field(default_factory=list)
    # Called when the block closes, before it becomes a step: rings number their stages then, and drain their stores.
    closing: list[Callable[[Frame], None]] = field(default_factory=list)

    @property
    def is_loop(self) -> bool:
        return isinstance(self.op, ops.Loop)

    @property
    def is_role(self) -> bool:
        return isinstance(self.op, ops.Scope) and self.op.role in ROLES


def refuse_steering(op: Instr) -> None:
    """Refuses an op that a value read from memory would steer: what threads do must not depend on data, or no proof covers it."""
    opaque = next((s.name for e in steering(op) for s in symbols(e) if s.kind is SymKind.OPAQUE), None)
    if opaque is not None:
        raise RecordError(
            Diagnostic(
                rule="OX1140",
                what=f"`{op.mnemonic}` is steered by a value that is read from memory",
                got=f"{opaque}, known only while the pipeline runs",
                required="coordinates, and indices of further reads",
                fix="let conditions, loops, stages and barriers depend on block indices, counters and `Idx` parameters",
                site=caller_site(),
            )
        )


@final
@dataclass(frozen=True, slots=True)
class Position:
    """Where a token was made: the loops and roles that were open."""

    loops: tuple[int, ...]
    roles: tuple[int, ...]


@final
class Recorder:
    """Collects one pipeline's ops. `site` is where the pipeline function is defined."""

    __slots__ = ("barriers", "closed", "cluster", "frames", "left_loop", "loops", "name", "named", "opaque", "params", "preds", "reads", "site", "threads", "tiles", "tokens")

    def __init__(self, name: str, threads: int, cluster: tuple[int, int, int], site: Site | None) -> None:
        self.name = name
        self.threads = threads
        self.cluster = cluster
        self.site = site
        self.params: list[Param] = []
        self.tiles: list[TileRequest] = []
        self.barriers: list[BarrierDecl] = []
        self.frames: list[Frame] = [Frame(None, ThreadSet(((0, threads),)), site)]
        self.named: dict[ThreadSet, int] = {}
        self.tokens = 0
        self.preds = 0
        self.loops = 0
        self.opaque = False  # some integer is read while the pipeline runs
        self.reads = 0
        self.closed = False
        self.left_loop: Site | None = None

    # ---- blocks
    @property
    def scope(self) -> ThreadSet:
        """The threads that execute what is recorded now."""
        return self.frames[-1].threads

    @property
    def position(self) -> Position:
        return Position(
            loops=tuple(id(f) for f in self.frames if f.is_loop),
            roles=tuple(id(f) for f in self.frames if f.is_role),
        )

    def check_open(self, what: str) -> None:
        """Refuses `what` when this recording is over, or when a recorded loop was left by `break`."""
        if self.closed:
            raise ScopeError(
                Diagnostic(
                    rule="OX1019",
                    what=f"{what} is used outside the pipeline that it was made in",
                    required="use inside the pipeline function, while it is recorded",
                    fix=f"make it again inside {self.name!r}",
                    site=caller_site(),
                )
            )
        self.check_loops()

    def check_loops(self) -> None:
        if self.left_loop is not None:
            site, self.left_loop = self.left_loop, None
            raise RecordError(
                Diagnostic(
                    rule="OX1025",
                    what="a recorded loop was left by break, return or an exception: its body is recorded once and has no early end",
                    fix="end the body normally; guard the rest of it with `with cta.when(cond):`",
                    site=site,
                )
            )

    def push(self, op: ops.Block, threads: ThreadSet) -> Frame:
        if self.opaque:
            refuse_steering(op)
        frame = Frame(op, threads, caller_site())
        self.frames.append(frame)
        return frame

    def pop(self, frame: Frame) -> None:
        """Closes `frame`. Blocks that an exception left open above it go with it."""
        while self.frames[-1] is not frame:
            self.frames.pop()
        for close in frame.closing:
            close(frame)
        self.frames.pop()
        assert frame.op is not None  # the root is never popped
        self.frames[-1].steps.append(Step(frame.op, frame.site, tuple(frame.steps)))

    # ---- ops
    def emit(self, op: Instr, site: Site | None = None) -> None:
        self.check_loops()
        if self.opaque:
            refuse_steering(op)
        self.frames[-1].steps.append(Step(op, site or caller_site()))

    def require_toplevel(self, what: str) -> None:
        """`what` must be executed by all threads, once: not inside a scope, `when` or loop."""
        if len(self.frames) > 1:
            top = self.frames[-1]
            raise ScopeError(
                Diagnostic(
                    rule="OX1028",
                    what=f"{what} must be executed once, by all threads of the CTA",
                    got="inside a narrower scope, a condition or a recorded loop",
                    fix="move it to the level of the pipeline function",
                    site=caller_site(),
                    causes=(Cause("the block it is in", top.site),),
                )
            )

    def require_cluster(self, what: str) -> None:
        if self.cluster == (1, 1, 1):
            raise ClusterError(
                Diagnostic(
                    rule="OX1017",
                    what=f"{what} needs a cluster",
                    got="a pipeline without one",
                    fix=f"declare {self.name!r} with cluster=(2, 1) and `cta: ox.ClusterCta`",
                    site=caller_site(),
                )
            )

    # ---- numbers
    def next_token(self) -> int:
        self.tokens += 1
        return self.tokens - 1

    def next_pred(self) -> int:
        self.preds += 1
        return self.preds - 1

    def barrier_number(self, threads: ThreadSet) -> int:
        """The named barrier of a group of threads; 0 is the whole CTA."""
        if len(threads) == self.threads:
            return 0
        if threads not in self.named:
            if len(self.named) + 1 >= limits.NAMED_BARRIERS:
                raise ScopeError(
                    Diagnostic(
                        rule="OX1040",
                        what="too many groups with a sync of their own",
                        got=f"{len(self.named) + 1} groups",
                        required=f"at most {limits.NAMED_BARRIERS - 1} named barriers beside cta.sync (PTX bar)",
                        fix="let groups share a barrier, or use mbarriers",
                        site=caller_site(),
                    )
                )
            self.named[threads] = len(self.named) + 1
        return self.named[threads]

    def check_token_place(self, token: BarrierToken[Any, Any]) -> None:
        """A token lives in the loop iteration and the role it was made in."""
        here, made = self.position, token._position
        if here.loops == made.loops and here.roles[: len(made.roles)] in (made.roles, made.roles[: len(here.roles)]):
            return
        border = "recorded loop" if here.loops != made.loops else "role"
        raise TokenError(
            Diagnostic(
                rule="OX1007",
                what=f"a token crosses the border of a {border}",
                required="use in the same loop iteration and role",
                fix="use `bars = cta.barriers(n)` and `bars[i].wait_phase(k)`, which need no token",
                site=caller_site(),
                causes=(Cause("the token was made here", token._made),),
            )
        )

    # ---- the end
    def finish(self) -> Program:
        self.check_loops()
        for close in self.frames[0].closing:
            close(self.frames[0])
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
            steps=tuple(self.frames[0].steps),
            site=self.site,
        )

    def add_barrier(self, kind: str, stages: int, name: str) -> int:
        self.barriers.append(BarrierDecl(name=name, kind=kind, stages=stages, offset=0, site=caller_site()))
        return len(self.barriers) - 1

    def rename_barrier(self, index: int, name: str) -> None:
        self.barriers[index] = replace(self.barriers[index], name=name)
