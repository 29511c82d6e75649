"""Stand-ins for launch arguments while a pipeline is recorded: what a `GlobalArray` parameter becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn, final

from typing_extensions import override

from oxidecopy.errors import ScopeError
from oxidecopy.typed import dtypes
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.symbolic import extents

if TYPE_CHECKING:
    from oxidecopy.program.program import ArrayParam
    from oxidecopy.typed.recorder import Recorder
    from oxidecopy.typed.symbolic import SymIdx


@final
class RecordedArray:
    """A global array whose extents and address are known at launch."""

    __slots__ = ("_param", "_recorder")
    shown_as: ClassVar = "GlobalArray"  # in errors: the class that users know

    def __init__(self, recorder: Recorder, param: ArrayParam) -> None:
        self._recorder = recorder
        self._param = param

    @property
    def dtype(self) -> type[dtypes.DType]:
        """The element type."""
        cls: type[dtypes.DType] = getattr(dtypes, self._param.dtype)
        return cls

    @property
    def shape(self) -> tuple[SymIdx, ...]:
        """Extents in elements, outermost first, as symbols."""
        return extents(self._recorder, self._param.name, self._param.rank)

    @override
    def __repr__(self) -> str:
        return f"GlobalArray({self._param.name!r}, {self._param.dtype}, rank {self._param.rank})"

    def __getattr__(self, name: str) -> object:
        """What else a `GlobalArray` has is known at launch only."""
        if name in dir(GlobalArray):
            refuse_unknown(f"`{name}` of array {self._param.name!r}")
        raise AttributeError(f"'GlobalArray' object has no attribute {name!r}", name=name, obj=self)


def refuse_unknown(what: str) -> NoReturn:
    """Refuses to tell something of a launch argument that is not known while recording."""
    refuse(
        ScopeError,
        "OX1060",
        f"{what} is not known while the pipeline is recorded",
        got="a parameter of a recorded pipeline",
        required="element type and `shape`, which is symbolic",
        fix="use `shape`, or pass what you need as an `Idx` parameter",
    )
