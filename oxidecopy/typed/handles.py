"""Stand-ins for launch arguments while a pipeline is recorded: what a `GlobalArray` parameter becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from oxidecopy.typed.descriptor import extents

if TYPE_CHECKING:
    from oxidecopy.program.program import ArrayParam
    from oxidecopy.typed.recorder import Recorder
    from oxidecopy.typed.symbolic import SymIdx


@final
class RecordedArray:
    """A global array whose extents and address are known at launch."""

    __slots__ = ("owner", "param")

    def __init__(self, owner: Recorder, param: ArrayParam) -> None:
        self.owner = owner
        self.param = param

    @property
    def shape(self) -> tuple[SymIdx, ...]:
        """Extents in elements, outermost first, as symbols."""
        return extents(self.owner, self.param.name, self.param.rank)
