"""A case: one launch that can be made on any device, with data of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from oxidecopy.typed.global_array import storage_dtype

if TYPE_CHECKING:
    import numpy.typing as npt

    import oxidecopy as ox
    from oxidecopy.host.bound import BoundLaunch
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A launch on one device, and the arrays whose bytes are compared after it.

    `within`: of outputs that need not be equal bit for bit, how far elements may be from the reference.
    `sizes`: the numbers whose last place counts where a case has an `ulp`; without them the reference's own.
    """

    launch: BoundLaunch
    outputs: dict[str, ox.GlobalArray[Any, Any]]
    sizes: npt.NDArray[np.float32] | None = None
    within: Mapping[str, float] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`make` is called once for each device and must give them the same data.

    Attributes:
        group: the part of the programming model that it belongs to; a row of the table.
        whole: compare the arrays' memory; else only their elements, where what lies between rows was never set.
        emitted: `oxidecopy emit` writes it as CUDA C++, too.
        records: a GPU runs it by records alone, whatever the whole program is.
        ulp: how far elements of f32 may be from the reference, in units of the last place; 0: every bit.
    """

    name: str
    group: str
    make: Callable[[Device], Made]
    whole: bool = True
    ulp: int = 0
    emitted: bool = True
    records: bool = False


def random_bits(dtype: type[DType], shape: Sequence[int], seed: int) -> npt.NDArray[Any]:
    """Every bit pattern of the type: subnormals, infinities and NaNs of all kinds among them."""
    nbytes = prod(shape) * dtype.info.nbytes
    return np.frombuffer(np.random.default_rng(seed).bytes(nbytes), storage_dtype(dtype.info)).reshape(shape).copy()


def small_integers(dtype: type[DType], shape: Sequence[int], seed: int) -> npt.NDArray[Any]:
    """Values from 0 to 7: exact in every type, and so are their sums in any order."""
    return np.random.default_rng(seed).integers(0, 8, size=shape).astype(storage_dtype(dtype.info))
