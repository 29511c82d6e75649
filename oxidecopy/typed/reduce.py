"""Reduction operations, as objects: `dst.reduce(ox.reduce.add, leader, tile, coords)`.

An object's type parameter is what the element type must be able to do, so that `ox.reduce.min` on an f32 map is a type error in every
checker (a bounded type variable on `self` would not be one in mypy).
"""

from __future__ import annotations

from typing import Final, Generic, final

from typing_extensions import TypeVar

from oxidecopy.typed.dtypes import DType, HasAdd, HasBits, HasIncDec, HasMinMax

DT_contra = TypeVar("DT_contra", bound=DType, contravariant=True)


@final
class ReduceOp(Generic[DT_contra]):
    """An operation of cp.reduce.async.bulk.tensor; `name` as in the op table."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"ox.reduce.{self.name}"


add: Final[ReduceOp[HasAdd]] = ReduceOp("add")
min: Final[ReduceOp[HasMinMax]] = ReduceOp("min")  # noqa: A001  # PTX's word; used as ox.reduce.min
max: Final[ReduceOp[HasMinMax]] = ReduceOp("max")  # noqa: A001  # as above
inc: Final[ReduceOp[HasIncDec]] = ReduceOp("inc")
dec: Final[ReduceOp[HasIncDec]] = ReduceOp("dec")
bit_and: Final[ReduceOp[HasBits]] = ReduceOp("bit_and")
bit_or: Final[ReduceOp[HasBits]] = ReduceOp("bit_or")
bit_xor: Final[ReduceOp[HasBits]] = ReduceOp("bit_xor")
