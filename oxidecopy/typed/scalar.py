"""`Scalar[DT]`: a parameter whose value is known at launch. It is a value of an element type, never an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, final

from typing_extensions import TypeVar, override

from oxidecopy.errors import SymbolicError
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.refusal import refuse

DT = TypeVar("DT", bound=DType)


class TakesScalars:
    """Base of what has operators for scalars of its own: `alpha * v` is left to `v`."""

    __slots__ = ()


@final
class ScalarValue(Generic[DT]):
    """A scalar parameter while a pipeline is recorded: a value of an element type, for tile operations."""

    __slots__ = ("dtype_name", "name", "owner")

    def __init__(self, name: str, dtype_name: str, owner: object) -> None:
        self.name = name
        self.dtype_name = dtype_name
        self.owner = owner

    @override
    def __repr__(self) -> str:
        return f"Scalar[{self.dtype_name}] {self.name!r}"

    if not TYPE_CHECKING:
        __array_ufunc__ = None  # numpy's scalars then leave the operation to this class

        def __bool__(self) -> NoReturn:  # noqa: PLE0304  # it refuses
            refuse(
                SymbolicError,
                "OX1020",
                f"scalar {self.name!r} has no truth value while the pipeline is recorded",
                got=repr(self),
                required="a value that is known while recording",
                fix="pass a plain int or bool parameter",
            )

        def __index__(self) -> NoReturn:  # noqa: PLE0305  # it refuses
            refuse(
                SymbolicError,
                "OX1021",
                f"scalar {self.name!r} has no value while the pipeline is recorded",
                got=repr(self),
                required="a value that is known while recording",
                fix="declare it as `ox.Idx`, or as a plain int",
            )

        __int__ = __float__ = __complex__ = __index__

        def _no_arithmetic(self, other: Any, *_: Any) -> Any:
            if isinstance(other, TakesScalars):
                return NotImplemented
            refuse_as_index(self, "an operand of index arithmetic")

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_arithmetic
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = _no_arithmetic


def refuse_as_index(value: ScalarValue[Any], what: str) -> NoReturn:
    """Refuses a scalar where an `Idx` is needed."""
    refuse(
        SymbolicError,
        "OX1024",
        f"scalar {value.name!r} is used as {what}: scalars are values for tiles and may not reach coordinates or trip counts",
        got=f"Scalar[{value.dtype_name}]",
        required="int or ox.Idx",
        fix=f"declare the parameter as `{value.name}: ox.Idx`",
    )


Scalar: TypeAlias = ScalarValue[DT] | float
