"""`ManagedBarrier[State, Kind, ID]`: an mbarrier whose state is in its type.

A state change returns a new handle and consumes the old one; a consumed handle, or one of another state, is refused while recording with
the same words a checker's error stands for. Names follow PTX (9.7.13.15) and cuda-oxide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import Cause, MovedError, RecordError, StateError, TokenError
from oxidecopy.isa import expr, ops
from oxidecopy.isa.ops import BarrierRef
from oxidecopy.typed.barrier_ops import record_init, record_inval, tx_bytes
from oxidecopy.typed.leader import Leader, check_leader, leader_of
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.states import AnyId, Invalidated, Kind, Owned, Ready, State, TmaBarrier, Uninit
from oxidecopy.typed.symbolic import Idx, Pred, shown
from oxidecopy.typed.tokens import BarrierToken, TxToken

if TYPE_CHECKING:
    from oxidecopy.isa.expr import Expr
    from oxidecopy.typed.recorder import Recorder

S = TypeVar("S", bound=State)
K = TypeVar("K", bound=Kind, default=TmaBarrier)
ID = TypeVar("ID", default=AnyId)


@final
class ManagedBarrier(Generic[S, K, ID]):
    """One mbarrier in shared memory, made by `cta.barrier` (or an element of `cta.barriers`)."""

    __slots__ = ("_array", "_decl", "_index", "_kind", "_recorder", "_state", "_taken")

    def __init__(self, recorder: Recorder, decl: int, kind: type[Kind], state: type[State]) -> None:
        self._recorder = recorder
        self._decl = decl
        self._kind = kind
        self._state = state
        self._index: Expr = expr.ZERO
        self._array: ManagedBarrier[Any, Any, Any] | None = None  # the handle of the array that an element is borrowed from
        self._taken: Cause | None = None

    @override
    def __repr__(self) -> str:
        return f"ManagedBarrier({self._name()}, {'taken' if self._taken else self._state.__name__})"

    def _borrow(self, index: Expr) -> ManagedBarrier[S, K, ID]:
        """Element `index` of the array that this handle stands for; it ends with the handle."""
        element: ManagedBarrier[S, K, ID] = ManagedBarrier(self._recorder, self._decl, self._kind, self._state)
        element._index = index
        element._array = self
        return element

    # ---- life
    def init(self: Owned[ManagedBarrier[Uninit, K, ID]], count: int) -> ManagedBarrier[Ready, K, ID]:
        """Starts phase 0 with `count` arrivals per phase; thread 0 does it, then the CTA syncs. Consumes this handle."""
        return self.init_by(count, 0)

    def init_by(self: Owned[ManagedBarrier[Uninit, K, ID]], count: int, thread: int) -> ManagedBarrier[Ready, K, ID]:
        """As `init`, by thread number `thread`."""
        self._require(Uninit, "init")
        record_init(self._recorder, self._decl, 1, count, thread)
        self._taken = Cause("`init` took it here", caller_site())
        return ManagedBarrier(self._recorder, self._decl, self._kind, Ready)

    def inval(self: Owned[ManagedBarrier[Ready, K, ID]]) -> ManagedBarrier[Invalidated, K, ID]:
        """Ends the barrier, after a sync of the CTA, so that its memory may be used for something else. Consumes this handle."""
        return self.inval_by(0)

    def inval_by(self: Owned[ManagedBarrier[Ready, K, ID]], thread: int) -> ManagedBarrier[Invalidated, K, ID]:
        """As `inval`, by thread number `thread`."""
        self._require(Ready, "inval")
        if self._array is not None:
            refuse(
                StateError,
                "OX1041",
                "one element of a barrier array cannot be invalidated",
                got=self._name(),
                required="the array lives and ends as a whole",
                fix="call `inval` on the array",
            )
        record_inval(self._recorder, self._decl, 1, thread)
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
        rank = self._rank(cta_rank, "arrive_remote")
        self._recorder.emit(ops.MbarrierArriveRemote(bar=self._ref(), rank=rank))

    def arrive_expect_tx(
        self: ManagedBarrier[Ready, TmaBarrier, ID], leader: Leader, *nbytes: int | SharedArray[Any, Any, Any]
    ) -> TxToken[TmaBarrier, ID]:
        """Announces bytes (numbers, or tiles for their `nbytes`) and arrives, in one step; the token lets copies be issued."""
        total = self._announce("arrive_expect_tx", leader, nbytes)
        token: TxToken[TmaBarrier, ID] = TxToken(self._recorder, self._ref())
        self._recorder.emit(ops.MbarrierArriveExpectTx(bar=self._ref(), nbytes=total, token=token._number))
        return token

    def arrive_expect_tx_remote(
        self: ManagedBarrier[Ready, TmaBarrier, ID], leader: Leader, *nbytes: int | SharedArray[Any, Any, Any], cta_rank: Idx
    ) -> None:
        """`arrive_expect_tx` on the same barrier of cluster CTA `cta_rank`. There is no token to wait for."""
        total = self._announce("arrive_expect_tx_remote", leader, nbytes)
        rank = self._rank(cta_rank, "arrive_expect_tx_remote")
        self._recorder.emit(ops.MbarrierArriveExpectTxRemote(bar=self._ref(), nbytes=total, rank=rank))

    def expect_tx(self: ManagedBarrier[Ready, TmaBarrier, ID], leader: Leader, *nbytes: int | SharedArray[Any, Any, Any]) -> None:
        """Announces bytes without arriving; an arrival of the same phase must follow."""
        total = self._announce("expect_tx", leader, nbytes)
        self._recorder.emit(ops.MbarrierExpectTx(bar=self._ref(), nbytes=total))

    def complete_tx(self: ManagedBarrier[Ready, TmaBarrier, ID], leader: Leader, *nbytes: int | SharedArray[Any, Any, Any]) -> None:
        """Takes announced bytes off, as a landed copy would."""
        total = self._announce("complete_tx", leader, nbytes)
        self._recorder.emit(ops.MbarrierCompleteTx(bar=self._ref(), nbytes=total))

    # ---- waits
    def wait(self: ManagedBarrier[Ready, K, ID], token: Owned[BarrierToken[K, ID]], /, *more: Owned[BarrierToken[K, ID]]) -> None:
        """All threads in scope wait until the phases that the tokens name are over. Consumes the tokens."""
        tokens = (token, *more)
        self._require(Ready, "wait")
        here = caller_site()
        for t in tokens:
            self._check_token(t, "wait")
            t._taken = here
        self._recorder.emit(ops.MbarrierWait(bar=self._ref(), tokens=tuple(t._number for t in tokens)))

    def wait_phase(self: ManagedBarrier[Ready, K, ID], k: Idx, /) -> None:
        """Waits for completion number `k` (0 is the first). A negative `k` passes at once."""
        self._require(Ready, "wait_phase")
        self._recorder.emit(ops.MbarrierWaitPhase(bar=self._ref(), phase=self._recorder.index(k, "a phase")))

    def wait_parity(self: ManagedBarrier[Ready, K, ID], parity: Idx, /) -> None:
        """try_wait.parity until true: passes when the current phase's parity differs from `parity` (0 or 1)."""
        self._require(Ready, "wait_parity")
        self._recorder.emit(ops.MbarrierWaitParity(bar=self._ref(), parity=self._parity(parity)))

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

    def _name(self) -> str:
        name = self._recorder.barriers[self._decl].name
        return repr(name) if self._array is None else f"{name}[{shown(self._index)}]"

    def _announce(self, what: str, leader: object, nbytes: tuple[object, ...]) -> int:
        self._require_bytes(what)
        issuer, total = leader_of(leader, f"`{what}`"), tx_bytes(nbytes)
        check_leader(issuer, self._recorder)
        return total

    def _require_bytes(self, what: str) -> None:
        """As `_require(Ready)`, of a barrier that counts bytes."""
        self._require(Ready, what)
        if self._kind is not TmaBarrier:
            refuse(
                StateError,
                "OX1008",
                f"`{what}` on barrier {self._name()}, which does not count bytes",
                got=self._kind.__name__,
                required=TmaBarrier.__name__,
                fix="make it with `cta.barrier()`",
            )

    def _rank(self, cta_rank: Idx, what: str) -> Expr:
        self._recorder.require_cluster(f"`{what}`")
        return self._recorder.index(cta_rank, f"the cluster rank of `{what}`")

    def _parity(self, parity: Idx) -> Expr:
        fix = "use `k % 2`, or `wait_phase(k)`, which counts phases"
        return self._recorder.below(parity, 2, "a parity", RecordError, "OX1070", fix)

    def _test(self, form: str, token: BarrierToken[Any, Any]) -> Pred:
        self._require(Ready, form)
        self._check_token(token, form)
        pred = self._recorder.next_pred()
        self._recorder.emit(ops.MbarrierTestToken(form=form, bar=self._ref(), token=token._number, pred=pred))
        return Pred(expr.Answer(pred), self._recorder)

    def _test_parity(self, form: str, parity: Idx) -> Pred:
        self._require(Ready, form)
        at = self._parity(parity)
        pred = self._recorder.next_pred()
        self._recorder.emit(ops.MbarrierTestParity(form=form, bar=self._ref(), parity=at, pred=pred))
        return Pred(expr.Answer(pred), self._recorder)

    def _require(self, state: type[State], what: str) -> None:
        """The run-time twin of the self types above."""
        name = self._name()
        self._recorder.check_open(f"barrier {name}")
        taken = self._taken or (self._array and self._array._taken)
        if taken:
            ended = taken.what.startswith("`inval`")
            refuse(
                MovedError,
                "OX1003",
                f"`{what}` on a handle of barrier {name} that was already taken",
                got="the handle of a barrier that is no more" if ended else "the old handle",
                required="a use before `inval`" if ended else "the handle that the earlier call returned",
                fix="move `inval` behind the last use" if ended else "keep its result: `full = bar.init(1)`, then use `full`",
                causes=(taken,),
            )
        if self._state is state:
            return
        rule, fix = {
            Uninit: ("OX1001", "call `init(count)` first and use its result"),
            Ready: ("OX1054", "initialise it once, and use the result of that `init`"),
            Invalidated: ("OX1002", "use the barrier between `init` and `inval`"),
        }[self._state]
        required = f"a barrier that is {state.__name__}"
        refuse(StateError, rule, f"`{what}` on barrier {name} in the wrong state", got=self._state.__name__, required=required, fix=fix)

    def _check_token(self, token: object, what: str) -> None:
        """`token` must be alive and of this very barrier."""
        if not isinstance(token, BarrierToken):
            refuse(
                TokenError,
                "OX1055",
                f"`{what}` needs a token",
                got=described(token),
                required="what `arrive` or `arrive_expect_tx` returned",
                fix="token = bar.arrive()",
            )
        token._use(f"`{what}`", self._recorder)
        if token._ref != self._ref():
            other = self._recorder.barriers[token._ref.barrier].name
            refuse(
                TokenError,
                "OX1005",
                f"`{what}` on barrier {self._name()} gets a token of another barrier",
                got=f"a token of {other!r}" if token._ref.barrier != self._decl else f"a token of another element of {other!r}",
                required="a token of the same barrier",
                fix="wait on the barrier that the token came from",
                causes=(Cause("the token was made here", token._made),),
            )


# cuda-oxide's short name for the common case.
TmaBarrierHandle: TypeAlias = ManagedBarrier[S, TmaBarrier, AnyId]
