"""gather4 and scatter4: four rows of a rank-2 map in one copy. Places are the four rows, then the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, final

import numpy as np

from oxidecopy.engines.sim.faults import ILLEGAL_INSTRUCTION, Fault
from oxidecopy.engines.sim.ledger import Region
from oxidecopy.engines.sim.memory import Array
from oxidecopy.engines.sim.packed import PackedPlan
from oxidecopy.engines.sim.pixels import PixelPlan
from oxidecopy.engines.sim.tma import TensorPlan
from oxidecopy.program.tensor_map import TensorMap

ROWS: Final = 4


def gather_plan(plan: TensorPlan | PixelPlan | PackedPlan) -> GatherPlan:
    """Four times the map of a copy."""
    if isinstance(plan, PixelPlan):
        raise _wrong_map(plan.map)
    return GatherPlan(plan)


def _wrong_map(found: TensorMap) -> Fault:
    return Fault(
        ILLEGAL_INSTRUCTION,
        "gather4 and scatter4 go through maps of rank 2 whose box is one row",
        got=f"a {found.mode} map of rank {found.rank}, box {found.box_dim}",
        required="rank 2, box (1, n)",
        fix="make a descriptor with box=(1, n)",
    )


@final
class GatherPlan:
    """A map whose box is one row, used four times. From the documentation, not measured: no GPU with it was there."""

    __slots__ = ("_plan", "layout", "map", "nbytes")

    def __init__(self, plan: TensorPlan | PackedPlan) -> None:
        self._plan = plan
        self.map = plan.map
        self.layout = replace(plan.layout, shape=(ROWS, plan.layout.shape[-1]))
        self.nbytes = ROWS * plan.nbytes

    def check(self, place: Sequence[int]) -> None:
        if self.map.rank != 2 or self.map.box_dim[0] != 1:
            raise _wrong_map(self.map)
        self._plan.check(self._rows(place)[0])

    def check_store(self, place: Sequence[int]) -> None:
        self.check(place)
        for at in self._rows(place):
            self._plan.check_store(at)

    def load(self, place: Sequence[int]) -> Array:
        """The four rows, one below the other."""
        return np.concatenate([np.array(self._plan.load(at)) for at in self._rows(place)])

    def regions(self, place: Sequence[int]) -> list[Region]:
        return [region for at in self._rows(place) for region in self._plan.regions(at)]

    def over_elements(self, place: Sequence[int]) -> int:
        return max(self._plan.over_elements(at) for at in self._rows(place))

    def store(self, place: Sequence[int], units: Array) -> None:
        """In order: where two rows are the same the last one stays (the hardware promises no order)."""
        for at, row in zip(self._rows(place), units.reshape(ROWS, 1, -1), strict=True):
            self._plan.store(at, row)

    def reduce(self, place: Sequence[int], units: Array, op: str) -> None:
        for at, row in zip(self._rows(place), units.reshape(ROWS, 1, -1), strict=True):
            self._plan.reduce(at, row, op)

    def _rows(self, place: Sequence[int]) -> list[tuple[int, int]]:
        *rows, column = place
        return [(row, column) for row in rows]
