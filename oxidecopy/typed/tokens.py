"""Tokens: what an arrival gives, and what a wait or a copy asks for. A token is tied to its barrier, its loop iteration and its role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, final

from typing_extensions import TypeVar

from oxidecopy.errors import Cause, MovedError
from oxidecopy.isa.ops import BarrierRef
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.sites import caller_site
from oxidecopy.typed.states import AnyId, Kind, TmaBarrier

if TYPE_CHECKING:
    from oxidecopy.errors import Site
    from oxidecopy.typed.frames import Position
    from oxidecopy.typed.recorder import Recorder

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

    def _use(self, what: str, recorder: Recorder, *, copies: bool = False) -> None:
        """Checks that the token is alive here; `copies` count for its phase, in inner loops too."""
        self._recorder.check_open("a token", recorder)
        if self._taken is not None:
            refuse(
                MovedError,
                "OX1004",
                f"{what} uses a token that was already waited for",
                required="one wait per token",
                fix="arrive again for a new token, or drop the second wait",
                causes=(Cause("the token was made here", self._made), Cause("waited for here", self._taken)),
            )
        self._recorder.check_token_place(self, copies=copies)


@final
class TxToken(BarrierToken[K, ID]):
    """A token of an arrival that announced bytes: what a copy needs to be issued."""

    __slots__ = ()
