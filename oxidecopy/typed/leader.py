"""Who executes: one elected thread (`Leader`), several warps (`Group`), and the with-blocks that give them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Never, NoReturn, TypeVar, final

from typing_extensions import override

from oxidecopy.errors import Cause, RecordError, ScopeError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.symbolic import Pred

if TYPE_CHECKING:
    from oxidecopy.typed.frames import Frame
    from oxidecopy.typed.recorder import Recorder

_T = TypeVar("_T")


class Leader:
    """One thread, inside its with-block. Only `elect` and `thread` give one; it cannot be constructed."""

    __slots__ = ("_frame", "_recorder")
    _frame: Frame
    _recorder: Recorder

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: Any, **__: Any) -> None:
            _refuse_forged("a leader", "with cta.elect() as leader:")

    def commit_group(self) -> None:
        """Closes this thread's open bulk group (PTX cp.async.bulk.commit_group)."""
        self._emit(ops.CommitGroup())

    def wait_group(self, n: int) -> None:
        """Waits until at most `n` (0 to 15) of this thread's newest bulk groups are unfinished: written and visible to this thread."""
        self._emit(ops.WaitGroup(pending=_pending(n)))

    def wait_group_read(self, n: int) -> None:
        """As `wait_group`, but only until shared memory has been read and may be overwritten."""
        self._emit(ops.WaitGroupRead(pending=_pending(n)))

    def _emit(self, op: ops.Instr) -> None:
        check_leader(self, self._recorder)
        self._recorder.emit(op)


@final
class ClusterLeader(Leader):
    """A leader in a pipeline that has a cluster: it may multicast."""

    __slots__ = ()


class Group:
    """Several warps, inside their with-block; `sync` is their own named barrier (PTX bar.sync)."""

    __slots__ = ("_frame", "_recorder")
    _frame: Frame
    _recorder: Recorder

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: Any, **__: Any) -> None:
            _refuse_forged("a group", "with cta.warps(0, 4) as group:")

    def sync(self) -> None:
        """Waits for all threads of the group."""
        self._check("a group's sync")
        threads = self._frame.threads
        self._recorder.emit(ops.BarSync(number=self._recorder.barrier_number(threads), threads=len(threads)))

    def elect(self) -> AbstractContextManager[Leader, None]:
        """One fixed lane of the group: the first."""
        return HandleBlock(self._recorder, "elect", self._first(), Leader)

    def _first(self) -> ThreadSet:
        self._check("a group's elect")
        first = self._frame.threads.first
        return ThreadSet(((first, first + 1),))

    def _check(self, what: str) -> None:
        self._recorder.check_open(what)
        if self._frame not in self._recorder.frames:
            refuse(
                ScopeError,
                "OX1018",
                f"{what} is used outside its with-block",
                required="use inside the block",
                fix="move the call into the block",
                causes=(Cause("the group's block", self._frame.site),),
            )


class ClusterGroup(Group):
    """A group in a pipeline that has a cluster: its leaders may multicast."""

    __slots__ = ()

    @override
    def elect(self) -> AbstractContextManager[ClusterLeader, None]:
        """One fixed lane of the group: the first."""
        return HandleBlock(self._recorder, "elect", self._first(), ClusterLeader)


def _refuse_forged(what: str, block: str) -> NoReturn:
    refuse(
        ScopeError,
        "OX1015",
        f"{what} cannot be constructed: it stands for threads that a block has picked",
        required="what a block gives",
        fix=f"use `{block}`",
    )


def _pending(n: object) -> int:
    number = whole(n)
    if number is None or not 0 <= number <= limits.WAIT_GROUP_MAX:
        refuse(
            RecordError,
            "OX1064",
            "the number of groups left pending is an immediate of the instruction",
            got=described(n),
            required=f"a plain int from 0 to {limits.WAIT_GROUP_MAX}",
            fix="use a constant: stages - 1 for a ring of stores",
        )
    return number


def leader_of(leader: object, what: str) -> Leader:
    """`what` is issued by a leader."""
    if not isinstance(leader, Leader):
        refuse(
            ScopeError,
            "OX1014",
            f"{what} is issued by one elected thread",
            got=described(leader),
            required="a Leader",
            fix="use `with cta.elect() as leader:` and pass `leader`",
        )
    return leader


def check_leader(leader: Leader, recorder: Recorder) -> None:
    """`leader` must be this recording's, inside its block."""
    leader._recorder.check_open("a leader", recorder)
    if leader._frame not in recorder.frames or recorder.scope != leader._frame.threads:
        refuse(
            ScopeError,
            "OX1018",
            "a leader is used outside its with-block",
            required="use inside the block, where exactly this thread executes",
            fix="move the call into the block",
            causes=(Cause("the leader was elected here", leader._frame.site),),
        )


# ---- the with-blocks
class _Block(AbstractContextManager[_T, None], Generic[_T]):
    """What all with-blocks share: they are entered once, and what was recorded inside becomes their body."""

    __slots__ = ("_frame", "_recorder")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._frame: Frame | None = None

    def _open(self, op: ops.Block, threads: ThreadSet) -> Frame:
        if self._frame is not None:
            refuse(
                ScopeError,
                "OX1071",
                "a block is entered a second time",
                required="a new block for each `with`",
                fix="write `with cta.elect() as leader:` where it is needed",
                causes=(Cause("it was entered here", self._frame.site),),
            )
        self._frame = self._recorder.push(op, threads)
        return self._frame

    @override
    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /) -> None:
        if self._frame is not None:
            self._recorder.pop(self._frame, failed=exc is not None)


class _ThreadsBlock(_Block[_T]):
    """A with-block that a narrower set of threads executes."""

    __slots__ = ("_role", "_threads")

    def __init__(self, recorder: Recorder, role: str, threads: ThreadSet) -> None:
        super().__init__(recorder)
        self._role = role
        self._threads = threads

    def _narrow(self) -> Frame:
        recorder = self._recorder
        recorder.check_open(f"a block of {self._role}")
        threads = intersect(recorder.scope, self._threads)
        if threads is None:
            refuse(
                ScopeError,
                "OX1030",
                f"this {self._role} block would never run: none of its threads is in the block around it",
                got=f"threads {_words(self._threads)} inside {_words(recorder.scope)}",
                required="at least one thread",
                fix="put the two blocks beside each other",
                causes=(Cause("the block around it", recorder.frames[-1].site),),
            )
        return self._open(ops.Scope(role=self._role, threads=threads), threads)


_H = TypeVar("_H", bound=Leader | Group)


@final
class HandleBlock(_ThreadsBlock[_H]):
    """The with-block that gives a `Leader` or a `Group`; only it makes them."""

    __slots__ = ("_cls",)

    def __init__(self, recorder: Recorder, role: str, threads: ThreadSet, cls: type[_H]) -> None:
        super().__init__(recorder, role, threads)
        self._cls = cls

    @override
    def __enter__(self) -> _H:
        frame = self._narrow()
        handle = object.__new__(self._cls)
        handle._frame = frame
        handle._recorder = self._recorder
        return handle


@final
class ThreadsBlock(_ThreadsBlock[None]):
    """The with-block of several threads that need no handle."""

    __slots__ = ()

    @override
    def __enter__(self) -> None:
        self._narrow()


@final
class ConditionBlock(_Block[None]):
    """The with-block of `cta.when`."""

    __slots__ = ("_cond",)

    def __init__(self, recorder: Recorder, cond: Pred | bool) -> None:  # noqa: FBT001  # a condition, not an option
        super().__init__(recorder)
        self._cond = cond

    @override
    def __enter__(self) -> None:
        self._recorder.check_open("a condition")
        self._open(ops.When(cond=self._recorder.condition(self._cond)), self._recorder.scope)


def intersect(a: ThreadSet, b: ThreadSet) -> ThreadSet | None:
    """The threads in both, None when there are none."""
    ranges = [(max(lo, lo2), min(hi, hi2)) for lo, hi in a.ranges for lo2, hi2 in b.ranges]
    kept = tuple(sorted((lo, hi) for lo, hi in ranges if lo < hi))
    return ThreadSet(kept) if kept else None


def _words(threads: ThreadSet) -> str:
    return ", ".join(f"{lo}" if hi == lo + 1 else f"{lo} to {hi - 1}" for lo, hi in threads.ranges)
