"""`ManagedBarrier[State, Kind, ID]`: an mbarrier whose state is in its type, and the tokens that tie a wait to an arrival.

A state change returns a new handle and consumes the old one; a consumed handle, or one of another state, is refused while recording with
the same words a checker's error stands for. Names follow PTX (9.7.13.15) and cuda-oxide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, final

from typing_extensions import TypeVar

from oxidecopy.errors import Cause, Diagnostic, MovedError, ScopeError, StateError, TokenError
from oxidecopy.isa import expr, limits, ops
from oxidecopy.isa.ops import BarrierRef, ThreadSet
from oxidecopy.typed.leader import Leader, require_leader
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.smem import SharedArray, stage_index
from oxidecopy.typed.states import AnyId, Invalidated, Kind, Owned, Ready, State, TmaBarrier, Uninit
from oxidecopy.typed.symbolic import Idx, Pred, to_expr

if TYPE_CHECKING:
    from oxidecopy.errors import Site
    from oxidecopy.typed.recorder import Position, Recorder

S = TypeVar("S", bound=State)
K = TypeVar("K", bound=Kind, default=TmaBarrier)
ID = TypeVar("ID", default=AnyId)


class BarrierToken(Generic[K, ID]):
    """Names the phase that an arrival counted in. It is waited for once, on its own barrier, in the same iteration and role."""

    __slots__ = ("_made", "_number", "_position", "_recorder", "_ref", "_taken")

    def __init__(self, recorder: Recorder, ref: BarrierRef) -> None:
        self._recorder = recorder
        self._ref = ref
        self._number = recorder.next_token()
        self._position: Position = recorder.position
        self._made: Site | None = caller_site()
        self._taken: Site | None = None

    def _use(self, what: str) -> None:
        """Checks that the token is alive here."""
        self._recorder.check_open("a token")
        if self._taken is not None:
            raise MovedError(
                Diagnostic(
                    rule="OX1004",
                    what=f"{what} uses a token that was already waited for",
                    required="one wait per token",
                    fix="arrive again for a new token, or drop the second wait",
                    site=caller_site(),
                    causes=(Cause("the token was made here", self._made), Cause("waited for here", self._taken)),
                )
            )
        self._recorder.check_token_place(self)


@final
class TxToken(BarrierToken[K, ID]):
    """A token of an arrival that announced bytes: what a copy needs to be issued."""

    __slots__ = ()


@final
class ManagedBarrier(Generic[S, K, ID]):
    """One mbarrier in shared memory, made by `cta.barrier` (or an element of `cta.barriers`)."""

    __slots__ = ("_borrowed", "_decl", "_index", "_kind", "_recorder", "_state", "_taken")

    def __init__(self, recorder: Recorder, decl: int, kind: type[Kind], state: type[State], index: expr.Expr | None = None) -> None:
        self._recorder = recorder
        self._decl = decl
        self._kind = kind
        self._state = state
        self._index = index if index is not None else expr.ZERO
        self._borrowed = index is not None
        self._taken: Cause | None = None

    # ---- life
    def init(self: Owned[ManagedBarrier[Uninit, K, ID]], count: int) -> ManagedBarrier[Ready, K, ID]:
        """Starts phase 0 with `count` arrivals per phase; thread 0 does it, then the CTA syncs. Consumes this handle."""
        return self.init_by(count, 0)

    def init_by(self: Owned[ManagedBarrier[Uninit, K, ID]], count: int, thread: int) -> ManagedBarrier[Ready, K, ID]:
        """As `init`, by thread number `thread`."""
        self._require(Uninit, "init")
        _init(self._recorder, self._decl, 1, count, thread)
        self._taken = Cause("`init` took it here", caller_site())
        return ManagedBarrier(self._recorder, self._decl, self._kind, Ready)

    def inval(self: Owned[ManagedBarrier[Ready, K, ID]]) -> ManagedBarrier[Invalidated, K, ID]:
        """Ends the barrier, after a sync of the CTA, so that its memory may be used for something else. Consumes this handle."""
        return self.inval_by(0)

    def inval_by(self: Owned[ManagedBarrier[Ready, K, ID]], thread: int) -> ManagedBarrier[Invalidated, K, ID]:
        """As `inval`, by thread number `thread`."""
        self._require(Ready, "inval")
        if self._borrowed:
            raise StateError(
                Diagnostic(
                    rule="OX1041",
                    what="one element of a barrier array cannot be invalidated",
                    required="the array lives and ends as a whole",
                    fix="call `inval` on the array",
                    site=caller_site(),
                )
            )
        _inval(self._recorder, self._decl, 1, thread)
        self._taken = Cause("`inval` took it here", caller_site())
        return ManagedBarrier(self._recorder, self._decl, self._kind, Invalidated)

    # ---- arrivals
    def arrive(self: ManagedBarrier[Ready, K, ID]) -> BarrierToken[K, ID]:
        """One arrival by every thread in scope (release, CTA scope)."""
        self._require(Ready, "arrive")
        token: BarrierToken[K, ID] = BarrierToken(self._recorder, self._ref())
        self._recorder.emit(ops.MbarrierArrive(bar=self._ref(), token=token._number))
        return token

    def arrive_drop(self: ManagedBarrier[Ready, K, ID]) -> BarrierToken[K, ID]:
        """Arrives, and lowers the count of all later phases by one, for every thread in scope."""
        self._require(Ready, "arrive_drop")
        token: BarrierToken[K, ID] = BarrierToken(self._recorder, self._ref())
        self._recorder.emit(ops.MbarrierArriveDrop(bar=self._ref(), token=token._number))
        return token

    def arrive_remote(self: ManagedBarrier[Ready, K, ID], cta_rank: Idx) -> None:
        """One arrival by every thread in scope on the same barrier of cluster CTA `cta_rank`. There is no token to wait for."""
        self._require(Ready, "arrive_remote")
        self._recorder.require_cluster("a remote arrival")
        self._recorder.emit(ops.MbarrierArriveRemote(bar=self._ref(), rank=to_expr(cta_rank, "a cluster rank")))

    def arrive_expect_tx(
        self: ManagedBarrier[Ready, TmaBarrier, ID], leader: Leader, *nbytes: int | SharedArray[Any, Any, Any]
    ) -> TxToken[TmaBarrier, ID]:
        """Announces bytes (numbers, or tiles for their `nbytes`) and arrives, in one step; the token lets copies be issued."""
        self._require(Ready, "arrive_expect_tx", kind=TmaBarrier)
        require_leader(leader, self._recorder, "arrive_expect_tx")
        token: TxToken[TmaBarrier, ID] = TxToken(self._recorder, self._ref())
        self._recorder.emit(ops.MbarrierArriveExpectTx(bar=self._ref(), nbytes=_tx(nbytes), token=token._number))
        return token

    def arrive_expect_tx_remote(
        self: ManagedBarrier[Ready, TmaBarrier, ID], leader: Leader, *nbytes: int | SharedArray[Any, Any, Any], cta_rank: Idx
    ) -> None:
        """`arrive_expect_tx` on the same barrier of cluster CTA `cta_rank`. There is no token to wait for."""
        self._require(Ready, "arrive_expect_tx_remote", kind=TmaBarrier)
        require_leader(leader, self._recorder, "arrive_expect_tx_remote")
        self._recorder.require_cluster("a remote arrival")
        self._recorder.emit(
            ops.MbarrierArriveExpectTxRemote(bar=self._ref(), nbytes=_tx(nbytes), rank=to_expr(cta_rank, "a cluster rank"))
        )

    def expect_tx(self: ManagedBarrier[Ready, TmaBarrier, ID], leader: Leader, *nbytes: int | SharedArray[Any, Any, Any]) -> None:
        """Announces bytes without arriving; an arrival of the same phase must follow."""
        self._require(Ready, "expect_tx", kind=TmaBarrier)
        require_leader(leader, self._recorder, "expect_tx")
        self._recorder.emit(ops.MbarrierExpectTx(bar=self._ref(), nbytes=_tx(nbytes)))

    def complete_tx(self: ManagedBarrier[Ready, TmaBarrier, ID], leader: Leader, *nbytes: int | SharedArray[Any, Any, Any]) -> None:
        """Takes announced bytes off, as a landed copy would."""
        self._require(Ready, "complete_tx", kind=TmaBarrier)
        require_leader(leader, self._recorder, "complete_tx")
        self._recorder.emit(ops.MbarrierCompleteTx(bar=self._ref(), nbytes=_tx(nbytes)))

    # ---- waits
    def wait(
        self: ManagedBarrier[Ready, K, ID], token: Owned[BarrierToken[K, ID]], /, *more: Owned[BarrierToken[K, ID]]
    ) -> None:
        """All threads in scope wait until the phases that the tokens name are over. Consumes the tokens."""
        tokens = (token, *more)
        self._require(Ready, "wait")
        for t in tokens:
            self._own(t, "wait")
        self._recorder.emit(ops.MbarrierWait(bar=self._ref(), tokens=tuple(t._number for t in tokens)))
        for t in tokens:
            t._taken = caller_site()

    def wait_phase(self: ManagedBarrier[Ready, K, ID], k: Idx, /) -> None:
        """Waits for completion number `k` (0 is the first). A negative `k` passes at once."""
        self._require(Ready, "wait_phase")
        self._recorder.emit(ops.MbarrierWaitPhase(bar=self._ref(), phase=to_expr(k, "a phase")))

    def wait_parity(self: ManagedBarrier[Ready, K, ID], parity: Idx, /) -> None:
        """try_wait.parity until true: passes when the current phase's parity differs from `parity` (0 or 1)."""
        self._require(Ready, "wait_parity")
        self._recorder.emit(ops.MbarrierWaitParity(bar=self._ref(), parity=to_expr(parity, "a parity")))

    def try_wait(self: ManagedBarrier[Ready, K, ID], token: BarrierToken[K, ID], /) -> Pred:
        """One try_wait: borrows the token and answers whether its phase is over, after waiting a little (about 4 us on an H200)."""
        return self._test("try_wait", token)

    def test_wait(self: ManagedBarrier[Ready, K, ID], token: BarrierToken[K, ID], /) -> Pred:
        """One test_wait: borrows the token and answers at once whether its phase is over."""
        return self._test("test_wait", token)

    def try_wait_parity(self: ManagedBarrier[Ready, K, ID], parity: Idx, /) -> Pred:
        """One try_wait.parity: answers whether the current phase's parity differs from `parity`."""
        return self._test_parity("try_wait", parity)

    def test_wait_parity(self: ManagedBarrier[Ready, K, ID], parity: Idx, /) -> Pred:
        """One test_wait.parity."""
        return self._test_parity("test_wait", parity)

    # ---- the checks behind them
    def _ref(self) -> BarrierRef:
        return BarrierRef(self._decl, self._index)

    def _test(self, form: str, token: BarrierToken[Any, Any]) -> Pred:
        self._require(Ready, form)
        self._own(token, form)
        pred = self._recorder.next_pred()
        self._recorder.emit(ops.MbarrierTestToken(form=form, bar=self._ref(), token=token._number, pred=pred))
        return Pred(expr.Answer(pred), self._recorder)

    def _test_parity(self, form: str, parity: Idx) -> Pred:
        self._require(Ready, form)
        pred = self._recorder.next_pred()
        self._recorder.emit(ops.MbarrierTestParity(form=form, bar=self._ref(), parity=to_expr(parity, "a parity"), pred=pred))
        return Pred(expr.Answer(pred), self._recorder)

    def _require(self, state: type[State], what: str, *, kind: type[Kind] | None = None) -> None:
        """The run-time twin of the self types above."""
        name = self._recorder.barriers[self._decl].name
        self._recorder.check_open(f"barrier {name!r}")
        if self._taken is not None:
            raise MovedError(
                Diagnostic(
                    rule="OX1003",
                    what=f"`{what}` on a handle of barrier {name!r} that was already taken",
                    required="the handle that the earlier call returned",
                    fix="keep its result: `full = bar.init(1)`, then use `full`",
                    site=caller_site(),
                    causes=(self._taken,),
                )
            )
        if self._state is not state:
            rule = "OX1002" if self._state is Invalidated else "OX1001"
            raise StateError(
                Diagnostic(
                    rule=rule,
                    what=f"`{what}` on barrier {name!r} in the wrong state",
                    got=self._state.__name__,
                    required=state.__name__,
                    fix="call `init(count)` first and use its result" if self._state is Uninit else "use the barrier between `init` and `inval`",
                    site=caller_site(),
                )
            )
        if kind is not None and self._kind is not kind:
            raise StateError(
                Diagnostic(
                    rule="OX1008",
                    what=f"`{what}` on barrier {name!r}, which does not count bytes",
                    got=self._kind.__name__,
                    required=kind.__name__,
                    fix="make it with `cta.barrier()`",
                    site=caller_site(),
                )
            )

    def _own(self, token: object, what: str) -> None:
        """`token` must be alive and of this very barrier."""
        if not isinstance(token, BarrierToken):
            raise TokenError(
                Diagnostic(rule="OX1006", what=f"`{what}` needs a token", got=type(token).__name__, required="what `arrive` returned", fix="pass the token", site=caller_site())
            )
        token._use(f"`{what}`")
        if token._recorder is not self._recorder or token._ref != self._ref():
            names = self._recorder.barriers
            raise TokenError(
                Diagnostic(
                    rule="OX1005",
                    what=f"`{what}` on barrier {names[self._decl].name!r} gets a token of another barrier",
                    got=f"a token of {names[token._ref.barrier].name!r}" if token._recorder is self._recorder else "a token of another pipeline",
                    required="a token of the same barrier",
                    fix="wait on the barrier that the token came from",
                    site=caller_site(),
                    causes=(Cause("the token was made here", token._made),),
                )
            )


@final
class ManagedBarriers(Generic[S, K, ID]):
    """`n` mbarriers, made by `cta.barriers(n)`; elements are borrowed by `bars[i]`, `i` an `Idx`."""

    __slots__ = ("_all",)

    def __init__(self, everything: ManagedBarrier[S, K, ID]) -> None:
        self._all = everything

    def init(self: Owned[ManagedBarriers[Uninit, K, ID]], count: int) -> ManagedBarriers[Ready, K, ID]:
        """Starts all of them with `count` arrivals per phase; consumes this handle."""
        return self.init_by(count, 0)

    def init_by(self: Owned[ManagedBarriers[Uninit, K, ID]], count: int, thread: int) -> ManagedBarriers[Ready, K, ID]:
        """As `init`, by thread number `thread`."""
        one = self._all
        one._require(Uninit, "init")
        _init(one._recorder, one._decl, len(self), count, thread)
        one._taken = Cause("`init` took it here", caller_site())
        return ManagedBarriers(ManagedBarrier(one._recorder, one._decl, one._kind, Ready))

    def inval(self: Owned[ManagedBarriers[Ready, K, ID]]) -> ManagedBarriers[Invalidated, K, ID]:
        """Ends all of them, after a sync of the CTA; consumes this handle."""
        one = self._all
        one._require(Ready, "inval")
        _inval(one._recorder, one._decl, len(self), 0)
        one._taken = Cause("`inval` took it here", caller_site())
        return ManagedBarriers(ManagedBarrier(one._recorder, one._decl, one._kind, Invalidated))

    def __getitem__(self: ManagedBarriers[Ready, K, ID], i: Idx, /) -> ManagedBarrier[Ready, K, ID]:
        one = self._all
        one._require(Ready, "indexing")
        name = f"barrier array {one._recorder.barriers[one._decl].name!r}"
        return ManagedBarrier(one._recorder, one._decl, one._kind, Ready, stage_index(i, len(self), name))

    def __len__(self) -> int:
        return self._all._recorder.barriers[self._all._decl].stages

    def __iter__(self: ManagedBarriers[Ready, K, ID]) -> Iterator[ManagedBarrier[Ready, K, ID]]:
        return (self[i] for i in range(len(self)))


# cuda-oxide's short name for the common case.
TmaBarrierHandle: TypeAlias = ManagedBarrier[S, TmaBarrier, AnyId]


def _tx(parts: tuple[int | SharedArray[Any, Any, Any], ...]) -> int:
    total = 0
    for part in parts:
        n: object = part.nbytes if isinstance(part, SharedArray) else part
        if type(n) is not int or not 0 <= n <= limits.MBARRIER_TX_MAX or total + n > limits.MBARRIER_TX_MAX:
            raise StateError(
                Diagnostic(
                    rule="OX1039",
                    what="the bytes that a phase is told to expect are out of range",
                    got=repr(n),
                    required=f"plain ints, 0 to {limits.MBARRIER_TX_MAX} in all (2^20 - 1, PTX mbarrier)",
                    fix="pass `tile.nbytes`",
                    site=caller_site(),
                )
            )
        total += n
    return total


def _thread_block(recorder: Recorder, thread: int, what: str) -> ThreadSet:
    if type(thread) is not int or not 0 <= thread < recorder.threads:
        raise ScopeError(
            Diagnostic(
                rule="OX1043", what=f"{what} names a thread that the CTA does not have", got=repr(thread), required=f"0 to {recorder.threads - 1}", fix="use thread 0", site=caller_site()
            )
        )
    return ThreadSet(((thread, thread + 1),))


def _init(recorder: Recorder, decl: int, stages: int, count: int, thread: int) -> None:
    """One thread initialises, fences for the cluster where there is one, then the CTA syncs (PTX mbarrier.init, fence.mbarrier_init)."""
    recorder.require_toplevel("`init`")
    if type(count) is not int or not 1 <= count <= limits.MBARRIER_COUNT_MAX:
        raise StateError(
            Diagnostic(
                rule="OX1044",
                what=f"barrier {recorder.barriers[decl].name!r} cannot count to that",
                got=repr(count),
                required=f"1 to {limits.MBARRIER_COUNT_MAX} arrivals (PTX mbarrier.init)",
                fix="pass the number of threads that arrive in each phase",
                site=caller_site(),
            )
        )
    threads = _thread_block(recorder, thread, "`init_by`")
    frame = recorder.push(ops.Scope(role="thread", threads=threads), threads)
    for i in range(stages):
        recorder.emit(ops.MbarrierInit(bar=BarrierRef(decl, expr.Const(i)), count=count))
    if recorder.cluster != (1, 1, 1):
        recorder.emit(ops.FenceMbarrierInit())
    recorder.pop(frame)
    recorder.emit(ops.BarSync(number=0, threads=recorder.threads))


def _inval(recorder: Recorder, decl: int, stages: int, thread: int) -> None:
    """The CTA syncs, so that nobody still waits, then one thread invalidates."""
    recorder.require_toplevel("`inval`")
    threads = _thread_block(recorder, thread, "`inval_by`")
    recorder.emit(ops.BarSync(number=0, threads=recorder.threads))
    frame = recorder.push(ops.Scope(role="thread", threads=threads), threads)
    for i in range(stages):
        recorder.emit(ops.MbarrierInval(bar=BarrierRef(decl, expr.Const(i))))
    recorder.pop(frame)
