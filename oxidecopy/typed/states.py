"""Type-level words: barrier states, kinds and brands, and the mark of an owned parameter. None has instances."""

from __future__ import annotations

from typing import Annotated, TypeAlias, final

from typing_extensions import TypeVar

_T = TypeVar("_T")

# A parameter marked Owned takes the handle; the caller's name is gone afterwards. Unmarked parameters borrow.
Owned: TypeAlias = Annotated[_T, "oxidecopy: moved"]


class State:
    """Base of the barrier states."""


@final
class Uninit(State):
    """Shared memory is set aside, `init` has not run."""


@final
class Ready(State):
    """Initialised: it can be arrived at and waited for."""


@final
class Invalidated(State):
    """Ended by `inval`."""


class Kind:
    """Base of the barrier kinds."""


@final
class TmaBarrier(Kind):
    """Counts arrivals and the bytes of copies."""


@final
class MmaBarrier(Kind):
    """Counts arrivals of tensor-core consumers."""


@final
class GeneralBarrier(Kind):
    """Counts arrivals of threads only."""


@final
class AnyId:
    """The brand of a barrier that was given none."""
