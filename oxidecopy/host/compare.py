"""Results against what they must be: equal byte for byte, any NaN equal to any NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from typing_extensions import override

if TYPE_CHECKING:
    import numpy.typing as npt


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How one output differs.

    Attributes:
        count: elements that differ; 0 when shape or element type do.
        index: the first of them, outermost first.
    """

    name: str
    got: str
    required: str
    count: int = 0
    size: int = 0
    index: tuple[int, ...] = ()

    @override
    def __str__(self) -> str:
        if not self.count:
            return f"{self.name} is {self.got}, expected {self.required}"
        place = ", ".join(map(str, self.index))
        return (
            f"{self.name} differs in {self.count:,} of {self.size:,} elements, first at [{place}]: got {self.got}, expected {self.required}"
        )


def difference(name: str, got: npt.NDArray[Any], wanted: npt.NDArray[Any], within: float = 0.0) -> Difference | None:
    """None when they are the same. Signed zeros differ: a copy keeps every bit. With `within` numbers may be that far apart."""
    import numpy as np

    wanted = np.asarray(wanted)
    if wanted.dtype.kind == "V" and wanted.dtype.itemsize == got.dtype.itemsize:
        wanted = wanted.view(got.dtype)  # what `np.load` makes of an ml_dtypes array: bytes without a name
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return Difference(name=name, got=f"{got.dtype} {got.shape}", required=f"{wanted.dtype} {wanted.shape}")
    differs = (_bytes(got) != _bytes(wanted)).any(axis=-1)
    if differs.any() and got.dtype.kind in "fcV":
        # Kind V covers the ml_dtypes floats, which know NaN as well, and warn of it.
        with np.errstate(invalid="ignore"):
            differs &= ~((got != got) & (wanted != wanted))  # noqa: PLR0124  # only NaN differs from itself
    if within and differs.any():
        differs &= ~(np.abs(got.astype(np.float64) - wanted.astype(np.float64)) <= within)
    if not differs.any():
        return None
    index = tuple(int(i) for i in np.unravel_index(int(differs.argmax()), got.shape))
    return Difference(name=name, got=str(got[index]), required=str(wanted[index]), count=int(differs.sum()), size=got.size, index=index)


def _bytes(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The bytes of each element along a new last dimension."""
    import numpy as np

    return np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
