"""Who executes: one elected thread (`Leader`), several warps (`Group`), and the with-blocks that give them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, final

from typing_extensions import override

from oxidecopy.errors import Cause, Diagnostic, ScopeError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.typed.sites import caller_site

if TYPE_CHECKING:
    from oxidecopy.typed.recorder import Frame, Recorder

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Leader:
    """One thread, inside its with-block. Only `elect` and `thread` give one; it cannot be constructed."""

    __slots__ = ("_frame", "_recorder")
    _frame: Frame
    _recorder: Recorder

    def __init__(self, _key: NoReturn) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: Any) -> None:
            raise ScopeError(
                Diagnostic(
                    rule="OX1015",
                    what="a leader cannot be constructed: it stands for a thread that a block has picked",
                    fix="use `with cta.elect() as leader:` or `with cta.thread(i) as leader:`",
                    site=caller_site(),
                )
            )

    def commit_group(self) -> None:
        """Closes this thread's open bulk group (PTX cp.async.bulk.commit_group)."""
        self._emit(ops.CommitGroup())

    def wait_group(self, n: int) -> None:
        """Waits until at most `n` (0 to 15) of this thread's newest bulk groups are unfinished: written and visible to this thread."""
        self._emit(ops.WaitGroup(pending=_group_count(n)))

    def wait_group_read(self, n: int) -> None:
        """As `wait_group`, but only until shared memory has been read and may be overwritten."""
        self._emit(ops.WaitGroupRead(pending=_group_count(n)))

    def _emit(self, op: ops.Instr) -> None:
        require_leader(self, self._recorder, "a bulk group operation")
        self._recorder.emit(op)


class ClusterLeader(Leader):
    """A leader in a pipeline that has a cluster: it may multicast."""

    __slots__ = ()


def make_leader(cls: type[_T], recorder: Recorder, frame: Frame) -> _T:
    """The one factory of leaders and groups."""
    made = cls.__new__(cls)
    made._frame = frame  # type: ignore[attr-defined]  # the private slots of Leader and Group
    made._recorder = recorder  # type: ignore[attr-defined]  # as above
    return made


def _group_count(n: int) -> int:
    if type(n) is not int or not 0 <= n <= limits.WAIT_GROUP_MAX:
        raise ScopeError(
            Diagnostic(
                rule="OX1039",
                what="the number of groups left pending is an immediate of the instruction",
                got=repr(n),
                required=f"a plain int from 0 to {limits.WAIT_GROUP_MAX}",
                fix="use a constant: stages - 1 for a ring of stores",
                site=caller_site(),
            )
        )
    return n


def require_leader(leader: object, recorder: Recorder, what: str) -> Leader:
    """`leader` must be this recording's, inside its block."""
    recorder.check_open(what)
    if not isinstance(leader, Leader):
        raise ScopeError(
            Diagnostic(
                rule="OX1014",
                what=f"{what} is issued by one elected thread",
                got=type(leader).__name__,
                required="a Leader",
                fix="use `with cta.elect() as leader:` and pass `leader`",
                site=caller_site(),
            )
        )
    if leader._recorder is not recorder or leader._frame not in recorder.frames or recorder.scope != leader._frame.threads:
        raise ScopeError(
            Diagnostic(
                rule="OX1018",
                what="a leader is used outside its with-block",
                required="use inside the block, where exactly this thread executes",
                fix="move the call into the block",
                site=caller_site(),
                causes=(Cause("the leader was elected here", leader._frame.site),),
            )
        )
    return leader


class Group:
    """Several warps, inside their with-block; `sync` is their own named barrier (PTX bar.sync)."""

    __slots__ = ("_frame", "_recorder")
    _frame: Frame
    _recorder: Recorder

    def __init__(self, _key: NoReturn) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: Any) -> None:
            raise ScopeError(
                Diagnostic(
                    rule="OX1015", what="a group cannot be constructed", fix="use `with cta.warps(a, b) as group:`", site=caller_site()
                )
            )

    def _check(self, what: str) -> None:
        self._recorder.check_open(what)
        if self._frame not in self._recorder.frames:
            raise ScopeError(
                Diagnostic(
                    rule="OX1018",
                    what="a group is used outside its with-block",
                    fix="move the call into the block",
                    site=caller_site(),
                    causes=(Cause("the group's block", self._frame.site),),
                )
            )

    def sync(self) -> None:
        """Waits for all threads of the group."""
        self._check("a group's sync")
        threads = self._frame.threads
        self._recorder.emit(ops.BarSync(number=self._recorder.barrier_number(threads), threads=len(threads)))

    def elect(self) -> AbstractContextManager[Leader, None]:
        """One fixed lane of the group: the first."""
        self._check("a group's elect")
        first = self._frame.threads.first
        cls = ClusterLeader if self._recorder.cluster != (1, 1, 1) else Leader
        return ScopeBlock(self._recorder, "elect", ThreadSet(((first, first + 1),)), cls)


@final
class ScopeBlock(AbstractContextManager[_T_co, None], Generic[_T_co]):
    """The with-block of a narrower thread set; gives a handle of class `cls` (nothing for `NoneType`)."""

    __slots__ = ("_cls", "_frame", "_recorder", "_role", "threads")

    def __init__(self, recorder: Recorder, role: str, threads: ThreadSet, cls: type[_T_co]) -> None:
        self._recorder = recorder
        self._role = role
        self.threads = threads
        self._cls = cls

    @override
    def __enter__(self) -> _T_co:
        recorder = self._recorder
        recorder.check_open(f"a block of {self._role}")
        threads = intersect(recorder.scope, self.threads)
        if threads is None:
            raise ScopeError(
                Diagnostic(
                    rule="OX1030",
                    what=f"this {self._role} block would never run: none of its threads is in the block around it",
                    got=f"threads {_words(self.threads)} inside {_words(recorder.scope)}",
                    fix="put the two blocks beside each other",
                    site=caller_site(),
                    causes=(Cause("the block around it", recorder.frames[-1].site),),
                )
            )
        self._frame = recorder.push(ops.Scope(role=self._role, threads=threads), threads)
        return None if self._cls is type(None) else make_leader(self._cls, recorder, self._frame)

    @override
    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /) -> None:
        self._recorder.pop(self._frame)


@final
class ConditionBlock(AbstractContextManager[None, None]):
    """The with-block of `cta.when`."""

    __slots__ = ("_frame", "_op", "_recorder")

    def __init__(self, recorder: Recorder, op: ops.When) -> None:
        self._recorder = recorder
        self._op = op

    @override
    def __enter__(self) -> None:
        self._recorder.check_open("a condition")
        self._frame = self._recorder.push(self._op, self._recorder.scope)

    @override
    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None, /) -> None:
        self._recorder.pop(self._frame)


def intersect(a: ThreadSet, b: ThreadSet) -> ThreadSet | None:
    """The threads in both, None when there are none."""
    ranges = [(max(lo, lo2), min(hi, hi2)) for lo, hi in a.ranges for lo2, hi2 in b.ranges]
    kept = tuple(sorted((lo, hi) for lo, hi in ranges if lo < hi))
    return ThreadSet(kept) if kept else None


def _words(threads: ThreadSet) -> str:
    return ", ".join(f"{lo}" if hi == lo + 1 else f"{lo} to {hi - 1}" for lo, hi in threads.ranges)
