"""Stand-ins for launch arguments while a pipeline is recorded: what a `GlobalArray` parameter becomes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, final

from typing_extensions import override

from oxidecopy.errors import ScopeError
from oxidecopy.typed import dtypes
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.scalar import ScalarValue
from oxidecopy.typed.symbolic import SymIdx, extents

if TYPE_CHECKING:
    from oxidecopy.program.program import ArrayParam
    from oxidecopy.typed.recorder import Recorder


_VIEW: Final = "make the view before the launch, and pass it: pipe[grid](..., a.select(0, 1))"
_WAYS_OUT: Final = {
    **dict.fromkeys(("T", "permute", "select", "broadcast_to", "as_strided", "packed", "bytes"), _VIEW),
    "numpy": "it is read behind the launch; a number that says where copies go is `cta.load_index(array, i, below=n)`",
}


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
            refuse_unknown(f"`{name}` of array {self._param.name!r}", _WAYS_OUT.get(name, ""))
        raise AttributeError(f"'GlobalArray' object has no attribute {name!r}", name=name, obj=self)


def refuse_unknown(what: str, fix: str = "") -> NoReturn:
    """Refuses to tell something of a launch argument that is not known while recording."""
    refuse(
        ScopeError,
        "OX1060",
        f"{what} is not known while the pipeline is recorded",
        got="a parameter of a recorded pipeline",
        required="element type and `shape`, which is symbolic",
        fix=fix or "use `shape`, or pass what you need as an `Idx` parameter",
    )


def borrowing(x: object) -> str:
    """How an array of another library becomes one of ours; empty for what is none. Its type and rank are those that it says."""
    if isinstance(x, GlobalArray | RecordedArray) or not any(hasattr(x, name) for name in ("__dlpack__", "__cuda_array_interface__")):
        return ""
    if hasattr(x, "__array_struct__"):  # numpy's own
        return "dev.array(x)"
    rank = getattr(x, "ndim", None)
    return f"dev.borrow(x, {dtypes.element_named(getattr(x, 'dtype', None)) or 'ox.f32'}, rank={rank if isinstance(rank, int) else 2})"


def refuse_recorded(what: str, values: Iterable[object]) -> None:
    """Refuses what the host does (`what`: a launch, say) when one of `values` is a parameter of a pipeline that is being recorded."""
    for value in values:
        number = isinstance(value, SymIdx | ScalarValue) and value.owner is not None
        if number or isinstance(value, RecordedArray) or getattr(value, "_recorder", None) is not None:
            refuse(
                ScopeError,
                "OX1060",
                f"{what} is for the host, and a pipeline is being recorded",
                got="a parameter of a recorded pipeline",
                required="arrays and descriptors of the host",
                fix="do it before or behind the launch; what pipelines share is a plain function that takes `cta`",
            )
