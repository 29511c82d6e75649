"""Integers read while a program runs: indices in global memory, and the share of a launch's tiles that a counter gives each CTA.

Any way of sharing is possible on hardware: a CTA may come late and find nothing left, or take all. Each seed shows another one. What a CTA
is given ascends, as the numbers of one counter do.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, final

import numpy as np

from oxidecopy.engines.sim.faults import INVALID_VALUE, LAUNCH_FAILED, Fault, Refused
from oxidecopy.engines.sim.lower_access import array_view, numpy_type
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Sym

if TYPE_CHECKING:
    from oxidecopy.engines.sim.agents import Agent, Op
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering
    from oxidecopy.engines.sim.memory import Array

INDEX_RANGE: Final = "OX4015"
SHARE_OVER: Final = "OX4016"
_TILES_MAX: Final = 1 << 24  # handed out one by one; more would not end either


class Trap(Fault):
    """A check of the program's own ends the launch; `rule` says which."""

    def __init__(self, rule: str, what: str, *, got: str, required: str, fix: str) -> None:
        super().__init__(LAUNCH_FAILED, what, got=got, required=required, fix=fix)
        self.rule = rule


# ---- shares
@final
class Shares:
    """Who is given which tiles, by the name of the share; the same for all agents of a CTA, and one deal for a launch.

    With `turns` the first so many CTAs are given one after the other, as where all tiles take the same time.
    """

    def __init__(self, seed: int, grid: tuple[int, int, int], *, turns: int = 0) -> None:
        self._turns = turns
        self._random = Random(f"shares {seed}")
        self._grid = grid
        self._dealt: dict[str, list[list[int]]] = {}

    def of(self, name: str, tiles: int, block: tuple[int, int, int]) -> list[int]:
        """The tiles of one CTA, dealt at the first call for a share."""
        if name not in self._dealt:
            self._dealt[name] = self._deal(tiles)
        x, y, z = block
        return self._dealt[name][x + self._grid[0] * (y + self._grid[1] * z)]

    def _deal(self, tiles: int) -> list[list[int]]:
        """Each tile to one CTA, with chances so uneven that some are given none and some far more than others."""
        if not 0 <= tiles <= _TILES_MAX:
            raise Refused(INVALID_VALUE, "a counter cannot count that many tiles", got=str(tiles), required=f"0 to {_TILES_MAX}")
        x, y, z = self._grid
        dealt: list[list[int]] = [[] for _ in range(x * y * z)]
        if self._turns:
            for tile in range(tiles):
                dealt[tile % min(self._turns, len(dealt))].append(tile)
            return dealt
        chances = [self._random.random() ** 4 if self._random.random() < 0.75 else 0.0 for _ in dealt]
        chances[self._random.randrange(len(dealt))] += 0.1
        for tile, cta in enumerate(self._random.choices(range(len(dealt)), chances, k=tiles)):
            dealt[cta].append(tile)
        return dealt


def share(low: Lowering, op: ops.ShareTiles) -> Make:
    shares, slot, tiles, name = low.machine.shares, low.name(op.name), low.value(op.tiles), op.name

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            given = shares.of(name, tiles(agent.env), agent.cta.block)
            agent.given[name] = given
            agent.env[slot] = len(given)
            return nxt

        return run

    return make


def next_tile(low: Lowering, op: ops.NextTile) -> Make:
    index, slot = low.value(op.index), low.name(op.name)
    trips = op.trips.name if isinstance(op.trips, Sym) else ""

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            given, i = agent.given.get(trips, []), index(agent.env)
            if not 0 <= i < len(given):
                raise Trap(
                    SHARE_OVER,
                    "a CTA asks for a tile that the counter has not given it",
                    got=f"tile number {i} of its share",
                    required=f"0 to {len(given) - 1}" if given else "none: its share is empty",
                    fix="loop over the schedule itself: `for at in work`, `ring.stages(group, work)`",
                )
            agent.env[slot] = given[i]
            return nxt

        return run

    return make


# ---- indices
def load_index(low: Lowering, op: ops.LoadIndex) -> Make:
    array, memory, index, below = low.bound.arrays[op.array.name], low.bound.memory, low.value(op.index), low.value(op.below)
    row = DTYPES[array.info.dtype]
    if len(array.info.shape) != 1 or not np.issubdtype(numpy_type(row), np.integer):
        raise Refused(
            INVALID_VALUE,
            f"indices cannot be read from {op.array.name!r}",
            got=f"{array.info.dtype} of rank {len(array.info.shape)}",
            required="a 1-D integer array",
        )
    slot, name, extent, dtype = low.name(op.name), op.array.name, array.info.shape[0], numpy_type(row)
    views: list[Array] = []

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            i, bound = index(agent.env), below(agent.env)
            if not views:
                views.append(array_view(array, memory))
            value = int(views[0][i : i + 1].view(dtype)[0]) if 0 <= i < extent else 0
            if not 0 <= i < extent or not 0 <= value < bound:
                raise Trap(
                    INDEX_RANGE,
                    f"an index read from {name!r} is out of range" if 0 <= i < extent else f"an index is read from outside {name!r}",
                    got=f"{name}[{i}] = {value}" if 0 <= i < extent else f"{name}[{i}]",
                    required=f"0 to {bound - 1} (below={bound})" if 0 <= i < extent else f"elements 0 to {extent - 1}",
                    fix="check the indices on the host, or raise `below` to the extent that they go into",
                )
            agent.env[slot] = value
            return nxt

        return run

    return make
