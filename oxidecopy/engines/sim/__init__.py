"""The CPU simulator: numpy, real shared addresses, the hardware's odd rules. It never imports the verifier."""

from oxidecopy.engines.sim.engine import SimEngine as SimEngine
from oxidecopy.engines.sim.explore import Exploration as Exploration
from oxidecopy.engines.sim.explore import Schedules as Schedules
from oxidecopy.engines.sim.explore import explore as explore
from oxidecopy.engines.sim.explore import explore_all as explore_all
from oxidecopy.engines.sim.explore import explore_seeds as explore_seeds
from oxidecopy.engines.sim.memory import ForeignBuffer as ForeignBuffer
from oxidecopy.engines.sim.memory import SimBuffer as SimBuffer

__all__ = ["Exploration", "ForeignBuffer", "Schedules", "SimBuffer", "SimEngine", "explore", "explore_all", "explore_seeds"]
