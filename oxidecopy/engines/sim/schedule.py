"""In which order things happen when hazards are looked for: every choice is drawn from one seeded generator."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from oxidecopy.engines.sim.flight import Flight
    from oxidecopy.engines.sim.machine import Machine

LATENESS: Final = (0.02, 0.1, 0.4, 0.8)  # chance per step that a copy in flight moves; drawn once per cluster
TURN_OPS: Final = 8  # ops an agent runs at most before another choice is made


@final
class Schedule:
    """The adversary: legal, and reproducible for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def drive(self, machine: Machine, flight: Flight) -> None:
        """Runs the cluster until nobody is ready and nothing is in flight."""
        random, ready = self.random.random, machine.ready
        chance = LATENESS[int(random() * len(LATENESS))]
        while True:
            if flight.copies and (not ready or random() < chance):
                flight.advance(int(random() * len(flight.copies)))
            elif ready:
                ready.rotate(-int(random() * len(ready)))
                agent = ready.popleft()
                for _ in range(1 + int(random() * TURN_OPS)):
                    if not machine.step(agent):
                        break
                else:
                    ready.append(agent)
            else:
                return
