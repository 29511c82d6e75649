"""Wide im2col copies: the walk along w alone, with a halo of pixels behind the row, or behind each 32 of 128.

From the documentation (PTX 5.5.5), not measured: no GPU with them was there. What it leaves open is taken so: the walk goes on from the end
of the box of bases to the next image, as the other im2col walk does with one row; a halo is what the walk would bring next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, final

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.isa.im2col import wide_rows
from oxidecopy.program.tensor_map import IM2COL_WIDE

if TYPE_CHECKING:
    from oxidecopy.engines.sim.ledger import Region
    from oxidecopy.engines.sim.memory import Array
    from oxidecopy.engines.sim.packed import PackedPlan
    from oxidecopy.engines.sim.pixels import PixelPlan


@final
class WidePlan:
    """A plan of a wide map as one copy uses it: with its halo. Places are coordinates, then offset and halo."""

    __slots__ = ("_plan", "layout", "map", "nbytes")

    def __init__(self, plan: PixelPlan | PackedPlan, halo: int) -> None:
        self._plan = plan
        self.map = plan.map
        pixels, _ = plan.map.box_dim
        self.layout = replace(plan.layout, shape=(wide_rows(plan.map.mode, pixels, halo), plan.layout.shape[-1]))
        self.nbytes = self.layout.nbytes

    def check(self, place: Sequence[int]) -> None:
        self._plan.check(place)

    def check_store(self, place: Sequence[int]) -> None:
        self._plan.check_store(place)

    def load(self, place: Sequence[int]) -> Array:
        return self._plan.load(place)

    def regions(self, place: Sequence[int]) -> list[Region]:
        return self._plan.regions(place)

    def over_elements(self, place: Sequence[int]) -> int:
        return self._plan.over_elements(place)

    def store(self, place: Sequence[int], units: Array) -> None:
        self._plan.store(place, units)

    def reduce(self, place: Sequence[int], units: Array, op: str) -> None:
        self._plan.reduce(place, units, op)


def halo_of(op: ops.TensorCopy | ops.TensorPrefetch, mode: str) -> int | None:
    """The halo of a load through a wide map; None for other copies."""
    offsets = op.offsets if isinstance(op, ops.TensorG2S | ops.TensorG2SMulticast) else ()
    if mode not in IM2COL_WIDE or not offsets:
        return None
    halo = offsets[-1]
    return halo.value if isinstance(halo, Const) else 0
